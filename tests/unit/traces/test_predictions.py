"""The most probable answers."""

import pytest
import torch

from headscope.traces import Prediction, Predictions


def test_the_likeliest_come_first_with_their_log_probabilities():
    logits = torch.tensor([[0.0, 0.0, 0.0], [1.0, 3.0, 2.0]])
    answers = Predictions.of(logits, stack="main", positions=(3, 4), names="abc".__getitem__)
    top = answers.top(2)
    assert [prediction.text for prediction in top] == ["b", "c"] and [prediction.id for prediction in top] == [1, 2]
    assert top[0].logprob == pytest.approx(float(logits[1].log_softmax(-1)[1]))
    assert sum(prediction.probability for prediction in answers.top(3)) == pytest.approx(1.0)
    assert [prediction.probability for prediction in answers.top(3, answer=0)] == pytest.approx([1 / 3] * 3)


def test_at_most_fifty_are_kept():
    answers = Predictions.of(torch.randn(1, 200), stack="main", positions=(0,), names=str)
    assert answers.ids.shape == answers.logprobs.shape == (1, 50)
    assert len(answers.top(80)) == 50 and len(answers.texts[0]) == 50


def test_half_precision_logits_are_read_in_fp32_and_detached():
    logits = torch.randn(1, 5, dtype=torch.bfloat16, requires_grad=True)
    answers = Predictions.of(logits, stack="main", positions=(), names=str)
    assert answers.logprobs.dtype == torch.float32 and not answers.logprobs.requires_grad
    assert answers.ids.dtype == torch.int32


def test_a_prediction_is_a_plain_value():
    assert Prediction("a", 1, -0.5) == Prediction("a", 1, -0.5)
