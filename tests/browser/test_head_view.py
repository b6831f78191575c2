"""The head view: tokens, the lines between them, and everything that changes which lines those are."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

NURSE = "The doctor asked the nurse a question. She"
PAIR = {"model": "builtin:bert", "text": "The boy bought a bicycle.", "pair": "The boy bought a bike."}


def line_counts(bench) -> tuple[int, int]:
    """Lines drawn, and all there are, as the page says."""
    expect(bench.status).to_contain_text("lines")
    match = re.search(r"([\d,]+)(?: of ([\d,]+))? lines", bench.status.inner_text())
    assert match, bench.status.inner_text()
    some, all_of_them = (int((count or match[1]).replace(",", "")) for count in match.groups())
    return some, all_of_them


def test_hovering_a_token_shows_its_weights_in_numbers(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2")
    pattern = gpt.run(NURSE).pattern("L3H2")
    texts = next(iter(gpt.run(NURSE).tokens.values())).texts
    before = bench.stage()
    bench.hover("She", "query")
    weights_by_token = bench.numbers()
    strongest = int(np.argmax(pattern[9]))
    assert weights_by_token[texts[strongest]] == pytest.approx(pattern[9, strongest], abs=0.01)
    assert bench.stage() != before
    bench.hover("doctor", "key")
    queries = pattern[:, 2]
    weights_by_token = bench.numbers()
    strongest = int(np.argmax(queries))
    assert weights_by_token[texts[strongest]] == pytest.approx(queries[strongest], abs=0.01)
    bench.page.mouse.move(700, 20)
    bench.ready()
    assert bench.stage() == before


def test_heads_are_toggled_soloed_and_averaged(bench):
    bench.open(text=NURSE, view="head", at="L3H2", heads="0,1,2,3,4,5,6,7")
    chip = bench.page.get_by_role("group", name="Heads of L3").get_by_role("button", name="L3H5")
    all_heads = bench.stage()
    chip.click()
    bench.ready()
    bench.links_to(heads="0,1,2,3,4,6,7")
    assert bench.stage() != all_heads
    chip.click()
    bench.ready()
    assert bench.stage() == all_heads
    chip.dblclick()
    bench.ready()
    bench.links_to(at="L3H5", heads=None)
    assert chip.get_attribute("aria-pressed") == "true"
    pressed = bench.page.get_by_role("group", name="Heads of L3").locator("[aria-pressed=true]")
    assert pressed.count() == 1
    alone = bench.stage()
    chip.click()
    bench.ready()
    assert pressed.count() == 1  # the last one stays
    assert bench.stage() == alone
    chip.dblclick()
    bench.ready()
    assert pressed.count() == 8
    bench.page.get_by_label("mean").check()
    bench.ready()
    bench.links_to(mean="1")
    assert bench.stage() not in (alone, all_heads)


def test_lines_are_filtered_by_weight_mass_and_rank(bench, gpt):
    pattern = gpt.run(NURSE).pattern("L3H2")
    at_most = len(pattern) * (len(pattern) + 1) // 2
    bench.open(text=NURSE, view="head", at="L3H2")
    assert line_counts(bench)[1] == at_most
    bench.button(re.compile("Lines: ")).click()
    bench.page.get_by_label("weight at least").first.check()
    bench.page.get_by_role("slider", name="weight at least").fill("0.3")
    bench.ready()
    assert line_counts(bench) == (int((pattern >= 0.3).sum()), at_most)
    bench.page.get_by_label("strongest of each query").first.check()
    bench.page.get_by_role("slider", name="strongest of each query").fill("2")
    bench.ready()
    assert line_counts(bench) == (2 * len(pattern) - 1, at_most)
    bench.page.get_by_label("top share of each query").first.check()
    bench.page.get_by_role("slider", name="top share of each query").fill("0.5")
    bench.ready()
    ranked = -np.sort(-pattern, axis=1)
    needed = (np.cumsum(ranked, axis=1) < 0.5).sum(axis=1) + 1
    assert line_counts(bench) == (int(needed.sum()), at_most)


def test_lines_between_two_texts_are_chosen_by_direction(bench):
    bench.open(**PAIR, view="head", at="L2H3", filter="threshold", threshold="0.01")
    bench.button(re.compile("Lines: ")).click()
    counts = {}
    for way in ("A → A", "A → B", "B → A", "B → B"):
        bench.choose("Between the two texts", way)
        bench.links_to(between=way.replace(" → ", ""))
        counts[way] = line_counts(bench)
    assert sum(total for _, total in counts.values()) == drawn_all(bench)
    assert all(some <= total for some, total in counts.values())


def drawn_all(bench) -> int:
    bench.choose("Between the two texts", "all")
    return line_counts(bench)[1]


def test_hidden_tokens_are_said_and_rows_renormalised(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2")
    bench.button(re.compile("Tokens: ")).click()
    bench.page.get_by_label("hide the first token").check()
    bench.ready()
    expect(bench.status).to_contain_text("renormalised")
    bench.page.keyboard.press("Escape")
    pattern = gpt.run(NURSE).pattern("L3H2")[1:, 1:]
    pattern = pattern / pattern.sum(axis=1, keepdims=True)
    bench.hover("She", "query")
    texts = next(iter(gpt.run(NURSE).tokens.values())).texts[1:]
    strongest = int(np.argmax(pattern[8]))
    assert bench.numbers()[texts[strongest]] == pytest.approx(pattern[8, strongest], abs=0.01)


def test_a_click_switches_a_token_off_and_on(bench):
    bench.open(text=NURSE, view="head", at="L3H2")
    before = bench.stage()
    bench.page.mouse.dblclick(*bench.token("nurse", "key"))
    bench.page.mouse.move(700, 20)
    bench.links_to(off="main:5")
    expect(bench.status).to_contain_text("renormalised")
    assert bench.stage() != before
    bench.button(re.compile("Tokens: ")).click()
    bench.button("switch all on").click()
    bench.ready()
    bench.page.mouse.move(700, 20)
    bench.ready()
    bench.links_to(off=None)
    assert bench.stage() == before


def test_a_double_click_switches_that_token_on_again(bench):
    bench.open(text=NURSE, view="head", at="L3H2")
    whole = line_counts(bench)
    bench.open(text=NURSE, view="head", at="L3H2", off="main:5")
    assert line_counts(bench)[1] < whole[1]
    bench.page.mouse.dblclick(*bench.token("nurse", "key"))
    bench.links_to(off=None)
    bench.ready()
    assert line_counts(bench) == whole


def test_a_pinned_token_counts_its_own_lines(bench):
    bench.open(text=NURSE, view="head", at="L3H2", token="query:2")
    expect(bench.status).to_contain_text("of 3 lines drawn, from doctor")


def test_many_heads_tell_their_strongest_ends_beside_the_pointer(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2", heads="0,1,2,3,4,5,6,7")
    bench.hover("She", "query")
    tip = bench.page.get_by_role("tooltip")
    trace = gpt.run(NURSE)
    for head in range(8):
        weights = trace.pattern(f"L3H{head}")[9]
        text = next(iter(trace.tokens.values())).texts[int(weights.argmax())]
        expect(tip).to_contain_text(re.compile(rf"L3H{head} +→ {re.escape(text)} +{weights.max():.2f}"))


def test_words_and_sentences_join_tokens(bench):
    bench.open(text="Mr. Thackerby opened the door. The wind was cold.", view="head", at="L3H2")
    assert bench.label("Thackerby").count() == 0
    bench.choose("Read by", "Words")
    assert bench.label("Thackerby").count() == 2
    bench.choose("Read by", "Sentences")
    assert bench.label("Thackerby").count() == 0
    bench.links_to(by="sentences")


def test_matrix_and_lines_across(bench):
    bench.open(text=NURSE, view="head", at="L3H2")
    down = bench.stage()
    bench.button(re.compile("Lines: ")).click()
    bench.choose("Tokens run", "across")
    bench.page.keyboard.press("Escape")
    bench.links_to(axis="horizontal")
    across = bench.stage()
    # Queries above keys, one under the other; side by side before.
    query, key = bench.label("She").all()
    boxes = [label.bounding_box() for label in (query, key)]
    assert boxes[0] and boxes[1] and abs(boxes[0]["x"] - boxes[1]["x"]) < 2 and abs(boxes[0]["y"] - boxes[1]["y"]) > 50
    bench.choose("Drawn as", "Matrix")
    bench.links_to(**{"as": "matrix"})
    expect(bench.status).to_contain_text("L3H2, 10 × 10")
    assert len({down, across, bench.stage()}) == 3


def test_contributions_and_scores_are_shown_instead_of_weights(bench, gpt):
    trace = gpt.run(NURSE)
    bench.open(text=NURSE, view="head", at="L3H2", what="scores")
    texts = next(iter(trace.tokens.values())).texts
    bench.hover("She", "query")
    strongest = int(np.argmax(trace.scores("L3H2")[9]))
    assert bench.numbers()[texts[strongest]] == pytest.approx(trace.scores("L3H2")[9, strongest], abs=0.06)
    bench.page.mouse.move(700, 20)
    bench.choose("What is drawn", "Contribution")
    bench.hover("She", "query")
    strongest = int(np.argmax(trace.contribution("L3H2")[9]))
    assert bench.numbers()[texts[strongest]] == pytest.approx(trace.contribution("L3H2")[9, strongest], rel=0.02)


def test_layers_are_changed_by_button_list_and_key(bench):
    bench.open(text=NURSE, view="head", at="L2H1")
    bench.button("Next layer").click()
    bench.ready()
    bench.links_to(at="L3H1")
    bench.page.get_by_label("Layer", exact=True).select_option("L5")
    bench.ready()
    bench.links_to(at="L5H1")
    heading = bench.page.locator("aside.right h2").first
    expect(heading).to_have_text("L5H1")
    bench.page.get_by_label("Layer", exact=True).blur()
    bench.press("[")
    bench.links_to(at="L4H1")
    expect(heading).to_have_text("L4H1")
    expect(bench.page.get_by_label("Layer", exact=True)).to_have_value("L4")


def test_text_is_found_and_its_lines_shown(bench):
    bench.open(text=NURSE, view="head", at="L3H2")
    before = bench.stage()
    bench.press("/")
    bench.page.keyboard.type("nur")
    expect(bench.page.get_by_role("search").get_by_role("status")).to_have_text("1 of 1")
    bench.ready()
    assert bench.stage() != before
    bench.page.keyboard.press("Escape")
    bench.ready()
    assert bench.stage() == before


def test_a_matrix_tells_the_cell_under_the_pointer_and_zooms(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2", **{"as": "matrix"})
    expect(bench.status).to_contain_text("L3H2, 10 × 10")
    whole = bench.stage()
    box = bench.page.locator(".view canvas").first.bounding_box()
    assert box
    # Somewhere near the middle of the picture, and a bit further: a cell, then a rectangle of cells.
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    bench.page.mouse.move(x, y)
    tip = bench.page.get_by_role("tooltip")
    expect(tip).to_contain_text("→")
    trace = gpt.run(NURSE)
    texts = next(iter(trace.tokens.values())).texts
    assert any(text in tip.inner_text() for text in texts)
    bench.page.mouse.down()
    bench.page.mouse.move(x + 120, y + 120, steps=4)
    bench.page.mouse.up()
    assert bench.stage() != whole
    bench.press("Escape")
    bench.page.mouse.move(700, 20)
    assert bench.stage() == whole
