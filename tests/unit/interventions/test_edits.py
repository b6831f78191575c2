"""What each edit does to a tensor: nothing where it should, and on paper what it says elsewhere."""

import pytest
import torch
from torch import Tensor

from headscope.errors import InterventionError, UnknownTokenError
from headscope.interventions.edits import (
    Apply,
    At,
    Block,
    Coordinate,
    DistanceBias,
    Mean,
    Patch,
    ReplacePattern,
    Scale,
    SetRow,
    SetWeight,
    Temperature,
)
from headscope.traces import Tokens

WORDS = [Tokens.of(["the", "cat", "sat"]), Tokens.of(["the"])]
NAN, INF = float("nan"), float("inf")


def at(*index: list[int], key_index: list[list[int]] | None = None, tokens: list[Tokens] | None = None) -> At:
    keys = index if key_index is None else key_index
    return At(torch.tensor(index), torch.tensor(keys), tokens, tokens)


# Two examples of three positions; the second has one real token, padded on the left.
HERE = at([0, 1, 2], [-1, -1, 0], tokens=WORDS)
PATTERN = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.0, 0.0, 1.0]])


def as_batch(pattern: Tensor) -> Tensor:
    return pattern[None, None]


PLAIN = at([0, 1, 2])
IDENTITIES = {
    "scale by 1": Scale(1.0),
    "gates of 1": Scale(torch.ones(2)),
    "coordinate times 1": Coordinate(1, 1.0, 0.0),
    "temperature of 1": Temperature(1.0),
    "slope of 0": DistanceBias(0.0),
    "block nothing": Block([], []),
    "block no keys": Block(0, []),
    "apply the identity": Apply(lambda x: x),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_the_identity_edit_changes_nothing(name):
    x = torch.randn(2, 2, 3, 3)
    before = x.clone()
    assert torch.equal(IDENTITIES[name](x, HERE), before)
    assert torch.equal(x, before)


def test_putting_back_what_was_there_changes_nothing():
    x = torch.randn(2, 4, 3, 3)[:1]
    assert torch.equal(Patch(x[0])(x, PLAIN), x)
    pattern = torch.randn(1, 2, 3, 3).softmax(-1)
    torch.testing.assert_close(ReplacePattern(pattern[0])(pattern, PLAIN), pattern)
    assert torch.equal(ReplacePattern(pattern[0], renormalise=False)(pattern, PLAIN), pattern)
    torch.testing.assert_close(SetRow(1, pattern[0, 0, 1])(pattern[:, :1], PLAIN), pattern[:, :1])
    torch.testing.assert_close(SetWeight(1, 2, float(pattern[0, 0, 1, 2]))(pattern[:, :1], PLAIN), pattern[:, :1])


@pytest.mark.parametrize(
    "edit",
    [
        Scale(0.5),
        Mean(),
        Patch(torch.zeros(2, 3, 3)),
        Coordinate(0, 2.0, 1.0),
        Temperature(2.0),
        DistanceBias(-1.0),
        Block(0, 0),
        ReplacePattern(torch.ones(1, 3, 3)),
        SetWeight(0, 0, 0.3),
        SetRow(0, torch.ones(3)),
    ],
    ids=lambda edit: type(edit).__name__,
)
def test_no_edit_writes_into_what_it_is_given(edit):
    x = torch.rand(2, 2, 3, 3)
    before = x.clone()
    assert edit(x, HERE).shape == x.shape
    assert torch.equal(x, before)


# Values


def test_scaling_is_by_a_number_or_one_number_a_head():
    x = torch.ones(1, 2, 3, 4)
    assert bool((Scale(0.25)(x, PLAIN) == 0.25).all())
    gate = torch.tensor([0.0, 3.0], requires_grad=True)
    scaled = Scale(gate)(x, PLAIN)
    assert scaled[0, 0].abs().max() == 0.0 and scaled[0, 1].min() == 3.0
    scaled.sum().backward()
    assert gate.grad is not None and gate.grad.tolist() == [12.0, 12.0]


def test_the_mean_is_over_real_rows():
    x = torch.tensor([[[[1.0], [2.0], [6.0]]], [[[NAN], [100.0], [7.0]]]])
    assert Mean()(x, HERE)[:, 0, :, 0].tolist() == [[3.0, 3.0, 3.0], [7.0, 7.0, 7.0]]


def test_a_measured_mean_is_put_everywhere():
    mean = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    output = Mean(mean)(torch.zeros(2, 2, 3, 2), HERE)
    assert output[1, 1].tolist() == [[3.0, 4.0]] * 3 and output[0, 0].tolist() == [[1.0, 2.0]] * 3


def test_a_patch_puts_rows_where_their_tokens_are():
    values = torch.tensor([[[10.0], [11.0]]])  # two tokens long
    output = Patch(values)(torch.zeros(2, 1, 3, 1), HERE)
    # The third token is past its end; padding stays.
    assert output[:, 0, :, 0].tolist() == [[10.0, 11.0, 0.0], [0.0, 0.0, 10.0]]
    later = Patch(values)(torch.zeros(1, 1, 1, 1), at([1]))
    assert later.item() == 11.0


def test_one_patch_serves_several_heads_or_each_has_its_own():
    values = torch.randn(2, 3, 4)
    assert torch.equal(Patch(values)(torch.zeros(1, 2, 3, 4), PLAIN)[0], values)
    assert torch.equal(Patch(values[:1])(torch.zeros(1, 2, 3, 4), PLAIN)[0], values[:1].expand(2, 3, 4))


def test_a_coordinate_is_multiplied_and_added_to():
    x = torch.tensor([1.0, 2.0, 3.0]).expand(1, 1, 3, 3)
    assert Coordinate(1, 2.0, 0.5)(x, PLAIN)[0, 0, 0].tolist() == [1.0, 4.5, 3.0]
    assert Coordinate(2, 0.0, -7.0)(x, PLAIN)[0, 0, 2].tolist() == [1.0, 2.0, -7.0]
    with pytest.raises(InterventionError, match="no neuron 3: there are 3, 0 to 2"):
        Coordinate(3, 1.0, 0.0)(x, PLAIN)


def test_a_function_is_called_with_the_tensor():
    assert Apply(torch.neg)(torch.ones(1, 1, 1, 1), PLAIN).item() == -1.0


# Scores


def test_a_temperature_divides():
    assert Temperature(4.0)(torch.full((1, 1, 1, 2), 2.0), at([0])).tolist() == [[[[0.5, 0.5]]]]
    scores = torch.randn(1, 1, 3, 3)
    flat, sharp = (Temperature(value)(scores, PLAIN).softmax(-1) for value in (100.0, 0.001))
    assert float(flat.max() - flat.min()) < 0.05 and float(sharp.amax(-1).min()) > 0.99


def test_a_distance_bias_grows_with_the_distance():
    output = DistanceBias(-0.5)(torch.zeros(1, 1, 2, 3), at([1, 2], key_index=[[0, 1, 2]]))
    assert output.tolist() == [[[[-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]]]]


def test_a_blocked_pair_cannot_see_each_other():
    scores = Block("cat", ["the", "sat"])(torch.zeros(1, 1, 3, 3), at([0, 1, 2], tokens=WORDS[:1]))
    assert scores[0, 0].tolist() == [[0.0, 0.0, 0.0], [-INF, 0.0, -INF], [0.0, 0.0, 0.0]]
    assert scores.softmax(-1)[0, 0, 1].tolist() == [0.0, 1.0, 0.0]


def test_each_example_blocks_its_own_tokens():
    scores = Block("the", "the")(torch.zeros(2, 1, 3, 3), HERE)
    assert (scores == -INF).nonzero().tolist() == [[0, 0, 0, 0], [1, 0, 2, 2]]


# Patterns


def test_a_pattern_is_put_in_place():
    new = torch.tensor([[[2.0, 2.0, 0.0], [0.0, 3.0, 0.0], [1.0, 1.0, 2.0]]])
    pattern = ReplacePattern(new)(as_batch(PATTERN), PLAIN)
    assert pattern[0, 0].tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]
    assert torch.equal(ReplacePattern(new, renormalise=False)(as_batch(PATTERN), PLAIN)[0], new)


