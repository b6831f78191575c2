"""Slim models: heads taken out of the weights, outputs as with those heads switched off."""

import json
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import SafetensorError
from tiny_models import FAMILIES, TEXT, VOCAB
from tiny_models import model as build
from torch import nn

import headscope as hs
from headscope import files
from headscope.errors import CaptureError, InterventionError, LoadError, UnknownHeadError
from headscope.models import Model, slimming
from headscope.models.slim_layers import NoHeads, RepeatedHeads
from headscope.models.slimming import gate_edits, slim, slim_module
from headscope.traces import Trace

NAMES = ["gpt2", "bert", "marian", "bart", "t5", "llama", "vit", "whisper"]
WRITERS = {name: FAMILIES[name].build for name in ("gpt2", "marian", "llama", "whisper")}
# Transformers itself writes with T5 only where encoder and decoder are equally deep.
WRITERS["t5"] = build(
    "T5ForConditionalGeneration", VOCAB, d_model=32, d_kv=8, d_ff=48, num_heads=4, decoder_start_token_id=0
)
OLMO2 = build("Olmo2ForCausalLM", TEXT)


def tiny(name: str) -> Any:
    """A tiny model of a family; its module is typed as any, since families differ."""
    return Model(FAMILIES[name].build(), verify=False)


def load(folder: Path) -> Any:
    return hs.load(folder)


def outputs(model, inputs, edits=()):
    with model.session(edits):
        out = model.module(**inputs)
    return {name: tensor for name, tensor in out.items() if isinstance(tensor, torch.Tensor)}


def assert_equal(results, expected):
    for name, tensor in expected.items():
        assert (results[name] - tensor).abs().max() <= 1e-5 * max(1.0, float(tensor.abs().max())), name


def uneven(model, seed=0):
    """About half of the heads, another number in each layer, and the first layer of every stack without any."""
    choice = random.Random(seed)
    firsts = {}
    for layer in model.layout.layers:
        firsts.setdefault((layer.site.stack, layer.site.kind), layer.site)
    heads = [head for head in model.heads if head.site not in firsts.values() and choice.random() < 0.6]
    return heads or model.heads[-1:]


