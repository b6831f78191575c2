"""Pronouns: who they lead to, and how attention and expectation depend on them."""

import threading

import numpy as np
import pytest

import headscope as hs
from headscope.analysis.usecases.antecedents import antecedents, positions
from headscope.analysis.usecases.bias import bias
from headscope.analysis.usecases.pronoun_sentences import Schema, schemas
from headscope.errors import Cancelled, InputError

FEW = [schema for schema in schemas() if schema.occupation in ("nurse", "doctor", "farmer")]


@pytest.fixture(scope="module")
def gpt():
    return hs.load("builtin:gpt")


def test_a_span_of_text_falls_on_its_tokens(gpt):
    schema = FEW[0]
    trace = gpt.run(schema.text("she"))
    for who in ("pronoun", "occupation", "participant"):
        start, end = schema.span("she", who)
        span_text = "".join(trace.tokens["main"][place].text for place in positions(trace, (start, end)))
        assert span_text == schema.text("she")[start:end]


def test_antecedents_are_scored_against_the_person_named_last(gpt):
    antecedent_scores = antecedents(gpt, FEW)
    assert antecedent_scores.scores.n_samples == 2 * len(FEW) and antecedent_scores.n_skipped == 0
    # Of the six frames, three mean the person named last.
    assert antecedent_scores.scores.baseline == pytest.approx(0.5)
    head, best = antecedent_scores.best()
    assert 0.5 <= best <= 1 and antecedent_scores.by_layer()[str(head.site)] == best


def test_a_pronoun_that_cannot_see_both_people_is_skipped(gpt):
    template = "When {pronoun} came, the {occupation} greeted the {participant}."
    early = Schema(template, "nurse", "patient", "occupation", "nominative")
    assert antecedents(gpt, [FEW[0], early]).n_skipped == 2
    with pytest.raises(InputError, match="none of the sentences"):
        antecedents(gpt, [early])


def test_bias_gives_evidence_for_every_part(gpt):
    study = bias(gpt, FEW, n_silenced=2, n_random=2)
    assert study.n_pairs == len(FEW) and set(study.p_values) == set(gpt.heads)
    head = gpt.heads[5]
    low, high = study.differences.intervals[head]
    assert low <= study.differences[head] <= high
    assert {row.name for row in study.occupations} == {"nurse", "doctor", "farmer"}
    assert all(np.isfinite(row.log_odds) for row in study.occupations)
    nothing, top, *others = study.effects
    assert nothing.heads == () and len(top.heads) == 2 and len(others) == 2
    assert not set(top.heads) & {head for other in others for head in other.heads}
    assert study.continuations[0][0].endswith("she") and study.continuations[1][0].endswith("he")


def test_bias_can_be_stopped_and_reports_progress(gpt):
    stop, seen = threading.Event(), []

    def progress(state):
        seen.append(state)
        if state.done == 1:
            stop.set()

    with pytest.raises(Cancelled):
        bias(gpt, FEW, progress=progress, cancel=stop)
    assert seen[0].done == 0 and seen[0].total > len(FEW)


def test_no_sentences_is_an_error(gpt):
    with pytest.raises(InputError, match="no sentences"):
        bias(gpt, [])
