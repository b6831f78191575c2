"""Rankings: against the analysis that they are, and where the answer is known."""

import pytest
import torch
from tiny_models import SENTENCES
from tiny_tasks import PAIRS, bert, gpt, language_task, marian

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.pruning.rankings import rank

CLASSES = [Example(str(number), text=text, label=str(number % 2)) for number, text in enumerate(SENTENCES[:3])]


def test_importance_of_a_language_model_is_the_gate_gradient_of_the_analysis() -> None:
    model = gpt()
    texts = ["the cat sat on the mat", "a dog lay there", "she sings"]
    scores = rank("importance", model, tasks.language_modelling(train=texts), n_examples=3)
    expected = hs.analysis.gate_importance(model, texts)
    assert list(scores.values()) == pytest.approx(list(expected.values()), rel=1e-4)
    assert scores.n_samples == 3


def test_a_head_whose_values_nothing_reads_is_not_important() -> None:
    model = gpt()
    with torch.no_grad():
        model.module.transformer.h[1].attn.c_proj.weight[:8] = 0.0  # the rows of its first head
    scores = rank("importance", model, language_task(), n_examples=2)
    assert scores["L1H0"] == 0.0 and scores["L1H1"] > 0.0


@pytest.mark.parametrize("method", ["importance", "relevance", "confidence"])
def test_every_head_has_a_score(method: str) -> None:
    pairs = tasks.translation(train=PAIRS, dev=PAIRS[:1], metric="loss")
    classes = tasks.sequence_classification(train=CLASSES, dev=CLASSES)
    masked = tasks.masked_language_modelling(train=[*SENTENCES], dev=[*SENTENCES[:2]])
    for model, task in ((marian(), pairs), (bert("SequenceClassification"), classes), (bert(), masked)):
        scores = rank(method, model, task, n_examples=2)
        assert set(scores) == set(model.heads) and all(score == score for score in scores.values())


def test_random_scores_follow_from_the_seed_and_read_nothing() -> None:
    first, again, other = (
        rank("random", gpt(), tasks.language_modelling(), n_examples=1, seed=seed) for seed in (0, 0, 1)
    )
    assert dict(first) == dict(again) != dict(other)


def test_rankings_need_training_data() -> None:
    with pytest.raises(InputError, match="there is no train data"):
        rank("importance", gpt(), tasks.language_modelling(dev=[*SENTENCES]), n_examples=2)
