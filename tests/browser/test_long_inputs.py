"""An input of 32,768 tokens: its heads, its lines, a part of a matrix, and a word in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.rotary_model import first_layer_row, long_text, save_rotary_model

LENGTH, GOLD = 32_768, (20_000, 30_000)
TEXT = long_text(LENGTH, GOLD)


@pytest.fixture(scope="module")
def rotary_model(word_model: str) -> Iterator[str]:
    folder = Path(word_model).parent / "rotary"  # where the server may read
    save_rotary_model(folder)
    yield str(folder)


def scroll_to(bench, share: float) -> None:
    """Click into the map of the whole input."""
    box = bench.page.get_by_role("group", name="Attention between tokens").bounding_box()
    bench.page.mouse.click(box["x"] + box["width"] - 34, box["y"] + 38 + share * (box["height"] - 52))
    bench.ready()


def test_32_768_tokens_are_looked_at(bench, rotary_model):
    bench.page.set_viewport_size({"width": 1160, "height": 660})
    bench.open(rotary_model, text=TEXT)
    expect(bench.status).to_contain_text(
        "4 heads, 32,768 tokens · each dot is the strongest of up to 342 × 342 weights"
    )
    # Exact weights of a rectangle come when the pointer rests on a head.
    with bench.page.expect_response(re.compile(r"/window/L1H0\?rows=\d+:\d+&columns=")) as window:
        bench.page.mouse.move(*bench.head_at("L1H0"), steps=3)
    assert window.value.ok

    bench.page.mouse.click(*bench.head_at("L0H1"))
    bench.ready()
    bench.links_to(view="head", at="L0H1")
    expect(bench.status).to_contain_text("lines drawn · the 8 strongest keys of each query")
    # The first words are in view; a click into the map goes to the middle; find goes from place to place.
    expect(bench.label(TEXT.split(" ", 1)[0]).first).to_be_visible()
    scroll_to(bench, 0.5)
    assert bench.label("gold").count() == 0
    bench.press("/")
    bench.page.keyboard.type("gold")
    expect(bench.page.get_by_text("1 of 2", exact=True)).to_be_visible()
    expect(bench.label("gold").first).to_be_visible()
    bench.press("Enter")
    expect(bench.page.get_by_text("2 of 2", exact=True)).to_be_visible()

    # All weights of a token come when it is clicked: the table has more of them than the eight that were known.
    with bench.page.expect_response(re.compile(rf"/row/L0\?query={GOLD[1]}")) as row:
        bench.page.mouse.click(*bench.token("gold", "query"))
    assert row.value.ok
    expect(bench.status).to_contain_text(f"from gold ({GOLD[1]})")
    bench.picture("head-32768")
    bench.press("t")
    rows = bench.page.get_by_role("table").locator("tbody tr")
    cells = [rows.nth(rank).inner_text().split() for rank in range(20)]
    strongest = first_layer_row(Path(rotary_model), TEXT, GOLD[1])[1].topk(20)
    assert [int(row[3]) for row in cells] == strongest.indices.tolist()
    assert [float(row[-1]) for row in cells] == pytest.approx(strongest.values.tolist(), abs=1e-4)
