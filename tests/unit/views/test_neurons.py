"""The neuron view's numbers: products add up to scores, scores make the model's own patterns, values its outputs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_traces import DIM, N_HEADS, random_layer, trace_of_layers
from tiny_models import FAMILIES

import headscope as hs
from headscope.attention import Bias, Formula, Mask, softmax
from headscope.errors import InputError, NotRecordedError, UnknownHeadError, UnknownTokenError
from headscope.models import Model
from headscope.traces import LayerRecord, Trace
from headscope.views.neurons import Terms, full_colour, steadiness
from headscope.views.parts import part

NAMES = ("gpt2", "bert", "llama", "t5", "bloom", "gemma2", "mistral", "vit", "gpt_oss", "falcon", "marian", "whisper")
TRACE = trace_of_layers(random_layer(Formula(0.5), 9), random_layer(Formula(0.5), 9))


@pytest.fixture(scope="module", params=NAMES)
def run(request):
    """A family's trace, and the patterns that its own code returns."""
    family = FAMILIES[request.param]
    inputs = {name: tensor[:1] for name, tensor in family.inputs().items()}
    trace = Model(family.build()).run(inputs=inputs, record="heads")
    with torch.no_grad():
        own = family.attentions(family.build()(**inputs, output_attentions=True))
    return request.param, trace, own


def test_products_sum_to_scores_and_scores_make_the_patterns(run):
    name, trace, own = run
    has = {"capped": False, "bias": False, "sink": False, "shared": False, "masked": False}
    for head in trace.heads:
        layer = trace.layers[head.site]
        terms = Terms(trace, head, 0, layer.n_queries)
        assert not terms.no_terms
        assert torch.allclose(terms.products.sum(-1), terms.dots, atol=1e-5, rtol=1e-5)
        after = terms.dots
        if terms.capped is not None:
            assert terms.softcap is not None
            assert torch.allclose(terms.capped, torch.tanh(terms.dots / terms.softcap) * terms.softcap, atol=1e-6)
            after = terms.capped
        after = after if terms.bias is None else after + terms.bias
        after = after if terms.allowed is None else after.masked_fill(~terms.allowed, -torch.inf)
        assert torch.equal(after, terms.scores)
        sinks = None if terms.sink is None else torch.tensor([terms.sink])
        pattern = softmax(after[None, None], sinks)[0, 0]
        stack = "cross" if head.kind == "cross" else head.stack
        returned = own[stack][head.layer][0, head.index]
        assert torch.allclose(pattern, returned.float(), atol=1e-5)
        assert torch.allclose(terms.weights, returned.float(), atol=1e-5)
        assert torch.allclose(terms.weighted.sum(1), terms.mixed, atol=1e-5)
        has["capped"] |= terms.capped is not None
        has["bias"] |= terms.bias is not None
        has["sink"] |= terms.sink is not None
        has["shared"] |= layer.key.shape[0] < layer.n_heads
        has["masked"] |= terms.allowed is not None
    assert has["capped"] == (name == "gemma2")
    assert has["bias"] == (name in ("t5", "bloom"))
    assert has["sink"] == (name == "gpt_oss")
    assert has["shared"] == (name in ("llama", "gemma2", "mistral", "gpt_oss", "falcon"))
    assert has["masked"] == (name not in ("bert", "vit"))


def test_the_part_of_one_query_is_a_row_of_the_whole(run):
    _, trace, _ = run
    head = trace.heads[-1]
    whole = part(trace, f"neuron/{head}")
    row_part = part(trace, f"neuron/{head}?query=3")
    assert row_part.props.queries == (3, 4)
    for name, array in row_part.arrays.items():
        assert array.dtype in (np.float32, np.uint8)
        expected = whole.arrays[name] if name == "norms" else whole.arrays[name][3:4]
        assert np.allclose(array, expected, atol=1e-6)
    json.dumps(row_part.props.largest, allow_nan=False)
    assert row_part.encode()


