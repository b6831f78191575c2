"""Where an answer came from: a click on it colours tokens and heads; the numbers are Python's."""

import numpy as np
import pytest
from playwright.sync_api import expect

import headscope as hs
from headscope.models.loading import BUILTIN

NURSE = "The doctor asked the nurse a question. She"


def tokens(bench) -> list[tuple[str, float, str]]:
    """The strip's tokens, with the value and the colour of each."""
    expect(bench.page.locator(".strip .token").first).to_be_visible()
    return bench.page.evaluate("""() => [...document.querySelectorAll('.strip .token')]
        .map(one => [one.textContent, Number(one.dataset.relevance), getComputedStyle(one).backgroundColor])""")


def test_a_click_on_a_prediction_colours_the_tokens_with_pythons_numbers(bench, gpt):
    bench.open(text=NURSE, view="head", at="L3H2")
    before = bench.stage()
    bench.page.locator(".answers button").first.click()
    shown_tokens = tokens(bench)
    expected = hs.relevance(gpt, NURSE)
    np.testing.assert_allclose(
        [value for _, value, _ in shown_tokens], expected.token_relevance(), rtol=1e-4, atol=1e-5
    )
    top = expected.steps[0]
    bench.links_to(relevance=f"{top.position}:{top.id}")
    strip = bench.page.get_by_role("region", name="Relevance")
    expect(strip).to_contain_text(f"{top.text.strip()}\u2019 at position {top.position}")
    expect(strip).to_contain_text(f"+{top.logit:.2f} = +{expected.token_relevance().sum():.2f} from the input")
    expect(strip).to_contain_text(f"({expected.bias_share:.0%})".replace("%", " %"))
    strongest = int(np.abs(expected.token_relevance()).argmax())
    clear = [colour for _, value, colour in shown_tokens if abs(value) < 1e-3 * abs(shown_tokens[strongest][1])]
    assert shown_tokens[strongest][2] not in clear
    assert bench.stage() != before  # the columns are coloured too
    bench.hover("doctor", "key")
    expect(bench.page.locator(".tip")).to_contain_text("relevance")
    bench.page.mouse.move(700, 20)
    bench.press("Escape")
    bench.links_to(relevance=None)
    assert bench.stage() == before


def test_an_answer_is_set_against_another_and_explained_by_another_rule(bench, gpt):
    bench.open(text=NURSE)
    bench.page.locator(".answers button").first.click()
    tokens(bench)
    bench.page.get_by_label("rather than").select_option(index=1)
    expect(bench.page.get_by_role("region", name="Relevance")).to_contain_text("difference of logits")
    first, second = gpt.run(NURSE).predictions()[:2]
    contrast = hs.relevance(gpt, NURSE, target=(first.id, second.id))
    values = [value for _, value, _ in tokens(bench)]
    np.testing.assert_allclose(values, contrast.token_relevance(), rtol=1e-3, atol=1e-4)
    bench.choose("Rule", "AttnLRP")
    bench.links_to(relevance=f"9:{first.id}-{second.id}:attn")
    expect(bench.page.get_by_role("region", name="Relevance")).to_contain_text("the softmax loses")


def test_heads_are_coloured_and_listed_by_relevance(bench, gpt):
    bench.open(text=NURSE)
    bench.page.locator(".answers button").first.click()
    tokens(bench)
    before = bench.stage()
    bench.button("colour the heads by it").click()
    bench.links_to(colour="relevance")
    assert bench.stage() != before
    expected = hs.relevance(gpt, NURSE).heads
    best = expected.top(1)[0][0]
    bench.page.mouse.click(*bench.head_at(str(best)))
    card = bench.page.get_by_role("complementary", name="The head in focus")
    card.get_by_role("button", name="Measures of this input").click()
    expect(card.locator("dl > div", has_text="relevance").first).to_contain_text(f"{expected[best]:.2f}")


def test_a_link_brings_the_relevance_back_and_a_saved_page_keeps_it(bench, offline, tmp_path, gpt):
    top = hs.relevance(gpt, NURSE).steps[0]
    bench.open(text=NURSE, view="head", at="L3H2", relevance=f"{top.position}:{top.id}")
    shown_tokens = tokens(bench)
    path = bench.save("HTML", tmp_path)
    offline.visit(path.as_uri())
    assert [token[:2] for token in tokens(offline)] == [token[:2] for token in shown_tokens]


def test_what_cannot_be_explained_is_said(bench):
    bench.open(text=NURSE, relevance="9:99999999")
    expect(bench.page.get_by_role("region", name="Relevance").get_by_role("alert")).to_contain_text(
        "no answer 99999999"
    )
    bench.page.get_by_role("button", name="No relevance").click()
    bench.links_to(relevance=None)


@pytest.mark.parametrize("model", ["builtin:bert"])
def test_a_masked_word_is_explained_where_it_stands(bench, model):
    text = "The doctor asked the [MASK] a question."
    bench.open(model=model, text=text)
    bench.page.locator(".answers button").first.click()
    expected = hs.relevance(hs.load(model), text).token_relevance()
    np.testing.assert_allclose([value for _, value, _ in tokens(bench)], expected, rtol=1e-3, atol=1e-4)


def test_a_class_colours_the_patches_of_the_picture(bench):
    expected = hs.relevance(hs.load("builtin:vit"), BUILTIN / "images" / "lorry.png")
    bench.open(model="builtin:vit", media="preset:lorry", view="head", at="L3H2")
    before = bench.stage()
    bench.page.locator(".answers button").first.click()
    title = bench.label(f"relevance to \u2018{expected.steps[0].text}\u2019")
    expect(title).to_be_visible()
    assert bench.stage() != before
    expect(bench.status).to_contain_text("blue for it, orange against it, full colour at \u00b1")
    name, figures = title.bounding_box(), bench.label(sums(expected)).bounding_box()
    left, top = name["x"], name["y"] + name["height"] / 2 + 11
    side = (figures["x"] + figures["width"] - left) / 8
    patches = expected.patch_relevance()
    for row, column in ((0, 0), (5, 2)):
        bench.page.mouse.move(left + (column + 0.5) * side, top + (row + 0.5) * side, steps=2)
        expect(bench.page.locator("[role=tooltip]")).to_contain_text(
            f"relevance {patches[row, column]:+.3g} to".replace("-", "\u2212")
        )
    bench.page.mouse.move(700, 20)
    bench.press("Escape")
    bench.links_to(relevance=None)
    expect(title).to_have_count(0)


def sums(explanation) -> str:
    """What is written over the picture: small here, and two digits as everywhere."""
    patches = float(explanation.patch_relevance().sum())
    rest = float(explanation.token_relevance().sum()) - patches
    return f"patches {patches:+.2f} \u00b7 special {rest:+.2f}".replace("-", "\u2212")
