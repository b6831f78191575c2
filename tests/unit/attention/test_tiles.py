"""Attention in tiles equals attention computed whole, in every shape, with every term, at any tile size."""

import pytest
import torch
from made_formulas import FORMULAS
from naive_summary import assert_same, naive

from headscope.attention import (
    Bias,
    Formula,
    Mask,
    Summariser,
    attend_in_tiles,
    expand_heads,
    log_denominator,
    scores,
    softmax,
)
from headscope.attention import tiles as tiles_module

pytestmark = pytest.mark.usefixtures("either_way")

LENGTHS = [5, 97, 300]


def compare(query, key, value, formula: Formula, *, atol: float = 2e-5, **options) -> None:
    """Tiles against the formula, whole; and their summary against the definitions."""
    n_heads, n_queries, n_keys = query.shape[0], query.shape[1], key.shape[1]
    values = scores(query[None].float(), expand_heads(key[None], n_heads).float(), formula)
    pattern = softmax(values, formula.sinks)
    mixed = pattern @ expand_heads(value[None], n_heads).float()
    summariser = Summariser(n_heads, n_queries, n_keys)
    tiled = attend_in_tiles(query, key, value, formula, summariser=summariser, **options)
    assert tiled.dtype == query.dtype
    torch.testing.assert_close(tiled.float(), mixed[0], rtol=1e-4, atol=max(atol, torch.finfo(query.dtype).eps * 4))
    offset = 0 if formula.mask is None else formula.mask.query_offset - formula.mask.key_offset
    expected = naive(pattern[0], log_denominator(values, formula.sinks)[0], query_offset=offset)
    assert_same(summariser.summary(), expected, atol=5e-5)


def random_projections(
    n_queries: int, n_keys: int | None = None, *, groups: int = 4, dtype: torch.dtype = torch.float32
):
    n_keys = n_keys or n_queries
    return [torch.randn(h, n, 8).to(dtype) for h, n in ((4, n_queries), (groups, n_keys), (groups, n_keys))]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", FORMULAS)
def test_tiles_equal_the_whole(name, length):
    compare(*random_projections(length), FORMULAS[name](length))


@pytest.mark.parametrize("name", ["bidirectional", "causal", "narrow window", "sinks"])
def test_long_inputs_are_pooled_in_large_cells(name):
    compare(*random_projections(1100), FORMULAS[name](1100))


@pytest.mark.parametrize(("n_rows", "n_bytes"), [(7, 1), (50, 20_000), (10_000, 2**30)])
@pytest.mark.parametrize("name", ["causal", "narrow window", "sinks", "bias", "dense"])
def test_the_size_of_a_tile_does_not_matter(name, n_rows, n_bytes, monkeypatch):
    for name_of in ("TILE_{}", "FUSED_{}"):
        monkeypatch.setattr(tiles_module, name_of.format("ROWS"), n_rows)
        monkeypatch.setattr(tiles_module, name_of.format("BYTES"), n_bytes)
    compare(*random_projections(130), FORMULAS[name](130))


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 300), (5, 130), (250, 7), (300, 1), (1, 1)])
def test_queries_and_keys_may_differ_in_number(n_queries, n_keys):
    compare(*random_projections(n_queries, n_keys), Formula(0.5))
    compare(*random_projections(n_queries, n_keys), Formula(0.5, mask=Mask.causal(n_queries, n_keys)))


def test_queries_after_a_cache_stand_behind_their_keys():
    compare(*random_projections(40, 140), Formula(0.5, mask=Mask.causal(40, 140, query_offset=100)))


@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_heads_share_keys_and_values(groups):
    compare(*random_projections(150, groups=groups), FORMULAS["causal"](150))


def test_half_precision_inputs_are_computed_in_fp32():
    compare(*random_projections(150, groups=2, dtype=torch.bfloat16), FORMULAS["window"](150), atol=2e-2)


def test_windows_of_an_image_have_their_own_bias():
    size, n_windows = 9, 12
    length = size * n_windows
    which = torch.arange(length) // size
    mask = Mask(length, length, start=(which * size)[None], stop=((which + 1) * size)[None])
    compare(
        *random_projections(length),
        Formula(0.5, mask=mask, bias=Bias("windows", torch.randn(n_windows, 4, size, size), length, length)),
    )


def test_an_edit_sees_whole_rows_and_changes_them():
    query, key, value = random_projections(150)
    seen = []

    def double_then_halve(stage, tile, heads, rows):
        seen.append((stage, tile.shape[-1]))
        return tile * (2.0 if stage == "scores" else 0.5)

    formula = FORMULAS["window"](150)
    summariser = Summariser(4, 150, 150)
    mixed = attend_in_tiles(query, key, value, formula, summariser=summariser, edit=double_then_halve)
    values = scores(query[None], key[None], formula)
    values = torch.where(values > torch.finfo(values.dtype).min, 2 * values, values)
    pattern = softmax(values) / 2
    assert set(seen) == {("scores", 150), ("pattern", 150)}
    torch.testing.assert_close(mixed, (pattern @ value[None])[0], rtol=1e-4, atol=1e-5)
    assert_same(summariser.summary(), naive(pattern[0], values[0].logsumexp(-1)))


def test_a_check_may_stop_the_work():
    bands = []

    def check():
        bands.append(1)
        if len(bands) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attend_in_tiles(*random_projections(600), Formula(1.0), check=check)
    assert len(bands) == 2


def test_parameters_that_want_a_gradient_do_not_stop_the_tiles():
    query, key, value = random_projections(40)
    bias = Bias("dense", torch.randn(1, 4, 40, 40, requires_grad=True), 40, 40)
    mixed = attend_in_tiles(
        query.requires_grad_(), key, value, Formula(0.5, bias=bias), summariser=Summariser(4, 40, 40)
    )
    assert not mixed.requires_grad
