"""One table of names: complete, unambiguous, and what the page, the docs and the reports read."""

import inspect
import runpy
import subprocess
import sys
from pathlib import Path
from string import Formatter
from typing import get_args

from headscope import glossary
from headscope.analysis import MEASURES
from headscope.analysis.measures.roles import CRITERIA
from headscope.choices import Scale
from headscope.interventions import heads, neurons, patterns

ROOT = Path(__file__).parents[2]
# Computed for reports alone, from weights, on repeated tokens or on a sample.
OF_REPORTS = {
    "relevance", "gate_importance", "ablation", "copying", "repeated_induction", "repeated_duplicate", "alignment",
}  # fmt: skip


def test_every_measure_role_edit_and_scale_has_its_names() -> None:
    assert glossary.MEASURE_TERMS.keys() == MEASURES.keys() | OF_REPORTS
    assert glossary.ROLE_TERMS.keys() == {criterion.role for criterion in CRITERIA}
    assert {role.family for role in glossary.ROLE_TERMS.values()} < glossary.FAMILIES.keys()
    assert glossary.SCALE_TERMS.keys() == set(get_args(Scale))
    builders = {**vars(heads), **vars(patterns), **vars(neurons)}
    assert all(callable(builders[name]) for name in glossary.EDIT_TERMS)


def test_the_phrase_of_an_edit_names_parameters_of_its_function() -> None:
    builders = {**vars(heads), **vars(patterns), **vars(neurons)}
    for name, term in glossary.EDIT_TERMS.items():
        by_place = [
            parameter.name
            for parameter in inspect.signature(builders[name]).parameters.values()
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        assert list(term.parameters) == by_place, name
        assert {field for _, field, _, _ in Formatter().parse(term.phrase) if field} <= set(term.parameters), name


def test_no_two_measures_have_the_same_label_or_meaning() -> None:
    terms = list(glossary.MEASURE_TERMS.values())
    for field in ("label", "meaning"):
        values = [getattr(term, field) for term in terms]
        assert sorted(values) == sorted(set(values))


def test_confidence_is_that_of_voita_and_the_other_says_all_keys() -> None:
    confidence, peak = (glossary.MEASURE_TERMS[name] for name in ("confidence", "peak_weight"))
    assert "excluded as keys" in confidence.meaning and "Voita" in confidence.source
    assert (peak.label, peak.source) == ("peak weight (all keys)", "")


def test_measures_are_called_as_people_call_them() -> None:
    assert glossary.label("syntactic/nsubj→head") == "nsubj → head"
    assert glossary.label("alignment/reads") == "alignment, the word it reads"
    assert glossary.group("syntactic/nsubj→head") == "Dependencies" and glossary.group("mine") == "Others"
    assert glossary.unit("entropy") == "nats" and glossary.unit("tags/to NOUN") == ""
    assert glossary.meaning("tags/to NOUN").endswith(": to NOUN") and glossary.meaning("mine") == ""
    assert glossary.in_order(["tags/to NOUN", "mine", "names", "confidence"]) == [
        "confidence", "names", "mine", "tags/to NOUN",
    ]  # fmt: skip


def test_every_role_has_a_short_form() -> None:
    details = {"positional": "2 tokens back", "syntactic": "syntactic: nsubj→head"}
    assert all(glossary.role_short(kind, details.get(kind, kind)) for kind in glossary.ROLE_TERMS)
    assert glossary.role_short("positional", "previous token") == "−1"
    assert glossary.role_short("rare words", "rare words (many tied)") == "rare?"


def test_the_glossary_in_the_docs_is_that_of_the_code() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "glossary"))["page"]()
    assert page == (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), "run scripts/glossary"


def test_reading_names_loads_no_tensors() -> None:
    code = "import sys, headscope.glossary; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
