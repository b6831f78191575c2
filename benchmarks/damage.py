"""One flipped bit in a run on disk: is it refused by name, or does it change numbers?

Promise: of 600 single-bit flips, spread evenly over all files of a small run (manifest, shards, tables of examples),
none changes a number silently and none ends in an error that is not ours. Every flip is read through every public
reader: scores, tables, remarks, SQL, examples, and by resuming the run.

python benchmarks/damage.py                                   # a minute
PYTHONPATH=older/src python benchmarks/damage.py --flips 60   # the trial of another version
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".benchmarks"
sys.path.insert(0, str(ROOT / "tests"))

from damage import KINDS, RAW, SILENT, SmallRun, Trial, flips  # noqa: E402  (from the folder of the tests)

import headscope  # noqa: E402


def main() -> None:
    """Damage, read, count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*", help="Only files of these names, such as 'shard-*'.")
    parser.add_argument("--show", type=int, default=0, help="Print this many of the failures.")
    options = parser.parse_args()
    trial = Trial()
    with tempfile.TemporaryDirectory() as folder:
        small = SmallRun(Path(folder) / "run")
        for label, damage in flips(small, options.flips, options.seed, options.only):
            trial.add(label, small, damage)
    print(
        f"{Path(headscope.__file__).parent}: {options.flips} flips over {len(small.whole)} files, seed {options.seed}"
    )
    for kind in KINDS:
        print(f"{trial.worst[kind]:5} {kind} (the worst over all readers)")
    for reader, counts in trial.by_reader.items():
        print(f"      {reader:10} {'; '.join(f'{counts[kind]} {kind}' for kind in KINDS if counts[kind])}")
    for line in trial.failures[: options.show]:
        print(" ", " ".join(line.split())[:200])
    RESULTS.mkdir(exist_ok=True)
    result = {
        "flips": options.flips,
        "seed": options.seed,
        "only": options.only,
        "worst": trial.worst,
        "readers": trial.by_reader,
    }
    (RESULTS / "damage.json").write_text(json.dumps(result, indent=1))
    if trial.worst[SILENT] or trial.worst[RAW]:
        sys.exit(1)


if __name__ == "__main__":
    main()
