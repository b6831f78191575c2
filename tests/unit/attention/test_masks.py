"""Masks as objects: whatever their form, they forbid what the dense mask forbids."""

import pytest
import torch
from torch import Tensor

from headscope.attention import Mask
from headscope.attention import masks as masks_module

LOWEST = torch.finfo(torch.float32).min


def grid(n_queries: int, n_keys: int, query_offset: int = 0) -> tuple[Tensor, Tensor]:
    return torch.arange(n_queries)[:, None] + query_offset, torch.arange(n_keys)[None]


def causal(length: int) -> Tensor:
    query, key = grid(length, length)
    return (key <= query)[None, None]


def window_mask(length: int, width: int) -> Tensor:
    query, key = grid(length, length)
    return ((key <= query) & (key > query - width))[None, None]


def documents(ids: list[int]) -> Tensor:
    each = torch.tensor(ids)
    return causal(len(ids)) & (each[:, None] == each)[None, None]


def chunk_mask(length: int, size: int) -> Tensor:
    query, key = grid(length, length)
    return causal(length) & (query // size == key // size)


def without_padding(allowed: Tensor, real: list[list[int]]) -> Tensor:
    return allowed & torch.tensor(real, dtype=torch.bool)[:, None, None, :]


LEFT, RIGHT = [[1] * 9, [0, 0, 0, 1, 1, 1, 1, 1, 1]], [[1] * 9, [1, 1, 1, 1, 1, 1, 0, 0, 0]]
COMPACT = {
    "everything": torch.ones(1, 1, 9, 9, dtype=torch.bool),
    "causal": causal(9),
    "window": window_mask(9, 3),
    "documents": documents([0, 0, 0, 1, 1, 2, 2, 2, 2]),
    "chunks": chunk_mask(9, 4),
    "left padding": without_padding(causal(9), LEFT),
    "right padding": without_padding(causal(9), RIGHT),
    "left padding, window": without_padding(window_mask(9, 3), LEFT),
    "padding, both ways": without_padding(torch.ones(2, 1, 9, 9, dtype=torch.bool), RIGHT),
    "padding inside": without_padding(causal(9), [[1, 0, 1, 1, 0, 1, 1, 1, 0]]),
    "wide": torch.ones(1, 1, 4, 9, dtype=torch.bool).tril(5),
    "tall": torch.ones(1, 1, 9, 4, dtype=torch.bool).tril(),
    "nothing": torch.zeros(1, 1, 3, 4, dtype=torch.bool),
}
DENSE = {
    "holes": torch.eye(9, dtype=torch.bool).logical_not()[None, None],
    "per head": torch.cat([causal(9), window_mask(9, 3)], 1),
    "prefix and tail": causal(9) & ~window_mask(9, 2) | torch.eye(9, dtype=torch.bool),
}


@pytest.mark.parametrize("name", [*COMPACT, *DENSE])
def test_a_dense_mask_comes_back_as_it_was(name):
    allowed = (COMPACT | DENSE)[name]
    mask = Mask.from_dense(allowed)
    assert (mask.dense is not None) == (name in DENSE)
    assert mask.shape == allowed.shape
    assert torch.equal(mask.materialise(), allowed)


@pytest.mark.parametrize("name", [*COMPACT, *DENSE])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (slice(None), slice(None)),
        (slice(2, 3), slice(1, 3)),
        (slice(1, 4), slice(2, 99)),
        (slice(0, 3, 2), slice(0, 4, 2)),
        (slice(2, 2), slice(None)),
    ],
)
def test_hidden_cells_of_a_tile_hold_the_lowest_number_and_others_stay(name, rows, columns):
    allowed = (COMPACT | DENSE)[name]
    mask = Mask.from_dense(allowed)
    scores = torch.randn(allowed.shape)
    values = mask.hide(scores[..., rows, columns].clone(), rows, columns)
    assert torch.equal(values, scores.masked_fill(~allowed, LOWEST)[..., rows, columns])
    tile = mask.allowed_cells(rows, columns)
    expected = allowed[..., rows, columns]
    assert bool(expected.all()) if tile is None else torch.equal(tile.expand(expected.shape), expected)


def test_a_causal_mask_sees_itself_and_before():
    assert torch.equal(Mask.causal(5, 5).materialise(), causal(5))
    # A cache holds two earlier tokens.
    query, key = grid(3, 5, query_offset=2)
    assert torch.equal(Mask.causal(3, 5, query_offset=2).materialise(), (key <= query)[None, None])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda b, h, q, k: k <= q, causal(9)),
        (lambda b, h, q, k: (k <= q) & (k > q - 3), window_mask(9, 3)),
        (lambda b, h, q, k: (k <= q) & (k // 4 == q // 4), chunk_mask(9, 4)),
        (lambda b, h, q, k: k != q, DENSE["holes"]),
        (lambda b, h, q, k: (k <= q) & (k >= b), torch.stack([causal(9)[0], causal(9)[0] & (torch.arange(9) >= 1)])),
    ],
    ids=["causal", "window", "chunks", "holes", "by example"],
)
@pytest.mark.parametrize("n_rows", [4, 256])
def test_a_mask_function_is_read_a_few_rows_at_a_time(function, expected, n_rows, monkeypatch):
    monkeypatch.setattr(masks_module, "_ROWS", n_rows)
    mask = Mask.from_function(function, batch=2, n_queries=9, n_keys=9)
    assert torch.equal(mask.materialise(), expected.expand(2, -1, -1, -1))
    padding = torch.tensor(LEFT, dtype=torch.bool)
    mask = Mask.from_function(function, batch=2, n_queries=9, n_keys=9, padding=padding)
    assert torch.equal(mask.materialise(), expected & padding[:, None, None])


