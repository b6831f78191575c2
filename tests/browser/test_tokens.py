"""Texts of all kinds: other scripts, texts that look like code, and very long ones."""

import re

from playwright.sync_api import expect

import headscope as hs
from browser.word_model import FOREIGN, HOSTILE, words
from browser.workbench import Workbench, around, is_drawn


def test_tokens_of_every_script_are_shown_as_they_are(bench, word_model):
    bench.open(model=word_model, text=" ".join(FOREIGN), view="head", at="L0H0")
    for token in FOREIGN:
        assert bench.label(token).count() == 2, token
    arabic = bench.label("مرحبا").first
    assert arabic.evaluate("one => getComputedStyle(one).direction") == "rtl"
    screen = bench.screen()
    for token in FOREIGN:
        assert is_drawn(around(screen, *bench.token(token, "query"), 12)), token


def test_pieces_of_characters_are_readable_too(bench):
    bench.open(text="Привет 你好 😀", view="head", at="L0H0")
    assert bench.label("П 1/2").count() == 2
    assert bench.label("😀 4/4").count() == 2


def test_a_token_that_looks_like_code_stays_text_in_page_and_file(bench, offline, word_model, tmp_path):
    bench.open(model=word_model, text=" ".join(HOSTILE), view="head", at="L0H0", heads="0,1,2,3")
    check_harmless(bench)
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    check_harmless(offline)


def check_harmless(bench: Workbench) -> None:
    bench.press("2")
    for token in HOSTILE:
        assert bench.label(token).count() == 2, token
    for reading in ("Words", "Sentences", "Tokens"):
        bench.choose("Read by", reading)
    bench.page.keyboard.press("t")
    expect(bench.page.get_by_role("cell", name=HOSTILE[0]).first).to_be_visible()
    bench.press("t", "1")
    bench.page.mouse.move(*bench.head_at("L2H2"))
    expect(bench.page.get_by_role("tooltip")).to_be_visible()
    assert bench.page.locator("img").count() == 0
    assert "taken" not in re.sub(r"[<>].*", "", bench.page.title())


def test_two_thousand_tokens_scroll_and_only_what_is_seen_is_there(bench, word_model):
    bench.open(model=word_model, text=words(2000), view="head", at="L3H1")
    assert bench.page.locator(".view span").count() < 400
    assert bench.label("[CLS]").count() >= 1
    top = bench.stage()
    stage = bench.page.locator(".stage").bounding_box()
    assert stage
    bench.page.mouse.move(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2)
    bench.page.mouse.wheel(0, 5_000)
    expect(bench.label("[CLS]")).to_have_count(0)
    bench.ready()
    assert bench.stage() != top
    bench.page.mouse.wheel(0, 500_000)
    expect(bench.label("[SEP]").first).to_be_visible()
    bench.ready()
    assert bench.page.locator(".view span").count() < 400


def test_the_keyboard_scrolls_a_long_input_and_finds_in_it(bench, word_model):
    bench.open(model=word_model, text=f"{words(1500)} Привет {words(400)}", view="head", at="L3H1")
    bench.press("End")
    expect(bench.label("[SEP]").first).to_be_visible()
    bench.press("Home")
    expect(bench.label("[CLS]").first).to_be_visible()
    bench.press("/")
    bench.page.keyboard.type("привет")
    expect(bench.label("Привет").first).to_be_visible()


def test_the_model_view_shows_two_thousand_tokens_and_says_what_it_pools(bench, word_model):
    bench.open(model=word_model, text=words(2000))
    expect(bench.status).to_contain_text("24 heads, 2,000 tokens")
    expect(bench.status).to_contain_text(re.compile(r"strongest of up to \d+ × \d+"))


def test_exact_numbers_are_shown_at_any_length(bench, word_model):
    text = words(2000)
    pattern = hs.load(word_model).run(text).pattern("L3H1", rows=slice(0, 1))[0]
    bench.open(model=word_model, text=text, view="head", at="L3H1", token="query:0")
    expect(bench.status).to_contain_text("from [CLS]")
    for token, weight in bench.numbers().items():
        assert min(abs(pattern - weight)) < 0.006, (token, weight)
