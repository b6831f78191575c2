"""Relevance and importance of the built-in models: what adds up, and how far three ways of asking agree."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.analysis.attribution.importance import ablation, gate_importance
from headscope.analysis.attribution.relevance import relevance, relevance_scores
from headscope.analysis.statistics import rank_correlation

FOLDER = Path(hs.__file__).parent / "builtin"
EXAMPLES = json.loads((FOLDER / "examples.json").read_text())
PAIRS = [
    ("The doctor asked the nurse a question.", "Доктор задал медсестре вопрос."),
    ("Where are my keys?", "Где мои ключи?"),
]
MASKED = [
    "The doctor asked the [MASK] a question.",
    "She opened the [MASK] and went into the house.",
]


@cache
def load(name: str) -> hs.Model:
    return hs.load(f"builtin:{name}")


def token_sums(explanation) -> np.ndarray:
    return sum(explanation.by_token[stack].sum(1) for stack in explanation.input_stacks)


@pytest.mark.parametrize("name", ["gpt", "bert", "translate"])
def test_inputs_and_biases_make_up_the_logit(name):
    source = {"gpt": EXAMPLES["gpt"][4]["text"], "bert": MASKED[0], "translate": PAIRS[0]}[name]
    explanation = relevance(load(name), source)
    logits = np.array([step.logit for step in explanation.steps])
    assert token_sums(explanation) + explanation.bias_shares * logits == pytest.approx(logits, abs=1e-4)
    assert set(explanation.by_head) == set(load(name).heads)
    assert all(np.isfinite(values).all() for values in explanation.by_head.values())


def test_the_repeated_word_is_what_a_repetition_comes_from():
    """Asked why the second copy goes on as the first did, the model points to the first."""
    model = load("gpt")
    text = EXAMPLES["gpt"][4]["text"].split(". ")[0] + ". red stone, blue"
    explanation = relevance(model, text, target=(" river", " hill"))
    texts = [text.strip() for text in explanation.tokens["main"].texts]
    first = texts.index("river")
    # Among the words of the first copy, the one that is to be repeated.
    words = [place for place, text in enumerate(texts) if text.isalpha() and 0 < place < texts.index("gate")]
    assert max(words, key=lambda place: explanation.token_relevance()[place]) == first


def test_an_image_is_explained_patch_by_patch():
    example = EXAMPLES["vit"][0]
    explanation = relevance(load("vit"), Image.open(FOLDER / example["image"]))
    grid = explanation.patch_relevance()
    assert grid.shape[0] == grid.shape[1] and np.isfinite(grid).all()
    assert explanation.steps[0].position is None and explanation.steps[0].text in load("vit").config.id2label.values()


@pytest.mark.parametrize(("name", "inputs"), [("translate", PAIRS), ("bert", MASKED)])
def test_relevance_importance_and_ablation_are_comparable(name, inputs):
    model = load(name)
    cp = relevance_scores(model, inputs, normalised=False)
    attn = relevance_scores(model, inputs, normalised=False, rule="attn")
    gates, silenced = gate_importance(model, inputs), ablation(model, inputs)
    assert list(cp) == list(gates) == list(silenced) == model.heads
    assert all(
        scores.n_samples == 2 and len(scores.intervals) == len(model.heads) for scores in (cp, attn, gates, silenced)
    )
    assert rank_correlation(cp, attn) > 0.5  # two rules for the same question
    for other in (gates, silenced):
        assert -1 <= rank_correlation(cp, other) <= 1
        assert -1 <= rank_correlation(cp, other, within_layers=True) <= 1