def test_terms_known_on_paper():
    """q = (1, 2), keys (1, 0) and (0, 1), scaled by a half: scores ½ and 1, softmax 1 / (1 + √e)."""
    summary = random_layer(Formula(1.0), 1, 2).summary
    vectors = {"query": torch.tensor([[[1.0, 2.0]]]), "key": torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])}
    vectors |= {"value": torch.tensor([[[2.0, 0.0], [0.0, 4.0]]]), "mixed": torch.zeros(1, 1, 2)}
    record = random_layer(Formula(1.0), 1, 2).site
    layer = LayerRecord(record, 1, 1, 2, "main", "routed", summary, formula=Formula(0.5), **vectors)
    trace = replace(TRACE, layers={record: layer})
    terms = Terms(trace, record.head(0), 0, 1)
    assert terms.products.tolist() == [[[0.5, 0.0], [0.0, 1.0]]]
    assert terms.dots.tolist() == [[0.5, 1.0]]
    first = 1 / (1 + np.exp(0.5))
    assert terms.weights[0].numpy() == pytest.approx([first, 1 - first], abs=1e-6)
    assert terms.weighted.sum(1)[0].numpy() == pytest.approx([2 * first, 4 * (1 - first)], abs=1e-6)
    assert terms.importance[0].numpy() == pytest.approx([0.5 * first, 1 - first], abs=1e-6)


def test_every_form_of_bias_is_told_by_key():
    offset = Bias("offset", torch.arange(17.0)[None, None].expand(1, N_HEADS, 17), 9, 9)
    per_key = Bias("key", torch.arange(9.0)[None, None].expand(1, N_HEADS, 9), 9, 9)
    trace = trace_of_layers(random_layer(Formula(1.0, bias=offset), 9), random_layer(Formula(1.0, bias=per_key), 9))
    by_offset, by_key = (part(trace, f"neuron/L{layer}H1?query=2") for layer in (0, 1))
    assert (by_offset.props.bias, by_key.props.bias) == ("offset", "key")
    assert by_offset.arrays["bias"][0].tolist() == [key - 2 + 8 for key in range(9)]
    assert by_key.arrays["bias"][0].tolist() == list(range(9))


def test_masked_keys_are_told_and_do_not_set_the_colours():
    formula = Formula(1.0, mask=Mask.causal(9, 9))
    layer = random_layer(formula, 9)
    assert layer.key is not None
    layer.key[:, 8] = 1e6  # seen by the last query alone
    trace = trace_of_layers(layer)
    page_part = part(trace, "neuron/L0H0")
    assert page_part.arrays["allowed"][4].tolist() == [1] * 5 + [0] * 4
    assert page_part.arrays["product_largest"][4] < 1e3
    assert np.isfinite(page_part.arrays["dots"]).all()


def test_a_sink_takes_what_is_left():
    trace = trace_of_layers(random_layer(Formula(1.0, sinks=torch.tensor([0.0, 1.0, 2.0, 3.0])), 9))
    page_part = part(trace, "neuron/L0H2")
    assert page_part.props.sink == 2.0
    assert page_part.arrays["sink"] + page_part.arrays["weights"].sum(-1) == pytest.approx(np.ones(9))


def test_heads_that_share_keys_say_so():
    page_part = part(TRACE, "neuron/L0H3?query=0")
    assert (page_part.props.key_head, page_part.props.n_key_heads) == (1, 2)
    assert "this one reads key head 1" in page_part.props.notes[0]


