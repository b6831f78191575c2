"""Tests on rows of attention alone: cases whose answer is known on paper."""

import math

import pytest
import torch

from headscope import faithfulness as faith
from headscope.attention.divergence import jensen_shannon
from headscope.errors import InputError

PEAKED = torch.tensor([[[0.7, 0.2, 0.1, 0.0]]])


def rows_of(pattern, visible=None, **options) -> faith.AttentionRows:
    pattern = torch.as_tensor(pattern, dtype=torch.float32)
    return faith.AttentionRows(pattern, pattern >= 0 if visible is None else visible, **options)


def copies_attention(patterns: torch.Tensor) -> torch.Tensor:
    """An answer that is the attention itself: every token is a class of its own."""
    return patterns[:, :, 0]


def ignores_attention(patterns: torch.Tensor) -> torch.Tensor:
    even = torch.full_like(patterns[:, :, 0], 1 / patterns.shape[-1])
    return even + 0 * patterns[:, :, 0]


def test_a_pattern_is_at_no_distance_from_itself_and_at_ln_2_from_one_that_shares_no_key():
    rows = rows_of([[[1.0, 0.0]]])
    assert faith.row_divergence(rows, rows.pattern).tolist() == [0.0]
    assert float(faith.row_divergence(rows, torch.tensor([[[0.0, 1.0]]]))) == pytest.approx(math.log(2))


def test_permuting_a_uniform_pattern_changes_nothing():
    rows = rows_of([[[0.25, 0.25, 0.25, 0.25]]])
    orders = faith.permutations(rows, 20)
    assert torch.equal(orders, rows.pattern.expand_as(orders))
    assert faith.permutation_changes(rows, copies_attention, n=20).tolist() == [[0.0]] * 20


def test_a_permutation_keeps_the_weights_and_leaves_special_and_masked_keys_alone():
    pattern = torch.tensor([[[0.1, 0.2, 0.3, 0.4, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0]]])
    visible = torch.tensor([[[True] * 4 + [False], [True, True, False, False, False]]])
    rows = faith.AttentionRows(pattern, visible, movable=torch.tensor([[False, True, True, True, True]]))
    orders = faith.permutations(rows, 50)
    assert (orders[..., 0] == pattern[..., 0]).all() and (orders[..., 4] == 0).all()
    assert torch.equal(orders.sort(-1).values, pattern.sort(-1).values.expand_as(orders))
    assert torch.equal(orders[:, :, 1], pattern[:, 1].expand(50, -1, -1))  # one movable key has nowhere to go
    assert len({tuple(row) for row in orders[:, 0, 0].tolist()}) == 6


def test_padded_rows_stay_and_do_not_count():
    pattern = torch.tensor([[[1.0, 0.0], [0.3, 0.3]]])
    rows = rows_of(pattern, real=torch.tensor([[True, False]]))
    assert faith.REPLACEMENTS["uniform"](rows).tolist()[0] == [[0.5, 0.5], pytest.approx([0.3, 0.3])]
    assert float(faith.row_divergence(rows, torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]))) == pytest.approx(math.log(2))


def test_identity_and_previous_token_follow_the_query_and_respect_the_mask():
    causal = torch.ones(1, 3, 3).tril().bool()
    rows = faith.AttentionRows(causal / causal.sum(-1, keepdim=True), causal, own=torch.tensor([[0, 1, 2]]))
    assert faith.REPLACEMENTS["identity"](rows).tolist() == [torch.eye(3).tolist()]
    assert faith.REPLACEMENTS["previous_token"](rows).argmax(-1).tolist() == [[0, 0, 1]]
    with pytest.raises(InputError, match="where each query stands"):
        faith.REPLACEMENTS["identity"](rows_of(PEAKED))
    hidden = faith.AttentionRows(rows.pattern, causal & ~torch.eye(3, dtype=torch.bool), own=rows.own)
    with pytest.raises(InputError, match="cannot attend there"):
        faith.REPLACEMENTS["identity"](hidden)


def test_the_change_of_an_answer_that_copies_attention_is_the_distance_of_the_patterns():
    # total variation of (.7 .2 .1 0) and (¼ ¼ ¼ ¼) is .45
    assert float(faith.replacement_change(rows_of(PEAKED), copies_attention, "uniform")) == pytest.approx(0.45)
    assert float(faith.replacement_change(rows_of(PEAKED), ignores_attention, "uniform")) == 0.0
    assert float(faith.replacement_change(rows_of(PEAKED), copies_attention, "no_attention")) == pytest.approx(0.5)
    with pytest.raises(InputError, match="there is no replacement 'nothing'"):
        faith.replacement_change(rows_of(PEAKED), copies_attention, "nothing")


