"""Runs with a shipped model: killed and resumed, the same as measuring traces, and flat in memory."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope import runs
from headscope.analysis.measures.targets import PatternTokens
from headscope.corpora import corpus
from headscope.runs import worker

pytest.importorskip("pyarrow")
SENTENCES = [
    "The doctor asked the nurse a question.",
    "She said that she did not know the answer.",
    "A small dog sat on the mat, and looked at the cat.",
    "It rained.",
]
TEXTS = [f"{SENTENCES[number % 4]} {number}" for number in range(20)]


def previous(layer):
    plain = layer.plain_queries[:, 1:].float()
    yield layer.tally((layer.pattern.diagonal(-1, 2, 3) * plain[:, None]).sum(-1), plain.sum(-1))


class Fatal(runs.OfLayers):
    """Kills its own process, as `kill -9` does, in the middle of the fourth shard; once."""

    def watch(self, layer):
        fatal = os.environ.get("FATAL")
        if fatal and layer.site.layer == 2 and any(example.id == "list:14" for example in layer.examples):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().watch(layer)


def measures():
    return [Fatal("previous", previous)]


def run(folder, model="builtin:gpt"):
    return runs.run(model, TEXTS, measures(), folder, shard_size=4, threads=1)


def files(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


def test_killed_in_the_middle_and_resumed_the_files_are_the_same(tmp_path):
    program = f"import test_runs; test_runs.run({str(tmp_path / 'killed')!r})"
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"FATAL": "1", "PYTHONPATH": paths}
    killed = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    left = files(tmp_path / "killed")
    assert [name for name in left if name.endswith(".parquet")] == [f"shard-00000{index}.parquet" for index in range(3)]
    whole = run(tmp_path / "whole")
    again = run(tmp_path / "killed")
    assert files(again.folder) == files(whole.folder)
    assert left.items() <= files(again.folder).items()  # what was done is not done again


def cells(target, queries, keys, *, is_cross):
    return target(PatternTokens(queries, keys, is_cross))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("builtin:gpt", TEXTS[:8]),
        ("builtin:bert", list(zip(TEXTS[:6], TEXTS[4:10], strict=True))),
        ("builtin:vit", Path(hs.__file__).parent / "builtin" / "images"),
    ],
)
def test_targets_over_a_corpus_are_what_they_are_over_traces(name, source, tmp_path):
    model = hs.load(name)
    chosen = [measure for measure in hs.analysis.MEASURES.values() if measure.target is not None]
    over = [runs.OfCells(measure.name, functools.partial(cells, measure.target)) for measure in chosen]
    scores = runs.run(model, source, over, tmp_path / "run", batch_size=3).scores()
    examples = list(corpus(source))
    traces = [model.run(example.text or example.image, pair=example.pair) for example in examples]
    expected = hs.analysis.measure_all([measure.name for measure in chosen], traces, skip=True)
    assert set(scores) == set(expected) and len(scores) >= 8
    for measure, from_traces in expected.items():
        assert dict(scores[measure]) == pytest.approx(dict(from_traces), abs=1e-5, nan_ok=True), measure
        assert scores[measure].baselines == pytest.approx(from_traces.baselines, abs=1e-5, nan_ok=True), measure


def test_memory_does_not_grow_with_the_corpus(tmp_path, monkeypatch):
    model = hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer())
    texts = [f"{start} was {end}." for start in ("it", "he", "she", "the cat") for end in ("tired", "wide", "too wide")]
    # There are but twelve texts: making them ready once each leaves the time to the run itself.
    ready = functools.cache(lambda text: forward_prepare(model.processor, model.module, text, stacks=model.stacks))
    forward_prepare = worker.prepare
    monkeypatch.setattr(
        worker, "prepare", lambda processor, module, sources, **_: [ready(source) for source in sources]
    )
    process, sizes = psutil.Process(), {}

    def watch(progress):
        sizes[progress.done] = process.memory_info().rss

    def stream():
        return (texts[number % 12] for number in range(20_000))

    done = runs.run(
        model, stream, [runs.OfLayers("previous", previous)], tmp_path / "run", shard_size=500, progress=watch
    )
    assert done.scores()["previous"].n_samples == 20_000
    early = max(size for n_done, size in sizes.items() if n_done <= 4_000)
    assert max(sizes.values()) - early < 32 * 2**20
    assert done.manifest["plan"]["block"] == 2 and torch.get_num_threads() >= 1
