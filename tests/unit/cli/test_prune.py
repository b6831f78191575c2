"""`headscope prune`: what it writes and prints, what it refuses before the model is loaded, how it stops."""

import json
from pathlib import Path
from typing import get_args

import pytest

from headscope import choices, pruning, reports
from headscope.errors import Cancelled
from headscope.progress import Progress
from headscope.pruning import SmallerModels, Sweep
from headscope.pruning.prune_options import Trained
from headscope.tasks import all_tasks
from headscope.tasks.fit_options import Precision, Start

TRAIN = "the cat sat\na dog sat on it\nshe was tired\nit was a cat\n"
DEV = "the dog was tired\nshe sat\n"


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "dev.txt").write_text(DEV)
    return ["--train", str(tmp_path / "train.txt"), "--dev", str(tmp_path / "dev.txt"), "--task", "language_modelling"]


@pytest.fixture
def quick() -> list[str]:
    return ["--steps", "2", "--tuning-steps", "1", "--batch-size", "2"]


def test_the_choices_are_those_of_tasks_and_pruning() -> None:
    assert set(get_args(choices.TaskName)) == {task.name for task in all_tasks.TASKS}
    assert choices.TrainedWithGates == Trained
    assert (choices.TrainedPrecision, choices.StartWeights) == (Precision, Start)


def test_heads_are_pruned_and_the_smaller_model_and_the_report_are_written(call, models, data, quick, tmp_path) -> None:
    output = tmp_path / "pruned"
    command = ("prune", models / "gpt", *data, *quick, "--lambda", 0.1, "--no-roles", "-o", output)
    result = call(*command)
    assert result.exit_code == 0, result.output
    for name in ("prune.json", "report.html", "points.parquet", "heads.parquet", "baked/config.json", "slim"):
        assert (output / name).exists(), name
    chosen = Sweep.open(output).chosen
    assert chosen is not None and f"{chosen.id} (chosen)" in result.stdout
    assert "8/8" in result.stdout and str(output / "report.html") in result.stdout
    slim = SmallerModels.open(output).slim
    assert slim is not None and f"{slim.parameters:,} of {slim.parameters:,} parameters, 100 %" in result.stdout
    assert "times as fast with 8 × 32 tokens on cpu" in " ".join(result.stdout.split())
    assert "gpt" in (output / "report.html").read_text().partition("<h1>")[2][:80]
    # The same command resumes: everything is there, and the document for machines lists it.
    document = json.loads(call(*command, "--json").stdout)
    assert document["chosen"] == chosen.id and document["slim"] == str(output / "slim")
    assert document["points"][0]["id"] == "none" and document["points"][0]["total"] == [8, 8]


@pytest.mark.parametrize("option", ["", "--no-roles", "--roles-corpus"])
def test_roles_are_measured_on_dev_unless_told_otherwise(call, models, data, tmp_path, monkeypatch, option) -> None:
    sources = []

    def stop_at_report(sweep, model=None, source=None, **options):
        sources.append(source)
        raise Cancelled("it was stopped on request.")

    monkeypatch.setattr(pruning, "prune", lambda *arguments, **options: Sweep(tmp_path))
    monkeypatch.setattr(reports, "prune_report", stop_at_report)
    other = tmp_path / "other.txt"
    other.write_text(TRAIN)
    more = [option, *([str(other)] if option == "--roles-corpus" else [])] if option else []
    result = call("prune", models / "gpt", *data, "--keep", 0.5, "-o", tmp_path / "pruned", *more)
    assert result.exit_code == 130
    names = [None if source is None else source.name for source in sources]
    assert names == [{"": "dev.txt", "--no-roles": None, "--roles-corpus": "other.txt"}[option]]


