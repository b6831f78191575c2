"""A model that reads a picture within a text, in the workbench: its answer word by word over the picture."""

import re
from pathlib import Path

import planted_vision_language as planted
import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench, open_answer

SIZE = (320, 240)
ANSWER = "query:261"  # "red", the first word that it writes


@pytest.fixture(scope="module")
def written(colours: str) -> hs.Trace:
    return hs.load(colours).generate(planted.TEXT, image=planted.picture(SIZE), max_new_tokens=5).trace


def picture_box(bench: Workbench) -> tuple[float, float, float]:
    """Left, top and side of the (square) picture of the head in view."""
    texts = bench.page.evaluate("""() => [...document.querySelectorAll('.view span')].filter(one => !one.hidden)
        .map(one => [one.textContent, one.getBoundingClientRect()])
        .map(([text, box]) => [text, box.left, box.right, box.top + box.height / 2])""")
    name = next(label for label in texts if label[0] == planted.HEAD)
    figures = next(label for label in texts if label[0].startswith("strongest"))
    return name[1], name[3] + 11, figures[2] - name[1]


def drag(bench: Workbench, box: tuple[int, int, int, int]) -> None:
    """Mark a box that is named in pixels of the picture as it was given."""
    left, top, side = picture_box(bench)
    xs, ys = ([left + side * edge / SIZE[0] for edge in box[::2]], [top + side * edge / SIZE[1] for edge in box[1::2]])
    bench.page.mouse.move(xs[0], ys[0])
    bench.page.mouse.down()
    bench.page.mouse.move(xs[1], ys[1], steps=4)
    bench.page.mouse.up()


def test_the_answer_opens_over_the_picture_and_is_walked_through_word_by_word(
    bench: Workbench, colours: str, written: hs.Trace
) -> None:
    open_answer(bench, colours)
    bench.links_to(view="head", token="query:265")  # what its last word looks at
    bench.status.get_by_text("from </s>").wait_for()
    bench.press("ArrowUp", "ArrowUp")
    bench.status.get_by_text("from blue").wait_for()
    # From the first word of the question the next one up is none: image tokens are pointed at, not walked through.
    bench.press(*["ArrowUp"] * 7)
    bench.links_to(token="query:256")
    bench.press("ArrowUp")
    bench.links_to(token="query:256")
    # The steps of the answer: each in the row of the token that was read last.
    bench.press(".")
    bench.page.get_by_text("step 1 of 5").wait_for()
    bench.links_to(token="query:260", step="0")
    bench.press(".")
    bench.status.get_by_text("from red").wait_for()


def test_a_word_lights_the_patches_of_its_colour(bench: Workbench, colours: str, written: hs.Trace) -> None:
    open_answer(bench, colours, view="head", at=planted.HEAD, token=ANSWER)
    bench.status.get_by_text("from red").wait_for()
    row = written.pattern(planted.HEAD, rows=261)[0]
    left, top, side = picture_box(bench)
    place = int(row[:256].argmax())
    bench.page.mouse.move(left + side * (place % 16 + 0.5) / 16, top + side * (place // 16 + 0.5) / 16, steps=2)
    name = f"red → {place // 16 + 1}·{place % 16 + 1}"
    bench.page.wait_for_function(f"() => document.querySelector('[role=tooltip]')?.textContent.includes('{name}')")
    assert float(bench.page.locator("[role=tooltip]").inner_text().split()[-1]) == pytest.approx(row.max(), abs=0.006)


def test_a_region_is_marked_summed_and_blocked(bench: Workbench, colours: str) -> None:
    open_answer(bench, colours, view="head", at=planted.HEAD, token=ANSWER)
    bench.status.get_by_text("from red").wait_for()
    bar = bench.page.get_by_role("group", name="Marked region")
    drag(bench, planted.boxes(SIZE)["green"])
    expect(bar).to_contain_text(re.compile(r"^\d+ image tokens: 0 of the attention of “red” in L1H2"))
    drag(bench, planted.boxes(SIZE)["red"])
    expect(bar).to_contain_text(re.compile(r"^\d+ image tokens: (1|1\.00|0\.99) of the attention of “red” in L1H2"))
    bar.get_by_role("button", name="Block for “red” in L1H2").click()
    bench.ready()
    edits = bench.page.get_by_role("region", name="Edits", exact=True)
    expect(edits.get_by_text("block red → the region 40, 30, 120, 90 in L1H2")).to_be_visible()
    drag(bench, planted.boxes(SIZE)["red"])
    expect(bar).to_contain_text(re.compile(r"^\d+ image tokens: 0 of the attention of “red”"))
    bench.press("Escape")
    expect(bar).to_be_hidden()


def test_a_saved_page_has_the_picture_and_its_words(offline: Workbench, written: hs.Trace, tmp_path: Path) -> None:
    page = hs.head_view(written, planted.HEAD, token=262).save(tmp_path / "answer.html")
    offline.goto(page.as_uri())
    offline.status.get_by_text("from green").wait_for()
    offline.press("ArrowDown")
    offline.status.get_by_text("from blue").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_words_and_picture_fit_on_wide_and_narrow_screens(
    bench: Workbench, colours: str, width: int, scheme: str
) -> None:
    bench.page.set_viewport_size({"width": width, "height": 860})
    bench.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_answer(bench, colours, view="head", at=planted.HEAD, token=ANSWER)
    bench.status.get_by_text("from red").wait_for()
    left, top, side = picture_box(bench)
    assert left >= 0 and left + side <= width and top + side <= 862 and side > 200
    drag(bench, planted.boxes(SIZE)["blue"])
    bar = bench.page.get_by_role("group", name="Marked region").bounding_box()
    assert bar is not None and bar["x"] >= 0 and bar["x"] + bar["width"] <= width
