"""Scores: labels, order, and a form that JSON can hold."""

import json

import pytest

from headscope.errors import UnknownHeadError
from headscope.scores import Scores
from headscope.sites import Head


def scores_of(**values):
    return Scores("made up", {Head("main", int(name[1]), int(name[3])): value for name, value in values.items()})


def test_heads_are_found_by_address():
    scores = scores_of(L0H0=0.1, L0H1=0.9)
    assert scores["L0H1"] == scores[Head("main", 0, 1)] == 0.9
    with pytest.raises(UnknownHeadError, match="L0H0 to L0H1"):
        scores["L7H0"]
    with pytest.raises(UnknownHeadError, match="2 heads"):
        scores["L0"]


def test_the_top_leaves_out_what_is_not_known():
    scores = scores_of(L0H0=0.5, L0H1=float("nan"), L0H2=0.7, L0H3=0.5)
    assert [str(head) for head, _ in scores.top(9)] == ["L0H2", "L0H0", "L0H3"]


def test_json_has_no_nan():
    text = json.dumps(scores_of(L0H0=0.5, L0H1=float("nan")).to_json(), allow_nan=False)
    assert json.loads(text)["values"] == {"L0H0": 0.5, "L0H1": None}
