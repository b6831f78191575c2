"""What is kept of a pattern, against patterns whose figures are known on paper and against a naive version."""

import math

import pytest
import torch
from naive_summary import assert_same, naive
from torch import Tensor

from headscope.attention import Summariser, summarise
from headscope.attention.summaries import N_TOP, cell

pytestmark = pytest.mark.usefixtures("either_way")

# Three queries of one head: all on itself, halves on the outer keys, thirds.
PAPER = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3]]])


def scores_of(pattern: Tensor) -> Tensor:
    return pattern.log().clamp_min(torch.finfo(pattern.dtype).min)


def test_a_pattern_of_three_tokens_known_on_paper():
    summary = summarise(PAPER, scores_of(PAPER))
    assert summary.entropy[0].tolist() == pytest.approx([0.0, math.log(2), math.log(3)], abs=1e-6)
    assert summary.max[0].tolist() == pytest.approx([1.0, 0.5, 1 / 3])
    assert summary.distance[0].tolist() == pytest.approx([0.0, 1.0, 1.0], abs=1e-6)
    assert summary.argmax[0].tolist() == [0, 0, 0]
    assert summary.lse[0].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert summary.received is not None and summary.received[0].tolist() == pytest.approx([11 / 18, 1 / 9, 5 / 18])
    assert summary.top_keys is not None and summary.top_weights is not None
    assert summary.top_keys[0, :, :3].tolist() == [[0, 1, 2], [0, 2, 1], [0, 1, 2]]
    assert summary.top_weights[0, 1, :3].tolist() == [0.5, 0.5, 0.0]
    # Only three keys exist.
    assert bool((summary.top_keys[..., 3:] == -1).all()) and bool((summary.top_weights[..., 3:] == 0).all())
    assert summary.map is not None and torch.equal(summary.map, PAPER)


def test_lse_is_the_log_of_the_softmax_denominator():
    scores = torch.randn(2, 3, 5) * 4
    summary = summarise(scores.softmax(-1), scores)
    torch.testing.assert_close(summary.lse, scores.logsumexp(-1))