CHOICES = {
    "uneven": uneven,
    "one head": lambda model: model.heads[-1:],
    "all but one": lambda model: model.heads[1:],
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", NAMES)
def test_a_slim_folder_equals_the_model_with_its_heads_switched_off(name, choice, tmp_path):
    family = FAMILIES[name]
    model = tiny(name)
    heads = CHOICES[choice](model)
    slim_model = load(slim(model, heads, tmp_path / "slim"))
    assert slim_model.verified is True
    assert not slim_model.warnings
    assert f"slim: {len(heads)} of {len(model.heads)} heads" in slim_model.coverage
    assert list(slim_model.original_heads.values()) == heads
    inputs = (family.padded or family.inputs)()
    assert_equal(outputs(slim_model, inputs), outputs(model, inputs, gate_edits(model, heads)))


def test_t5_whose_layers_all_compute_their_own_position_bias_is_made_slim(tmp_path):
    config = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    model = Model(build("UMT5ForConditionalGeneration", VOCAB, std=0.18, **config)(), verify=False)
    heads = uneven(model)
    slim_model = load(slim(model, heads, tmp_path / "slim"))
    inputs = (FAMILIES["t5"].padded or FAMILIES["t5"].inputs)()
    assert_equal(outputs(slim_model, inputs), outputs(model, inputs, gate_edits(model, heads)))


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5", "llama"])
def test_rows_are_really_gone(name):
    model = tiny(name)
    heads = uneven(model)
    module: Any = slim_module(model, heads)
    for layer in model.layout.layers:
        n_left = sum(head.site == layer.site for head in heads)
        projection = module.get_submodule(layer.out_projection)
        is_conv = type(projection).__name__ == "Conv1D"
        assert projection.weight.shape[0 if is_conv else 1] == n_left * layer.value_dim
        assert isinstance(module.get_submodule(layer.module), NoHeads) == (n_left == 0)


def test_the_rows_that_stay_are_those_of_their_heads():
    model = tiny("gpt2")
    module: Any = slim_module(model, [head for head in model.heads if str(head) in ("L0H1", "L0H3", "L1H0")])
    before = model.module.transformer.h[0].attn.c_attn.weight
    after = module.transformer.h[0].attn.c_attn.weight
    columns = [start + head * 8 for start in (0, 32, 64) for head in (1, 3)]
    assert torch.equal(after, torch.cat([before[:, column : column + 8] for column in columns], 1))


@pytest.mark.parametrize("name", WRITERS)
def test_cached_generation_is_that_of_the_model_with_its_heads_switched_off(name, tmp_path):
    family = FAMILIES[name]
    model = Model(WRITERS[name](), verify=False)
    heads = uneven(model)
    slim_model = load(slim(model, heads, tmp_path / "slim"))
    inputs = {key: tensor for key, tensor in (family.padded or family.inputs)().items() if "decoder" not in key}
    options = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    for beams in (1, 2):
        with model.session(gate_edits(model, heads)):
            expected = model.module.generate(**inputs, **options, num_beams=beams)
        with slim_model.session():
            assert torch.equal(slim_model.module.generate(**inputs, **options, num_beams=beams), expected)
        with torch.no_grad():  # the same without Headscope watching
            assert torch.equal(slim_model.module.generate(**inputs, **options, num_beams=beams), expected)


@pytest.mark.parametrize("name", ["llama", "t5", "vit"])
def test_where_the_configuration_can_say_it_plain_transformers_loads_the_folder(name, tmp_path):
    family = FAMILIES[name]
    model = tiny(name)
    heads = [head for head in model.heads if head.index in (0, 3)]
    folder = slim(model, heads, tmp_path / "slim")
    plain = Model(type(model.module).from_pretrained(folder))
    inputs = (family.padded or family.inputs)()
    assert_equal(outputs(plain, inputs), outputs(model, inputs, gate_edits(model, heads)))
    assert len(plain.heads) == len(heads)
    assert list(load(folder).original_heads.values()) == heads


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5", "llama", "whisper"])
def test_plain_transformers_refuses_any_other_slim_folder(name, tmp_path):
    model = tiny(name)
    whole_layers = [head for head in model.heads if head.site != model.layout.layers[0].site]
    for place, heads in enumerate([uneven(model), whole_layers]):
        folder = slim(model, heads, tmp_path / str(place))
        for kind in (type(model.module), transformers.AutoModel):
            with warnings.catch_warnings(), pytest.raises(RuntimeError, match="mismatched"):
                warnings.simplefilter("ignore")
                kind.from_pretrained(folder)


def test_query_heads_that_share_keys_unevenly_use_each_key_head_once(tmp_path):
    model = tiny("llama")  # 4 query heads on 2 key-value heads
    heads = [head for head in model.heads if str(head) in ("L0H0", "L0H1", "L0H3", "L1H2")]
    slim_model = load(slim(model, heads, tmp_path / "slim"))
    first, second = (layer.self_attn for layer in slim_model.module.model.layers)
    assert isinstance(first.k_proj, RepeatedHeads)
    assert first.k_proj.weight.shape == (16, 32)  # both key heads are stored once
    assert first.num_key_value_groups == 1
    assert second.v_proj.weight.shape == (8, 32)  # one is gone with its query heads
    assert type(second.v_proj) is nn.Linear


def test_a_layer_without_heads_is_its_output_bias():
    model = tiny("vit")
    module: Any = slim_module(model, model.heads[4:])
    attention = module.get_submodule(model.layout.layers[0].module)
    output, weights = attention(torch.randn(2, 5, 32))
    assert weights is None
    assert torch.equal(output, attention.o_proj.bias.expand(2, 5, 32))


@pytest.mark.parametrize("name", ["gpt2", "t5", "llama"])
def test_saving_a_loaded_slim_model_keeps_it_whole(name, tmp_path):
    model = tiny(name)
    heads = uneven(model)
    first = load(slim(model, heads, tmp_path / "first"))
    first.module.save_pretrained(tmp_path / "second")
    names = sorted(file.name for file in (tmp_path / "first").iterdir())
    assert sorted(file.name for file in (tmp_path / "second").iterdir()) == names
    second = load(tmp_path / "second")
    inputs = FAMILIES[name].inputs()
    expected = outputs(first, inputs)
    assert all(torch.equal(tensor, expected[key]) for key, tensor in outputs(second, inputs).items())
    assert second.original_heads == first.original_heads
    assert "headscope" not in (tmp_path / "second" / "config.json").read_text()


def test_a_slim_model_traces_and_edits_its_own_heads(tmp_path):
    family = FAMILIES["bart"]
    model = tiny("bart")
    heads = uneven(model, seed=3)
    slim_model = load(slim(model, heads, tmp_path / "slim"))
    example = {name: tensor[:1] for name, tensor in family.inputs().items()}
    trace, whole = slim_model.run(inputs=example), model.run(None, gate_edits(model, heads), inputs=example)
    assert isinstance(trace, Trace) and isinstance(whole, Trace)
    for head, original in slim_model.original_heads.items():
        assert abs(trace.pattern(head) - whole.pattern(original)).max() <= 1e-5
    hs.head_view(trace).save(tmp_path / "head.html")
    assert (tmp_path / "head.html").stat().st_size > 0
    head, original = next(iter(slim_model.original_heads.items()))
    edited = outputs(slim_model, family.inputs(), [hs.silence(head)])
    both = gate_edits(model, [left for left in heads if left != original])
    assert_equal(edited, outputs(model, family.inputs(), both))


def test_random_choices_of_heads_are_exact():
    for name, n_choices in (("gpt2", 2), ("llama", 4), ("t5", 2), ("gpt_oss", 1), ("deepseek_v3", 1), ("swin", 1)):
        model = tiny(name)
        for seed in range(n_choices):
            choice = random.Random(seed)
            heads = [head for head in model.heads if choice.random() < choice.random()] or model.heads[:1]
            slim_module(model, heads)  # which compares, on padding too


def test_a_difference_is_refused(monkeypatch):
    def broken(module, plan):
        slimming_cut(module, plan)
        with torch.no_grad():
            module.transformer.h[0].attn.c_proj.weight.mul_(1.001)

    slimming_cut = slimming.cut_heads
    monkeypatch.setattr(slimming, "cut_heads", broken)
    with pytest.raises(CaptureError, match="would differ by"):
        slim_module(tiny("gpt2"), [hs.Head("main", 0, 1)])


@pytest.mark.parametrize(
    ("name", "heads", "error_text"),
    [
        ("albert", ["L0H1"], "share their weights.*hs.bake"),
        ("falcon", ["L0H1"], "code of its own.*hs.bake"),
        ("longformer", ["L0H1"], "code of its own.*hs.bake"),
        ("phi3", ["L0H1"], "does not run with fewer heads.*hs.bake"),
        ("beit", ["L0H1"], "does not run with fewer heads.*hs.bake"),
        ("gpt2", [], "no head is left"),
        ("home_sdpa", ["L0H1"], "only Hugging Face models"),
    ],
)
def test_what_cannot_be_slim_is_refused_with_the_reason(name, heads, error_text, tmp_path):
    model = tiny(name)
    if not model.has_layout:
        model.probe(inputs=FAMILIES[name].inputs())
    with pytest.raises(InterventionError, match=error_text):
        slim(model, [head for head in model.heads if str(head) in heads], tmp_path / "slim")
    assert not list(tmp_path.iterdir())


def test_a_norm_over_all_heads_is_refused_by_name():
    with pytest.raises(InterventionError, match=r"a norm over all heads.*hs\.bake"):
        slim_module(Model(OLMO2(), verify=False), [hs.Head("main", 0, 1)])


def test_unknown_heads_and_slim_models_are_refused(tmp_path):
    model = tiny("gpt2")
    with pytest.raises(UnknownHeadError, match="no head L7H0"):
        slim(model, [hs.Head("main", 7, 0)], tmp_path / "slim")
    slim_model = load(slim(model, model.heads[:3], tmp_path / "slim"))
    with pytest.raises(InterventionError, match="slim already"):
        slim(slim_model, slim_model.heads[:1], tmp_path / "again")


def test_baking_a_slim_model_gives_a_slim_folder(tmp_path):
    family = FAMILIES["gpt2"]
    slim_model = load(slim(tiny("gpt2"), uneven(tiny("gpt2")), tmp_path / "slim"))
    edits = [hs.scale(slim_model.heads[0], 0.5)]
    baked = load(hs.bake(slim_model, edits, tmp_path / "baked"))
    assert_equal(outputs(baked, family.inputs()), outputs(slim_model, family.inputs(), edits))


# Damage


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    model = tiny("gpt2")
    return slim(model, uneven(model), tmp_path_factory.mktemp("slim") / "slim")


@pytest.fixture
def folder(whole_folder, tmp_path):
    return shutil.copytree(whole_folder, tmp_path / "slim")


def rewrite(folder: Path, change) -> None:
    """Change the plan, with a right checksum."""
    file = folder / "headscope_slim.json"
    data = json.loads(file.read_text())
    data.pop("checksum")
    change(data)
    file.write_text(json.dumps(files.with_checksum(data)))


@pytest.mark.parametrize(
    ("change", "error_text"),
    [
        (lambda data: data.update(version=99), "has format 99"),
        (lambda data: data.update(layers=[]), "headscope_slim.json is damaged"),
        (lambda data: data.pop("is_plain"), "headscope_slim.json is damaged"),
        (lambda data: data["layers"][0].update(heads=[9]), "headscope_slim.json is damaged.*lists heads"),
        (lambda data: data["layers"][0].update(code="import os"), "headscope_slim.json is damaged"),
        (lambda data: data["layers"][0].update(module="encoder.layer.0"), "does not fit a GPT2LMHeadModel"),
        (lambda data: data["layers"][1]["cuts"][0].update(size=96 * 2), "does not fit a GPT2LMHeadModel"),
        (lambda data: data["layers"][1]["cuts"][0].update(ranges=[[90, 99]]), "does not fit a GPT2LMHeadModel"),
        (lambda data: data["layers"][1]["sizes"].update(forward=3), "no size 'forward'"),
    ],
)
def test_a_plan_of_something_else_is_refused_by_name(change, error_text, folder):
    rewrite(folder, change)
    with pytest.raises(LoadError, match=error_text):
        load(folder)


def test_a_damaged_plan_is_refused(folder):
    file = folder / "headscope_slim.json"
    whole = file.read_text()
    file.write_text(whole.replace('"n_heads": 4', '"n_heads": 5', 1))
    with pytest.raises(LoadError, match="damaged: it does not match its checksum"):
        load(folder)
    file.write_text(whole[:50])
    with pytest.raises(LoadError, match=r"headscope_slim\.json is damaged"):
        load(folder)
    file.unlink()
    with pytest.raises(LoadError, match="mismatched"):
        load(folder)


@pytest.mark.parametrize("error", [SafetensorError("I/O error: No space left on device"), OSError(28, "No space left")])
def test_a_full_disk_leaves_nothing(error, tmp_path, monkeypatch):
    def full(self, folder, *args, **kwargs):
        (Path(folder) / "model.safetensors").write_bytes(b"half")
        raise error

    model = tiny("gpt2")
    monkeypatch.setattr(transformers.PreTrainedModel, "save_pretrained", full)
    with pytest.raises(LoadError, match="No space left"):
        slim(model, model.heads[:3], tmp_path / "slim")
    with pytest.raises(LoadError, match="No space left"):
        hs.bake(model, [hs.silence("L0H0")], tmp_path / "baked")
    assert not list(tmp_path.iterdir())
