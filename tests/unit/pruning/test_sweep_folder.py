"""The folder of a sweep: written whole, read again, refused where damaged."""

from pathlib import Path

import pytest
import torch
from tiny_models import SENTENCES
from tiny_tasks import gpt

import headscope as hs
from headscope.errors import InputError, LoadError
from headscope.pruning import HeadMask, PrunePoint, Sweep, layers_of
from headscope.sites import Head, Site
from headscope.tasks import Score

ABOUT = {"model": "tiny", "model_class": "GPT2LMHeadModel", "task": "language_modelling", "metric": "bits_per_byte"}


def begin(folder: Path, **options) -> Sweep:
    settings = {"steps": 4, "lambdas": (0.1, 0.2)} | options
    data = {"train": {"name": "texts", "n": 4}, "dev": {"name": "texts", "n": 2}, "test": None}
    return Sweep.create(folder, **ABOUT, higher_is_better=False, layers=layers_of(gpt()), data=data, options=settings)


def made_point(name: str = "l0-0.1-s0", **fields) -> PrunePoint:
    mask = HeadMask.of(gpt(), [Head("main", 0, 1)])
    values = {site: (0.5, -1.25) for site in mask.survivors}
    whole = {"mask": mask, "score": Score("bits_per_byte", 2.5, 2, (2.0, 3.0)), "split": "dev", "steps": 4}
    whole |= {"lambda_": {"self": 0.1}, "log_alpha": values, "p_open": values, "history": ({"step": 0},)}
    return PrunePoint(name, "l0", **(whole | fields))


def test_points_are_read_as_they_were_written(tmp_path: Path) -> None:
    sweep = begin(tmp_path)
    points = [made_point(dev=Score("bits_per_byte", 2.25, 2)), made_point("none", lambda_=None)]
    for point in points:
        sweep.add(point)
    again = Sweep.open(tmp_path)
    assert again.points == points and again.baseline == points[1] and again.chosen is None
    assert again.layers == layers_of(gpt())
    assert points[0].counts() == {"self": (1, 4)} and points[0].to_json()["total"] == [1, 4]
    again.choose("l0-0.1-s0")
    again.sort(["none"])
    assert again.chosen == points[0] and [point.id for point in again.points] == ["none", "l0-0.1-s0"]


def test_a_folder_without_a_sweep_has_no_files_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "baked").mkdir()
    (tmp_path / "baked" / "mine.txt").write_text("mine")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(LoadError, match="is not empty and is not a sweep"):
        begin(tmp_path)
    assert not (tmp_path / "prune.json").exists() and (tmp_path / "report.html").read_text() == "mine"


def test_a_score_that_is_not_a_number_is_read_again(tmp_path: Path) -> None:
    sweep = begin(tmp_path)
    sweep.add(made_point(score=Score("bits_per_byte", float("nan"), 2), loss=float("nan")))
    assert "NaN" not in (tmp_path / "points" / "l0-0.1-s0" / "point.json").read_text()
    point = sweep.points[0]
    assert point.score.value != point.score.value and point.loss is None


def test_the_weights_of_a_point_are_put_into_a_copy(tmp_path: Path) -> None:
    sweep, model = begin(tmp_path), gpt()
    other = gpt(seed=1)
    changed = dict(other.module.named_parameters())
    sweep.add(made_point("changed", **sweep.write_weights("changed", changed)))
    sweep.add(made_point("same"))

    def mixed(of: hs.Model) -> torch.Tensor:
        return of.run(SENTENCES[0]).tensor("mixed", "L1H0")

    before = mixed(model)
    loaded = sweep.load(model, "changed")
    assert sweep.load(model, "same") is model
    assert torch.equal(mixed(loaded), mixed(other)) and not torch.allclose(mixed(loaded), before)
    assert torch.equal(mixed(model), before)
    half = sweep.write_weights("half", changed, torch.float16)
    sweep.add(made_point("half", **half))
    assert {tensor.dtype for tensor in sweep.weights(sweep.point("half")).values()} == {torch.float16}
    assert sweep.load(model, "half").dtype == torch.float32


def test_damaged_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    sweep = begin(tmp_path / "sweep")
    weights = sweep.write_weights("a", {"transformer.wte.weight": torch.zeros(2, 2)})
    sweep.add(made_point("a", **weights))
    with pytest.raises(InputError, match=r"no parameter 'transformer\.wte\.weight' of this shape"):
        sweep.load(gpt(), "a")
    file = tmp_path / "sweep" / weights["weights"]
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(LoadError, match="does not match its checksum"):
        sweep.load(gpt(), "a")
    with pytest.raises(InputError, match=r"there is no point 'b'.*there are a"):
        sweep.point("b")
    point_file = tmp_path / "sweep" / "points" / "a" / "point.json"
    point_file.write_text(point_file.read_text().replace("l0", "random"))
    with pytest.raises(LoadError, match="damaged"):
        sweep.point("a")
    with pytest.raises(LoadError, match="there is no sweep"):
        Sweep.open(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(LoadError, match="is not empty and is not a sweep"):
        begin(tmp_path)


def test_other_settings_do_not_resume(tmp_path: Path) -> None:
    begin(tmp_path)
    begin(tmp_path)
    with pytest.raises(InputError, match="steps was 4, now 5"):
        begin(tmp_path, steps=5)


def test_a_mask_of_another_model_is_refused(tmp_path: Path) -> None:
    sweep = begin(tmp_path)
    point = made_point(mask=HeadMask({Site("main", 0): (True,)}), log_alpha=None, p_open=None)
    with pytest.raises(InputError, match="of another model"):
        sweep.load(gpt(), point)
