"""The neuron view: one head from queries and keys to its output, with numbers that are Python's."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from tiny_models import FAMILIES

import headscope as hs
from browser.workbench import Workbench
from headscope.models import Model
from headscope.views.neurons import Terms

NURSE = "The doctor asked the nurse a question. She"
ROW = 19  # px, the lowest
AT = {"text": NURSE, "view": "neuron", "at": "L3H2"}


@pytest.fixture(scope="module")
def trace(gpt) -> hs.Trace:
    return gpt.run(NURSE)


def terms(trace: hs.Trace, head: str = "L3H2", query: int = 9) -> Terms:
    return Terms(trace, trace.find(head)[0], query, query + 1)


def row(bench, token: str) -> float:
    """The height of a key's row."""
    return next(y for text, _, y in bench._texts() if text == token)


def column(bench, title: str) -> float:
    """Where a column of neurons begins."""
    box = bench.page.locator(".view span:visible").filter(has_text=re.compile(rf"^{title}  ±")).bounding_box()
    return box["x"]


def tip(bench, x: float, y: float) -> dict[str, float]:
    """What the pointer is told there: numbers by their names."""
    bench.page.mouse.move(x, y)
    text = bench.page.get_by_role("tooltip").inner_text().replace("−", "-")
    return {
        name.strip(): float(value) for name, value in re.findall(r"^(.*?) ?[:=]? (-?[\d.e-]+)$", text, re.MULTILINE)
    }


def test_every_column_shows_the_numbers_of_python(bench, trace):
    bench.open(**AT)
    expect(bench.status).to_contain_text(
        "L3H2, query She (9), 10 keys, 32 neurons · scores and q × k are scaled by 0.1768 = 1/√32"
    )
    known = terms(trace)
    y = row(bench, "question")
    tooltip = tip(bench, column(bench, "q × k") + 30, y)
    neuron = int(tooltip["neuron"])
    assert tooltip["q"] == pytest.approx(float(known.query[0, neuron]), rel=1e-4)
    assert tooltip["k"] == pytest.approx(float(known.key[7, neuron]), rel=1e-4)
    assert tooltip["q × k scaled"] == pytest.approx(float(known.products[0, 7, neuron]), rel=1e-4)
    tooltip = tip(bench, column(bench, "value v") + 30, y)
    neuron = int(tooltip["value neuron"])
    assert tooltip["v"] == pytest.approx(float(known.value[7, neuron]), rel=1e-4)
    assert tooltip["a · v"] == pytest.approx(float(known.weighted[0, 7, neuron]), rel=1e-3)
    softmax = bench.label("softmax").bounding_box()
    tooltip = tip(bench, softmax["x"] - 20, y)
    assert tooltip["q · k × 0.17678"] == pytest.approx(float(known.dots[0, 7]), rel=1e-4)
    assert tooltip["softmax"] == pytest.approx(float(known.weights[0, 7]), rel=1e-3)
    written = [float(text) for text, x, at in bench._texts() if abs(at - y) < 3 and re.fullmatch(r"\d+\.\d\d", text)]
    assert written[0] == pytest.approx(float(known.dots[0, 7]), abs=0.006)


def test_keys_lead_in_and_out_and_from_query_to_query(bench):
    bench.open(text=NURSE, view="head", at="L3H2")
    bench.press("Enter")
    bench.links_to(view="neuron", at="L3H2")
    bench.press("ArrowUp", "ArrowUp")
    bench.links_to(token="query:7")
    expect(bench.status).to_contain_text("query question (7)")
    assert bench.label("masked").count() == 2
    bench.press("ArrowRight", "]")
    bench.links_to(at="L4H3")
    bench.press("Escape")
    bench.links_to(view="head", at="L4H3")
    bench.press("1", "3")
    bench.links_to(view="neuron")
    assert bench.is_chosen("Scale", "Neuron")
    bench.page.go_back()
    bench.links_to(view=None)
    bench.page.go_forward()
    bench.links_to(view="neuron", at="L4H3", token="query:7")
    bench.ready()
    expect(bench.status).to_contain_text("L4H3, query question (7)")


def test_a_query_is_chosen_by_its_token_or_from_the_list(bench, trace):
    bench.open(**AT)
    bench.page.mouse.click(bench.label("nurse").bounding_box()["x"] + 8, row(bench, "nurse"))
    bench.links_to(token="query:5")
    bench.ready()
    bench.page.get_by_label("Query", exact=True).select_option("2")
    bench.links_to(token="query:2")
    bench.ready()
    tooltip = tip(bench, column(bench, "q × k") + 30, row(bench, "The"))
    assert tooltip["q"] == pytest.approx(trace.query("L3H2")[2, int(tooltip["neuron"])], rel=1e-4)


