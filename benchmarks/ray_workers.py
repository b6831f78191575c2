"""All streaming measures over a corpus, with two one-thread Ray workers beside one.

Promise: at least 1.6 × the rate, and the same numbers, byte for byte. Needs two free cores, `headscope[ray]` and
`../shared`.

python benchmarks/ray_workers.py                   # 2,000 sentences, some minutes
python benchmarks/ray_workers.py --sentences 400 --rounds 1
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import headscope as hs
from headscope.analysis.measures.corpus_measures import streaming
from headscope.corpora import Example
from headscope.runs import Ray

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".benchmarks"
SHARD = 64
PROMISE = 1.6


class Clock:
    """Hears how far a run is; the rate is taken from the first shard on, when every worker has its model loaded."""

    def __init__(self, n_workers: int):
        self.skipped, self.seen = n_workers * SHARD, []

    def __call__(self, progress: hs.Progress) -> None:
        self.seen.append((time.perf_counter(), progress.done))

    def rate(self) -> float:
        """Examples a second."""
        warm = [reading for reading in self.seen if reading[1] >= self.skipped]
        (began, first), (ended, last) = warm[0], warm[-1]
        return (last - first) / (ended - began)


def sentences(data: Path, n: int) -> list[Example]:
    """Sentences of 14 to 30 words, so that shards are much alike."""
    corpus = hs.corpus(data / "ud_english_ewt" / "en_ewt-ud-train.conllu.xz")
    suitable = (example for example in corpus if 14 <= len(example.words) <= 30)
    return [example for example, _ in zip(suitable, range(n), strict=False)]


def main() -> None:
    """Alternate one worker and two, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    weights = str(options.shared / "weights" / "all-minilm-l6-v2-fp16")
    examples = sentences(options.shared / "data", options.sentences)
    measures = streaming(examples, hs.load(weights))
    rates: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(options.rounds):
        files: list[dict[str, bytes]] = []
        for n_workers in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                clock = Clock(n_workers)
                engine = Ray(n_workers=n_workers)
                hs.runs.run(weights, examples, measures, folder, engine=engine, shard_size=SHARD, progress=clock)
                files.append({file.name: file.read_bytes() for file in Path(folder).iterdir()})
            rates[n_workers].append(clock.rate())
        assert files[0] == files[1], "two workers gave other numbers than one"
        print(f"round {turn + 1}: {rates[1][-1]:.0f} and {rates[2][-1]:.0f} sentences a second")
    ratio = statistics.median(two / alone for alone, two in zip(rates[1], rates[2], strict=True))
    print(f"two workers: {ratio:.2f} × one (promise: {PROMISE} ×), same files")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ray.json").write_text(json.dumps({"ratio": ratio, "promise": PROMISE, "rates": rates}, indent=1))


if __name__ == "__main__":
    main()
