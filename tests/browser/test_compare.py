"""Two runs in the workbench: chosen, aligned, side by side, subtracted, left."""

import re
from urllib.parse import urlencode

from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench

SHE = "The doctor asked the nurse a question. She"
HE = "The doctor asked the nurse a question. He"


def open_comparison(bench: Workbench, **selection: str) -> None:
    bench.open(text=SHE, **{"with": urlencode({"text": HE}), "compare": "difference", **selection})


def test_another_text_is_typed_and_subtracted(bench: Workbench, gpt: hs.Model):
    page = bench.page
    bench.open(text=SHE, view="head", at="L5H0")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_label("The other text").fill(HE)
    page.get_by_label("Another text", exact=True).get_by_role("button", name="Compare").click()
    bar = page.get_by_role("group", name="Comparison")
    expect(bar).to_contain_text("all 10 tokens aligned, 1 of them replaced (She / He)")
    expect(bar.get_by_role("button", name="Difference")).to_have_attribute("aria-pressed", "true")
    bench.ready()
    # The numbers are those of Python.
    page.keyboard.press("t")
    expect(page.get_by_role("columnheader", name="difference")).to_be_visible()
    both = hs.compare(gpt.run(SHE), gpt.run(HE)).pattern("L5H0")
    cells = (
        page.locator("table")
        .filter(has_text="query token")
        .locator("tbody tr")
        .first.locator("td, th")
        .all_inner_texts()
    )
    assert cells[1] == "9" and abs(float(cells[-1].replace("−", "-")) - both[9][int(cells[3])]) < 1e-3
    assert "with=" in page.url and "compare=difference" in page.url


def test_a_link_brings_back_both_runs_in_every_view(bench: Workbench):
    page = bench.page
    open_comparison(bench)
    expect(page.get_by_role("status").filter(has_text="48 heads")).to_contain_text("full colour: a difference of")
    open_comparison(bench, view="head", at="L5H0", **{"as": "matrix"})
    expect(page.get_by_role("status").filter(has_text="10 × 10")).to_contain_text("full colour")
    # The card has the measures of both.
    expect(page.get_by_text("moved by")).to_be_visible()
    expect(page.get_by_role("columnheader", name="A − B")).to_be_visible()


def test_predictions_of_both_runs_stand_in_the_card(bench: Workbench, gpt: hs.Model):
    open_comparison(bench, view="head", at="L5H0")
    predictions = bench.page.get_by_role("region", name="Predictions of B")
    expect(predictions).to_contain_text("The model predicts in B")
    expect(predictions).to_contain_text("9: He")
    best = gpt.run(HE).predictions()[0]
    expect(predictions.get_by_role("listitem").first).to_contain_text(best.text.strip())
    expect(predictions.get_by_role("listitem").first).to_contain_text(f"{best.probability * 100:.1f} %")
    # Heads of another model do not correspond: their measures stand side by side, without a difference.
    bench.open(text=SHE, view="head", at="L5H0", **{"with": urlencode({"model": "builtin:bert"})})
    table = bench.page.get_by_role("columnheader", name="B", exact=True)
    expect(table).to_be_visible()
    expect(bench.page.get_by_role("columnheader", name="A − B")).to_have_count(0)


def test_neurons_are_subtracted_term_by_term(bench: Workbench, gpt: hs.Model):
    page = bench.page

    def numbers(head: str) -> list[tuple[int, float, float]]:
        bench.open(
            text=SHE,
            view="neuron",
            at=head,
            token="query:9",
            compare="difference",
            edit="silence('L3H2')",
            **{"with": urlencode({"edit": ""})},
        )
        expect(page.get_by_role("status").filter(has_text=f"A − B: {head}")).to_contain_text("query She (9)")
        page.keyboard.press("t")
        rows = page.locator("table").filter(has_text="query token").locator("tbody tr").all()
        cells = [[text.replace("−", "-") for text in row.locator("td, th").all_inner_texts()] for row in rows]
        names = page.locator("table").filter(has_text="query token").locator("thead th").all_inner_texts()
        key, dots, weight = (names.index(name) for name in ("key position", "q·k/√d", "weight"))
        return [(int(row[key]), float(row[dots]), float(row[weight])) for row in cells]

    assert all(dots == weight == 0 for _, dots, weight in numbers("L3H1"))  # the layer of the edit itself
    both = hs.compare(gpt.run(SHE, [hs.silence("L3H2")]), gpt.run(SHE))
    columns = hs.neuron_view(both, "L4H1", token=9).table().columns
    expected = {int(key): dots for key, dots in zip(columns["key position"], columns["q·k"], strict=True)}
    key_rows = numbers("L4H1")
    assert len(key_rows) == 10 and max(abs(dots) for _, dots, _ in key_rows) > 0.5
    assert all(abs(dots - expected[key]) < 1e-3 for key, dots, _ in key_rows)


