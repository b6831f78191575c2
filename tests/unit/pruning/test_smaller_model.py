"""The smaller model: baked and slim equal the gated one; what they cost is what torch counts."""

import random
from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES

import headscope as hs
from headscope.errors import Cancelled, HeadscopeWarning, InputError, LoadError
from headscope.models import Model
from headscope.models.slimming import slim_module
from headscope.progress import Cancel
from headscope.pruning import HeadMask, smaller_model
from headscope.pruning.size_and_speed import (
    counted_flops,
    forward_flops,
    forward_seconds,
    n_parameters,
    sized_inputs,
    weight_bytes,
)
from headscope.pruning.smaller_model import (
    SmallerModels,
    remove_leftovers,
    smaller_models_of,
    write_smaller_models,
)


def tiny(name: str) -> Model:
    return Model(FAMILIES[name].build(), verify=False)


def write(model: Model, mask: HeadMask, folder: Path) -> SmallerModels:
    return write_smaller_models(model, mask, folder, batch=1, length=16, rounds=1)


def random_mask(model: Model, seed: int = 0) -> HeadMask:
    choice = random.Random(seed)
    return HeadMask.of(model, [head for head in model.heads if choice.random() < 0.5])


def outputs(model, inputs, edits=()):
    with model.session(edits):
        out = model.module(**inputs)
    return [tensor for tensor in out.values() if isinstance(tensor, torch.Tensor)]


@pytest.mark.parametrize("name", ["gpt2", "bart", "llama", "t5", "vit"])
def test_baked_and_slim_equal_the_gated_model(name, tmp_path):
    family, model = FAMILIES[name], tiny(name)
    first = model.layout.layers[0].site
    mask = HeadMask.of(model, [head for head in random_mask(model).heads_kept() if head.site != first])
    smaller = write(model, mask, tmp_path)
    inputs = (family.padded or family.inputs)()
    gated = outputs(model, inputs, mask.interventions())
    plain = Model(type(model.module).from_pretrained(tmp_path / "baked"), verify=False)  # type: ignore[attr-defined]
    for other in (plain, hs.load(tmp_path / "slim", verify=False)):
        for tensor, expected in zip(outputs(other, inputs), gated, strict=True):
            assert (tensor - expected).abs().max() <= 1e-5 * max(1.0, float(expected.abs().max()))
    assert smaller.slim is not None
    assert smaller.heads == mask.total()
    assert smaller.slim.parameters < smaller.baked.parameters
    assert smaller.slim.bytes < smaller.baked.bytes
    assert smaller.slim.flops.products * mask.total()[1] < smaller.baked.flops.products * mask.total()[1]
    assert SmallerModels.open(tmp_path) == smaller
    assert sorted(file.name for file in tmp_path.iterdir()) == ["baked", "slim", "smaller.json"]


def test_another_point_takes_the_place_of_both(tmp_path):
    model = tiny("gpt2")
    write(model, HeadMask.of(model, model.heads[:2]), tmp_path)
    mask = HeadMask.of(model, model.heads[3:])
    write(model, mask, tmp_path)
    assert list(hs.load(tmp_path / "slim").original_heads.values()) == model.heads[3:]
    assert SmallerModels.open(tmp_path).heads == (5, 8)


@pytest.mark.parametrize(("name", "reason"), [("falcon", "code of its own"), ("gpt2", "no head is left")])
def test_a_model_that_cannot_be_slim_is_baked_with_the_reason(name, reason, tmp_path):
    model = tiny(name)
    heads = []
    if name == "falcon":
        heads = model.heads[:1]
    else:
        write(model, HeadMask.of(model, model.heads[:2]), tmp_path)  # an earlier point, whose slim model goes
    with pytest.warns(HeadscopeWarning, match=f"only baked/ was written.*{reason}"):
        smaller = write(model, HeadMask.of(model, heads), tmp_path)
    assert smaller.slim is None and reason in smaller.slim_refused
    assert sorted(file.name for file in tmp_path.iterdir()) == ["baked", "smaller.json"]
    assert SmallerModels.open(tmp_path) == smaller