def test_neurons_are_sorted_by_contribution_and_by_a_key(bench, trace):
    bench.open(**AT)
    known = terms(trace)
    bench.page.get_by_label("Sort neurons by").select_option("contribution")
    bench.links_to(neurons="contribution")
    bench.ready()
    first = tip(bench, column(bench, "q × k") + 1.5, row(bench, "nurse"))
    assert first["neuron"] == int(known.importance[0].argmax())
    bench.page.mouse.click(column(bench, "key k") + 20, row(bench, "doctor"))
    bench.links_to(neurons="2")
    bench.ready()
    first = tip(bench, column(bench, "q × k") + 1.5, row(bench, "doctor"))
    assert first["neuron"] == int(known.products[0, 2].abs().argmax())
    expect(bench.status).to_contain_text("neurons by |q × k| of doctor (2)")
    bench.page.get_by_label("Key token to sort by").select_option("5")
    bench.links_to(neurons="5")
    bench.page.go_back()
    bench.links_to(neurons="2")


def test_queries_of_all_tokens_show_what_does_not_depend_on_them(bench, trace):
    bench.open(**AT)
    bench.press("a")
    bench.links_to(every="query")
    expect(bench.status).to_contain_text("queries of all 10 tokens")
    bench.page.get_by_label("Sort neurons by").select_option("spread")
    bench.ready()
    query = trace.query("L3H2")
    steady = int(np.argmin(query.std(0) / np.sqrt(query.mean(0) ** 2 + query.var(0))))
    left = bench.page.get_by_text("query q of all tokens").bounding_box()["x"]
    tooltip = tip(bench, left + 4, row(bench, "She"))
    assert tooltip[f"neuron {steady}"] == pytest.approx(query[9, steady], rel=1e-4)
    tooltip = tip(bench, left + 4, row(bench, "mean"))
    assert tooltip["mean over tokens"] == pytest.approx(query[:, steady].mean(), rel=1e-4)
    bench.page.mouse.click(left + 4, row(bench, "asked"))
    bench.links_to(every=None, token="query:3")
    bench.choose("Shown", "Values")
    bench.links_to(every="value")


def test_columns_fold_and_open(bench):
    bench.open(**AT)
    before = column(bench, "q × k")
    columns = bench.page.get_by_role("group", name="Columns")
    columns.get_by_role("button", name="k", exact=True).click()
    bench.links_to(fold="key")
    bench.ready()
    assert column(bench, "q × k") < before - 40
    strip = bench.label("key k").bounding_box()
    bench.page.mouse.click(strip["x"] + strip["width"] / 2, strip["y"] + 4)
    bench.links_to(fold=None)
    bench.page.set_viewport_size({"width": 420, "height": 800})
    bench.ready()
    expect(bench.status).to_contain_text("query She (9)")
    assert bench.page.locator(".view span:visible").filter(has_text=re.compile("^q × k  ±")).count() == 1


def test_cross_attention_names_the_tokens_of_both_sides(bench):
    bench.open(model="builtin:translate", text="The cat sat on the mat.", view="neuron", at="cross.L1H0")
    expect(bench.status).to_contain_text("cross.L1H0, query")
    assert bench.label("mat").count() == 1
    bench.press("ArrowUp")
    bench.links_to(token="query:6")


def test_a_long_input_leads_to_the_keys_with_most_weight(bench, word_model):
    text = " ".join(["bak", "dem", "fil"] * 200) + " gun"
    bench.open(model=word_model, text=text, view="neuron", at="L1H0", token="query:300")
    choice = bench.page.get_by_label("Go to a strong key")
    listed = choice.locator("option:not([disabled])")
    keys = [int(value) for value in listed.evaluate_all("options => options.map(option => option.value)")]
    pattern = hs.load(word_model).run(text).pattern("L1H0")[300]
    assert len(keys) == 12
    assert sorted(pattern[keys]) == pytest.approx(sorted(pattern)[-12:], abs=1e-6)
    expect(listed.first).to_contain_text(f"({keys[0]})")
    # Chosen, its row comes into view, with rows around it, and the box is ready for the next.
    scroller = bench.page.locator(".view div").filter(has=bench.page.get_by_role("group", name="Neurons of one head"))
    for key in (min(keys), max(keys), 0):
        if key in keys:
            choice.select_option(str(key))
            first, height = scroller.last.evaluate("box => [box.scrollTop, box.clientHeight]")
            assert first <= key * ROW <= first + height - 64 - 44 - ROW
            expect(choice).to_have_value("")
    # A short input has all its keys in sight.
    bench.open(**AT)
    expect(bench.page.get_by_label("Sort neurons by")).to_be_visible()
    expect(choice).to_have_count(0)