@pytest.mark.parametrize("length", [9, 97, 300, 1000])
def test_equal_weights_are_listed_from_the_lowest_key(length):
    pattern = torch.full((1, 2, length), 1 / length)
    summary = summarise(pattern, torch.zeros(1, 2, length))
    assert summary.top_keys is not None and summary.top_keys[0].tolist() == [list(range(N_TOP))] * 2
    assert summary.argmax[0].tolist() == [0, 0]
    # The same value at a few far keys, something larger at one.
    pattern = torch.zeros(1, 1, length)
    pattern[..., [8, length - 1, length // 2]] = 0.2
    pattern[..., 5] = 0.4
    keys = summarise(pattern, scores_of(pattern)).top_keys
    tied = sorted({8, length - 1, length // 2})
    rest = [key for key in range(length) if key not in (*tied, 5)]
    assert keys is not None and keys[0, 0].tolist() == [5, *tied, *rest][:N_TOP]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length", [90, 200, 1100, 2500])
def test_top_keys_equal_a_stable_sort_with_many_ties(seed, length):
    draw = torch.Generator().manual_seed(seed)
    # Few distinct values, so that ties abound at every step of the search.
    pattern = torch.randint(0, 4 + 50 * seed, (2, 5, length), generator=draw).float()
    pattern = pattern / pattern.sum(-1, keepdim=True)
    summary = summarise(pattern, scores_of(pattern))
    weights, keys = pattern.sort(dim=-1, descending=True, stable=True)
    assert summary.top_keys is not None and torch.equal(summary.top_keys, keys[..., :N_TOP].int())
    assert summary.top_weights is not None and torch.equal(summary.top_weights, weights[..., :N_TOP])
    rows = summarise(pattern, scores_of(pattern), rows_only=True)
    assert torch.equal(rows.argmax, keys[..., 0].int()) and torch.equal(rows.max, weights[..., 0])


def test_the_map_keeps_a_diagonal_at_a_thousand_tokens():
    summary = summarise(torch.eye(1000)[None], scores_of(torch.eye(1000)[None]))
    assert cell(1000) == 11
    assert summary.map is not None and torch.equal(summary.map[0], torch.eye(91))


@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 7, 12), (3, 96, 96), (2, 97, 97), (2, 200, 333), (1, 400, 50)])
def test_every_figure_equals_its_definition(shape):
    scores = 3 * torch.randn(shape)
    summary = summarise(scores.softmax(-1), scores)
    assert_same(summary, naive(scores.softmax(-1), scores.logsumexp(-1)))


def test_tiles_may_come_in_any_order():
    scores = 2 * torch.randn(4, 200, 200)
    pattern = scores.softmax(-1)
    gathered = Summariser(4, 200, 200)
    bands = [
        (heads, rows)
        for heads in (slice(0, 3), slice(3, 4))
        for rows in (slice(0, 60), slice(60, 180), slice(180, 200))
    ]
    for heads, rows in reversed(bands):
        gathered.add(pattern[heads, rows], scores[heads, rows].clone(), heads=heads, rows=rows)
    for name, figure in summarise(pattern, scores).tensors().items():
        torch.testing.assert_close(gathered.summary().tensors()[name], figure, rtol=1e-5, atol=1e-6)


def test_queries_after_a_cache_are_farther_from_the_keys():
    pattern = torch.tensor([[[0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    for is_causal in (False, True):
        gathered = Summariser(1, 2, 4)
        gathered.add(pattern, scores_of(pattern), query_offset=2, is_causal=is_causal)
        assert gathered.summary().distance[0].tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_a_pattern_that_was_edited_is_summarised_as_it_is():
    # Rows of less than one, and of nothing: entropy of the weights there are, distance of their share.
    pattern = torch.tensor([[[0.25, 0.0, 0.25], [0.0, 0.0, 0.0]]])
    summary = summarise(pattern, torch.zeros(1, 2, 3), lse=torch.tensor([[7.0, 8.0]]))
    assert summary.lse.tolist() == [[7.0, 8.0]]
    assert summary.entropy[0].tolist() == pytest.approx([math.log(2), 0.0])  # −2 · ¼ ln ¼
    assert summary.distance[0].tolist() == pytest.approx([1.0, 0.0])
    assert summary.max[0].tolist() == [0.25, 0.0]
    assert_same(summary, naive(pattern, summary.lse))


def test_a_query_that_may_see_nothing_has_the_entropy_of_equal_weights():
    scores = torch.full((1, 1, 7), torch.finfo(torch.float32).min)
    summary = summarise(scores.softmax(-1), scores)
    assert summary.entropy.item() == pytest.approx(math.log(7))


def test_rows_only_leaves_the_rest_out():
    scores = torch.randn(2, 5, 6)
    summary = summarise(scores.softmax(-1), scores, rows_only=True)
    assert set(summary.tensors()) == {"lse", "entropy", "max", "distance", "argmax"}
    assert summary.argmax.dtype == torch.int32
    assert_same(summary, naive(scores.softmax(-1), scores.logsumexp(-1)))


def test_half_precision_patterns_are_summarised_in_fp32():
    pattern = torch.randn(1, 4, 5).softmax(-1).bfloat16()
    summary = summarise(pattern, pattern.float().log(), lse=torch.zeros(1, 4))
    assert {tensor.dtype for tensor in summary.tensors().values()} == {torch.float32, torch.int32}


def test_summarising_leaves_the_scores_alone():
    scores = torch.randn(1, 3, 3)
    before = scores.clone()
    summarise(scores.softmax(-1), scores)
    assert torch.equal(scores, before)


def test_moving_a_summary_keeps_its_figures():
    summary = summarise(PAPER, scores_of(PAPER))
    moved = summary.to("cpu").tensors()
    assert all(torch.equal(moved[name], figure) for name, figure in summary.tensors().items())


def test_a_weight_of_minus_zero_is_a_zero():
    pattern = torch.full((1, 100, 100), 0.01)
    pattern[:, :, 5:] = -0.0  # what an edit may leave: 0 × −1
    summary = summarise(pattern, pattern.clamp_min(1e-9).log(), lse=torch.zeros(1, 100))
    assert (summary.top_keys >= 0).all() and (summary.top_keys < 100).all()
    assert_same(summary, naive(pattern + 0.0, summary.lse))
