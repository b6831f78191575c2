"""Heads that decay with distance: on scores whose slope is known, and on a real model."""

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.analysis.usecases.distance_decay import _fit, _neurons, built_in_texts, decay
from headscope.attention import Formula, Mask


def falling(rate: float):
    """A causal head whose score is −rate · distance: q_i = (−rate · i, 1), k_j = (1, rate · j), the rest zero."""
    layer = random_layer(Formula(1.0, mask=Mask.causal(12, 12)))
    place = torch.arange(12.0)
    query, key = torch.zeros_like(layer.query), torch.zeros_like(layer.key)
    query[:, :, 0], query[:, :, 1] = -rate * place, 1.0
    key[:, :, 0], key[:, :, 1] = 1.0, rate * place
    layer.query.copy_(query), layer.key.copy_(key)
    return trace_of_layers(layer)


def test_scores_that_fall_by_a_tenth_a_token_have_that_rate():
    share, rate = _fit([falling(0.1)], hs.Head("main", 0, 1))
    assert rate == pytest.approx(0.1, abs=1e-5) and share == pytest.approx(1, abs=1e-4)


def test_the_parts_of_neurons_sum_to_the_head():
    neurons = _neurons([falling(0.1)], hs.Head("main", 0, 1))
    assert -sum(neuron.slope for neuron in neurons) == pytest.approx(0.1, abs=1e-5)
    by_index = {neuron.index: neuron for neuron in neurons}
    assert by_index[1].constancy == pytest.approx(1) and by_index[0].constancy < 0.9
    assert by_index[2].slope == 0


def test_scaling_the_neurons_that_decay_most_flattens_a_real_head_more_than_others():
    model = hs.load("builtin:gpt")
    study = decay(model, built_in_texts()[:4], n_random=3)
    assert study.shares[study.head] > 0.5 and study.rates[study.head] > 0
    assert -sum(neuron.slope for neuron in study.neurons) == pytest.approx(study.rates[study.head], rel=1e-3)
    nothing, top, *others = study.effects
    assert nothing.rate == pytest.approx(study.rates[study.head], rel=1e-3)
    assert top.rate < min(effect.rate for effect in others)
    assert np.isfinite([effect.perplexity for effect in study.effects]).all() and nothing.continuation