def test_a_pattern_reaches_only_the_tokens_it_was_made_for():
    # Made for two tokens: the third query keeps its row, and the third key gets nothing.
    pattern = ReplacePattern(torch.tensor([[[1.0, 0.0], [1.0, 3.0]]]))(as_batch(PATTERN), PLAIN)
    assert pattern[0, 0].tolist() == [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]


def test_padding_keeps_its_rows_and_gets_no_weight():
    x = torch.full((2, 1, 3, 3), 1 / 3)
    pattern = ReplacePattern(torch.ones(1, 3, 3))(x, HERE)
    assert pattern[1, 0, 2].tolist() == [0.0, 0.0, 1.0]
    assert torch.equal(pattern[1, 0, :2], x[1, 0, :2])


def test_a_pattern_is_placed_by_row_in_a_tile():
    new = torch.rand(1, 3, 3).softmax(-1)
    tile = ReplacePattern(new)(torch.zeros(1, 1, 1, 3), at([2], key_index=[[0, 1, 2]]))
    torch.testing.assert_close(tile[0, 0, 0], new[0, 2])


def test_a_weight_is_set_and_the_others_share_what_is_left():
    pattern = SetWeight("cat", "the", 0.6)(as_batch(PATTERN), at([0, 1, 2], tokens=WORDS[:1]))[0, 0]
    assert pattern[1].tolist() == pytest.approx([0.6, 0.2, 0.2])
    assert torch.equal(pattern[[0, 2]], PATTERN[[0, 2]])


def test_a_weight_may_be_set_alone():
    pattern = SetWeight(1, 0, 0.6, renormalise=False)(as_batch(PATTERN), PLAIN)[0, 0]
    assert pattern[1].tolist() == pytest.approx([0.6, 0.4, 0.4])
    assert SetWeight(1, 0, 3.0, renormalise=False)(as_batch(PATTERN), PLAIN)[0, 0, 1, 0] == 3.0


