"""Use cases as evidence: what is said agrees with what was found, and every table can be read."""

import threading

import numpy as np
import pytest

import headscope as hs
from headscope.analysis.usecases.applicability import unfit
from headscope.analysis.usecases.distance_decay import built_in_texts
from headscope.analysis.usecases.pronoun_sentences import schemas
from headscope.analysis.usecases.sentence_pairs import built_in_pairs
from headscope.errors import Cancelled, HeadscopeError, InputError
from headscope.reports.evidence import Column, EvidenceTable, format_cell
from headscope.reports.usecases import use_case
from headscope.server.tasks.usecase import evidence_part
from headscope.views.wire import decode

# The first two frames of three occupations.
FEW = [
    schema
    for place, schema in enumerate(schemas())
    if schema.occupation in ("nurse", "doctor", "farmer") and place % 6 < 2
]


@pytest.fixture(scope="module")
def gpt():
    return hs.load("builtin:gpt")


@pytest.fixture(scope="module")
def bert():
    return hs.load("builtin:bert")


def test_bias_is_told_in_sentences_and_tables(gpt):
    progress_calls = []
    evidence = use_case("bias", gpt, FEW, progress=progress_calls.append)
    heads, occupations, silencing, texts = evidence.tables
    assert [column.name for column in heads.columns] == ["head", "she − he", "low", "high", "p, corrected"]
    assert str(heads.rows[0][0]) in evidence.findings[1]
    assert {row[0] for row in occupations.rows} == {"nurse", "doctor", "farmer"}
    assert [row[0] for row in silencing.rows][:2] == ["nothing silenced", "the 3 heads that differ most"]
    assert len(silencing.rows) == 7 and len(texts.rows) == 4
    assert progress_calls[0].done == 0 and progress_calls[-1].done < progress_calls[-1].total
    assert evidence.scores[str(heads.rows[0][0])] == heads.rows[0][1]


def test_antecedents_name_the_layer_and_the_baseline(gpt):
    evidence = use_case("antecedents", gpt, FEW)
    heads, layers = evidence.tables
    # Of the two frames, one means the person named last.
    assert all(row[4] == pytest.approx(0.5) for row in heads.rows)
    assert [row[0] for row in layers.rows] == [f"L{layer}" for layer in range(6)]
    best = max(layers.rows, key=lambda row: float(row[2] or 0))
    assert best[1] == heads.rows[0][0] and f"in layer {str(best[0])[1:]}" in evidence.findings[0]


def test_heads_between_sentences_are_told_against_shuffled_pairs(bert):
    evidence = use_case("between", bert, built_in_pairs()[::40])
    (table,) = evidence.tables
    real, shuffled, difference, low, high = np.array([row[1:6] for row in table.rows], dtype=float).T
    assert difference == pytest.approx(real - shuffled) and (low <= difference).all() and (difference <= high).all()
    assert evidence.example["pair"]


def test_decay_tells_rate_perplexity_and_what_is_written(gpt):
    evidence = use_case("decay", gpt, built_in_texts()[:1])
    heads, neurons, scaled = evidence.tables
    assert str(heads.rows[0][0]) in evidence.findings[0] and len(neurons.rows) == 12
    assert [column.name for column in scaled.columns][2:] == ["decay rate", "perplexity", "continuation"]
    assert len(scaled.rows) == 7 and all(float(row[3] or 0) > 1 for row in scaled.rows)


def test_evidence_travels_with_numbers_as_arrays(gpt):
    evidence = use_case("antecedents", gpt, FEW)
    part = decode(evidence_part(evidence).encode())
    table, column = part.props["tables"][0], [row[1] for row in evidence.tables[0].rows]
    assert table["n_rows"] == len(column) and part.arrays["0/1"] == pytest.approx(np.array(column), abs=1e-6)
    assert table["columns"][0]["texts"] == [row[0] for row in evidence.tables[0].rows]
    assert part.props["heads"] == [str(head) for head in evidence.scores]
    assert "0/0" not in part.arrays and part.props["pair"] is None


def test_a_use_case_can_be_stopped(gpt):
    stop = threading.Event()
    stop.set()
    for name in ("bias", "antecedents", "decay"):
        with pytest.raises(Cancelled):
            use_case(name, gpt, cancel=stop)


def test_its_python_runs_as_it_is_printed(bert):
    evidence = use_case("between", bert, built_in_pairs()[::60])
    assert evidence.python.startswith("import headscope as hs\n\nmodel = hs.load('builtin:bert')\n")
    compile(evidence.python, "python", "exec")


def test_models_that_do_not_fit_are_told_why(gpt):
    translate = hs.load("builtin:translate")
    assert "source and a target" in unfit(translate)
    assert "reads text" in unfit(hs.load("builtin:vit"))
    assert not unfit(gpt)
    with pytest.raises(InputError, match="Locating heads does not fit builtin:gpt"):
        use_case("between", gpt)
    with pytest.raises(HeadscopeError, match="there is no use case 'dance': there are bias"):
        use_case("dance", gpt)


def test_numbers_are_written_for_people():
    assert [format_cell(value) for value in (None, float("nan"), "x", 0.5, -0.25, 12.345, 1234.5, 0.0004)] == [
        "–",
        "–",
        "x",
        "0.500",
        "−0.250",
        "12.3",
        "1,234",
        "0.0004",
    ]
    table = EvidenceTable("t", "", (Column("head", "heads"), Column("value")), [("L0H1", 0.5), ("a|b", None)])
    assert table.markdown() == "| head | value |\n| --- | ---: |\n| L0H1 | 0.500 |\n| a\\|b | – |"
    assert table.to_json()["rows"][0] == {"head": "L0H1", "value": 0.5}