def test_a_full_disk_leaves_the_models_that_were_there(tmp_path, monkeypatch):
    model = tiny("gpt2")
    write(model, HeadMask.of(model, model.heads[:2]), tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def full(model, heads, folder):
        (Path(folder).parent / "half").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(smaller_model, "slim", full)
    with pytest.raises(LoadError, match=r"could not write the smaller models.*No space left"):
        write(model, HeadMask.of(model, model.heads[3:]), tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_who_is_killed_between_two_points_leaves_no_mixture_that_passes_for_either(tmp_path, monkeypatch):
    model = tiny("gpt2")
    first, second = HeadMask.of(model, model.heads[:2]), HeadMask.of(model, model.heads[3:])

    def whole(name: str, mask: HeadMask) -> bool:
        return smaller_models_of(tmp_path, name, mask) is not None

    def point(name: str, mask: HeadMask) -> None:
        write_smaller_models(model, mask, tmp_path, point=name, batch=1, length=8, rounds=1)

    point("first", first)
    assert whole("first", first) and not whole("second", first) and not whole("first", second)
    rename = Path.rename

    def killed(self, target):
        if self.name == "slim":
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            point("second", second)
    assert not whole("first", first) and not whole("second", second)
    with pytest.raises(LoadError, match=r"of two points: writing them was cut short"):
        SmallerModels.open(tmp_path)
    (tmp_path / ".headscope-0123.partial" / "slim").mkdir(parents=True)  # what a killed process had begun
    remove_leftovers(tmp_path)
    point("second", second)
    assert whole("second", second)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["baked", "slim", "smaller.json"]
    (tmp_path / "slim").rename(tmp_path / "elsewhere")
    assert not whole("second", second)


def test_models_that_are_being_trained_and_a_request_to_stop(tmp_path):
    model = tiny("bart")  # with dropout
    model.module.train()
    mask = HeadMask.of(model, model.heads[3:])
    heard = []
    write_smaller_models(model, mask, tmp_path, batch=1, length=8, rounds=1, progress=heard.append)
    assert [(step.stage, step.done, step.total) for step in heard] == [("smaller models", n, 3) for n in range(3)]
    assert model.module.training
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        write_smaller_models(model, mask, tmp_path / "new", cancel=cancel)
    assert not list((tmp_path / "new").iterdir())


def test_files_of_others_are_left_alone(tmp_path):
    model = tiny("gpt2")
    (tmp_path / "slim").mkdir()
    (tmp_path / "slim" / "mine.txt").write_text("precious")
    with pytest.raises(LoadError, match="not empty and is not a model"):
        write(model, HeadMask.full(model), tmp_path)
    (tmp_path / "slim" / "config.json").write_text("{}")  # also where it is a model
    with pytest.raises(LoadError, match="not empty and is not a model"):
        write(model, HeadMask.full(model), tmp_path)
    assert (tmp_path / "slim" / "mine.txt").read_text() == "precious"
    with pytest.raises(InputError, match="mask is of another model"):
        write(model, HeadMask.full(tiny("bart")), tmp_path / "new")
    with pytest.raises(InputError, match="at least 1"):
        write_smaller_models(model, HeadMask.full(model), tmp_path / "new", rounds=0)
    with pytest.raises(LoadError, match=r"no smaller\.json"):
        SmallerModels.open(tmp_path)


def test_what_was_timed_is_said_of_texts_and_of_images(tmp_path):
    for name, timed in (("gpt2", "3 × 8 tokens on cpu"), ("vit", "a batch of 3 on cpu")):
        model = tiny(name)
        mask = HeadMask.of(model, model.heads[1:])
        written = write_smaller_models(model, mask, tmp_path / name, batch=3, length=8, rounds=1)
        assert written.timed_on == timed


def test_damaged_figures_are_refused(tmp_path):
    model = tiny("gpt2")
    smaller = write(model, HeadMask.of(model, model.heads[:2]), tmp_path)
    file = tmp_path / "smaller.json"
    file.write_text(file.read_text().replace(f'"parameters": {smaller.baked.parameters}', '"parameters": 1'))
    with pytest.raises(LoadError, match=r"smaller\.json is damaged"):
        SmallerModels.open(tmp_path)


# Size and speed


def test_operations_of_attention_are_those_on_paper():
    model = tiny("gpt2")  # 2 layers of 4 heads of 8 dimensions, width 32
    flops = forward_flops(model, sized_inputs(model, batch=3, length=10))
    assert flops.projections == 2 * 3 * (2 * 10 * 32 * 4 * 32)
    assert flops.products == 2 * 3 * 4 * (2 * 10 * 10 * (8 + 8))


@pytest.mark.parametrize("name", ["gpt2", "bert", "marian", "t5", "llama", "vit", "whisper"])
def test_operations_agree_with_what_torch_counts(name):
    model = tiny(name)
    slim_model = Model(slim_module(model, random_mask(model, 2).heads_kept()), verify=False)
    for own in (model, slim_model):
        inputs = sized_inputs(own, batch=2, length=20)
        counted = counted_flops(own, inputs)
        assert abs(forward_flops(own, inputs).total - counted) <= 0.01 * counted


def test_parameters_and_bytes(tmp_path):
    model = tiny("llama")
    shared = sum(parameter.numel() for parameter in set(model.module.parameters()))
    assert n_parameters(model) == shared
    folder = hs.bake(model, [hs.silence("L0H0")], tmp_path / "baked")
    assert weight_bytes(folder) == (folder / "model.safetensors").stat().st_size


def test_the_median_time_of_models_in_turns(monkeypatch):
    order: list[str] = []
    model, other = tiny("gpt2"), tiny("gpt2")
    for name, own in (("first", model), ("second", other)):
        own.module.register_forward_pre_hook(lambda _, __, name=name: order.append(str(name)))
    seconds = forward_seconds([model, other], sized_inputs(model, length=8), rounds=2)
    assert order == ["first", "second"] * 3
    assert all(value > 0 for value in seconds)


def test_inputs_are_cut_at_the_length_of_the_model():
    assert sized_inputs(tiny("gpt2"), batch=2, length=500)["input_ids"].shape == (2, 32)
    assert sized_inputs(tiny("vit"), batch=2)["pixel_values"].shape == (2, 3, 24, 24)
