"""What fits: answers beside what can be edited, a bar that overlaps nowhere, words that fit what the model reads."""

import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench

TEXT = "The doctor asked the nurse a question. She"


def test_answers_and_edits_are_seen_without_scrolling(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L2H1")
    card = bench.page.locator("aside.right")
    expect(card.locator(".answers li")).to_have_count(6)
    expect(card.locator("dl.bars > div")).to_have_count(0)  # what it does and predicts comes first
    card.get_by_role("button", name="Measures of this input").click()
    expect(card.locator("dl.bars > div")).to_have_count(5)
    card.get_by_role("button", name="Silence", exact=True).click()
    bench.ready()
    answers = card.get_by_role("region", name="What it did").locator("li")
    expect(answers).to_have_count(6)
    for seen in (answers.last, card.get_by_role("button", name="Silence", exact=True)):
        box = seen.bounding_box()
        assert box and box["y"] + box["height"] <= 860


def test_a_whole_row_is_typed(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=TEXT, view="head", at="L2H1")
    card = bench.page.locator("aside.right")
    card.get_by_role("button", name="Weight", exact=True).click()
    form = card.get_by_role("form", name="Whole row")
    field = form.get_by_role("textbox")
    field.fill("0.5, x")
    expect(card).to_contain_text("x is no weight")
    expect(form.get_by_role("button", name="Set row")).to_be_disabled()
    field.fill("0.5, 0, 1.5")
    field.press("Enter")
    n = gpt.run(TEXT).pattern("L2H1").shape[-1]
    row = ", ".join(["0.5", "0", "1.5"] + ["0"] * (n - 3))
    words = card.get_by_role("region", name="Edits").locator("li .words")
    expect(words).to_have_text("set row of She in L2H1")
    bench.ready()
    assert (
        f"edit=set_row('L2H1',+{n - 1},+[{row.replace(' ', '+')}])".replace("[", "%5B").replace("]", "%5D")
        in bench.page.url
    )
    # Tokens alike take its place, by their words.
    form.get_by_role("combobox").select_option("alike")
    form.get_by_role("textbox").fill("nurse, 1-2")
    form.get_by_role("textbox").press("Enter")
    expect(words).to_have_count(1)
    bench.ready()
    trace = gpt.run(TEXT, [hs.set_row("L2H1", n - 1, [0, 1, 1, 0, 0, 1] + [0] * (n - 6))])
    want = trace.predictions(1)[0].logprob
    bench.page.wait_for_function(
        """(want) => [...document.querySelectorAll('[aria-label="What it did"] li')].some(
            (li) => Math.abs(Number(li.title.match(/, edited ([-−]?[\\d.]+)/)[1]) - want) < 0.002)""",
        arg=want,
    )


@pytest.mark.parametrize("width", [640, 700, 1000])
def test_nothing_in_the_bar_overlaps(bench: Workbench, width: int) -> None:
    bench.page.set_viewport_size({"width": width, "height": 860})
    bench.open(text=TEXT, view="activations", at="L2H1")
    bounds = bench.page.evaluate(
        """() => [".bar > .left", ".bar > .scales", ".bar > .right"].map(one => {
            const place = document.querySelector(one), box = place.getBoundingClientRect();
            const inner = one.includes("scales") ? [] : [...place.children];  // the scales scroll
            const wide = inner.map(x => x.getBoundingClientRect()).filter(x => x.width);
            return [Math.min(box.left, ...wide.map(x => x.left)), Math.max(box.right, ...wide.map(x => x.right))];
        })"""
    )
    (_, first), (start, end), (last, edge) = bounds
    assert first <= start + 0.5 and end <= last + 0.5 and edge <= width


def test_a_model_of_pictures_is_told_in_patches(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:sailing boat")
    expect(bench.page.get_by_role("note")).to_contain_text(
        "how much each patch of the picture (row) looks at each patch"
    )
    expect(bench.page.get_by_role("region", name="Use cases")).to_have_count(0)
    bench.page.keyboard.press("f")
    panel = bench.page.get_by_role("region", name="Find heads")
    panel.get_by_label("From").fill("9·9")
    panel.get_by_label("To", exact=True).fill("3,5")
    panel.get_by_role("button", name="Find", exact=True).click()
    expect(panel).to_contain_text("There is no patch 9·9")
    panel.get_by_label("From").fill("3·4")
    expect(panel).to_contain_text("from position 20, to position 21")
    panel.get_by_role("button", name="Find", exact=True).click()
    expect(panel.locator("ol li, tbody tr").first).to_be_visible()
