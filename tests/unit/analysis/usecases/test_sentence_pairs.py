"""Heads that cross between sentences that belong together."""

import pytest

import headscope as hs
from headscope.analysis.usecases.sentence_pairs import _shuffle, between_sentences, built_in_pairs
from headscope.errors import InputError


def test_there_are_three_hundred_pairs_and_nobody_keeps_a_partner_when_shuffled():
    pairs = built_in_pairs()
    assert len(pairs) == 300
    partner = _shuffle(pairs)
    assert all(not set(pairs[place]) & set(pairs[other]) for place, other in enumerate(partner))
    apart = [abs(len(pairs[place][1]) - len(pairs[other][1])) for place, other in enumerate(partner)]
    assert sum(apart) / len(apart) < 2  # characters


def test_the_same_word_head_crosses_more_in_pairs_that_belong_together():
    study = between_sentences(hs.load("builtin:bert"), built_in_pairs()[::10])
    share, shuffled = study.scores["L2H3"], study.scores.baselines[hs.Head("main", 2, 3)]
    assert share > 0.5 and share > shuffled
    assert "L2H3" in [str(head) for head, _, _ in study.significant()]


def test_a_model_without_pairs_and_too_few_pairs_are_refused():
    with pytest.raises(InputError, match="at least two"):
        between_sentences(hs.load("builtin:bert"), [("a", "b")])
    with pytest.raises(InputError, match="pair"):
        between_sentences(hs.load("builtin:gpt"), built_in_pairs()[:3])
