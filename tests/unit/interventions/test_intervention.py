"""Interventions: where they act, how they print, which tokens they name."""

import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.errors import InterventionError, UnknownHeadError, UnknownTokenError
from headscope.interventions import Intervention, edit
from headscope.interventions.edits import Apply, Block, SetWeight
from headscope.interventions.intervention import EDITS, payload_name, pin_tokens
from headscope.sites import Head, Site
from headscope.traces import Tokens

PATTERN = torch.rand(3, 3)


def every() -> list[Intervention]:
    """One of each kind, with every option."""
    trace = trace_of_layers(random_layer(Formula(0.5), 3), record="full")
    return [
        hs.silence("L0H1"),
        hs.silence("L0", tokens=[0, "cat"]),
        hs.scale("cross.L1H2", 0.1, tokens=slice(1, None)),
        hs.gate("L0H1", torch.tensor(0.5)),
        hs.gate("L0", torch.rand(4), tokens=range(2)),
        hs.mean_ablate("L0H1"),
        hs.mean_ablate("L0", trace, tokens=-1),
        hs.patch("L0H1", trace),
        hs.patch("L0", trace, stage="key", tokens=(0, 2)),
        hs.patch("L0", trace, stage="residual"),
        hs.temperature(None, 2.0),
        hs.temperature("L0H0", 1 / 3, tokens="it's"),
        hs.distance_bias("L0", -0.5),
        hs.block(None, "segment:A", "segment:B"),
        hs.block("L0H0", [0, range(2, 4)], slice(-2, None, 2)),
        hs.replace_pattern("L0H0", PATTERN),
        hs.replace_pattern("L0", PATTERN.expand(4, 3, 3), renormalise=False, tokens=1),
        hs.uniform("L0H0", tokens=[1, "cat"]),
        hs.set_weight("L0H0", -1, 'say "hi"', 0.9),
        hs.set_weight("L0H0", 2, 0, 5.0, renormalise=False),
        hs.set_row("L0H0", 1, torch.tensor([1.0, 2.0])),
        hs.set_row("L0H0", "cat", torch.ones(1), renormalise=False),
        hs.set_neuron("L2H0", "key", 12, 0.0),
        hs.scale_neuron("L2", "mlp", 7, 1.5, tokens={3}),
        hs.add_neuron("encoder.L2", "residual", 7, -1, tokens=0),
        hs.replace_token(2),
        hs.replace_token(["猫", -1], "nurse"),
        hs.replace_token(0, 17),
    ]


def assert_same(first: Intervention, second: Intervention) -> None:
    assert (first.site, first.stage, first.label) == (second.site, second.stage, second.label)
    assert type(first.edit) is type(second.edit)
    pairs = [(first.tokens, second.tokens)]
    pairs += [(value, vars(second.edit)[name]) for name, value in vars(first.edit).items()]
    for mine, other in pairs:
        if isinstance(mine, torch.Tensor):
            assert mine.dtype == other.dtype and torch.equal(mine.detach(), other)
        else:
            assert mine == other and type(mine) is type(other)


def test_every_kind_of_edit_is_among_the_examples():
    assert {type(intervention.edit) for intervention in every()} == set(EDITS.values())


def test_a_list_prints_as_the_python_that_makes_it(tmp_path, monkeypatch):
    interventions = every()
    hs.save_interventions(interventions, tmp_path / "edits.json")
    monkeypatch.chdir(tmp_path)  # tensors are read from where they were saved
    again = eval(repr(interventions), {"hs": hs})
    assert len(again) == len(interventions)
    for intervention, other in zip(interventions, again, strict=True):
        assert_same(intervention, other)


def test_prints_are_what_one_would_type():
    texts = [repr(intervention) for intervention in every()]
    assert texts[0] == "hs.silence('L0H1')"
    assert texts[1] == "hs.silence('L0', tokens=[0, 'cat'])"
    assert texts[2] == "hs.scale('cross.L1H2', 0.1, tokens=slice(1, None, None))"
    assert texts[10] == "hs.temperature(None, 2.0)"
    assert "hs.set_weight('L0H0', 2, 0, 5.0, renormalise=False)" in texts
    assert "hs.replace_token(2)" in texts and "hs.replace_token(0, 17)" in texts
    name = payload_name(PATTERN[None])
    assert f"""hs.replace_pattern('L0H0', hs.interventions.payload("{name}"))""" in texts


def test_an_address_may_be_text_a_head_or_a_layer():
    for place in ("L0H1", Head("main", 0, 1)):
        assert hs.silence(place).site == Head("main", 0, 1)
        assert repr(hs.silence(place)) == "hs.silence('L0H1')"
    assert hs.silence(Site("main", 3)).site == hs.silence("L3").site == Site("main", 3)
    with pytest.raises(UnknownHeadError, match="not the address"):
        hs.silence("head five")


def test_a_function_of_ones_own_may_act_at_any_stage():
    doubled = edit("L0H0", "pattern", torch.neg, tokens=[1])
    assert isinstance(doubled.edit, Apply) and doubled.stage == "pattern" and doubled.tokens == [1]
    assert repr(doubled) == "hs.interventions.edit('L0H0', 'pattern', neg, tokens=[1])"
    with pytest.raises(InterventionError, match="no stage 'logits': the stages are query"):
        edit("L0H0", "logits", torch.neg)


def test_payloads_are_the_tensors_of_the_edit():
    assert hs.silence("L0").payloads() == {}
    assert torch.equal(hs.set_row("L0H0", 1, PATTERN[0]).payloads()["weights"], PATTERN[0])


def test_payloads_are_named_by_what_they_hold():
    assert payload_name(PATTERN) == payload_name(PATTERN.clone()) == payload_name(PATTERN.T.contiguous().T)
    assert payload_name(PATTERN) != payload_name(PATTERN + 1)
    assert payload_name(PATTERN) != payload_name(PATTERN.double())


def test_every_choice_of_tokens_is_told_with_its_axis():
    assert hs.silence("L0").token_choices() == []
    assert hs.scale("L0", 2.0, tokens="cat").token_choices() == [("rows", "cat")]
    assert hs.block(None, 0, [1]).token_choices() == [("rows", 0), ("keys", [1])]
    assert hs.set_weight("L0H0", 3, "a", 0.5).token_choices() == [("rows", 3), ("keys", "a")]
    assert hs.set_row("L0H0", 3, PATTERN[0]).token_choices() == [("rows", 3)]
    assert hs.replace_token("cat").token_choices() == [("rows", "cat")]


def test_pinned_tokens_are_positions_of_this_input():
    tokens = Tokens.of(["the", "cat", "the"])
    interventions = [
        hs.silence("L0", tokens=-1),
        hs.block(None, "the", slice(1, None)),
        hs.set_weight("L0H0", -1, "cat", 0.5),
        hs.scale("L0", 2.0),
    ]
    silence, block, weight, scale = pin_tokens(interventions, tokens)
    assert silence.tokens == [2]
    assert isinstance(block.edit, Block) and (block.edit.queries, block.edit.keys) == ([0, 2], [1, 2])
    assert isinstance(weight.edit, SetWeight) and (weight.edit.query, weight.edit.key) == ([2], [1])
    assert scale.tokens is None and scale.edit is interventions[3].edit
    # What it was made from does not change, nor how it prints.
    assert interventions[0].tokens == -1 and repr(silence) == repr(interventions[0])
    with pytest.raises(UnknownTokenError):
        pin_tokens([hs.silence("L0", tokens="dog")], tokens)