def test_side_by_side_shares_the_selection(bench: Workbench):
    page = bench.page
    open_comparison(bench, view="head", at="L5H0", compare="side", token="query:9")
    beside = page.get_by_role("region", name="The other run")
    expect(beside).to_contain_text("from He")
    # The token under the pointer is marked in both.
    page.locator(".half").get_by_text("nurse", exact=True).first.hover(force=True)
    twin = beside.get_by_text("nurse", exact=True).first
    expect(twin).to_have_css("font-weight", "600")
    page.get_by_role("button", name="Next layer").or_(page.get_by_role("button", name="Layer before")).first.click()
    expect(beside).to_contain_text("L4H0")
    page.get_by_role("button", name="Swap").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value(HE)


def test_leaving_gives_the_run_back(bench: Workbench):
    page = bench.page
    open_comparison(bench)
    page.get_by_role("button", name="Leave the comparison").click()
    expect(page.get_by_role("group", name="Comparison")).to_have_count(0)
    bench.ready()
    assert "with=" not in page.url and "compare=" not in page.url
    open_comparison(bench)
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Comparison")).to_have_count(0)


def test_models_that_read_differently_are_compared_by_word(bench: Workbench, gpt: hs.Model):
    page = bench.page
    bench.open(text=SHE, **{"with": urlencode({"model": "builtin:bert"})})
    bar = page.get_by_role("group", name="Comparison")
    expect(bar).to_contain_text("9 of 10 and 11 words aligned")
    expect(bar.get_by_role("button", name="Difference")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="One relation in both").click()
    panel = page.get_by_role("region", name="One relation in both runs")
    panel.get_by_role("button", name="She", exact=True).click()
    panel.get_by_role("button", name="nurse", exact=True).click()
    relation = hs.compare(gpt.run(SHE), hs.load("builtin:bert").run(SHE)).relation("She", "nurse")
    tables = panel.get_by_role("table")
    for place, side in enumerate((relation.a, relation.b)):
        row = tables.nth(place).locator("tbody tr").first
        expect(row).to_contain_text(str(side.heads[0].head))
        expect(row).to_contain_text(f"{side.heads[0].depth:.2f}")
    # Clicking the other model's head shows it beside.
    tables.nth(1).locator("tbody tr").first.get_by_role("button").click()
    expect(page.get_by_role("region", name="The other run")).to_contain_text(str(relation.b.heads[0].head))


def test_texts_with_nothing_in_common_say_so(bench: Workbench):
    bench.expect("422")
    bench.open(text=SHE, **{"with": urlencode({"text": "zebras"})})
    expect(bench.page.get_by_role("group", name="Comparison")).to_contain_text("no token in common")


def test_a_saved_difference_opens_without_a_server(bench: Workbench, offline: Workbench, tmp_path):
    open_comparison(bench, view="head", at="L5H0")
    page = bench.page
    page.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML").click()
    file = tmp_path / "difference.html"
    download.value.save_as(file)
    offline.visit(file.as_uri())
    bar = offline.page.get_by_role("group", name="Comparison")
    expect(bar).to_contain_text("She / He")
    expect(offline.page.get_by_role("status").filter(has_text="lines drawn")).to_contain_text("full colour")


def test_side_by_side_each_run_has_a_legend_of_its_own(bench: Workbench):
    open_comparison(bench, view="neuron", at="L5H0", compare="side")
    for run in "AB":
        header = bench.page.get_by_label(f"Run {run}", exact=True)
        expect(header.get_by_role("img")).to_have_attribute(
            "aria-label", re.compile("^Colours: neurons of each column")
        )
        expect(header).to_contain_text("10 keys")
    bench.choose("Scale", "Head")
    legends = bench.page.locator("main").get_by_role("img", name=re.compile("^Colours: "))
    expect(legends).to_have_count(2)  # and none in the line over both
    # Equal headers: what corresponds stands at the same height.
    tops = [bench.page.locator(place).bounding_box() for place in (".half .view", ".beside .view")]
    assert tops[0] and tops[1] and abs(tops[0]["y"] - tops[1]["y"]) < 1


def test_what_keeps_two_runs_from_being_compared_is_said_beside_the_button(bench: Workbench):
    page = bench.page
    bench.open(text=SHE)
    page.get_by_role("button", name="Compare", exact=True).click()
    form = page.get_by_role("form", name="Another text")
    expect(form.get_by_text("Change the text to compare it with the run on screen.")).to_be_visible()
    expect(form.get_by_role("button", name="Compare")).to_have_accessible_description(re.compile("^Change the text"))
    page.get_by_label("The other text").fill(HE)
    expect(form.get_by_text("Change the text")).to_have_count(0)
    bench.open(text=SHE, **{"with": urlencode({"model": "builtin:bert"})})
    bar = page.get_by_role("group", name="Comparison")
    difference = bar.get_by_role("button", name="Difference")
    expect(difference).to_have_attribute("aria-disabled", "true")
    reason = difference.evaluate(
        "button => document.getElementById(button.getAttribute('aria-describedby')).textContent"
    )
    assert reason.startswith("Difference: ")
    expect(bar.get_by_role("status")).to_contain_text(reason.removeprefix("Difference: "))
