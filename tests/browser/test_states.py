"""What is seen when there is nothing to see yet, when it takes long, when it goes wrong, when there is little room."""

import re

import pytest
from playwright.sync_api import Route, expect

from browser.word_model import words
from browser.workbench import Workbench

NURSE = "The doctor asked the nurse a question. She"
CONTROLS = """() => [...document.querySelectorAll('[data-headscope] :is(button, input, select, textarea)')]
    .filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.disabled)"""


def test_a_first_visit_shows_a_run_and_a_short_hint_once(bench):
    bench.visit(bench.server.host)
    hint = bench.page.get_by_role("note")
    assert hint.locator("p").count() == 1
    assert bench.page.get_by_label("Text", exact=True).input_value()
    hint.get_by_role("button", name="Got it").click()
    bench.visit(bench.server.host)
    assert hint.count() == 0


def test_another_model_is_picked_and_a_preset_started_from(bench):
    bench.open(text=NURSE)
    bench.button(re.compile("Model: builtin:gpt")).click()
    bench.page.get_by_role("group", name=re.compile("Model: ")).get_by_role(
        "button", name=re.compile("builtin:bert")
    ).click()
    bench.links_to(model="builtin:bert")
    bench.page.get_by_role("region", name="Start from").get_by_role("button", name=re.compile("pronoun")).click()
    bench.links_to(text="The farmer asked the housekeeper for the key.", pair="She gave it to him.")
    bench.ready()
    assert bench.page.get_by_label("Second text (B)").input_value() == "She gave it to him."
    assert bench.is_chosen("Kind of input", "Pair")


def test_keys_are_listed_and_every_control_is_reached_by_keyboard(bench):
    bench.open(text=NURSE, view="head", at="L2H1")
    bench.page.keyboard.press("?")
    dialog = bench.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    bench.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    wanted = bench.page.evaluate(f"({CONTROLS})().length")
    reached = set()
    focused = f"({CONTROLS})().indexOf(document.activeElement)"
    for _ in range(wanted + 5):
        bench.page.keyboard.press("Tab")
        # A toolbar is one tab stop; arrows go round it.
        while bench.page.evaluate(focused) not in reached:
            reached.add(bench.page.evaluate(focused))
            if bench.page.evaluate("!!document.activeElement.closest('[role=toolbar]:not([popover] *)')"):
                bench.page.keyboard.press("ArrowRight")
    assert set(range(wanted)) <= reached


def test_an_empty_text_is_asked_for_and_not_sent(bench):
    bench.open(text=NURSE)
    bench.page.get_by_label("Text", exact=True).fill("   ")
    bench.button("Run").click()
    expect(bench.page.get_by_role("alert")).to_contain_text("Type a text")


def test_an_input_that_is_too_long_says_what_to_do(bench):
    bench.open(text="word " * 700)
    alert = bench.page.get_by_role("alert")
    expect(alert).to_contain_text("512")
    assert bench.button("Run").is_visible()


def test_an_unknown_model_is_refused_in_words(bench):
    bench.expect("403")
    bench.open(model="someone/model", text="x")
    expect(bench.page.get_by_role("alert")).to_contain_text("hub")


def test_a_run_can_be_cancelled_and_run_again(bench, word_model):
    bench.page.goto(bench.server.host)
    bench.open(model=word_model, text="bak bal")
    bench.page.get_by_label("Text", exact=True).fill(words(4096))
    bench.button("Run").click()
    bench.button("Cancel").click()
    bench.ready()
    expect(bench.page.get_by_text("The run was stopped")).to_be_visible()
    assert bench.button("Run").is_visible()
    bench.page.get_by_label("Text", exact=True).fill("bak bal bam")
    bench.button("Run").click()
    bench.links_to(text="bak bal bam")
    bench.ready()


def test_a_server_that_has_stopped_is_told_apart(bench):
    bench.expect("ERR_FAILED")
    bench.open(text=NURSE)
    bench.page.route("**/api/runs", lambda route: route.abort())
    bench.page.get_by_label("Text", exact=True).fill("Is anybody there?")
    bench.button("Run").click()
    expect(bench.page.get_by_role("alert")).to_contain_text("does not answer")
    bench.page.unroute("**/api/runs")
    bench.button("Try again").click()
    bench.links_to(text="Is anybody there?")
    bench.ready()
    expect(bench.page.get_by_role("alert")).to_have_count(0)


