"""Edits of a head's output, as they are made."""

import numpy as np
import pytest
import torch
from made_traces import DIM, random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.errors import InterventionError, NotRecordedError, UnknownHeadError
from headscope.interventions.edits import Mean, Patch, Scale
from headscope.sites import Head, Site

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def trace():
    return trace_of_layers(random_layer(Formula(0.5)), random_layer(Formula(0.5)), record="full")


def test_silence_is_scaling_to_zero():
    intervention = hs.silence("L3H2", tokens=[1])
    assert (intervention.site, intervention.stage, intervention.tokens) == (Head("main", 3, 2), "mixed", [1])
    assert isinstance(intervention.edit, Scale) and intervention.edit.factor == 0.0


@pytest.mark.parametrize("factor", [2, 2.0, np.float32(2), np.int64(2), torch.tensor(2.0)])
def test_any_finite_number_is_a_factor(factor):
    intervention = hs.scale("L0H0", factor)
    assert isinstance(intervention.edit, Scale) and intervention.edit.factor == 2.0
    assert repr(intervention) == "hs.scale('L0H0', 2.0)"


@pytest.mark.parametrize("factor", [NAN, INF, -INF, "2", None, True, [2.0], torch.ones(2), 1j])
def test_what_is_no_finite_number_is_refused(factor):
    with pytest.raises(InterventionError, match="factor must be a finite number"):
        hs.scale("L0H0", factor)


def test_a_gate_keeps_its_gradient():
    factor = torch.ones(4, requires_grad=True)
    intervention = hs.gate("L0", factor)
    assert isinstance(intervention.edit, Scale) and intervention.edit.factor is factor
    with pytest.raises(InterventionError, match="a gate is a tensor, got float: use scale"):
        hs.gate("L0", 0.5)
    with pytest.raises(InterventionError, match="gate holds NaN"):
        hs.gate("L0", torch.tensor([NAN]))


def test_a_mean_is_this_runs_anothers_or_given(trace):
    assert isinstance(hs.mean_ablate("L0H1").edit, Mean) and hs.mean_ablate("L0H1").edit.mean is None
    mixed = trace.layers[Site("main", 1)].mixed
    head_edit, layer = hs.mean_ablate("L1H2", trace).edit, hs.mean_ablate("L1", trace).edit
    torch.testing.assert_close(head_edit.mean, mixed[2].mean(0)[None])
    torch.testing.assert_close(layer.mean, mixed.mean(1))
    assert hs.mean_ablate("L0H0", [1, 2]).edit.mean.tolist() == [1.0, 2.0]
    with pytest.raises(InterventionError, match="mean holds NaN or infinite values: 1 of 2"):
        hs.mean_ablate("L0H0", torch.tensor([0.0, INF]))
    with pytest.raises(UnknownHeadError):
        hs.mean_ablate("L7H0", trace)


@pytest.mark.parametrize("stage", ["query", "key", "value", "mixed"])
def test_a_patch_holds_what_the_head_did_in_the_other_run(stage, trace):
    intervention = hs.patch("L1H3", trace, stage=stage)
    assert intervention.stage == stage and isinstance(intervention.edit, Patch)
    assert torch.equal(intervention.edit.values, trace.tensor(stage, "L1H3")[None])
    assert hs.patch("L1", trace, stage=stage).edit.values.shape == (4, 12, DIM)


def test_a_patch_of_the_stream_holds_what_the_layer_had(trace):
    assert torch.equal(hs.patch("L1", trace, stage="residual").edit.values[0], trace.residuals["main"][1])
    assert torch.equal(hs.patch("L1H0", trace, stage="neurons").edit.values[0], trace.tensor("neurons", "L1"))


def test_a_patch_may_be_a_tensor():
    values = torch.randn(5, 6)
    assert torch.equal(hs.patch("L0H0", values).edit.values, values[None])
    for bad, message in (
        (torch.zeros(6), "shape"),
        (torch.zeros(1, 1, 5, 6), "shape"),
        (values * NAN, "patch holds NaN"),
    ):
        with pytest.raises(InterventionError, match=message):
            hs.patch("L0H0", bad)
    with pytest.raises(InterventionError, match="cannot patch 'pattern': choose query"):
        hs.patch("L0H0", values, stage="pattern")


def test_a_patch_from_a_summary_says_what_to_record():
    summary = trace_of_layers(random_layer(Formula(0.5), record="summary"), record="summary")
    with pytest.raises(NotRecordedError, match="record='heads'"):
        hs.patch("L0H0", summary)


def test_an_intervention_does_not_change_with_the_tensor_it_was_made_from():
    values = torch.ones(3, 2)
    array = values.numpy()
    patch, pattern = hs.patch("L0H0", values), hs.replace_pattern("L0H0", array)
    array[:] = 7.0
    assert patch.edit.values.max() == 1.0 and pattern.edit.weights.max() == 1.0
