"""What edits act on, as heads and positions: what views mark."""

import pytest

import headscope as hs
from headscope.views.contract import EditedLayerProps, EditedWeightsProps
from headscope.views.edited import edited_heads, edited_layer_notes, edited_layers, edited_weights, replaced_tokens
from headscope.views.trace_part import trace_part

TEXT = "The doctor asked the nurse a question. She"


@pytest.fixture(scope="module")
def gpt() -> hs.Model:
    return hs.load("builtin:gpt")


def test_heads_are_those_at_the_site_of_each_edit(gpt: hs.Model) -> None:
    trace = gpt.run(TEXT, interventions=[hs.scale("L2H1", 0.5), hs.silence("L3H2"), hs.set_neuron("L1", "mlp", 7, 1.0)])
    assert edited_heads(trace) == ["L2H1", "L3H2"]
    assert edited_weights(trace) == [] and replaced_tokens(trace, "main") == []
    assert edited_heads(gpt.run(TEXT, interventions=[hs.uniform("L2")])) == [f"L2H{head}" for head in range(8)]
    assert len(edited_heads(gpt.run(TEXT, interventions=[hs.temperature(None, 2.0)]))) == 48
    own = hs.interventions.edit("L4H1", "mixed", lambda mixed: 2 * mixed)
    assert edited_heads(gpt.run(TEXT, interventions=[own])) == ["L4H1"]
    assert edited_heads(gpt.run(TEXT)) == []


def test_edits_of_mlp_and_residual_stream_are_of_the_layer_and_of_no_head(gpt: hs.Model) -> None:
    edits = [
        hs.scale_neuron("L4", "mlp", 3, 2.0),
        hs.set_neuron("L2", "mlp", 7, 1.0),
        hs.add_neuron("L3", "residual", 0, 1.0),
        hs.interventions.edit("L5", "residual", lambda stream: stream),
        hs.patch("L1", gpt.run(TEXT, record="full"), stage="neurons"),
        hs.set_neuron("L0H3", "key", 0, 1.0),
    ]
    trace = gpt.run(TEXT, interventions=edits)
    assert edited_heads(trace) == ["L0H3"]
    assert edited_layers(trace) == [
        EditedLayerProps("main", 1, "mlp"),
        EditedLayerProps("main", 2, "mlp"),
        EditedLayerProps("main", 3, "residual"),
        EditedLayerProps("main", 4, "mlp"),
        EditedLayerProps("main", 5, "residual"),
    ]
    assert edited_layer_notes(trace) == ["edited: MLP of L1, L2, L4", "edited: residual stream of L3, L5"]
    assert trace_part(trace).props.edited_layers == edited_layers(trace)
    assert edited_layers(gpt.run(TEXT, interventions=[hs.silence("L3H2")])) == []


def test_weights_of_single_tokens_are_named_by_position(gpt: hs.Model) -> None:
    edits = [
        hs.set_weight("L3H2", -1, 2, 0.5),
        hs.block("L2H0", [5, 6], "nurse"),
        hs.silence("L1H0", tokens=[3]),
    ]
    assert edited_weights(gpt.run(TEXT, interventions=edits)) == [
        EditedWeightsProps("L3H2", [9], [2]),
        EditedWeightsProps("L2H0", [5, 6], [5]),
        EditedWeightsProps("L1H0", [3], []),
    ]


def test_replaced_tokens_are_positions_of_the_input(gpt: hs.Model) -> None:
    trace = gpt.run(TEXT, interventions=[hs.replace_token(5, " farmer"), hs.replace_token(-1)])
    assert replaced_tokens(trace, "main") == [5, 9] and edited_heads(trace) == []
    props = trace_part(trace).props
    assert props.stacks[0].replaced == [5, 9] and props.edited_heads == []
    translated = hs.load("builtin:translate").run(
        "The old man.", target="Der Mann", interventions=[hs.replace_token(0)]
    )
    assert replaced_tokens(translated, "encoder") == [0] and replaced_tokens(translated, "decoder") == []


def test_a_difference_marks_nothing_as_both_runs_have_a_name(gpt: hs.Model) -> None:
    comparison = hs.compare(gpt.run(TEXT, interventions=[hs.silence("L3H2")]), gpt.run(TEXT))
    difference = comparison.difference()
    assert edited_heads(difference) == []
