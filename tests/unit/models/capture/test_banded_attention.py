"""Windows and global tokens (Longformer, LED): queries, keys and values of both projections, as one attention."""

import pytest
import torch
from tiny_models import FAMILIES, tiny_bert_tokenizer
from transformers import LEDConfig, LEDForConditionalGeneration

import headscope as hs
from headscope.analysis import gate_importance
from headscope.errors import NotRecordedError
from headscope.models import Model
from headscope.models.capture.banded_attention import band_mask, dense_patterns, own_pattern
from headscope.views.neurons import Terms

# Of a batch of two: how long the texts are, and which of their tokens are global. Windows have 5 keys.
CASES = {
    "no global token": ((11, 7), ((), ())),
    "one, and padding to a whole window": ((11, 7), ((0,), (0,))),
    "several, not as many in each": ((12, 9), ((0, 5, 11), (3,))),
    "one text without any": ((13, 4), ((2, 3), ())),
    "no padding at all": ((12, 12), ((0, 1), (6, 7))),
    "shorter than a window": ((2, 1), ((0,), (0,))),
}


def inputs_of(case: str, vocabulary: int = 30) -> dict[str, torch.Tensor]:
    lengths, places = CASES[case]
    ids = torch.randint(5, vocabulary, (2, max(lengths)), generator=torch.Generator().manual_seed(0))
    real, marks = torch.zeros_like(ids), torch.zeros_like(ids)
    for example in range(2):
        real[example, : lengths[example]] = 1
        marks[example, list(places[example])] = 1
    return {"input_ids": ids, "attention_mask": real, "global_attention_mask": marks}


def led() -> LEDForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "attention_window": 4, "vocab_size": 60}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    places = {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
    return LEDForConditionalGeneration(LEDConfig(**sizes, **heads, **places)).eval()


def longformer() -> Model:
    return Model(FAMILIES["longformer"].build(), tiny_bert_tokenizer())


def test_a_band_by_hand():
    # Three tokens, one head, a window of one key to each side, no global token: columns are keys i−1, i, i+1.
    band = torch.tensor([[0.0, 0.6, 0.4], [0.2, 0.5, 0.3], [0.7, 0.3, 0.0]]).reshape(1, 3, 1, 3)
    patterns = dense_patterns(band, None, torch.zeros(1, 3, dtype=torch.bool))
    assert patterns[0, 0].tolist() == torch.tensor([[0.6, 0.4, 0.0], [0.2, 0.5, 0.3], [0.0, 0.7, 0.3]]).tolist()


def test_a_global_token_has_a_row_and_a_column_of_its_own():
    band = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.5, 0.4], [0.2, 0.6, 0.2, 0.0]]).reshape(1, 3, 1, 4)
    rows = torch.tensor([[0.3, 0.3, 0.4]]).reshape(1, 1, 1, 3)
    patterns = dense_patterns(band, rows, torch.tensor([[True, False, False]]))
    assert torch.allclose(patterns[0, 0], torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.5, 0.4], [0.2, 0.6, 0.2]]))


def test_which_keys_are_seen_on_paper():
    is_global = torch.tensor([[False, False, True, False, False]])
    no_padding = torch.zeros(1, 5, dtype=torch.bool)
    seen = band_mask(is_global, no_padding, 1).materialise()[0, 0].int().tolist()
    assert seen == [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]
    plain = band_mask(torch.zeros_like(is_global), torch.tensor([[False] * 4 + [True]]), 1)
    assert plain.dense is None  # without global tokens a mask is two numbers a query
    assert plain.materialise()[0, 0, 3].int().tolist() == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["longformer", "led"])
def test_queries_and_keys_reproduce_the_models_own_weights(kind, case):
    model = longformer() if kind == "longformer" else Model(led())
    inputs = inputs_of(case)
    if kind == "led":
        inputs["decoder_input_ids"] = inputs["input_ids"][:, :3]
    own: list[torch.Tensor] = []
    layers = [layer for layer in model.layout.layers if layer.way == "banded"]
    assert len(layers) == 2 and {(layer.window, layer.head_dim, layer.value_dim) for layer in layers} == {(3, 16, 8)}

    def keep(module, args, kwargs, output):
        own.extend([own_pattern(module, args, kwargs, output), output[0].unflatten(-1, (4, -1)).transpose(1, 2)])

    handles = [
        model.module.get_submodule(layer.module).register_forward_hook(keep, with_kwargs=True) for layer in layers
    ]
    with torch.no_grad():
        plain = model.module(**inputs, output_attentions=True)
    for handle in handles:
        handle.remove()
    with model.session(record="heads") as session:
        watched = model.module(**inputs)
    assert torch.equal(plain.logits, watched.logits)  # watching changes nothing
    lengths, places = CASES[case]
    for layer, pattern, mixed in zip(layers, own[::2], own[1::2], strict=True):
        for example, record in enumerate(session.captured[layer.site].records):
            assert (record.n_queries, record.global_tokens) == (lengths[example], places[example])
            n_real = lengths[example]
            assert torch.allclose(record.patterns(), pattern[example, :, :n_real, :n_real], atol=1e-5)
            assert record.mixed is not None and torch.allclose(record.mixed, mixed[example, :, :n_real], atol=1e-5)
            assert record.query is not None
            local = [place for place in range(n_real) if place not in places[example]]
            assert not record.query[:, local, 8:].any() and not record.query[:, list(places[example]), :8].any()


