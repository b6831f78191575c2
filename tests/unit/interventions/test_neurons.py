"""Edits of single coordinates, MLP neurons and input tokens, as they are made."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import InterventionError
from headscope.interventions.edits import Coordinate, ReplaceToken
from headscope.sites import Head, Site


@pytest.mark.parametrize(
    ("part", "stage"),
    [
        ("query", "query"),
        ("key", "key"),
        ("value", "value"),
        ("mixed", "mixed"),
        ("mlp", "neurons"),
        ("residual", "residual"),
    ],
)
def test_a_part_names_the_stage(part, stage):
    assert hs.set_neuron("L0", part, 0, 1.0).stage == stage


def test_setting_scaling_and_adding_are_one_formula():
    def numbers(intervention) -> tuple:
        assert isinstance(intervention.edit, Coordinate)
        return intervention.edit.index, intervention.edit.factor, intervention.edit.amount

    assert numbers(hs.set_neuron("L2H0", "key", 12, 5)) == (12, 0.0, 5.0)
    assert numbers(hs.scale_neuron("L2H0", "key", 12, 5)) == (12, 5.0, 0.0)
    assert numbers(hs.add_neuron("L2H0", "key", 12, 5)) == (12, 1.0, 5.0)
    assert hs.add_neuron("L2H0", "key", 12, 5).site == Head("main", 2, 0)
    assert hs.add_neuron("L2", "mlp", 12, 5, tokens=-1).site == Site("main", 2)


@pytest.mark.parametrize("value", [1, np.float32(1.0), torch.tensor(1.0)])
def test_any_number_prints_as_a_plain_one(value):
    assert repr(hs.set_neuron("L0", "mlp", 3, value)) == "hs.set_neuron('L0', 'mlp', 3, 1.0)"


@pytest.mark.parametrize("make", [hs.set_neuron, hs.scale_neuron, hs.add_neuron])
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(InterventionError, match="no part 'gate': choose one of query"):
        make("L0", "gate", 0, 1.0)
    for index in (-1, 1.5, "3", None, True):
        with pytest.raises(InterventionError, match="index counts from 0"):
            make("L0", "key", index, 1.0)
    for value in (float("nan"), float("inf"), "one", None):
        with pytest.raises(InterventionError, match="must be a finite number"):
            make("L0", "key", 0, value)


def test_a_token_is_replaced_by_an_id_a_text_or_the_mask():
    for token in (17, "nurse", None):
        intervention = hs.replace_token([1, "doctor"], token)
        assert isinstance(intervention.edit, ReplaceToken) and intervention.edit.token == token
        assert (intervention.site, intervention.stage, intervention.tokens) == (None, "tokens", [1, "doctor"])


@pytest.mark.parametrize("token", [-1, True, 1.5, [3]])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(InterventionError, match="a token is an id or a text"):
        hs.replace_token(0, token)
