"""Rollout and flow: products made by hand, and what must hold for any attention (Abnar & Zuidema, 2020)."""

import threading

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES

import headscope as hs
from headscope.analysis.structure.rollout import as_patches, flow, rollout
from headscope.errors import Cancelled, InputError, NotRecordedError
from headscope.models import Model
from headscope.progress import Progress
from headscope.traces import Trace


def random_trace(n_layers: int = 3, n_heads: int = 2, n: int = 5, *, causal: bool = False) -> Trace:
    scores = torch.randn(n_layers, n_heads, n, n, dtype=torch.float64) * 2
    if causal:
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    return Trace.from_patterns(list(scores.softmax(-1)), [f"t{index}" for index in range(n)])


def test_rollout_by_hand():
    first, second = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])
    rollouts = rollout(Trace.from_patterns([first, second], ["a", "b"]))
    np.testing.assert_allclose(rollouts[0], [[1.0, 0.0], [0.5, 0.5]])
    # Layer 1 mixes each token with b, which is half a already: ½ a + ½ (½ a + ½ b).
    np.testing.assert_allclose(rollouts["L1"], [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(rollouts.head("L1H0"), [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(rollouts.head("L0H0"), first[0])
    np.testing.assert_allclose(rollouts.without("a")[-1], [[0.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("causal", [False, True])
def test_what_must_hold(causal):
    trace = random_trace(causal=causal)
    rolled, rollouts = rollout(trace), flow(trace)
    np.testing.assert_allclose(rolled.weights.sum(-1), 1.0)
    assert (rollouts >= rolled[-1] - 1e-9).all() and (rollouts <= 1 + 1e-9).all()
    expected = trace.patterns("L0").mean(0).numpy() / 2 + np.eye(5) / 2
    np.testing.assert_allclose(rolled[0], expected, atol=1e-6)
    np.testing.assert_allclose(flow(trace, layer=0), rolled[0], atol=1e-9)
    np.testing.assert_allclose(flow(trace, normalised=True).sum(-1), 1.0)
    np.testing.assert_allclose(flow(trace, queries=[1, 3]), rollouts[[1, 3]])
    if causal:
        assert not np.triu(rolled[-1], 1).any() and not np.triu(rollouts, 1).any()
        assert rolled.without(0)[-1][0].sum() == 0.0  # the first token sees none but itself


def test_a_single_head_is_over_the_rollout_below_it():
    trace = random_trace()
    rolled = rollout(trace)
    heads = [rolled.head(f"L2H{index}") for index in range(2)]
    np.testing.assert_allclose((np.mean(heads, axis=0) + rolled[1]) / 2, rolled[2], atol=1e-7)


def test_the_residual_is_added_before_rows_are_brought_to_one():
    trace = Trace.from_patterns([torch.tensor([[[0.5, 0.0], [0.25, 0.25]]])], ["a", "b"])  # half went to a sink
    np.testing.assert_allclose(rollout(trace)[0], [[1.0, 0.0], [0.25 / 1.5, 1.25 / 1.5]])


def test_an_image_is_read_by_patches():
    model = Model(FAMILIES["vit"].build())
    trace = model.run(inputs={"pixel_values": FAMILIES["vit"].inputs()["pixel_values"][:1]})
    rolled = rollout(trace)
    tokens = trace.tokens["main"]
    assert rolled.patches().shape == tokens.grid
    assert rolled.patches().sum() + rolled[-1][0, 0] == pytest.approx(1.0)
    rollouts = flow(trace, queries=[0], max_tokens=len(tokens))
    assert (as_patches(rollouts[0], tokens) >= rolled.patches() - 1e-9).all()


def test_each_stack_by_itself():
    trace = hs.load("builtin:translate").run("A short sentence.", target="Короткое предложение.")
    assert rollout(trace).tokens == trace.tokens["encoder"]
    decoder = rollout(trace, stack="decoder")
    assert len(decoder.sites) == 4 and not np.triu(decoder[-1], 1).any()


def test_what_cannot_be_done_is_said():
    trace = random_trace(n=31)
    with pytest.raises(InputError, match="31 tokens"):
        flow(trace)
    with pytest.raises(NotRecordedError, match="main"):
        rollout(trace, stack="encoder")
    with pytest.raises(InputError, match="no patches"):
        rollout(trace).patches()
    with pytest.raises(InputError, match="there is no layer 3"):
        rollout(trace)[3]
    swin = Model(FAMILIES["swin"].build()).run(inputs={"pixel_values": FAMILIES["swin"].inputs()["pixel_values"][:1]})
    with pytest.raises(InputError, match="different grids"):
        rollout(swin)
    stop, done = threading.Event(), []
    stop.set()
    with pytest.raises(Cancelled):
        flow(random_trace(), cancel=stop)
    flow(random_trace(n=3), progress=done.append)
    assert done == [Progress("flow", n_done, 3) for n_done in (1, 2, 3)]