def test_answers_that_are_padding_do_not_count():
    before = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
    after = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]])
    assert faith.output_change(before, after).tolist() == [0.5]
    assert faith.output_change(before, after, torch.tensor([[True, False]])).tolist() == [1.0]


def test_rows_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"\[batch, row, key\]"):
        faith.AttentionRows(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(InputError, match="movable is"):
        rows_of(PEAKED, movable=torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(InputError, match="at least 1"):
        faith.permutations(rows_of(PEAKED), 0)


# Adversary


def test_the_farthest_pattern_has_all_its_weight_on_the_key_with_the_least():
    corner = torch.tensor([[[0.0, 0.0, 0.0, 1.0]]])
    assert torch.equal(faith.reachable_divergence(rows_of(PEAKED)), jensen_shannon(PEAKED, corner)[0])
    even = rows_of([[[0.5, 0.5]]])
    assert float(faith.reachable_divergence(even)) == pytest.approx(0.2158, abs=1e-4)


def test_an_adversary_goes_as_far_as_can_be_where_the_output_ignores_attention():
    options = faith.AdversaryOptions(patterns=2, steps=60, rate=0.3)
    ignored = faith.adversaries(rows_of(PEAKED), ignores_attention, options)
    assert float(ignored.share_of_reachable) > 0.9
    assert torch.allclose(ignored.patterns.sum(-1), torch.ones(2, 1, 1))


def test_an_adversary_cannot_go_far_where_the_output_is_the_attention():
    options = faith.AdversaryOptions(patterns=3, steps=60, rate=0.3)
    copied = faith.adversaries(rows_of(PEAKED), copies_attention, options)
    assert float(copied.share_of_reachable) < 0.1  # a change of .05 allows a JSD of at most .05
    assert float(copied.epsilon_max_divergence) <= 0.05


def test_an_adversary_stays_within_the_mask():
    visible = torch.tensor([[[True, True, False, True]]])
    rows = faith.AttentionRows(torch.tensor([[[0.6, 0.3, 0.0, 0.1]]]), visible)
    patterns = faith.adversaries(rows, ignores_attention, faith.AdversaryOptions(steps=5)).patterns
    assert (patterns[..., 2] == 0).all()


def test_patterns_that_change_the_output_do_not_count_as_the_same():
    divergence, change = torch.tensor([[0.3], [0.6]]), torch.tensor([[0.01], [0.2]])
    assert faith.epsilon_max(divergence, change, 0.05).tolist() == pytest.approx([0.3])
    assert faith.epsilon_max(divergence, change, 0.001).tolist() == [0.0]


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"patterns": 0}, {"tolerance": 0.2}, {"epsilon": 2.0}])
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        faith.AdversaryOptions(**wrong)


# Tokens


def test_gradient_times_input_is_that_of_the_definition():
    embeddings = torch.tensor([[[1.0, 2.0], [3.0, 0.0]]], requires_grad=True)
    output = (embeddings[:, 0, 0] * embeddings[:, 1, 0]) + embeddings[:, 0, 1]
    # token 0: 1·3 + 2·1, token 1: 3·1 + 0
    assert faith.gradient_times_input(output, embeddings).tolist() == [[5.0, 3.0]]
    with pytest.raises(InputError, match="does not depend"):
        faith.gradient_times_input(torch.ones(1), embeddings)
    with pytest.raises(InputError, match="does not depend"):
        faith.gradient_times_input(torch.ones(1, requires_grad=True) * 2, embeddings)


def test_leave_one_out_is_the_change_without_each_token():
    without = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]])
    assert faith.leave_one_out(torch.tensor([[0.5, 0.5]]), without).tolist() == [[0.0, 0.5]]


def test_erasure_takes_the_most_attended_tokens_and_leaves_special_ones():
    attention = torch.tensor([[0.5, 0.3, 0.1, 0.1]])
    removable = torch.tensor([[False, True, True, True]])
    requests: list[torch.Tensor] = []

    def probability(remaining: torch.Tensor) -> torch.Tensor:
        requests.append(remaining)
        return (remaining * torch.tensor([0.0, 0.6, 0.2, 0.2])).sum(-1)

    scores = faith.erasure(attention, removable, probability, share=0.3, n_random=200)
    assert float(scores.comprehensiveness) == pytest.approx(0.6)  # without token 1
    assert float(scores.sufficiency) == pytest.approx(0.4)  # with token 1 alone
    assert float(scores.random_comprehensiveness) == pytest.approx(1 / 3, abs=0.05)
    assert requests[0][..., 0].all()  # the special token is never taken out


def test_texts_in_which_every_token_would_be_removed_have_no_erasure():
    single = torch.tensor([[False, True]])
    scores = faith.erasure(torch.tensor([[0.5, 0.5]]), single, lambda remaining: remaining.sum(-1).float())
    assert scores.comprehensiveness.isnan().all() and scores.random_sufficiency.isnan().all()
