"""Edits of scores and patterns, as they are made."""

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InterventionError
from headscope.interventions.edits import Block, DistanceBias, ReplacePattern, SetRow, SetWeight, Temperature
from headscope.models import Model
from headscope.sites import Head, Site

NAN, INF = float("nan"), float("inf")


def test_scores_are_edited_before_the_softmax_and_patterns_after():
    assert {hs.temperature("L0", 2).stage, hs.distance_bias("L0", 1).stage, hs.block("L0", 0, 1).stage} == {"scores"}
    interventions = [
        hs.replace_pattern("L0", torch.eye(2)),
        hs.set_weight("L0", 0, 0, 1),
        hs.set_row("L0", 0, torch.ones(2)),
    ]
    assert {intervention.stage for intervention in interventions} == {"pattern"}


def test_arguments_arrive_in_the_edit():
    intervention = hs.temperature("L0H1", np.float32(0.5), tokens="cat")
    assert (
        isinstance(intervention.edit, Temperature) and intervention.edit.value == 0.5 and intervention.tokens == "cat"
    )
    assert intervention.site == Head("main", 0, 1)
    slope, block = hs.distance_bias(None, -2).edit, hs.block("L0", "a", [1, 2]).edit
    assert isinstance(slope, DistanceBias) and slope.slope == -2.0
    assert isinstance(block, Block) and (block.queries, block.keys) == ("a", [1, 2])
    weight = hs.set_weight("L0H0", 1, 2, 0.5).edit
    assert isinstance(weight, SetWeight) and (weight.query, weight.key, weight.weight, weight.renormalise) == (
        1,
        2,
        0.5,
        True,
    )


def test_everywhere_is_no_site():
    assert hs.temperature(None, 2.0).site is None and hs.block(None, 0, 0).site is None


def test_a_pattern_may_be_a_list_an_array_or_a_tensor_of_numbers():
    for pattern in ([[1, 0], [1, 1]], np.array([[1, 0], [1, 1]]), torch.tensor([[1, 0], [1, 1]])):
        edit = hs.replace_pattern("L0H0", pattern).edit
        assert isinstance(edit, ReplacePattern) and edit.weights.tolist() == [[[1.0, 0.0], [1.0, 1.0]]]
        assert edit.weights.is_floating_point()
    row = hs.set_row("L0H0", 0, [1, 3]).edit
    assert isinstance(row, SetRow) and row.weights.tolist() == [1.0, 3.0]
    assert hs.replace_pattern("L0", torch.ones(4, 2, 2)).edit.weights.shape == (4, 2, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hs.temperature("L0", 0), "above 0, got 0.0"),
        (lambda: hs.temperature("L0", -2), "above 0"),
        (lambda: hs.temperature("L0", NAN), "temperature must be a finite number"),
        (lambda: hs.temperature("L0", "hot"), "temperature must be a finite number, got 'hot'"),
        (lambda: hs.distance_bias("L0", INF), "slope must be a finite number"),
        (lambda: hs.set_weight("L0", 0, 0, -0.1), "between 0 and 1, got -0.1"),
        (lambda: hs.set_weight("L0", 0, 0, 1.5), "between 0 and 1"),
        (lambda: hs.set_weight("L0", 0, 0, -1.0, renormalise=False), "between 0 and 1"),
        (lambda: hs.set_weight("L0", 0, 0, NAN), "weight must be a finite number"),
        (lambda: hs.replace_pattern("L0", torch.tensor([[0.5, NAN]])), "pattern holds NaN or infinite values: 1 of 2"),
        (
            lambda: hs.replace_pattern("L0", torch.tensor([[0.5, -0.25]])),
            "pattern holds negative weights, the lowest -0.25",
        ),
        (lambda: hs.replace_pattern("L0", torch.ones(2)), r"got shape \(2,\)"),
        (lambda: hs.replace_pattern("L0", torch.ones(1, 1, 2, 2)), r"got shape \(1, 1, 2, 2\)"),
        (lambda: hs.set_row("L0", 0, torch.ones(2, 2)), r"one axis \[key\], got shape \(2, 2\)"),
        (lambda: hs.set_row("L0", 0, [0.5, -1]), "row holds negative weights"),
        (lambda: hs.set_row("L0", 0, [INF]), "row holds NaN or infinite"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_run(make, message):
    with pytest.raises(InterventionError, match=message):
        make()


def test_a_weight_above_one_may_be_set_when_rows_need_not_sum_to_one():
    assert hs.set_weight("L0", 0, 0, 1.5, renormalise=False).edit.weight == 1.5


@pytest.mark.parametrize("exact", [True, False], ids=["whole", "tiles"])
def test_a_row_with_nothing_left_to_see_is_zero(exact):
    model = Model(FAMILIES["gpt2"].build())
    inputs = FAMILIES["gpt2"].inputs()
    with model.session([hs.block("L0", [0, 3], range(0, 4))], record="summary", exact=exact) as session:
        outputs = model.module(**inputs)
    assert bool(outputs.logits.isfinite().all())
    for record in session.captured[Site("main", 0)].records:
        # The first and the fourth query may see only what is blocked; no weight falls on what comes after them.
        assert record.summary.max[:, [0, 3]].tolist() == [[0.0, 0.0]] * 4
        assert record.summary.entropy[:, [0, 3]].tolist() == [[0.0, 0.0]] * 4
        assert bool((record.summary.max[:, [1, 2, 4]] > 0).all())
        assert record.summary.received is not None and record.summary.received.sum(-1).tolist() == pytest.approx(
            [9 / 11] * 4
        )


def test_a_uniform_query_sees_all_it_may_alike():
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    text = "the cat sat on the mat"
    plain, trace = model.run(text), model.run(text, [hs.uniform("L1H0", tokens=[3])])
    assert trace.pattern("L1H0")[3] == pytest.approx([0.25] * 4 + [0.0] * (len(trace.tokens["main"]) - 4))
    assert (trace.pattern("L1H0")[2] == plain.pattern("L1H0")[2]).all()
    blocked = model.run(text, [hs.block("L1H0", 3, 0), hs.uniform("L1H0")])
    assert blocked.pattern("L1H0")[3][:4] == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
