"""What edits did to the output: exact on logits known on paper, nothing for edits that change nothing."""

import math

import pytest
import torch
from tiny_models import FAMILIES, image, tiny_tokenizer

import headscope as hs
from headscope.analysis.attribution.effect import _compare
from headscope.errors import InputError, InterventionError

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def gpt() -> hs.Model:
    return hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer())


def test_divergence_and_candidates_are_those_on_paper() -> None:
    was = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.4, 0.2, 0.2, 0.2]]).log()
    now = torch.tensor([[0.25, 0.5, 0.125, 0.125], [0.4, 0.2, 0.2, 0.2]]).log()
    kl, ids, before, after = _compare(was, now, 1)
    # ½ ln 2 + ¼ ln ½ + ¼ ln 2
    assert kl.tolist() == pytest.approx([0.5 * math.log(2), 0.0], abs=1e-7)
    assert ids[0].tolist() == [0, 1] and before[0].exp().tolist() == pytest.approx([0.5, 0.25])
    assert after[0].exp().tolist() == pytest.approx([0.25, 0.5])
    assert ids[1].tolist() == [0, -1]  # the same one is likeliest on both sides: it is named once


def test_edits_that_change_nothing_have_no_effect_at_all(gpt: hs.Model) -> None:
    effect = hs.effect(gpt, TEXT, [hs.scale("L0H1", 1.0), hs.temperature("L1H0", 1.0)])
    assert not effect.kl.any() and torch.equal(effect.before, effect.after)
    assert effect.loss is not None and effect.loss[0] == effect.loss[1]


def test_it_is_what_two_whole_runs_say(gpt: hs.Model) -> None:
    edits = [hs.silence("L0"), hs.replace_token(1)]
    was, now = (gpt.run(TEXT, interventions, record="full").logits.log_softmax(-1) for interventions in ([], edits))
    effect = hs.effect(gpt, gpt.run(TEXT), edits, k=3)
    torch.testing.assert_close(effect.kl.float(), (was.exp() * (was - now)).sum(-1), atol=1e-6, rtol=1e-4)
    for answer in range(len(was)):
        for prediction in effect.predictions(6, answer=answer):
            assert (prediction.before, prediction.after) == (
                float(was[answer, prediction.id]),
                float(now[answer, prediction.id]),
            )
    assert {int(was[-1].argmax()), int(now[-1].argmax())} <= {prediction.id for prediction in effect.predictions(6)}
    ids = gpt.read(TEXT).model_inputs["input_ids"]
    assert effect.loss == pytest.approx(
        [float(-logprobs[:-1].gather(1, ids[1:, None]).mean()) for logprobs in (was, now)], 1e-5
    )


def test_a_classifier_answers_once() -> None:
    model = hs.Model(FAMILIES["vit"].build())
    effect = hs.effect(model, model.run(inputs={"pixel_values": image()["pixel_values"][:1]}), [hs.silence("L0")])
    assert effect.positions == () and len(effect.kl) == 1 and effect.loss is None


def test_long_inputs_are_compared_at_their_end(gpt: hs.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hs.effect(gpt, TEXT, [hs.silence("L0H0")])
    monkeypatch.setattr("headscope.analysis.attribution.effect.MOST_BYTES", 8 * gpt.config.vocab_size * 3)
    effect = hs.effect(gpt, TEXT, [hs.silence("L0H0")])
    assert effect.positions == whole.positions[-3:] and effect.loss is None
    torch.testing.assert_close(effect.kl, whole.kl[-3:], atol=1e-6, rtol=1e-4)


def test_what_cannot_be_compared_is_said(gpt: hs.Model) -> None:
    with pytest.raises(InputError, match="one input at a time"):
        hs.effect(gpt, [TEXT, TEXT], [])
    with pytest.raises(InterventionError, match="NaN"):
        hs.effect(gpt, TEXT, [hs.scale("L0H0", 1e300)])