def test_a_mask_function_counts_from_the_offsets():
    mask = Mask.from_function(lambda b, h, q, k: k <= q, batch=1, n_queries=2, n_keys=4, query_offset=7, key_offset=5)
    query, key = torch.tensor([7, 8])[:, None], torch.tensor([5, 6, 7, 8])
    assert torch.equal(mask.materialise()[0, 0], key <= query)


def test_a_long_causal_mask_is_small():
    mask = Mask.from_function(lambda b, h, q, k: k <= q, batch=1, n_queries=2000, n_keys=2000)
    assert mask.nbytes() <= 2 * 8 * 2000
    assert Mask.causal(2000, 2000).nbytes() == 8 * 2000


@pytest.mark.parametrize("seed", range(60))
def test_an_example_without_its_padding_is_the_rectangle_of_the_dense_mask(seed):
    draw = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=draw))

    batch, n_queries, n_keys = number(1, 4), number(1, 12), number(1, 12)
    query, key = grid(n_queries, n_keys)
    allowed = torch.ones(batch, 1, n_queries, n_keys, dtype=torch.bool)
    if seed % 2:
        allowed &= key <= query + number(0, 3)
    if seed % 3:
        allowed &= key > query - number(1, 6)
    allowed &= torch.rand(batch, 1, 1, n_keys, generator=draw) < (1.0 if seed % 4 else 0.8)
    if seed % 7 == 0:
        allowed = torch.rand(batch, 3, n_queries, n_keys, generator=draw) < 0.6
    mask = Mask.from_dense(allowed)
    index = number(0, batch)
    queries = torch.rand(n_queries, generator=draw).lt(0.7).nonzero()[:, 0]
    keys = torch.rand(n_keys, generator=draw).lt(0.7).nonzero()[:, 0]
    expected = allowed[index : index + 1]
    assert torch.equal(mask.example(index).materialise(), expected)
    assert torch.equal(mask.example(index, queries, keys).materialise(), expected[:, :, queries][..., keys])
    assert torch.equal(mask.example(index, queries, None).materialise(), expected[:, :, queries])
    assert torch.equal(mask.example(index, None, keys).materialise(), expected[..., keys])


def test_queries_after_a_cache_keep_their_place_when_padding_is_left_out():
    # Eight tokens, the first two padding; six are cached and two are asked about now.
    keys = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    mask = Mask(2, 8, stop=torch.tensor([[7, 8]]), keys=keys, query_offset=6)
    rectangle = mask.example(0, None, keys[0].nonzero()[:, 0])
    assert rectangle.query_offset - rectangle.key_offset == 4
    assert torch.equal(
        rectangle.materialise()[0, 0], torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    )


def test_limits_that_limit_nothing_are_dropped():
    assert Mask.causal(1, 1).simplify().tensors() == {}
    assert set(Mask.from_dense(window_mask(9, 3)).simplify().tensors()) == {"start", "stop"}
    assert Mask.from_dense(causal(9)).example(0, torch.tensor([8]), None).tensors() == {}


def test_the_extent_of_a_band_is_where_its_weight_lies():
    mask = Mask.from_dense(window_mask(9, 3))
    assert mask.extent(slice(4, 6)) == (2, 6)
    assert mask.extent(slice(0, 2)) == (0, 2)
    # A query that may see nothing gives every key the same weight.
    blind = window_mask(9, 3)
    blind[..., 5, :] = False
    assert Mask.from_dense(blind).extent(slice(4, 6)) == (0, 9)
    assert Mask.from_dense(blind).extent(slice(6, 8)) == (4, 8)


def test_a_query_that_may_see_nothing_is_noticed():
    assert not Mask.causal(4, 4).has_blind()
    assert not Mask(4, 4).has_blind()
    keys = torch.tensor([[0, 1, 1, 1]], dtype=torch.bool)
    assert not Mask(4, 4, keys=keys).has_blind()
    assert Mask(4, 4, keys=torch.zeros(1, 4, dtype=torch.bool)).has_blind()
    padded_first = Mask(4, 4, stop=torch.tensor([[1, 2, 3, 4]]), keys=keys)
    assert padded_first.has_blind() and not padded_first.has_blind(slice(1, 4))
    assert Mask(2, 2, dense=torch.tensor([[[[True, False], [False, False]]]])).has_blind()