def test_a_weight_nobody_can_make_room_for_stands_alone():
    # All of the last row is on its own key: nothing is left to share the other half.
    assert SetWeight(2, 2, 0.5)(as_batch(PATTERN), PLAIN)[0, 0, 2].tolist() == [0.0, 0.0, 0.5]
    assert SetWeight(2, 0, 0.25)(as_batch(PATTERN), PLAIN)[0, 0, 2].tolist() == [0.25, 0.0, 0.75]


def test_rows_sum_to_one_however_many_keys_are_set():
    pattern = SetWeight([0, 1], [0, 1, 2], 0.9)(as_batch(PATTERN), PLAIN)[0, 0]
    assert pattern[:2].sum(-1).tolist() == pytest.approx([1.0, 1.0])
    assert pattern[0].tolist() == pytest.approx([1 / 3] * 3)


def test_a_row_is_set_whole():
    row = torch.tensor([1.0, 0.0, 3.0])
    pattern = SetRow(-1, row)(as_batch(PATTERN), at([0, 1, 2], tokens=WORDS[:1]))[0, 0]
    assert pattern[2].tolist() == [0.25, 0.0, 0.75] and torch.equal(pattern[:2], PATTERN[:2])
    assert SetRow(2, row, renormalise=False)(as_batch(PATTERN), PLAIN)[0, 0, 2].tolist() == [1.0, 0.0, 3.0]
    assert SetRow(2, torch.zeros(3))(as_batch(PATTERN), PLAIN)[0, 0, 2].tolist() == [0.0, 0.0, 0.0]


# Which tokens


def test_rows_and_keys_are_chosen_in_each_example():
    assert HERE.rows("the").tolist() == [[True, False, False], [False, False, True]]
    assert HERE.keys(-1).tolist() == [[False, False, True], [False, False, True]]
    assert HERE.rows(slice(1, 1)).any().item() is False
    assert HERE.real.tolist() == [[True, True, True], [False, False, True]]
    with pytest.raises(UnknownTokenError, match="no token reads 'cat'"):
        HERE.rows("cat")  # the second example has none


def test_without_a_tokenizer_only_positions_are_known():
    assert PLAIN.rows(1).tolist() == [[False, True, False]]
    assert PLAIN.rows(range(1, 3)).tolist() == PLAIN.rows([2, 1]).tolist() == [[False, True, True]]
    for chosen in ("cat", -1, [0, -1], slice(0, 2), None):
        with pytest.raises(InterventionError, match="give positions counted from 0"):
            PLAIN.rows(chosen)


def test_keys_are_chosen_only_where_there_are_keys():
    with pytest.raises(InterventionError, match="only where scores or patterns"):
        At(torch.tensor([[0, 1]])).keys(0)


# Arguments that make no edit


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scale(NAN), "finite number"),
        (lambda: Scale("half"), "finite number"),
        (lambda: Scale(torch.tensor([1.0, NAN])), "1 of 2"),
        (lambda: Mean(torch.tensor([INF])), "NaN or infinite"),
        (lambda: Patch(torch.full((1, 2, 2), NAN)), "4 of 4"),
        (lambda: Patch(torch.zeros(2, 2)), r"got shape \(2, 2\)"),
        (lambda: Coordinate(-1, 1.0, 0.0), "counts from 0, got -1"),
        (lambda: Coordinate(True, 1.0, 0.0), "counts from 0"),
        (lambda: Coordinate(1.0, 1.0, 0.0), "counts from 0"),
        (lambda: Coordinate(0, INF, 0.0), "factor must be a finite number"),
        (lambda: Coordinate(0, 1.0, NAN), "amount must be a finite number"),
        (lambda: Temperature(0.0), "above 0, got 0.0"),
        (lambda: Temperature(-1.0), "above 0"),
        (lambda: Temperature(INF), "finite"),
        (lambda: DistanceBias(NAN), "slope must be"),
        (lambda: ReplacePattern(torch.tensor([[[0.5, -0.5]]])), "negative weights, the lowest -0.5"),
        (lambda: ReplacePattern(torch.full((1, 1, 1), NAN)), "NaN"),
        (lambda: ReplacePattern(torch.ones(2, 2)), r"got shape \(2, 2\)"),
        (lambda: SetWeight(0, 0, -0.1), "between 0 and 1"),
        (lambda: SetWeight(0, 0, 1.1), "between 0 and 1"),
        (lambda: SetWeight(0, 0, NAN), "finite"),
        (lambda: SetRow(0, torch.ones(1, 2)), r"one axis \[key\]"),
        (lambda: SetRow(0, torch.tensor([1.0, -2.0])), "negative"),
    ],
)
def test_an_edit_that_makes_no_sense_cannot_be_made(make, message):
    with pytest.raises(InterventionError, match=message):
        make()