def test_a_long_input_is_scrolled_and_found_in(bench, word_model):
    text = " ".join(["bak", "dem", "fil"] * 200) + " gun"
    bench.open(model=word_model, text=text, view="neuron", at="L1H0", token="query:3")
    expect(bench.status).to_contain_text("603 keys")
    assert bench.label("gun").count() == 0
    bench.press("End")
    expect(bench.label("gun")).to_have_count(1)
    bench.page.wait_for_timeout(200)
    tooltip = tip(bench, column(bench, "q × k") + 30, row(bench, "gun"))
    model = hs.load(word_model)
    known = model.run(text).key("L1H0")[601, int(tooltip["neuron"])]
    assert tooltip["k"] == pytest.approx(known, rel=1e-4)
    bench.press("Home")
    bench.press("/")
    bench.page.keyboard.type("gun")
    expect(bench.label("gun")).to_have_count(1)


def test_numbers_are_a_table_too(bench, trace):
    bench.open(**AT)
    bench.button("Table").click()
    table = bench.page.get_by_role("region", name="Numbers as a table")
    names = [cell.inner_text() for cell in table.get_by_role("columnheader").all()]
    assert names == [
        "query position",
        "query token",
        "key position",
        "key token",
        "masked",
        "q·k/√d",
        "weight",
        "contribution",
    ]
    cells = [cell.inner_text() for cell in table.get_by_role("row").nth(9).get_by_role("cell").all()]
    assert cells[:5] == ["9", "She", "8", ".", ""]
    assert float(cells[6]) == pytest.approx(trace.pattern("L3H2")[9, 8], abs=1e-4)


def test_a_saved_page_has_neurons_without_a_server(bench, offline, trace, tmp_path):
    bench.open(**AT, neurons="contribution")
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    expect(offline.status).to_contain_text("L3H2, query She (9)")
    offline.press("ArrowLeft", "ArrowUp")
    expect(offline.status).to_contain_text("L3H1, query . (8)")
    tooltip = tip(offline, column(offline, "q × k") + 30, row(offline, "nurse"))
    assert tooltip["k"] == pytest.approx(trace.key("L3H1")[5, int(tooltip["neuron"])], rel=1e-4)


def test_what_has_no_queries_and_keys_is_refused_in_words(offline, tmp_path):
    given_trace = hs.Trace.from_patterns([torch.full((1, 3, 3), 1 / 3)], ["a", "b", "c"])
    offline.visit(hs.head_view(given_trace).save(tmp_path / "given.html").as_uri())
    offline.press("3")
    problem = offline.page.get_by_role("alert")
    expect(problem).to_contain_text("only its patterns are known")
    offline.press("2")
    expect(problem).to_have_count(0)


def test_both_projections_of_windows_and_global_tokens_are_drawn(offline, tmp_path):
    family = FAMILIES["longformer"]
    trace = Model(family.build()).run(inputs={name: tensor[:1] for name, tensor in family.inputs().items()})
    offline.visit(hs.neuron_view(trace, "L0H0").save(tmp_path / "longformer.html").as_uri())
    expect(offline.page.get_by_text("sees 2 tokens to each side, and the global token")).to_be_visible()
    expect(offline.page.get_by_text("the first half of each vector is for windows")).to_be_visible()
    expect(offline.page.get_by_role("alert")).to_have_count(0)


def test_a_neuron_is_set_to_zero_where_it_is_seen(bench, trace):
    bench.open(**AT)
    x, y = column(bench, "key k") + 30, row(bench, "question")
    before = tip(bench, x, y)
    neuron = int(before["neuron"])
    assert before["k"] != 0
    bench.press("e")
    bench.links_to(edit=f"set_neuron('L3H2', 'key', {neuron}, 0.0)")
    bench.ready()
    bench.page.mouse.move(x, y + 1)
    bench.page.mouse.move(x, y)
    expect(bench.page.get_by_role("tooltip")).to_contain_text(f"neuron {neuron}")
    assert tip(bench, x, y)["k"] == 0


def test_an_edited_output_is_not_called_the_sum_and_no_weight_is_called_nothing(bench: Workbench) -> None:
    bench.open(text=NURSE, view="neuron", at="L3H2")
    expect(bench.label("output, the sum of a · v")).to_be_visible()
    expect(bench.label("<0.001").first).to_be_visible()
    expect(bench.label("0")).to_have_count(0)
    bench.open(text=NURSE, view="neuron", at="L3H2", edit="silence('L3H2')")
    expect(bench.label("output, edited")).to_be_visible()
