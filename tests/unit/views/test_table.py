"""The numbers of a view: those of the trace, filtered as the page filters lines."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Token, Tokens, Trace
from headscope.views import table

PATTERN = torch.tensor(
    [
        [1.0, 0.0, 0.0, 0.0],
        [0.6, 0.4, 0.0, 0.0],
        [0.2, 0.3, 0.5, 0.0],
        [0.4, 0.3, 0.2, 0.1],
    ]
)
TOKENS = Tokens(
    (
        Token("[CLS]", special=True),
        Token("play", 1, word=0, start=0, end=4),
        Token("ing", 2, word=0, start=4, end=7),
        Token("=cards", 3, word=1, segment="B", start=0, end=6),
    )
)
TRACE = Trace.from_patterns([torch.stack([PATTERN, torch.eye(4)])], TOKENS)


def cells(view) -> list[tuple]:
    """(query, key, weight) of every row, as shown."""
    return [(row[1], row[3], round(row[5], 4)) for row in view.table().rows()]


def test_every_weight_that_is_not_zero_strongest_first():
    table = hs.head_view(TRACE, "L0H0").table()
    assert list(table.columns) == ["head", "query position", "query token", "key position", "key token", "weight"]
    assert len(table) == 10
    assert table.rows(1) == [("L0H0", 0, "[CLS]", 0, "[CLS]", 1.0)]
    weights = table.columns["weight"]
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"threshold": 0.5}, {(0, 0), (1, 0), (2, 2)}),
        ({"top": 1}, {(0, 0), (1, 0), (2, 2), (3, 0)}),
        ({"mass": 0.7}, {(0, 0), (1, 0), (1, 1), (2, 2), (2, 1), (3, 0), (3, 1)}),
        ({"token": 3}, {(3, 0), (3, 1), (3, 2), (3, 3)}),
        ({"token": ("key", 1)}, {(1, 1), (2, 1), (3, 1)}),
        ({"pair": "BA"}, {(3, 0), (3, 1), (3, 2)}),
        ({"pair": "BA", "top": 1}, {(3, 0)}),
        ({"pair": "BB"}, {(3, 3)}),
    ],
)
def test_filters_leave_what_the_page_draws(options, expected):
    assert {cell[:2] for cell in cells(hs.head_view(TRACE, "L0H0", **options))} == expected


def test_tokens_left_out_and_words_are_read_as_the_trace_does():
    rest = TRACE.without([0]).words().pattern("L0H0")
    rows = cells(hs.head_view(TRACE, "L0H0", hide="special", by="words"))
    first_pieces = [1, 3]
    assert rows == [
        (first_pieces[query], first_pieces[key], pytest.approx(float(rest[query, key]), abs=1e-4))
        for query, key in sorted(np.argwhere(rest > 0).tolist(), key=lambda at: (-rest[tuple(at)], *at))
    ]
    # A token that is switched off still counts, when another is chosen by its position and in the table.
    rows = cells(hs.head_view(TRACE, "L0H0", off=[1], token=3))
    assert {cell[0] for cell in rows} == {3} and {cell[1] for cell in rows} == {0, 2, 3}


def test_the_mean_of_heads_is_one_head():
    table = hs.head_view(TRACE, average=True).table()
    assert set(table.columns["head"]) == {"mean of 2 heads of L0"}
    mean = TRACE.pattern("L0")
    for _, query, _, key, _, weight in table.rows():
        assert weight == pytest.approx(mean[query, key])


def test_contributions_and_scores():
    trace = trace_of_layers(random_layer(Formula(0.7), 6))
    for what, name in (("contribution", "contribution"), ("scores", "score")):
        table = hs.head_view(trace, "L0H1", what=what).table()
        exact = trace.contribution("L0H1") if what == "contribution" else trace.scores("L0H1")
        for row in table.rows():
            assert row[5] == pytest.approx(exact[row[1], row[3]], abs=1e-5)
        assert list(table.columns)[-1] == name and len(table) == 36


def test_a_summary_gives_its_strongest_keys():
    trace = trace_of_layers(random_layer(Formula(0.7), 12, record="summary"), record="summary")
    table = hs.head_view(trace, "L0H1").table()
    assert len(table) == 12 * 8
    assert len(hs.head_view(trace, "L0H1", top=2, token=3).table()) == 2
    with pytest.raises(NotRecordedError, match="record='heads'"):
        hs.head_view(trace, "L0H1", by="words").table()


def test_too_many_numbers_are_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(table.lines, "__defaults__", (5,))
    error_text = (
        r"more than 5 numbers in 2 heads of 4 queries and 4 keys: whole, one head of 2 tokens fits; show fewer heads"
    )
    with pytest.raises(InputError, match=error_text):
        hs.head_view(TRACE).table()
    monkeypatch.setattr(table.lines, "__defaults__", (9,))
    with pytest.raises(InputError, match=r"in 1 head of .* fits; filtered, the strongest 2 of each query do \(top=2\)"):
        hs.head_view(TRACE, "L0H0").table()
    assert len(hs.head_view(TRACE, "L0H0", top=2).table()) == 7


def test_bands_of_rows_give_the_same_table(monkeypatch):
    whole = hs.head_view(TRACE, mass=0.7).table().rows()
    monkeypatch.setattr(table, "_BAND_CELLS", 1)
    assert hs.head_view(TRACE, mass=0.7).table().rows() == whole


def test_the_model_view_lists_heads_with_their_scores():
    table = hs.model_view(TRACE).table()
    assert list(table.columns)[:4] == ["head", "layer", "index", "confidence"]
    assert table.columns["head"].tolist() == ["L0H1", "L0H0"]
    assert hs.model_view(TRACE, sort="entropy").table().columns["head"].tolist() == ["L0H0", "L0H1"]


def test_csv_is_for_spreadsheets():
    text = hs.head_view(TRACE, "L0H0", token=3).table().csv()
    assert text.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(text.decode("utf-8-sig"))))
    assert rows[0][0] == "head" and len(rows) == 5
    # What a spreadsheet would take for a formula stays a text.
    assert rows[1][2] == "'=cards"
    assert rows[1][5] == "0.4"


def test_csv_of_heads_has_at_most_six_digits():
    trace = Trace.from_patterns([torch.rand(2, 4, 4).softmax(-1)], TOKENS)
    rows = list(csv.reader(io.StringIO(hs.model_view(trace).table().csv().decode("utf-8-sig"))))
    for row in rows[1:]:
        for value in row[3:]:
            assert value == "nan" or float(value) == float(f"{float(value):.6g}")


def test_json_says_what_it_is_about():
    view = hs.head_view(TRACE, "L0H0", token=3)
    document = json.loads(view.table().json(table.about(view)))
    assert (document["model"], document["view"], document["selection"]["site"]) == ("patterns", "head", "L0")
    assert document["rows"][0] == ["L0H0", 3, "=cards", 0, "[CLS]", 0.4]


def test_parquet_keeps_types():
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(hs.head_view(TRACE, "L0H0").table().parquet()))
    assert read.column_names == ["head", "query position", "query token", "key position", "key token", "weight"]
    assert [str(field.type) for field in read.schema] == ["string", "int64", "string", "int64", "string", "float"]
    assert read.num_rows == 10
