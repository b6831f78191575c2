"""How likely a text is to a model, against its own logits."""

import math

import pytest
import torch

import headscope as hs
from headscope.analysis.attribution.likelihood import perplexity, predicts_tokens, token_logprobs
from headscope.errors import InputError

TEXT = "The doctor asked the nurse a question."


@pytest.fixture(scope="module")
def gpt():
    return hs.load("builtin:gpt")


def test_a_causal_model_is_asked_for_each_next_token(gpt):
    inputs = gpt.read(TEXT)
    ids = inputs.model_inputs["input_ids"]
    with torch.no_grad():
        logits = gpt.module(ids[None]).logits[0].log_softmax(-1)
    expected = [float(logits[place, ids[place + 1]]) for place in range(len(ids) - 1)]
    assert token_logprobs(gpt, inputs).tolist() == pytest.approx(expected, abs=1e-4)
    loss = -sum(expected) / len(expected)
    assert perplexity(gpt, [TEXT]) == pytest.approx(math.exp(loss), rel=1e-4)


def test_a_masked_model_is_asked_for_each_token_given_the_others():
    bert = hs.load("builtin:bert")
    inputs = bert.read(TEXT)
    logprobs = token_logprobs(bert, inputs)
    assert len(logprobs) == sum(not token.special for token in inputs.tokens["main"])
    masked = bert.run(TEXT.replace("nurse", "[MASK]"), record="full")
    place = masked.tokens["main"].texts.index("[MASK]")
    expected = masked.logits.log_softmax(-1)[place, inputs.model_inputs["input_ids"][place]]
    assert float(logprobs[place - 1]) == pytest.approx(float(expected), abs=1e-4)


def test_edits_reach_the_likelihood(gpt):
    silenced = [hs.silence(f"L{layer}") for layer in range(6)]
    assert perplexity(gpt, [TEXT], silenced) > perplexity(gpt, [TEXT])


def test_a_model_without_words_is_refused():
    translate = hs.load("builtin:translate")
    assert not predicts_tokens(translate)
    with pytest.raises(InputError, match="neither a causal nor a masked"):
        token_logprobs(translate, translate.read("Hello."))
    with pytest.raises(InputError, match="at least one text"):
        perplexity(translate, [])