def test_edited_heads_do_not_pretend():
    layer = random_layer(Formula(1.0), 9)
    edited = trace_of_layers(replace(layer, stored={1: torch.full((9, 9), 1 / 9)}), edits=("set_row('L0H1', 3, 0)",))
    page_part = part(edited, "neuron/L0H1?query=3")
    assert "edited" in page_part.props.no_terms
    assert page_part.arrays["weights"][0].tolist() == pytest.approx([1 / 9] * 9)
    assert any("not the sum of weight × value" in note for note in page_part.props.notes)
    assert page_part.props.is_output_edited
    assert not part(trace_of_layers(layer), "neuron/L0H1?query=3").props.is_output_edited
    assert "score" not in hs.neuron_view(edited, "L0H1").table().columns
    unknown = trace_of_layers(replace(layer, formula=None, stored=dict(enumerate(torch.full((4, 9, 9), 1 / 9)))))
    assert "were not recorded" in part(unknown, "neuron/L0H0?query=0").props.no_terms


def test_long_inputs_come_in_blocks():
    trace = trace_of_layers(random_layer(Formula(1.0, mask=Mask.causal(1100, 1100)), 1100))
    with pytest.raises(InputError, match=r"neuron/L0H0\?query=0"):
        part(trace, "neuron/L0H0")
    row_part = part(trace, "neuron/L0H0?query=1099")
    assert len(row_part.encode()) < 30_000
    block = part(trace, "vectors/L0H3?of=key&rows=512:1024")
    assert (block.arrays["vectors"] == trace.key("L0H3")[512:1024]).all()
    assert (block.props.rows, block.props.n_tokens) == ((512, 1024), 1100)
    assert block.arrays["mean"] == pytest.approx(trace.key("L0H3").mean(0), abs=1e-5)
    assert part(trace, "vectors/L0H3?of=mixed").arrays["vectors"].shape == (512, DIM)
    with pytest.raises(InputError, match="at most 512"):
        part(trace, "vectors/L0H3?of=key&rows=0:1000")
    with pytest.raises(InputError, match="outside 0:1100"):
        part(trace, "vectors/L0H3?of=key&rows=1000:1101")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_travel_without_loss(dtype):
    trace = trace_of_layers(random_layer(Formula(1.0), 9, dtype=dtype))
    sent = part(trace, "vectors/L0H0?of=value").arrays["vectors"]
    assert sent.dtype == (np.float16 if dtype == torch.float16 else np.float32)
    assert (sent.astype(np.float32) == trace.value("L0H0")).all()


@pytest.mark.parametrize(
    "key, error, error_text",
    [
        ("neuron/L0", UnknownHeadError, "say which, as in L0H0"),
        ("neuron/L9H0?query=0", UnknownHeadError, "L9H0"),
        ("neuron/L0H0?query=9", UnknownTokenError, "0 to 8"),
        ("neuron/L0H0?query=-1", InputError, "not a position"),
        ("vectors/L0H0?of=residual", InputError, "query, key, value, mixed"),
        ("vectors/L0H0?of=key&rows=3:3", InputError, "no range"),
    ],
)
def test_what_is_not_there_is_refused(key, error, error_text):
    with pytest.raises(error, match=error_text):
        part(TRACE, key)


def test_a_trace_without_queries_and_keys_says_so_and_what_to_do():
    summary = trace_of_layers(random_layer(Formula(1.0), 9, record="summary"), record="summary")
    with pytest.raises(NotRecordedError, match="record='heads'"):
        hs.neuron_view(summary)
    bare_trace = Trace.from_patterns([torch.full((1, 3, 3), 1 / 3)], ["a", "b", "c"])
    with pytest.raises(NotRecordedError, match="only its patterns are known"):
        hs.neuron_view(bare_trace)


def test_full_colour_is_not_set_by_a_few_huge_neurons():
    values = torch.ones(10_000)
    values[:3] = 1e6
    assert full_colour(values) == 1.0
    assert full_colour(torch.zeros(4)) > 0


def test_steady_neurons_vary_little_for_their_size():
    varied = steadiness(np.array([5.0, 0.0, 1.0]), np.array([0.1, 1.0, 0.0]))
    assert varied[2] == 0 and varied[0] < 0.03 and varied[1] == pytest.approx(1)
