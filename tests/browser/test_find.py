"""Finding heads from the page: by example, by pattern, painted, by effect; as a list, as colour, as a link."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import headscope as hs

NURSE = "The doctor asked the nurse a question. She"
REPEATED = "red stone, blue river, green hill, old gate. red stone, blue river, green hill, old gate."


def panel(bench):
    return bench.page.get_by_role("region", name="Find heads")


def press_find(bench):
    """Press Find, and wait for the list: heads and what is written beside them."""
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    return rows_by_head(bench)


def rows_by_head(bench):
    expect(panel(bench).get_by_role("button", name="Cancel")).to_have_count(0)
    table = panel(bench).get_by_role("table", name="Heads found")
    expect(table).to_be_visible()
    bench.ready()
    rows = [row.inner_text().split() for row in table.locator("tbody tr").all()]
    return {
        row[0]: [float(cell.replace("−", "-")) for cell in row[1:] if re.fullmatch(r"[−\d.]+", cell)] for row in rows
    }


def test_heads_are_found_by_two_words(bench, gpt):
    bench.open(text=NURSE)
    bench.press("f")
    panel(bench).get_by_label("From", exact=True).fill("she")
    panel(bench).get_by_label("To", exact=True).fill("nurse")
    rows = press_find(bench)
    scores = hs.find_heads(gpt.run(NURSE), example=("she", "nurse"))
    expected = scores.above(10)
    assert list(rows) == [str(head) for head, _, _ in expected]
    for head, value, baseline in expected[:3]:
        assert rows[str(head)] == pytest.approx([value, baseline, value - baseline], abs=0.006)
    # The list says what it goes by, and has that as a column.
    expect(panel(bench)).to_contain_text("Ranked by weight − baseline (column “above”), largest first.")
    ranked = panel(bench).get_by_role("columnheader", name="above")
    expect(ranked).to_have_attribute("aria-sort", "descending")
    panel(bench).get_by_role("button", name="rank by weight").click()
    expect(panel(bench)).to_contain_text("Ranked by weight, largest first.")
    expect(panel(bench).get_by_role("columnheader", name="weight")).to_have_attribute("aria-sort", "descending")
    panel(bench).get_by_role("button", name="rank by weight − baseline").click()
    # The model view is coloured by it, and a head opens by a click.
    bench.links_to(colour="she → nurse")
    bench.picture("find-example")
    expect(bench.label("she → nurse").first).to_be_visible()
    panel(bench).get_by_role("button", name=str(expected[0][0]), exact=True).click()
    bench.ready()
    bench.links_to(view="head", at=str(expected[0][0]))
    # The link brings the result back.
    bench.visit(bench.page.url)
    assert list(rows_by_head(bench)) == list(rows)
    bench.links_to(colour="she → nurse")


def test_a_saved_page_holds_what_was_found_and_copied_python_colours_alike(bench, offline, tmp_path):
    bench.open(text=NURSE)
    bench.press("f")
    panel(bench).get_by_label("From", exact=True).fill("she")
    panel(bench).get_by_label("To", exact=True).fill("nurse")
    rows = press_find(bench)
    bench.button("Save").click()
    bench.button(re.compile("Copy as Python")).click()
    expect(bench.page.get_by_text("Python copied")).to_be_visible()
    namespace: dict = {}
    exec(bench.page.evaluate("navigator.clipboard.readText()").replace('save("', f'save("{tmp_path}/'), namespace)
    assert [str(head) for head, _, _ in namespace["scores"].above(10)] == list(rows)
    assert namespace["view"].selection.colour == namespace["scores"].method
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    saved_panel = offline.page.get_by_role("region", name="Heads found")
    assert [name_cell.inner_text() for name_cell in saved_panel.locator("tbody th").all()] == list(rows)
    expect(saved_panel.get_by_role("form")).to_have_count(0)  # there is no model to ask
    expect(offline.label("she → nurse").first).to_be_visible()
    saved_panel.get_by_role("button", name="Close").click()
    expect(saved_panel).to_have_count(0)
    offline.button("Heads found").click()
    saved_panel.locator("tbody button").first.click()
    offline.links_to(view="head", at=next(iter(rows)))


def test_clicked_tokens_are_taken_and_a_missing_word_is_told(bench, gpt):
    bench.open(text=NURSE, view="head", at="L5H2")
    bench.press("f")
    bench.page.mouse.click(*bench.token("She", "query"))
    expect(panel(bench).get_by_label("From", exact=True)).to_have_value("She")
    bench.page.mouse.click(*bench.token("doctor", "key"))
    expect(panel(bench).get_by_label("To", exact=True)).to_have_value("doctor")
    expect(panel(bench)).to_contain_text("from position 9, to position 2")
    rows = press_find(bench)
    assert next(iter(rows)) == str(hs.find_heads(gpt.run(NURSE), example=(9, 2)).above(1)[0][0])
    panel(bench).get_by_label("To", exact=True).fill("lawyer")
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    expect(panel(bench).get_by_role("alert")).to_contain_text("its words are The, doctor, asked, the, nurse")
    panel(bench).get_by_label("To", exact=True).fill("")
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    expect(panel(bench).get_by_role("alert").first).to_contain_text("Name the word that looks")


def test_heads_are_found_by_a_pattern_here_and_in_other_inputs(bench, gpt):
    bench.open(text=REPEATED)
    bench.button("Find heads").click()
    bench.choose("Find by", "Pattern")
    panel(bench).get_by_label("Pattern", exact=True).select_option("induction")
    expect(panel(bench)).to_contain_text("attention to what followed the same token before")
    rows = press_find(bench)
    known = hs.find_heads(gpt.run(REPEATED), pattern="induction").above(1)[0][0]
    assert next(iter(rows)) == str(known) and known.layer in (4, 5)
    panel(bench).get_by_label("In", exact=True).select_option("repeated")
    rows = press_find(bench)
    assert next(iter(rows)) in ("L4H0", "L4H1")  # the induction heads that the model's card names
    expect(panel(bench)).to_contain_text("8 inputs")
    panel(bench).get_by_role("button", name="sort by this").click()
    bench.links_to(sort="induction over repeated random tokens")


def test_a_pattern_that_this_input_cannot_show_is_offered_in_one_that_can(bench):
    bench.expect("422")
    bench.open(text=NURSE)
    bench.press("f")
    bench.choose("Find by", "Pattern")
    choice = panel(bench).get_by_label("Pattern", exact=True)
    for name, reason in (("a_to_b", "reads pairs"), ("patch_row", "reads images"), ("next_token", "cannot look ahead")):
        option = choice.locator(f"option[value={name}]")
        expect(option).to_be_disabled()
        expect(option).to_contain_text(reason)
    choice.select_option("induction")
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    expect(panel(bench).get_by_role("alert")).to_contain_text(
        "No token repeats in this text, so induction cannot be seen here."
    )
    expect(panel(bench)).not_to_contain_text("No head does this")
    bench.picture("find-absent")
    panel(bench).get_by_role("button", name="Run a text that has it").click()
    rows = rows_by_head(bench)
    assert next(iter(rows)) in ("L4H0", "L4H1", "L4H2")
    expect(panel(bench).get_by_role("alert")).to_have_count(0)
    bench.links_to(text="red stone, blue river, green hill, old gate. red stone, blue river, green hill, old")


def test_a_pattern_of_repeats_is_offered_in_repeated_random_tokens(bench):
    bench.expect("422")
    bench.open(text=NURSE)
    bench.press("f")
    bench.choose("Find by", "Pattern")
    panel(bench).get_by_label("Pattern", exact=True).select_option("duplicate_token")
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    panel(bench).get_by_role("button", name="Search repeated random tokens").click()
    rows_by_head(bench)
    expect(panel(bench)).to_contain_text("8 inputs")


def test_a_pattern_is_painted_on_the_matrix(bench, gpt):
    bench.open(text=NURSE, view="head", at="L0H0")
    bench.press("f")
    bench.choose("Find by", "Painted")
    bench.links_to(**{"as": "matrix"})

    def cell(query: str, key: str) -> tuple[float, float]:
        return bench.token(key, "key")[0], bench.token(query, "query")[1]

    # The token before, over five rows: every cell on the way is painted.
    bench.page.mouse.move(*cell("asked", "doctor"))
    bench.page.mouse.down()
    bench.page.mouse.move(*cell("question", "a"), steps=4)
    bench.page.mouse.up()
    expect(panel(bench)).to_contain_text("5 cells painted")
    bench.page.mouse.click(*cell("doctor", "doctor"))
    expect(panel(bench)).to_contain_text("6 cells painted")
    panel(bench).get_by_role("button", name="Undo").click()
    expect(panel(bench)).to_contain_text("5 cells painted")
    rows = press_find(bench)
    painted = np.zeros((10, 10))
    for place in range(3, 8):
        painted[place, place - 1] = 1
    bench.picture("find-painted")
    best = hs.find_heads(gpt.run(NURSE), pattern=painted).above(1)[0][0]
    assert next(iter(rows)) == str(best) == "L3H2"  # the head that looks at the token before
    panel(bench).get_by_role("button", name="Clear").click()
    expect(panel(bench)).to_contain_text("0 cells painted")
    # By keyboard: from cell to cell with the arrows, wherever the pointer was.
    bench.page.mouse.move(*cell("asked", "doctor"))
    bench.press("ArrowDown", "p", "ArrowRight", "p", "p", "ArrowLeft", "ArrowDown", "p")
    expect(panel(bench)).to_contain_text("2 cells painted")
    assert bench.is_chosen("Scale", "Head") and "at=L0H0" in bench.page.url  # the arrows moved no head
    panel(bench).get_by_role("button", name="Clear").click()
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    expect(panel(bench).get_by_role("alert")).to_contain_text("Paint at least one cell")


def test_heads_are_found_by_what_silencing_them_does(bench, gpt):
    bench.open(text=NURSE)
    bench.press("f")
    bench.choose("Find by", "Effect")
    rows = press_find(bench)  # the likeliest prediction, where nothing else is said
    trace = gpt.run(NURSE)
    scores = hs.analysis.ablation(gpt, trace.inputs, target=trace.predictions()[0].text, position=9)
    expected = sorted(scores.items(), key=lambda head_and_score: -abs(head_and_score[1]))[:10]
    assert list(rows) == [str(head) for head, _ in expected]
    assert rows[str(expected[0][0])] == pytest.approx([expected[0][1]], abs=0.006)
    bench.picture("find-effect")
    panel(bench).get_by_role("button", name="copy as Python").click()
    code = bench.page.evaluate("navigator.clipboard.readText()")
    names: dict = {}
    exec(code, names)
    assert {str(h): v for h, v in names["scores"].items()} == pytest.approx({str(h): v for h, v in scores.items()})


def test_a_search_can_be_stopped(bench):
    bench.open(text=" ".join(["It rained all day, and then it rained again."] * 30))
    bench.press("f")
    bench.choose("Find by", "Effect")
    panel(bench).get_by_role("button", name="Find", exact=True).click()
    panel(bench).get_by_role("button", name="Cancel").click()
    expect(panel(bench)).to_contain_text("Stopped.")
    bench.press("Escape")
    expect(panel(bench)).to_have_count(0)


def test_an_empty_form_looks_for_its_example(bench, gpt):
    bench.open(text=NURSE)
    bench.press("f")
    expect(panel(bench).get_by_label("From", exact=True)).to_have_attribute("placeholder", "e.g. She")
    expect(panel(bench).get_by_label("To", exact=True)).to_have_attribute("placeholder", "e.g. doctor")
    rows = press_find(bench)
    assert list(rows) == [
        str(head) for head, _, _ in hs.find_heads(gpt.run(NURSE), example=("She", "doctor")).above(10)
    ]


def test_a_search_that_cannot_be_made_says_why_on_the_panel(bench, word_model):
    bench.open(word_model, text="the cat sat on the mat")
    bench.press("f")
    effect = panel(bench).get_by_role("group", name="Find by").get_by_role("button", name="Effect")
    if effect.get_attribute("aria-disabled") is None:
        raise AssertionError("this model predicts something: the test needs one that does not")
    reason = "Effect: This model predicts nothing here: an effect is on the probability of a prediction"
    expect(panel(bench).get_by_text(reason)).to_be_visible()
    expect(effect).to_have_accessible_description(reason)
