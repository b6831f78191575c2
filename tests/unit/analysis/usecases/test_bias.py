"""Pronouns: who they lead to, and how attention and expectation depend on them."""

import threading

import numpy as np
import pytest

import headscope as hs
from headscope.analysis.usecases.antecedents import antecedents, positions
from headscope.analysis.usecases.bias import bias
from headscope.analysis.usecases.pronoun_sentences import Schema, schemas
from headscope.errors import Cancelled, InputError

FEW = [one for one in schemas() if one.occupation in ("nurse", "doctor", "farmer")]


@pytest.fixture(scope="module")
def gpt():
    return hs.load("builtin:gpt")


def test_a_span_of_text_falls_on_its_tokens(gpt):
    schema = FEW[0]
    trace = gpt.run(schema.text("she"))
    for who in ("pronoun", "occupation", "participant"):
        start, end = schema.span("she", who)
        found = "".join(trace.tokens["main"][place].text for place in positions(trace, (start, end)))
        assert found == schema.text("she")[start:end]


def test_antecedents_are_scored_against_the_person_named_last(gpt):
    found = antecedents(gpt, FEW)
    assert found.scores.n_samples == 2 * len(FEW) and found.n_skipped == 0
    # Of the six frames, three mean the person named last.
    assert found.scores.baseline == pytest.approx(0.5)
    head, best = found.best()
    assert 0.5 <= best <= 1 and found.by_layer()[str(head.site)] == best


def test_a_pronoun_that_cannot_see_both_people_is_skipped(gpt):
    template = "When {pronoun} came, the {occupation} greeted the {participant}."
    early = Schema(template, "nurse", "patient", "occupation", "nominative")
    assert antecedents(gpt, [FEW[0], early]).n_skipped == 2
    with pytest.raises(InputError, match="none of the sentences"):
        antecedents(gpt, [early])


def test_bias_gives_evidence_for_every_part(gpt):
    found = bias(gpt, FEW, n_silenced=2, n_random=2)
    assert found.n_pairs == len(FEW) and set(found.p_values) == set(gpt.heads)
    head = gpt.heads[5]
    low, high = found.differences.intervals[head]
    assert low <= found.differences[head] <= high
    assert {row.name for row in found.occupations} == {"nurse", "doctor", "farmer"}
    assert all(np.isfinite(row.log_odds) for row in found.occupations)
    nothing, top, *others = found.effects
    assert nothing.heads == () and len(top.heads) == 2 and len(others) == 2
    assert not set(top.heads) & {head for other in others for head in other.heads}
    assert found.continuations[0][0].endswith("she") and found.continuations[1][0].endswith("he")


def test_bias_can_be_stopped_and_reports_progress(gpt):
    stop, seen = threading.Event(), []

    def progress(done, total):
        seen.append((done, total))
        if done == 1:
            stop.set()

    with pytest.raises(Cancelled):
        bias(gpt, FEW, progress=progress, cancel=stop)
    assert seen[0][0] == 0 and seen[0][1] > len(FEW)


def test_no_sentences_is_an_error(gpt):
    with pytest.raises(InputError, match="no sentences"):
        bias(gpt, [])
