"""All streaming measures over a corpus, beside the plain batched forward over the same batches.

Promise: at most 1.5 × for 1,000 sentences of 25 tokens on `all-minilm-l6-v2-fp16`, and memory flat in corpus size.
Needs `../shared`. Sentences come from the trees of UD English EWT, so that every measure of a single text applies.

python benchmarks/heads.py                 # 1,000 sentences, one thread, some minutes
python benchmarks/heads.py --sentences 250 --rounds 1 --profile
"""

import argparse
import cProfile
import ctypes
import gc
import json
import pstats
import statistics
import tempfile
import time
from pathlib import Path

import psutil
import torch

import headscope as hs
from headscope.analysis.measures.corpus_measures import streaming
from headscope.corpora import Example
from headscope.models.inputs.batch import collate
from headscope.runs.batch_plan import Plan
from headscope.runs.shard_counts import Ledger
from headscope.runs.worker import Worker

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".benchmarks"
SHARD = 256


def sentences(data: Path, n: int) -> list[Example]:
    """Sentences of 14 to 35 words from the training part: some 25 tokens each, with [CLS] and [SEP]."""
    corpus = hs.corpus(data / "ud_english_ewt" / "en_ewt-ud-train.conllu.xz")
    suitable = (example for example in corpus if 14 <= len(example.words) <= 30 and len(example.text or "") < 160)
    return [example for example, _ in zip(suitable, range(n), strict=False)]


def plain(model: hs.Model, batches: list) -> None:
    """The model's own forward, as it is without us."""
    with torch.no_grad():
        for batch in batches:
            model.module(**batch.model_inputs)


def _trim() -> None:
    """Give freed memory back, so that what is counted is what is held."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def main() -> None:
    """Alternate the two, shard by shard, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = hs.load(options.shared / "weights" / "all-minilm-l6-v2-fp16")
    examples = sentences(options.shared / "data", options.sentences)
    plan = Plan(threads=options.threads, shard_size=SHARD)
    began = time.process_time()
    measures = streaming(examples, model)
    inventory = time.process_time() - began
    names = [measure.name for measure in measures]
    worker, profile, process = Worker(model, measures, plan), cProfile.Profile(), psutil.Process()
    took: dict[str, list[float]] = {"ready": [], "plain": [], "measured": []}
    n_tokens, memory = 0, []
    for turn in range(options.rounds + 1):  # the first warms up
        for part in took.values():
            part.append(0.0)
        for index, first in enumerate(range(0, len(examples), SHARD)):
            shard = examples[first : first + SHARD]
            began = time.process_time()
            inputs = worker._ready(shard, Ledger(0, [example.id for example in shard], plan))
            batches = [
                collate([inputs[at] for at in places], model.module, model.processor).to(model.device, model.dtype)
                for places in worker._batches(inputs)
            ]
            ready = time.process_time()
            plain(model, batches)
            forward = time.process_time()
            if options.profile and turn:
                profile.enable()
            worker.shard(index, shard).parquet(names, "")
            profile.disable()
            took["ready"][-1] += ready - began
            took["plain"][-1] += forward - ready
            took["measured"][-1] += time.process_time() - forward
            n_tokens += sum(int(batch.real["main"].sum()) for batch in batches) if turn == 0 else 0
            _trim()
            memory.append(process.memory_info().rss / 2**20)
    rounds = slice(1, None)
    result = {
        "sentences": len(examples),
        "tokens a sentence": round(n_tokens / len(examples), 1),
        "measures": len(names),
        "inventory, s": round(inventory, 2),
        "seconds": {name: [round(seconds, 2) for seconds in part[rounds]] for name, part in took.items()},
        # What is measured includes making inputs ready, and writing Parquet; the plain forward does not.
        "measured / plain forward": round(
            statistics.median(a / b for a, b in zip(took["measured"][rounds], took["plain"][rounds], strict=True)), 3
        ),
        "measured / (ready + plain forward)": round(
            statistics.median(
                a / (b + c)
                for a, b, c in zip(took["measured"][rounds], took["plain"][rounds], took["ready"][rounds], strict=True)
            ),
            3,
        ),
        "memory after each shard, MiB": [round(mebibytes) for mebibytes in memory],
    }
    print(json.dumps(result, indent=2))
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run = hs.runs.run(model, examples, measures, folder, threads=options.threads)
        done = time.process_time()
        scores = run.scores()
        result["a whole run, s"] = round(done - began, 2)
        result["its scores, s"] = round(time.process_time() - done, 2)
        result["scores"] = len(scores)
    print(json.dumps({key: result[key] for key in ("a whole run, s", "its scores, s", "scores")}))
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "heads.json").write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
