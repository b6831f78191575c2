"""Biases: the smallest exact form, and the same numbers from every form."""

import pytest
import torch
from torch import Tensor

from headscope.attention import Bias

SLICES = [
    (slice(None), slice(None)),
    (slice(1, 3), slice(2, 5)),
    (slice(0, 4, 2), slice(1, 6, 3)),
    (slice(3, 3), slice(None)),
]


def toeplitz(n_queries: int, n_keys: int, n_heads: int = 2) -> Tensor:
    values = torch.randn(1, n_heads, n_queries + n_keys - 1)
    return values[..., torch.arange(n_keys) - torch.arange(n_queries)[:, None] + n_queries - 1]


MADE = {
    "offset": lambda: toeplitz(5, 6),
    "key": lambda: (torch.randn(1, 2, 1, 6)).expand(1, 2, 5, 6),
    "dense": lambda: torch.randn(1, 2, 5, 6),
}


@pytest.mark.parametrize("form", MADE)
@pytest.mark.parametrize(("rows", "columns"), SLICES)
def test_the_smallest_exact_form_is_found_and_gives_every_tile_back(form, rows, columns):
    dense = MADE[form]()
    bias = Bias.describe(dense)
    assert bias is not None and bias.form == form
    assert torch.equal(bias.tile(rows, columns).expand_as(dense[..., rows, columns]), dense[..., rows, columns])


def test_small_forms_hold_little():
    length = 64
    offset, key = (
        Bias.describe(toeplitz(length, length, 1)),
        Bias.describe(torch.randn(1, 1, 1, length).expand(-1, -1, length, -1)),
    )
    assert offset is not None and offset.nbytes() == 4 * (2 * length - 1)
    assert key is not None and key.nbytes() == 4 * length
    assert key.values.untyped_storage().nbytes() == 4 * length  # no view that keeps the dense bias alive


def test_a_bias_of_zeros_is_none():
    assert Bias.describe(torch.zeros(1, 2, 3, 3)) is None
    masked = torch.zeros(1, 1, 2, 2)
    masked[..., 0, 1] = -1e9
    assert Bias.describe(masked, ignore=masked < 0) is None


def test_equal_examples_are_kept_once():
    dense = toeplitz(4, 4).repeat(3, 1, 1, 1)
    bias = Bias.describe(dense)
    assert bias is not None and bias.form == "offset" and bias.values.shape[0] == 1
    different = torch.cat([toeplitz(4, 4), toeplitz(4, 4)])
    bias = Bias.describe(different)
    assert bias is not None and torch.equal(bias.tile(), different)


@pytest.mark.parametrize("form", ["offset", "key"])
def test_what_is_masked_does_not_count(form):
    dense = MADE[form]().clone()
    ignored = torch.ones(5, 6, dtype=torch.bool).triu(1)[None, None]
    spoiled = dense.masked_fill(ignored, -1e4)
    bias = Bias.describe(spoiled, ignore=ignored)
    assert bias is not None and bias.form == form
    assert torch.equal(bias.tile().expand_as(dense).masked_fill(ignored, 0.0), dense.masked_fill(ignored, 0.0))


def test_a_key_that_counts_in_one_example_only_keeps_its_value():
    dense = torch.randn(1, 1, 1, 4).expand(2, 1, 3, 4).clone()
    ignored = torch.zeros(2, 1, 3, 4, dtype=torch.bool)
    ignored[1, ..., :2] = True
    dense[1, ..., :2] = 55.0
    bias = Bias.describe(dense, ignore=ignored)
    assert bias is not None and bias.form == "key" and torch.equal(bias.values, dense[:1, :, 0])


def test_a_tolerance_forgives_rounding():
    noisy = toeplitz(5, 5) + 1e-7 * torch.randn(1, 2, 5, 5)
    exact, near = Bias.describe(noisy), Bias.describe(noisy, tolerance=1e-6)
    assert exact is not None and exact.form == "dense"
    assert near is not None and near.form == "offset"


@pytest.mark.parametrize("form", MADE)
@pytest.mark.parametrize(
    ("queries", "keys"), [([1, 2, 3], [2, 3, 4, 5]), ([0, 2, 4], [1, 5]), ([4], [0]), (None, [3, 4]), ([0, 3], None)]
)
def test_an_example_without_its_padding_is_the_rectangle_of_the_dense_bias(form, queries, keys):
    dense = MADE[form]()
    bias = Bias.describe(dense)
    assert bias is not None
    indices = [None if positions is None else torch.tensor(positions) for positions in (queries, keys)]
    rows = torch.arange(5) if indices[0] is None else indices[0]
    columns = torch.arange(6) if indices[1] is None else indices[1]
    alone = bias.example(0, *indices)
    assert (alone.n_queries, alone.n_keys) == (len(rows), len(columns))
    expected = dense[:, :, rows][..., columns]
    assert torch.equal(alone.tile().expand_as(expected), expected)


def test_each_example_has_its_own_bias():
    dense = torch.randn(2, 1, 3, 3)
    bias = Bias("dense", dense, 3, 3)
    assert torch.equal(bias.example(1).tile(), dense[1:])
    shared = Bias("dense", dense[:1], 3, 3)
    assert torch.equal(shared.example(1).tile(), dense[:1])


def test_windows_stand_one_after_another():
    # Three windows of two patches: the block on the diagonal is each window's own bias.
    values = torch.randn(3, 4, 2, 2)
    bias = Bias("windows", values, 6, 6)
    for window in range(3):
        part = slice(2 * window, 2 * window + 2)
        assert torch.equal(bias.tile(part, part)[0], values[window])
    shared = Bias("windows", values[:1], 6, 6)
    assert torch.equal(shared.tile(slice(4, 6), slice(4, 6))[0], values[0])


def test_an_example_keeps_all_of_its_windows():
    bias = Bias("windows", torch.randn(3, 4, 2, 2), 6, 6)
    assert torch.equal(bias.example(0).tile(), bias.tile())
    positions = torch.tensor([2, 3, 4])
    assert torch.equal(bias.example(0, positions, positions).tile(), bias.tile()[:, :, 2:5, 2:5])


def test_moving_a_bias_keeps_its_numbers():
    bias = Bias.describe(toeplitz(3, 3))
    assert bias is not None and torch.equal(bias.to("cpu").tile(), bias.tile())
