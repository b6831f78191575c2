"""What a newcomer sees first: an induction head on a text that shows it, and two things to try."""

import re

from playwright.sync_api import expect

from browser.workbench import Workbench

TEXT = "red stone, blue river, green hill, old gate. red stone, blue river, green hill, old"


def test_the_page_opens_on_an_induction_head(bench: Workbench) -> None:
    bench.goto(f"{bench.server.host}/")
    expect(bench.page.get_by_label("Sort by")).to_have_value("induction")
    expect(bench.page.get_by_role("textbox", name="Text")).to_have_value(TEXT)
    # One of the built-in model's known induction heads is in focus, and it is the first of those sorted.
    expect(bench.page.locator("aside.right h2")).to_have_text(re.compile("^L4H[0-2]$"))
    name = bench.page.locator("aside.right h2").inner_text()
    drawn = [text for text, *_ in bench._texts() if re.fullmatch(r"L\d+H\d+", text)]
    assert drawn[0] == name


def test_the_introduction_is_one_sentence_and_two_things_to_try(bench: Workbench) -> None:
    bench.goto(f"{bench.server.host}/")
    head = bench.page.locator("aside.right h2").inner_text()
    hint = bench.page.get_by_role("note")
    expect(hint.locator("p")).to_have_text(re.compile(r"^[^.]+\.$"))
    before = bench.page.locator("aside.right .answers li").first.inner_text()
    assert before.startswith("gate")
    bench.button("Silence it and see what changes").click()
    bench.ready()
    expect(bench.page.get_by_role("region", name="What it did")).to_be_visible()
    expect(bench.page.locator("aside.right")).to_contain_text(f"silence {head}")
    expect(bench.button("Silence it and see what changes")).to_have_count(0)
    expect(hint).to_contain_text(f"{head} is silenced: it looks as before and writes nothing")
    bench.button("Undo all").click()
    bench.ready()
    bench.button("Show an induction head").click()
    bench.ready()
    assert bench.is_chosen("Scale", "Head")
    expect(bench.page.locator("aside.right h2")).to_have_text(head)
    # The sentence says what the lines show, and the token that it is about is chosen: old, the 22nd, looks at gate.
    expect(hint).to_contain_text(f"{head} is an induction head: “old” looks at “gate”")
    bench.links_to(token="query:22")
    weights = bench.numbers()
    assert max(weights, key=lambda token: weights[token]) == "gate"
    expect(bench.button("Silence it and see what changes")).to_be_visible()
    bench.press("ArrowLeft")
    expect(hint).to_have_count(0)


def test_a_link_without_an_input_opens_on_the_first_example(bench: Workbench) -> None:
    bench.open("builtin:gpt")
    expect(bench.page.get_by_role("textbox", name="Text")).to_have_value("The doctor asked the nurse a question. She")
    expect(bench.page.get_by_label("Sort by")).to_have_value("")


def test_the_card_reads_from_role_to_measures(bench: Workbench) -> None:
    bench.goto(f"{bench.server.host}/")
    bench.page.locator("aside.right [aria-label=Measures]").wait_for()
    text = bench.page.locator("aside.right").inner_text()
    places = [text.index(part) for part in ("The model predicts", "Edit L", "Measures of this input")]
    assert places == sorted(places)
    expect(bench.page.locator("aside.right dl.bars > div")).to_have_count(0)
    bench.button("Measures of this input").click()
    expect(bench.page.locator("aside.right dl.bars > div")).to_have_count(5)
