"""The whole chunking study on a made-up set: 2 seeds × 2 epochs, resumed, extended, reported and opened as models."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.errors import InputError, LoadError
from headscope.faithfulness.studies import ChunkingOptions, TaggerOptions
from headscope.faithfulness.studies.chunking import BASELINES, PROBED
from headscope.reports.studies.chunking import PUBLISHED_SWEEP, chunking_study

OPTIONS = ChunkingOptions(
    seeds=2, lambdas=(0.5, 3.0), epochs=2, baseline_seeds=1, probe_seeds=1, inputs=8,
    tagger=TaggerOptions(batch_size=8, width=16, warmup=5),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(files: tuple[Path, Path], tiny_bert, tmp_path_factory):
    place = tmp_path_factory.mktemp("study") / "chunking"
    chunking_study(*files, tiny_bert, place, OPTIONS)
    return place


@pytest.fixture(scope="module")
def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "training" / "figures.jsonl").read_text().splitlines()]


def test_every_tagger_has_a_line_with_its_figures(lines) -> None:
    kinds = [line["kind"] for line in lines]
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert counts == {
        "base": 2, **dict.fromkeys(BASELINES, 1), "adversary": 4, "probe report": len(PROBED),
        "probe feed_forward": len(PROBED),
    }  # fmt: skip
    assert len({line["configuration"] for line in lines}) == 1
    for line in lines:
        assert 0 <= line["test"]["f1"] <= 1 and line["epoch"] in (1, 2) and line["test"]["nll"] > 0
    base = next(line for line in lines if line["name"] == "base s0")
    assert base["test"]["jsd"] == base["test"]["tvd"] == 0.0


def test_it_goes_on_where_it_stood_and_takes_more_seeds(folder, lines, files: tuple[Path, Path], tiny_bert) -> None:
    stages: list[str] = []
    chunking_study(*files, tiny_bert, folder, OPTIONS, progress=lambda progress: stages.append(progress.stage))
    assert not stages  # everything was there
    more = chunking_study(
        *files, tiny_bert, folder, replace(OPTIONS, seeds=3), progress=lambda progress: stages.append(progress.stage)
    )
    assert {stage for stage in stages if "probe" not in stage} == {
        "training base s2", "training adversary λ=0.5 s2 and 1 more",
    }  # fmt: skip
    assert {"base-s0-1", "base-s2-2"} <= {path.name for path in (folder / "training" / "stacks").iterdir()}
    names = {line["name"]: line["test"] for line in lines}
    again = {row["name"]: row for row in more.rows}
    assert again["base s1"]["test_f1"] == names["base s1"]["f1"]
    with pytest.raises(InputError, match="epochs was 2, now 3"):
        chunking_study(*files, tiny_bert, folder, replace(OPTIONS, epochs=3))


def test_the_report_sets_published_numbers_beside_ours(folder) -> None:
    study = json.loads((folder / "study.json").read_text())
    published = [check["published"] for check in study["checks"]]
    assert "140,953 [recount]" in published and published.count("0.90 [report]") == 3 and "0.89 [report]" in published
    page = (folder / "index.html").read_text()
    assert len(study["configuration"]) == 8 and f"Configuration {study['configuration']}." in page
    assert page.count("<figure>") == 4 and page.count("notebook, one seed") == 1
    assert page.count("<title>λ=") == len(PUBLISHED_SWEEP) == 30
    assert "http" not in page.replace("http-equiv", "")


def test_the_table_has_a_row_for_each_tagger(folder, lines) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(folder / "figures.parquet").to_pylist()
    assert len(table) >= len(lines) and {"name", "kind", "lambda", "test_f1", "test_jsd"} <= table[0].keys()


def test_base_and_adversaries_open_and_trace_exactly(folder, data) -> None:
    models = sorted((folder / "training" / "models").iterdir())
    assert [path.name for path in models][-1] == "base" and len(models) >= 2
    base = hs.load(folder / "training" / "models" / "base")
    assert base.verified and len(base.heads) == 4
    batch = data.batch(data.test, [0])
    traced = base.run("The cat sat on the mat .")
    assert [token.text for token in traced.tokens["main"]] == [
        "<bos>",
        "The",
        "cat",
        "sat",
        "on",
        "the",
        "mat",
        ".",
        "<eos>",
    ]
    logits = base.module(input_ids=torch.tensor([[token.id for token in traced.tokens["main"]]])).logits
    assert logits.shape == (1, len(batch.mask[0]), len(data.tags))
    other = hs.load(next(path for path in models if path.name != "base"))
    assert hs.compare(traced, other.run(traced.inputs)).change().top(1)


def test_a_figure_that_was_changed_on_disk_is_refused(folder, files: tuple[Path, Path], tiny_bert, tmp_path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(folder, other)
    figures = other / "training" / "figures.jsonl"
    figures.write_text(figures.read_text().replace('"epoch": 1', '"epoch": 2', 1))
    with pytest.raises(LoadError, match="does not match its checksum"):
        chunking_study(*files, tiny_bert, other, OPTIONS)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="seeds is at least 1, got 0"):
        ChunkingOptions(seeds=0)
    with pytest.raises(InputError, match="above 0"):
        ChunkingOptions(lambdas=(0.0, 1.0))
    with pytest.raises(InputError, match="cooldown 0 to 1"):
        TaggerOptions(cooldown=2.0)
