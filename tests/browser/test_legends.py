"""Legends in every view; what is selected has no colour of the data; tips cover nothing that they describe."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from browser.workbench import Workbench

TEXT = "thinking was thinking of thinking and of the thinking of the thinking"
ROOT_SCALE = "attention weight, square-root scale, from 0 to 1.00"
LINES = "opacity of lines: attention weight, linear scale, from 0 to 1.00"
SCORES = r"score before the softmax, linear scale, from −[\d.]+ to \+[\d.]+; masked cells are hatched"
COLUMNS = r"neurons of each column; full: the ± over it, linear scale, from −full to \+full"
VIEWS = {
    "model": ({}, ROOT_SCALE),
    "model lines": ({"pictures": "lines"}, LINES),
    "matrix": ({"view": "head", "as": "matrix"}, ROOT_SCALE),
    "scores": ({"view": "head", "as": "matrix", "what": "scores"}, SCORES),
    "lines": ({"view": "head", "as": "lines"}, LINES),
    "neuron": ({"view": "neuron"}, COLUMNS),
    "activations": ({"view": "activations"}, "probability of the prediction, square-root scale, from 0 to 1.00"),
}


def legend(bench: Workbench) -> Locator:
    return bench.page.locator("main .status").get_by_role("img")


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_a_legend_with_its_scale(bench: Workbench, name: str) -> None:
    view, words = VIEWS[name]
    bench.open(text=TEXT, at="L3H2", **view)
    expect(legend(bench)).to_have_attribute("aria-label", re.compile(f"^Colours: {words}$"))


def test_a_difference_has_a_diverging_legend(bench: Workbench) -> None:
    bench.open(text=TEXT, edit='silence("L0H1")', **{"with": "edit=", "compare": "difference"})
    words = r"^Colours: difference of attention weight, A − B, square-root scale, from −[\d.]+ to \+[\d.]+$"
    expect(legend(bench)).to_have_attribute("aria-label", re.compile(words))


def test_a_tip_stays_off_the_cell_that_it_describes(bench: Workbench) -> None:
    bench.open(text=TEXT)
    x, y = bench.head_at("L3H2")
    bench.page.mouse.move(x, y, steps=3)
    tip = bench.page.get_by_role("tooltip")
    expect(tip).to_contain_text("L3H2")
    box = tip.bounding_box()
    assert box is not None
    columns = sorted({place[0] for place in bench.heads().values()})
    size = 0.6 * (columns[1] - columns[0])  # of a head's picture, which is most of its column
    assert box["x"] > x + size / 2 or box["x"] + box["width"] < x - size / 2


def test_repeated_tokens_carry_their_positions_in_the_card(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L3H2")
    rows = bench.page.locator("aside.right .pair .tokens")
    expect(rows).to_have_count(6)
    texts = [" ".join(text.split()) for text in rows.all_inner_texts()]
    assert len(set(texts)) == 6 and any(re.search(r"thinking \d+", text) for text in texts), texts


def test_the_picture_under_an_overlay_keeps_its_colours(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:sailing boat", view="head", at="L3H2")
    area = bench.page.locator("main .view").bounding_box()
    assert area is not None
    left, top = round(area["x"]), round(area["y"])
    pixels = np.asarray(bench.screen(), np.int16)[top : top + round(area["height"]), left : left + round(area["width"])]
    # The hull is red; attention is drawn in blue, and a grey picture under it has no red at all.
    is_reddish = (pixels[..., 0] > pixels[..., 2] + 12) & (pixels[..., 0] < 240)
    assert is_reddish.mean() > 0.01
