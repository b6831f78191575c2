"""The model view: all heads on one screen, and the ways from there into one of them."""

import re

import pytest
from playwright.sync_api import expect

from browser.workbench import around, is_drawn

NURSE = "The doctor asked the nurse a question. She"


def test_all_heads_of_all_layers_are_on_one_screen(bench):
    bench.open(text=NURSE)
    expect(bench.status).to_contain_text("48 heads, 10 tokens")
    heads = bench.heads()
    assert len(heads) == 48
    screen = bench.screen()
    for x, y in heads.values():
        assert 264 < x < 1440
        assert 44 < y < 860
        assert is_drawn(around(screen, x, y, 40))


def test_hovering_a_head_tells_its_name_and_its_strongest_pairs(bench, gpt):
    bench.open(text=NURSE)
    bench.page.mouse.move(*bench.head_at("L3H2"))
    tip = bench.page.get_by_role("tooltip")
    expect(tip).to_contain_text("L3H2")
    trace = gpt.run(NURSE)
    pattern, texts = trace.pattern("L3H2"), next(iter(trace.tokens.values())).texts
    pairs = re.findall(r"^(\S+) → (\S+) +([\d.]+)$", tip.inner_text(), re.MULTILINE)
    assert len(pairs) == 3
    for query, key, weight in pairs:
        known = [pattern[i, j] for i in range(len(texts)) for j in range(i + 1) if (texts[i], texts[j]) == (query, key)]
        assert any(float(weight) == pytest.approx(known_weight, abs=0.01) for known_weight in known)
    bench.page.mouse.move(5, 5)
    expect(tip).to_have_count(0)


def test_a_click_leads_into_the_head_and_escape_out_again(bench):
    bench.open(text=NURSE)
    bench.page.mouse.click(*bench.head_at("L4H6"))
    bench.ready()
    bench.links_to(view="head", at="L4H6")
    assert bench.page.get_by_role("heading", name="L4H6", exact=True).is_visible()
    bench.press("Escape")
    bench.links_to(view=None)
    assert bench.is_chosen("Scale", "Model")


def test_heads_are_reached_by_keyboard_alone(bench):
    bench.open(text=NURSE, at="L0H0")
    bench.press("ArrowDown", "ArrowDown", "ArrowRight")
    bench.links_to(at="L2H1")
    bench.press("ArrowLeft", "ArrowUp")
    bench.links_to(at="L1H0")
    bench.press("Enter")
    bench.links_to(view="head", at="L1H0")
    bench.press("ArrowRight")
    bench.links_to(at="L1H1")
    bench.press("]")
    bench.links_to(at="L2H1")
    bench.press("1")
    assert bench.is_chosen("Scale", "Model")
    bench.press("2")
    assert bench.is_chosen("Scale", "Head")


def test_heads_are_sorted_coloured_and_filtered_by_a_measure(bench):
    bench.open(text=NURSE)
    bench.page.get_by_label("Sort by").select_option("previous_token")
    bench.ready()
    bench.button("Table").click()
    table = bench.page.get_by_role("region", name="Numbers as a table")
    columns = [cell.inner_text() for cell in table.get_by_role("columnheader").all()]
    column = columns.index("previous token")
    expect(table.get_by_role("columnheader").nth(column)).to_have_attribute("title", "previous_token")  # as in files
    assert "previous token, over the corpus" in columns and not any(":" in name for name in columns)
    values = [float(row.get_by_role("cell").nth(column).inner_text()) for row in table.get_by_role("row").all()[1:]]
    assert len(values) == 48
    assert values == sorted(values, reverse=True)
    bench.button("Picture").click()
    bench.page.get_by_label("Colour by").select_option("previous_token")
    bench.ready()
    bench.page.get_by_label("show from").fill("0.5")
    bench.ready()
    n_heads = sum(value >= 0.5 for value in values)
    expect(bench.status).to_contain_text(f"{n_heads} of 48 heads")


def test_pictures_of_heads_can_be_lines(bench):
    bench.open(text=NURSE)
    before = around(bench.screen(), *bench.head_at("L2H1"), 40)
    bench.choose("Pictures of heads", "Lines")
    bench.links_to(pictures="lines")
    assert around(bench.screen(), *bench.head_at("L2H1"), 40) != before
    expect(bench.status).to_contain_text("0.04")


def test_encoder_decoder_and_cross_stand_side_by_side(bench):
    bench.open(model="builtin:translate", text="The doctor asked the nurse a question.", at="encoder.L0H0")
    expect(bench.status).to_contain_text("96 heads")
    for stack in ("encoder", "decoder", "cross-attention, decoder → encoder"):
        expect(bench.label(stack).first).to_be_visible()
    bench.choose("Scale", "Head")
    for stack in ("decoder", "cross", "encoder"):
        bench.choose("Stack", stack)
        bench.links_to(at=f"{stack}.L0H0")


def test_no_number_stands_without_the_measure_that_it_is_of(bench):
    bench.page.set_viewport_size({"width": 700, "height": 860})
    bench.open(text=NURSE)
    expect(bench.label("previous").first).to_be_visible()  # "previous token" has no room
    texts = [text for text, *_ in bench._texts()]
    assert not [text for text in texts if re.fullmatch(r"\d*\.?\d+", text)]
    # All heads are coloured by one measure: there the number is enough.
    bench.page.get_by_label("Colour by").select_option("first_token")
    bench.ready()
    assert [text for text, *_ in bench._texts() if re.fullmatch(r"\d\.\d+", text)]