def test_somebody_who_is_not_signed_in_is_told_how(browser, server):
    context = browser.new_context()
    bench = Workbench(context.new_page(), server)
    bench.page.goto(server.host)
    expect(bench.page.get_by_role("alert").first).to_contain_text("Open the address that the terminal shows")
    context.close()


def test_dark_and_light_follow_the_system_and_the_switch(bench):
    root, light, dark = bench.page.locator("[data-headscope]"), "rgb(251, 251, 250)", "rgb(19, 20, 23)"
    bench.open(text=NURSE)
    expect(root).to_have_css("background-color", light)
    picture = bench.stage()
    bench.page.emulate_media(color_scheme="dark")
    expect(root).to_have_css("background-color", dark)
    assert bench.stage() != picture
    bench.button("Theme").click()
    bench.button("Light").click()
    expect(root).to_have_css("background-color", light)
    assert bench.stage() == picture
    bench.page.reload()
    bench.ready()
    expect(root).to_have_css("background-color", light)


@pytest.mark.parametrize(("width", "height"), [(1000, 800), (720, 900), (390, 844)])
def test_narrow_windows_fold_panels_and_lose_nothing(bench, width, height):
    bench.page.set_viewport_size({"width": width, "height": height})
    bench.open(text=NURSE, view="head", at="L2H1")
    assert bench.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card = bench.page.get_by_role("heading", name="L2H1", exact=True)
    expect(card).not_to_be_visible()
    bench.page.get_by_role("banner").get_by_role("button", name="L2H1").click()
    expect(card).to_be_visible()
    bench.page.keyboard.press("Escape")
    if width < 800:
        text = bench.page.get_by_label("Text", exact=True)
        expect(text).not_to_be_visible()
        bench.button("Model and input").click()
        expect(text).to_be_visible()


def test_the_page_offers_its_numbers_as_a_table(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2", filter="threshold", threshold="0.01")
    bench.button("Table").click()
    table = bench.page.get_by_role("region", name="Numbers as a table")
    head = [cell.inner_text() for cell in table.get_by_role("columnheader").all()]
    rows = [[cell.inner_text() for cell in row.get_by_role("cell").all()] for row in table.get_by_role("row").all()[1:]]
    pattern = gpt.run(NURSE).pattern("L3H2")
    assert len(rows) == (pattern >= 0.01).sum()
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        weight = pattern[int(cells["query position"]), int(cells["key position"])]
        assert float(cells["weight"]) == pytest.approx(weight, abs=1e-3)


def test_many_models_are_filtered_by_name_and_architecture(bench: Workbench) -> None:
    def with_many(route: Route) -> None:
        answer = route.fetch()
        settings = answer.json()
        (gpt,) = (model for model in settings["models"] if model["name"] == "builtin:gpt")
        unknown = {**gpt, "is_loaded": False, "kinds": [], "presets": [], "shape": "", "covers": ""}
        more = [{**unknown, "name": f"/models/number-{n}", "about": "MambaForCausalLM"} for n in range(12)]
        more.append({**unknown, "name": "/models/otter", "about": "OPTForCausalLM"})
        route.fulfill(response=answer, json={**settings, "models": [*settings["models"], *more]})

    bench.page.route("**/api/settings", with_many)
    bench.goto(f"{bench.server.host}/")
    bench.button(re.compile("Model: ")).click()
    models = bench.page.get_by_role("group", name=re.compile("Model: "))
    box = models.get_by_label("Filter models")
    rows = models.locator("li button")
    assert rows.count() > 15
    for typed, names in (("OTTER", ["otter"]), ("  optfor", ["otter"]), ("number-11", ["number-11"])):
        box.fill(typed)
        expect(rows.locator("b")).to_have_text(names)
    box.fill("nobody")
    expect(rows).to_have_count(0)
    expect(models).to_contain_text("No model has “nobody” in its name.")
    box.fill("")
    assert rows.count() > 15
