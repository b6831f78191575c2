"""Is the quick set quick, and what does trust say of two models? Times, and the tables of docs/trust.md.

python benchmarks/trust.py                               # the quick set on 32 tokens: one head, all heads
python benchmarks/trust.py gpt WIKI.tsv.xz FOLDER        # builtin:gpt, next token, 30 sentences of Wikipedia
python benchmarks/trust.py sst SST-FOLDER FOLDER         # builtin:bert fine-tuned for SST, 30 sentences of dev

The tables take some minutes each. A folder that is there already is resumed.
"""

import argparse
import csv
import lzma
import sys
import time
from pathlib import Path
from statistics import fmean

import torch

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.faithfulness import AdversaryOptions, HeadTests
from headscope.faithfulness.verdict_text import number
from headscope.models.loading import BUILTIN

N_TEXTS = 30
# Words of a text of the tables: long enough to rank, short enough for a CPU.
WORDS = range(8, 17)
TESTS = HeadTests(n_permutations=10, adversary=AdversaryOptions(patterns=2, steps=30, rate=0.1))
TEXT = (
    "The doctor asked the nurse a question about the patient, and she said that he was feeling much better than before."
)
_STEPS = 160
# The figures of a row, by their titles, and how outcomes are written.
_COLUMNS = {
    "τ gradient": "tau_gradient",
    "τ left out": "tau_left_out",
    "permuted": "change_permuted",
    "uniform": "change_uniform",
    "head off": "change_silenced",
    "farthest": "farthest",
}
_OUTCOMES = {"pass": "yes", "fail": "no", "unclear": "?", "not tested": "–"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("quick", "gpt", "sst"), default="quick")
    parser.add_argument("data", nargs="?", type=Path, help="file of sentences, or the folder of SST")
    parser.add_argument("folder", nargs="?", type=Path, help="where the report goes")
    options = parser.parse_args()
    if options.what == "quick":
        return time_quick_set()
    if options.data is None or options.folder is None:
        sys.exit("give the data and a folder.")
    start = time.process_time()
    report = {"gpt": gpt_table, "sst": sst_table}[options.what](options.data, options.folder)
    print_table(report)
    print(f"{time.process_time() - start:.0f} s of CPU")
    return None


def time_quick_set() -> None:
    """Seconds of the quick set on 32 tokens, the best of three: of one head and of all heads of builtin:bert.

    CPU seconds too, which other work on the machine hardly changes: they are those of all threads together.
    """
    from headscope.faithfulness import quick_check

    model = hs.load("builtin:bert")
    inputs = model.read(f"{TEXT} It had rained all day.")
    print(f"{inputs.length} tokens, {torch.get_num_threads()} threads")
    for name, head in (("one head", "L3H2"), (f"all {len(model.heads)} heads", None)):
        seconds, cpu_seconds = [], []
        for _ in range(3):
            start, cpu_start = time.perf_counter(), time.process_time()
            quick_check(model, inputs, head)
            seconds.append(time.perf_counter() - start)
            cpu_seconds.append(time.process_time() - cpu_start)
        print(f"{name}: {min(seconds):.2f} s, {min(cpu_seconds):.2f} s of CPU", flush=True)


def gpt_table(data: Path, folder: Path) -> hs.TrustReport:
    """`builtin:gpt` and the next token, in sentences of Wikipedia."""
    with lzma.open(data, "rt") as lines:
        sentences = dict.fromkeys(row[0] for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    with hs.progress_bars() as progress:
        return hs.trust("builtin:gpt", choose(sentences), folder=folder, tests=TESTS, progress=progress)


def sst_table(data: Path, folder: Path) -> hs.TrustReport:
    """`builtin:bert` fine-tuned for SST, in sentences of its dev split; the weights stay in the folder's neighbour."""
    splits = {split: sst_split(data, split) for split in ("train", "dev")}
    model = sentiment_classifier(folder.with_name(f"{folder.name}-model"))
    task = tasks.sequence_classification(splits["train"], splits["dev"])
    fit_options = tasks.FitOptions(steps=_STEPS, batch_size=24, rate=3e-4, warmup=20, evaluate_every=_STEPS)
    with hs.progress_bars() as progress:
        fit = tasks.fit(model, task, fit_options, folder=folder.with_name(f"{folder.name}-fit"), progress=progress)
        print(f"dev accuracy {fit.best.value:.3f} at step {fit.best_step}")
        chosen = set(choose(example.text for example in splits["dev"]))
        texts = [example for example in splits["dev"] if example.text in chosen]
        return hs.trust(model, hs.corpus(texts), task, folder, tests=TESTS, progress=progress)


def sentiment_classifier(folder: Path) -> hs.Model:
    """builtin:bert with a fresh head for two classes."""
    from transformers import AutoTokenizer, BertForSequenceClassification

    if not folder.exists():
        torch.manual_seed(0)
        BertForSequenceClassification.from_pretrained(BUILTIN / "bert", num_labels=2).save_pretrained(folder)
        AutoTokenizer.from_pretrained(BUILTIN / "bert").save_pretrained(folder)
    return hs.load(str(folder))


def sst_split(data: Path, split: str) -> list[Example]:
    """The sentences of a split with their labels."""
    with lzma.open(data / f"sst_binary_{split}.tsv.xz", "rt") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Example(f"{split}:{place}", text=row["sentence"], label=row["label"]) for place, row in enumerate(rows)]


def choose(texts) -> list[str]:
    """Texts of a middling length, evenly spread over the data."""
    fitting = [text for text in texts if len(text.split()) in WORDS]
    return fitting[:: len(fitting) // N_TEXTS][:N_TEXTS]


def print_table(report: hs.TrustReport) -> None:
    """The verdicts and main figures as Markdown: the tables of docs/trust.md."""
    print(report)
    print(f"| head | verdict | agrees | needed | exclusive | {' | '.join(_COLUMNS)} |")
    print("|---" * (5 + len(_COLUMNS)) + "|")
    whole = [] if report.whole is None else [report.whole]
    for trust in [*report.heads.values(), *report.layers, *whole]:
        figures = " | ".join(number(trust.figures[name]) for name in _COLUMNS.values())
        outcomes = " | ".join(_OUTCOMES[part.outcome] for part in trust.parts)
        print(f"| {trust.name} | {trust.verdict} | {outcomes} | {figures} |")
    heads = report.heads.values()
    yardstick = next(iter(heads)).figures["yardstick"]
    print(f"gradient with leave-one-out: {number(yardstick)}")
    for name in ("comprehensiveness", "random_comprehensiveness", "sufficiency", "random_sufficiency"):
        print(f"{name}, mean of heads: {number(fmean(trust.figures[name] for trust in heads))}")


if __name__ == "__main__":
    main()
