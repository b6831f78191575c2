"""What the page is told of a run."""

import pytest
import tiny_models
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula, Mask
from headscope.traces import Inputs, Predictions, Token, Tokens, Trace
from headscope.views.parts import part
from headscope.views.trace_part import short_name

PAIR = Tokens(
    (
        Token("[CLS]", 2, special=True),
        Token("play", 5, word=0, sentence=0, start=0, end=4),
        Token("ing", 6, word=0, sentence=0, start=4, end=7),
        Token("cards", 7, word=1, sentence=0, start=8, end=13),
        Token("[SEP]", 3, special=True),
        Token("yes", 8, word=0, sentence=0, segment="B", start=0, end=3),
    )
)


def test_tokens_are_told_column_by_column():
    trace = Trace.from_patterns([torch.eye(6)[None]], PAIR)
    props = part(trace, "trace", id="abc").props
    assert (props.id, props.input_kind, props.record, props.text) == ("abc", "patterns", "heads", None)
    (stack,) = props.stacks
    assert (stack.name, stack.kind, stack.grid) == ("main", "text", None)
    assert stack.texts == ["[CLS]", "play", "ing", "cards", "[SEP]", "yes"]
    assert stack.ids == [2, 5, 6, 7, 3, 8]
    assert stack.special == [0, 4]
    # The words of the second text are not those of the first, though each counts from 0.
    assert stack.words == [None, 0, 0, 1, None, 2]
    assert stack.sentences == [None, 0, 0, 0, None, 1]
    assert stack.segments == ["A"] * 5 + ["B"]
    assert stack.spaces == [3]


def test_layers_say_what_they_have_and_why_not():
    props = part(Trace.from_patterns([torch.eye(6)[None]], PAIR), "trace").props
    (layer,) = props.layers
    assert (layer.site, layer.stack, layer.kind, layer.layer, layer.key_stack) == ("L0", "main", "self", 0, "main")
    assert (layer.n_heads, layer.n_queries, layer.n_keys) == (1, 6, 6)
    assert layer.no_weights == ""
    assert layer.no_scores == layer.no_contributions == "only its patterns are known"
    whole = part(trace_of_layers(random_layer(Formula(1.0))), "trace").props.layers[0]
    assert (whole.no_weights, whole.no_scores, whole.no_contributions) == ("", "", "")
    summary = part(
        trace_of_layers(random_layer(Formula(1.0), record="summary"), record="summary"), "trace"
    ).props.layers[0]
    assert "record='heads'" in summary.no_weights and "record='heads'" in summary.no_scores
    rows = part(trace_of_layers(random_layer(Formula(1.0), record="rows"), record="rows"), "trace").props.layers[0]
    assert "only row figures" in rows.no_weights


@pytest.mark.parametrize(
    ("family", "refused", "taken", "field"),
    [
        ("longformer", None, hs.temperature("L0H0", 2.0), ""),
        ("swin", hs.set_weight("L0H0", 0, 1, 0.5), hs.uniform("L0H0"), "no_token_edits"),
        ("gpt2", None, hs.set_weight("L0H0", 1, 0, 0.5), ""),
    ],
)
def test_what_layers_say_of_edits_is_what_a_run_takes(family, refused, taken, field):
    """The page disables by these fields what a run would refuse, and nothing else."""
    tiny = tiny_models.FAMILIES[family]
    model = hs.Model(tiny.build())
    inputs = {key: value[:1] for key, value in tiny.inputs().items()}
    trace = model.run(inputs=inputs)
    assert isinstance(trace, Trace)
    layer = part(trace, "trace").props.layers[0]
    assert bool(layer.no_token_edits) == bool(field)
    model.run(inputs=inputs, interventions=[taken])
    if refused is not None:
        with pytest.raises(hs.errors.InterventionError, match="within windows"):
            model.run(inputs=inputs, interventions=[refused])


def test_causal_layers_are_told_by_their_record():
    causal = Formula(1.0, mask=Mask(200, 200, stop=torch.arange(1, 201)[None]))
    for record in ("heads", "summary", "rows"):
        for formula, is_causal in ((causal, True), (Formula(1.0), False)):
            props = part(trace_of_layers(random_layer(formula, 200, record=record), record=record), "trace").props
            assert props.layers[0].is_causal is is_causal


def test_an_edit_that_gives_weight_to_later_tokens_leaves_a_layer_causal():
    model = hs.load("builtin:gpt")
    trace = model.run("The doctor asked the nurse.", [hs.set_weight("L0H0", 0, 3, 0.5)])
    assert trace.pattern("L0H0")[0, 3] == 0.5
    assert all(layer.is_causal for layer in part(trace, "trace").props.layers)
    assert all(record.is_causal for record in trace.layers.values())


def test_answers_come_with_their_places():
    trace = trace_of_layers(random_layer(Formula(1.0)))
    (answer,) = part(trace, "trace").props.answers
    assert (answer.stack, answer.position, len(answer.candidates)) == ("main", 3, 10)
    assert answer.candidates[0].logprob == float(trace.predictions(1)[0].logprob)
    classes = Predictions.of(torch.tensor([[0.0, -float("inf")]]), stack="main", positions=(), names=str)
    trace = Trace(trace.model, trace.record, trace.layers, trace.tokens, answers=classes)
    (answer,) = part(trace, "trace").props.answers
    # What cannot be has no logarithm that JSON can hold.
    assert (answer.position, [candidate.text for candidate in answer.candidates]) == (-1, ["0"])
    none = part(Trace.from_patterns([torch.eye(6)[None]], PAIR), "trace").props
    assert none.answers == [] and "no output that reads as a prediction" in none.no_answers


def test_texts_are_told_as_they_were_and_always_encode():
    broken = Tokens((Token("\ud800"), Token("</script>")))
    inputs = Inputs("text", {}, {"main": broken}, text="\ud800 </script>", pair="я", target=None)
    trace = Trace.from_patterns([torch.eye(2)[None]], broken)
    trace = Trace(trace.model, "heads", trace.layers, trace.tokens, inputs=inputs, steps=(None, 3))
    page_part = part(trace, "trace")
    assert page_part.props.stacks[0].texts == ["?", "</script>"]
    assert (page_part.props.text, page_part.props.pair, page_part.props.steps) == ("? </script>", "я", [None, 3])
    assert b"</script>" in page_part.encode()


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("builtin:gpt", "builtin:gpt"),
        ("gpt2", "gpt2"),
        ("openai/gpt2", "openai/gpt2"),
        ("/home/anna/gpt", "gpt"),
        ("../models/gpt/", "gpt"),
        ("a/b/gpt", "gpt"),
        ("C:\\models\\gpt", "gpt"),
        ("/", "/"),
    ],
)
def test_a_folder_is_called_by_its_last_part(model: str, short: str) -> None:
    assert short_name(model) == short
