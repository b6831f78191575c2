"""Allocation: which heads survive, given scores made by hand."""

import pytest

from headscope.errors import InputError
from headscope.pruning import HeadMask, PrunableLayer
from headscope.pruning.allocation import group_sizes, heads_of, keep_highest, keep_like, unit_layers
from headscope.sites import Head, Site

LAYERS = [
    PrunableLayer(Site("encoder", 0), "encoder", 2, 2),
    PrunableLayer(Site("encoder", 1), "encoder", 2, 1),
    PrunableLayer(Site("decoder", 0), "decoder", 2, 2),
]
WHOLE = HeadMask({layer.site: (True, True) for layer in LAYERS})
SIZES = group_sizes(LAYERS, "head")


def scores_of(*values: float) -> dict[Head, float]:
    return dict(zip(heads_of(LAYERS), values, strict=True))


def rows(mask: HeadMask) -> list[tuple[bool, ...]]:
    return [row for _, row in mask.rows()]


def test_the_highest_scores_of_the_whole_model_survive() -> None:
    mask = keep_highest(WHOLE, scores_of(5, 1, 4, 0, 3, 2), 3, group_sizes=SIZES)
    assert rows(mask) == [(True, False), (True, False), (True, False)]
    assert rows(keep_highest(WHOLE, scores_of(9, 8, 7, 6, 0, 1), 4, group_sizes=SIZES))[2] == (False, False)
    assert keep_highest(WHOLE, scores_of(*range(6)), 0, group_sizes=SIZES).total() == (0, 6)


def test_of_equal_scores_the_first_in_the_model_survive() -> None:
    assert rows(keep_highest(WHOLE, scores_of(*[1.0] * 6), 2, group_sizes=SIZES))[0] == (True, True)


def test_heads_without_a_score_stay() -> None:
    encoder = {head: 1.0 for head in heads_of(LAYERS[:2])}
    assert rows(keep_highest(WHOLE, encoder, 0, group_sizes=SIZES)) == [(False, False), (False, False), (True, True)]


def test_as_many_of_each_type_as_another_mask() -> None:
    like = HeadMask(dict(zip(WHOLE.survivors, [(True, False), (False, False), (True, True)], strict=True)))
    mask = keep_like(WHOLE, scores_of(1, 2, 3, 4, 0, 0), like, group_sizes=SIZES)
    assert rows(mask) == [(False, False), (False, True), (True, True)]
    assert mask.counts() == like.counts()


def test_a_group_survives_whole_by_its_mean_and_never_exceeds_the_number() -> None:
    sizes = group_sizes(LAYERS, "group")
    assert list(sizes.values()) == [1, 2, 1]
    scores = scores_of(1, 1, 9, 0, 3, 2)  # the group's mean is 4.5
    assert rows(keep_highest(WHOLE, scores, 2, group_sizes=sizes)) == [(False, False), (True, True), (False, False)]
    assert rows(keep_highest(WHOLE, scores, 1, group_sizes=sizes)) == [(False, False), (False, False), (True, False)]


def test_scores_by_the_norm_of_their_layer() -> None:
    values = list(unit_layers(scores_of(3, 4, 30, 40, 0, 0)).values())
    assert values == pytest.approx([0.6, 0.8, 0.6, 0.8, 0.0, 0.0])


def test_nan_is_not_ranked() -> None:
    with pytest.raises(InputError, match="NaN"):
        keep_highest(WHOLE, scores_of(1, float("nan"), 2, 3, 4, 5), 2, group_sizes=SIZES)
