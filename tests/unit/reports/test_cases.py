"""Cases: the words that a head joins, where its role says so."""

import base64
from dataclasses import replace

import numpy as np
import torch

from headscope import runs
from headscope.analysis.measures.roles import Finding, Verdict
from headscope.corpora import Example
from headscope.reports.cases import _best, _case, _cells, _display_tokens, _Search, _search_for, thumbnails
from headscope.runs.table import Blocks
from headscope.sites import Head
from headscope.traces import Tokens, Trace
from headscope.traces.tokens import Token

HEAD = Head("main", 0, 0)
SAID = Example(
    "tiny:1", text="she sings it", words=("she", "sings", "it"), spans=((0, 3), (4, 9), (10, 12)), heads=(1, -1, 1),
    relations=("nsubj", "root", "obj"),
)  # fmt: skip
PIECES = Tokens(
    (Token("[CLS]", special=True), Token("she", 5, word=0, start=0, end=3), Token("sing", 6, word=1, start=4, end=8),
     Token("s", 7, word=1, start=8, end=9), Token("it", 8, word=2, start=10, end=12))
)  # fmt: skip


def trace_of(pattern) -> Trace:
    return Trace.from_patterns([torch.tensor(pattern, dtype=torch.float32)[None]], PIECES)


def uniform() -> np.ndarray:
    return np.full((5, 5), 0.2, dtype=np.float32)


def search_for(measure: str, offset: int | None = None) -> _Search:
    return _Search(measure, "a role", (0,), offset)


def test_a_relation_joins_all_pieces_of_both_ends() -> None:
    trace = trace_of(uniform())
    to_head = _cells(trace, HEAD, SAID, search_for("syntactic/nsubj→head"), None)
    assert to_head is not None and np.argwhere(to_head).tolist() == [[1, 2], [1, 3]]
    back = _cells(trace, HEAD, SAID, search_for("syntactic/obj→dependent"), None)
    assert back is not None and np.argwhere(back).tolist() == [[2, 4], [3, 4]]


def test_an_offset_joins_neighbours_that_are_not_special() -> None:
    cells = _cells(trace_of(uniform()), HEAD, SAID, search_for("positional", -1), None)
    assert cells is not None and np.argwhere(cells).tolist() == [[2, 1], [3, 2], [4, 3]]


def test_the_pairs_are_the_strongest_of_the_cells_one_a_query() -> None:
    pattern = uniform()
    pattern[1], pattern[2] = [0, 0, 0.1, 0.9, 0], [0, 0.3, 0.7, 0, 0]
    case = _case(trace_of(pattern), HEAD, SAID, search_for("syntactic/nsubj→head"), None)
    assert case is not None and case.pairs == [(1, 3, np.float32(0.9))]
    assert case.score == np.float32(0.1) + np.float32(0.9) and case.id == "tiny:1"


def test_a_head_without_a_role_shows_its_largest_weights_on_plain_tokens() -> None:
    pattern = uniform()
    pattern[4] = [0.9, 0.1, 0, 0, 0]
    case = _case(trace_of(pattern), HEAD, SAID, search_for("confidence"), None)
    assert case is not None and (4, 0) not in [pair[:2] for pair in case.pairs]


def test_pieces_of_the_same_two_words_are_told_once() -> None:
    case = _case(trace_of(uniform()), HEAD, SAID, search_for("syntactic/obj→dependent"), None)
    assert case is not None and [pair[:2] for pair in case.pairs] == [(2, 4)]


def test_tokens_are_shown_with_their_spaces_and_words() -> None:
    assert _display_tokens(PIECES) == [
        ("[CLS]", True, True, -1), ("she", True, False, 0), ("sing", True, False, 1), ("s", False, False, 1),
        ("it", True, False, 2),
    ]  # fmt: skip


def test_cases_of_a_report_are_about_the_role(report) -> None:
    for head, verdict in report.roles.items():
        cases = report.cases[head]
        assert len(cases) <= 3
        assert all(
            case.about == (verdict.role if verdict.findings else "the largest weights") for case in cases
        ) or any(finding.measure.startswith("repeated") for finding in verdict.findings)
        for case in cases:
            tops = [weight for *_, weight in case.pairs]
            assert tops == sorted(tops, reverse=True) and all(0 <= query < len(case.tokens) for query, *_ in case.pairs)
    assert any(report.cases.values())


def test_thumbnails_are_bytes_on_a_square_root_scale(gpt) -> None:
    text = "the cat sat on the mat because it was tired."
    thumbnail = thumbnails(gpt, [Example("a:1", text=text)], n=1)[0]
    site = thumbnail["sites"]["L1"]
    maps = np.frombuffer(base64.b64decode(site["maps"]), np.uint8).reshape(-1, site["rows"], site["columns"])
    pattern = gpt.run(text).pattern("L1H2")
    assert np.array_equal(maps[2], np.round(255 * np.sqrt(pattern)).astype(np.uint8))


def test_a_verdict_that_only_repeated_tokens_show_has_cases_of_its_largest_weights(report, gpt) -> None:
    finding = Finding("induction", "induction", "repeated_induction", 0.9, 0.1, None, None, 8, "", "")
    run = runs.open(report.folder / "run")
    tables = {"confidence": run.table("confidence")}
    best = _search_for(HEAD, Verdict(HEAD, (finding,)), run, tables, [SAID], report.scores)
    assert (best.measure, best.about, best.places) == ("confidence", "the largest weights", (0,))


def test_cases_of_a_rare_relation_come_from_sentences_that_have_it() -> None:
    class Counted:
        """Two groups of sixteen; the head does better in the second."""

        def keys(self):
            return ["obj→head"]

        def blocks(self, key):
            total, n_queries = np.zeros((32, 1)), np.zeros((32, 1))
            total[[0, 16], 0], n_queries[[0, 16], 0] = (2, 2), (4, 2)
            return Blocks([HEAD], total, n_queries)

    other = replace(SAID, relations=("nsubj", "root", "punct"))
    examples = [SAID if place in (3, 9, 20, 31) else other for place in range(32)]
    assert _best(Counted(), "obj→head", HEAD, examples, 1, 16, "obj") == [20, 31, 3, 9]  # type: ignore[arg-type]
    assert _best(Counted(), "obj→head", HEAD, examples, 1, 16)[0] == 16  # type: ignore[arg-type]
