"""Neurons, activations, pictures and written text, taken away: a saved page and the copied Python show the same."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.word_model import words
from browser.workbench import Workbench

NURSE = "The doctor asked the nurse a question. She"
LONG = " ".join(["The farmer asked the housekeeper for the key because he wanted to open the barn."] * 9)
NEURON = {"text": NURSE, "view": "neuron", "at": "L3H2"}
LORRY = {"model": "builtin:vit", "media": "preset:lorry", "view": "head"}
RIVER = {"model": "builtin:translate", "text": "The old man sat by the river."}
VIEWS = {
    "a token that was looked at looks": NEURON | {"token": "key:5", "neurons": "3", "fold": "value"},
    "neurons between texts": RIVER | {"view": "neuron", "at": "cross.L1H2", "token": "query:2"},
    "a word's predictions": {"text": NURSE, "view": "activations", "hide": "first", "by": "words", "token": "query:2"},
    "an encoder's norms": RIVER | {"view": "activations", "at": "encoder.L1H0", "stream": "norm"},
    "patches that look": LORRY | {"at": "L5H0", "rollout": "1", "token": "query:29", "arrows": "1"},
    "a step of a translation": RIVER | {"view": "head", "at": "cross.L2H1", "step": "3", "token": "query:3"},
}


def numbers(bench: Workbench, folder: Path) -> list[dict]:
    """What is on screen, as the page saves it."""
    return json.loads(bench.save("JSON", folder).read_text())


def same(actual: list[dict], expected: list[dict]) -> None:
    assert len(actual) == len(expected) > 0
    for row, other in zip(actual, expected, strict=True):
        assert row == {
            name: pytest.approx(value, rel=2e-3, abs=2e-5) if isinstance(value, float) else value
            for name, value in other.items()
        }


@pytest.mark.parametrize("name", VIEWS)
def test_a_saved_page_and_copied_python_show_the_same(bench, offline, tmp_path, monkeypatch, name):
    bench.open(**VIEWS[name])
    status, expected = bench.status.inner_text(), numbers(bench, tmp_path)
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    expect(offline.status).to_have_text(status)
    same(numbers(offline, tmp_path), expected)
    bench.button("Save").click()
    bench.button(re.compile("Copy as Python")).click()
    expect(bench.page.get_by_text("Python copied: it runs as pasted.")).to_be_visible()
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    exec(bench.page.evaluate("navigator.clipboard.readText()"), namespace)
    offline.visit((tmp_path / f"{VIEWS[name]['view']}.html").as_uri())
    expect(offline.status).to_have_text(status)
    same(numbers(offline, tmp_path), expected)


def test_a_saved_page_holds_the_predictions_of_all_tokens(bench, offline, tmp_path):
    bench.open(text=LONG, view="activations")
    file = bench.save("HTML", tmp_path)
    offline.visit(file.as_uri())
    expect(offline.status).not_to_contain_text("alone are saved here")
    rows = numbers(offline, tmp_path)
    assert len({row["position"] for row in rows}) > 128
    assert all(row["prediction"] for row in rows)


def test_the_saved_neurons_of_a_long_input_are_those_on_screen(bench, offline, word_model, tmp_path):
    """No token was chosen: the page looks from the last, and so does the file."""
    bench.open(word_model, text=words(600), view="neuron", at="L0H0")
    status = bench.status.inner_text()
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    expect(offline.status).to_have_text(status)
    expect(offline.page.get_by_role("alert")).to_have_count(0)


def test_back_forward_and_escape(bench):
    """Each thing chosen is a step back; Escape leads out of a scale."""
    bench.open(**NEURON)
    bench.page.get_by_label("Sort neurons by").select_option("contribution")
    bench.links_to(neurons="contribution")
    bench.press("4")
    bench.links_to(view="activations")
    bench.choose("What is shown", "Norms")
    bench.links_to(stream="norm")
    for expected in ({"stream": None}, {"view": "neuron", "neurons": "contribution"}, {"neurons": None}):
        bench.page.go_back()
        bench.links_to(**expected)
        bench.ready()
    assert bench.is_chosen("Scale", "Neuron")
    for expected in ({"neurons": "contribution"}, {"view": "activations", "stream": None}, {"stream": "norm"}):
        bench.page.go_forward()
        bench.links_to(**expected)
        bench.ready()
    assert bench.is_chosen("What is shown", "Norms")
    bench.press("ArrowRight")
    bench.links_to(token="query:0")
    bench.press("Escape")
    bench.links_to(token=None, view="activations")
    bench.press("Escape")
    bench.links_to(view=None)
    bench.press("3", "Escape")
    bench.links_to(view="head")