def test_both_sets_of_projections_are_in_a_trace():
    model = longformer()
    tokens = torch.tensor([[2, 5, 6, 7, 8, 9, 3]])
    marks = torch.tensor([[1, 0, 0, 0, 0, 0, 0]])
    trace = model.run(inputs={"input_ids": tokens, "global_attention_mask": marks})
    layer = model.layout.layers[0]
    module = model.module.get_submodule(layer.module)
    hidden: list[torch.Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, args: hidden.append(args[0]))
    with torch.no_grad():
        model.module(input_ids=tokens, global_attention_mask=marks)
        keys = [part(hidden[0])[0, :7, :8] for part in (module.key, module.key_global)]
    handle.remove()
    assert torch.allclose(torch.from_numpy(trace.key("L0H0")), torch.cat(keys, -1), atol=1e-6)
    scores = trace.query("L0H0") @ trace.key("L0H0").T * 8**-0.5
    pattern = torch.from_numpy(scores[0]).softmax(-1)
    assert torch.allclose(torch.from_numpy(trace.pattern("L0H0")[0]), pattern, atol=1e-5)


def test_edits_act_on_windows_and_global_tokens():
    model = longformer()
    trace = model.run("the cat sat on the mat")
    weight = model.run(trace.inputs, [hs.set_weight("L0H0", 3, 2, 0.5)])
    assert weight.pattern("L0H0")[3, 2] == pytest.approx(0.5)
    assert weight.pattern("L0H0")[3].sum() == pytest.approx(1.0, abs=1e-5)
    silent = model.run(trace.inputs, [hs.silence("L0H1")], record="full")
    without = longformer()
    with torch.no_grad():
        without.module.get_submodule(without.layout.layers[0].out_projection).weight[:, 8:16] = 0.0
    expected = without.run(trace.inputs, record="full")
    assert torch.allclose(silent.residuals["main"], expected.residuals["main"], atol=1e-5)
    halved = model.run(trace.inputs, [hs.set_neuron("L0H0", "key", 3, 5.0)])
    assert abs(halved.pattern("L0H0") - trace.pattern("L0H0")).max() > 1e-4
    # Nothing is global here, so nothing reads the second half of a query.
    same = model.run(trace.inputs, [hs.set_neuron("L0H0", "query", 12, 5.0)])
    assert abs(same.pattern("L0H0") - trace.pattern("L0H0")).max() < 1e-6


def test_the_neuron_view_has_both_halves_and_sums_up():
    model = longformer()
    inputs = {name: tensor[:1] for name, tensor in inputs_of("several, not as many in each").items()}
    trace = model.run(inputs=inputs)
    for query, half in ((3, slice(0, 8)), (5, slice(8, 16))):
        terms = Terms(trace, hs.Head("main", 0, 0), query, query + 1)
        assert torch.allclose(terms.weighted.sum(1), terms.mixed, atol=1e-5)
        assert torch.allclose(terms.mixed[0, half], torch.from_numpy(trace.mixed("L0H0"))[query], atol=1e-6)
        assert not terms.query[0, slice(8, 16) if query == 3 else slice(0, 8)].any()
        assert "two halves" in terms.notes()[0]
    edited = model.run(inputs=inputs, interventions=[hs.scale("L0H0", 2.0)])
    assert Terms(edited, hs.Head("main", 0, 0), 3, 4).is_output_changed
    assert not Terms(edited, hs.Head("main", 0, 1), 3, 4).is_output_changed


def test_contributions_have_one_value_a_key_only_without_global_tokens():
    model = longformer()
    trace = model.run(inputs={name: tensor[:1] for name, tensor in inputs_of("no global token").items()})
    layer = model.layout.layers[0]
    columns = model.module.get_submodule(layer.out_projection).weight[:, :8]
    norms = (torch.from_numpy(trace.value("L0H0"))[:, :8] @ columns.T).norm(dim=-1).detach().numpy()
    assert abs(trace.contribution("L0H0") - trace.pattern("L0H0") * norms).max() < 1e-4
    several = model.run(inputs={name: tensor[:1] for name, tensor in inputs_of("no padding at all").items()})
    with pytest.raises(NotRecordedError, match="two values here"):
        several.contribution("L0H0")


def test_gradients_go_through_both_projections():
    model = longformer()
    inputs = {name: tensor[:1] for name, tensor in inputs_of("no padding at all").items()}
    scores = gate_importance(model, model.read(inputs=inputs), target=7, position=3)
    for head in ("L0H0", "L1H2"):
        losses = []
        for factor in (1.01, 0.99):
            with model.session([hs.scale(head, factor)]), torch.no_grad():
                losses.append(-model.module(**inputs).logits[0, 3].log_softmax(-1)[7])
        assert scores[head] == pytest.approx(abs(float(losses[0] - losses[1]) / 0.02), rel=0.02, abs=1e-5)


def test_an_atlas_and_a_long_text_need_no_whole_maps():
    model = longformer()
    whole = model.run("the cat sat on the mat")
    with model.session(record="heads", exact=False) as tiled:
        model.module(**{name: tensor[None] for name, tensor in whole.inputs.model_inputs.items()})
    tiles = tiled.captured[model.layout.layers[0].site].records[0]
    assert torch.allclose(tiles.summary.entropy, whole.layers[model.layout.layers[0].site].summary.entropy, atol=1e-4)
    atlas = hs.atlas(model, ["the cat sat on the mat", "a dog ran"] * 4, points=20)
    assert atlas.scores()["L0H0"].lifted_spearman == pytest.approx(-1, abs=1e-5)


def test_a_trace_remembers_its_window_and_global_tokens(tmp_path):
    model = longformer()
    trace = model.run(inputs={name: tensor[:1] for name, tensor in inputs_of("several, not as many in each").items()})
    loaded = hs.load_trace(trace.save(tmp_path / "trace"))
    layer = loaded.layers[model.layout.layers[0].site]
    assert (layer.window, layer.global_tokens) == (3, (0, 5, 11))
    assert abs(loaded.pattern("L1H3") - trace.pattern("L1H3")).max() == 0