def test_what_cannot_be_done_is_refused_before_the_model_is_loaded(refusal, data, tmp_path) -> None:
    def refused(*arguments: object) -> str:
        return refusal("prune", "nowhere", *data, "-o", tmp_path / "x", *arguments)

    assert "either --keep" in refused() and "either --keep" in refused("--keep", 0.5, "--lambda", 1)
    assert "0 to 1, got 2" in refused("--keep", 2)
    assert "--lambda -1 is not a penalty" in refused("--lambda", -1)
    assert "encoder=0.05,cross=0.01" in refused("--lambda", "cross=much")
    assert "no metric 'bleu': choose one of bits_per_byte" in refused("--keep", 0.5, "--metric", "bleu")
    assert "no metric 'f1'" in refused("--keep", 0.5, "--dev-metric", "f1")
    assert "rate (nan)" in refused("--keep", 0.5, "--rate", "nan")
    assert "seed is from 0" in refused("--keep", 0.5, "--seed", -1)
    assert "got 'magic'" in refused("--keep", 0.5, "--baselines", "magic")
    assert "nothing.txt" in refused("--keep", 0.5, "--test", tmp_path / "nothing.txt")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("mine")
    assert "mine.txt" in refused("--keep", 0.5)


def test_dev_data_are_needed(refusal, data, tmp_path) -> None:
    train = data[:2]
    message = refusal("prune", "nowhere", *train, "--task", "tagging", "--keep", 0.5, "-o", tmp_path / "x")
    assert "Missing option '--dev'" in message


def test_a_model_that_cannot_do_the_task_is_refused(refusal, models, data, tmp_path) -> None:
    message = refusal("prune", models / "bert", *data, "--lambda", 0.1, "-o", tmp_path / "x")
    assert "language_modelling needs" in message and not (tmp_path / "x").exists()
    message = refusal("prune", models / "gpt", *data, "--lambda", "cross=0.1", "-o", tmp_path / "x")
    assert "a λ for 'cross', and no gates" in message


def test_when_stopped_the_best_so_far_is_kept(call, models, data, quick, tmp_path, monkeypatch) -> None:
    output, prune_heads = tmp_path / "pruned", pruning.prune

    def stopped(*arguments, **options):
        prune_heads(*arguments, **options)
        raise Cancelled("it was stopped on request.")

    monkeypatch.setattr(pruning, "prune", stopped)
    result = call("prune", models / "gpt", *data, *quick, "--lambda", 0.1, "-o", output)
    assert result.exit_code == 130
    assert "The best so far is l0-0.1-s0" in result.stderr and str(output / "slim") in result.stderr
    assert "the same command goes on from there" in result.stderr
    assert (output / "report.html").is_file()


def test_the_best_so_far_is_not_drawn_over_by_the_bars(call, models, data, quick, tmp_path, monkeypatch) -> None:
    def stopped(*_, progress, **__):
        progress(Progress("training", 1, 2, "loss 1.2"))
        raise KeyboardInterrupt

    monkeypatch.setattr(pruning, "prune", stopped)
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = call("prune", models / "gpt", *data, *quick, "--lambda", 0.1, "-o", tmp_path / "pruned")
    assert result.exit_code == 130
    assert "loss 1.2" in result.stderr.partition("There is no report yet")[0]
    assert "training" not in result.stderr.partition("There is no report yet")[2]


def test_data_that_cannot_be_used_leave_no_folder(refusal, models, data, tmp_path) -> None:
    (tmp_path / "dev.txt").write_text("")
    message = refusal("prune", models / "gpt", *data, "--keep", 0.5, "-o", tmp_path / "x")
    assert "the dev data (dev.txt) have no examples" in message and not (tmp_path / "x").exists()


def test_other_data_in_the_same_folder_are_named(call, refusal, models, data, quick, tmp_path) -> None:
    command = ["prune", models / "gpt", *data, *quick, "--lambda", 0, "--no-roles", "-o", tmp_path / "x"]
    assert call(*command).exit_code == 0
    (tmp_path / "dev.txt").write_text("she was tired\nit sat\n")
    assert "its dev data were dev.txt (2 examples), now others of that name" in refusal(*command)
    (tmp_path / "dev.txt").write_text("she was tired\n")
    assert "its dev data were dev.txt (2 examples), now dev.txt (1 example)" in refusal(*command)
    (tmp_path / "dev.txt").write_text(DEV)
    assert "its test data were none, now train.txt (4 examples)" in refusal(*command, "--test", tmp_path / "train.txt")
