"""Does the answer need this attention: one click on the card tests a head or all, with Python's verdicts."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

import headscope as hs
from browser.workbench import Workbench
from headscope import faithfulness

NURSE = "The doctor asked the nurse a question. She"
OTHER = "The farmer sold the miller a horse. He"  # the server keeps what was tested of a run
SIGNS = {"not supported": "✕ not supported on this input", "mixed": "? mixed", "not tested": "– not tested"}


def section(bench: Workbench) -> Locator:
    return bench.page.get_by_role("region", name="Trust", exact=True)


def figures(bench: Workbench) -> dict[str, float]:
    """The figures on the card, as numbers."""
    rows = section(bench).locator("dl > div").all()
    return {row.locator("dt").inner_text(): float(row.locator("dd").inner_text().replace("−", "-")) for row in rows}


def test_one_click_tests_the_head_in_focus(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=NURSE, at="L3H2")
    before = bench.stage()
    expect(section(bench)).to_contain_text("One input can refute an attention; it cannot support one.")
    section(bench).get_by_role("button", name="Test this attention").click()
    badge = faithfulness.quick_check(gpt, NURSE, "L3H2")["L3H2"]
    expect(section(bench)).to_contain_text(SIGNS[badge.verdict])
    expect(section(bench)).to_contain_text(badge.sentence)
    expect(section(bench)).to_contain_text(f"Answer tested: {badge.answer}")
    names = {"permuted": "change_permuted", "uniform": "change_uniform", "identity": "change_identity"}
    expected = {name: badge.figures[key] for name, key in {**names, "τ with gradient": "tau_gradient"}.items()}
    assert figures(bench) == pytest.approx(expected, abs=0.0051)
    expect(section(bench)).to_contain_text("up to 0.05 counts as none")
    # The picture of the head has it too, the line over the picture says it in words, and so does the tip.
    assert bench.stage() != before
    expect(bench.status).to_contain_text(f"{SIGNS[badge.verdict]}: L3H2")
    bench.page.mouse.move(*bench.head_at("L3H2"))
    expect(bench.page.locator(".tip")).to_contain_text(SIGNS[badge.verdict])
    expect(bench.page.locator(".tip")).to_contain_text("change of the output: permuted")
    # Another head was not tested.
    bench.page.mouse.move(700, 20)
    bench.open(text=NURSE, at="L3H3")
    expect(section(bench).get_by_role("button", name="Test this attention")).to_be_visible()


def test_all_heads_are_tested_by_keyboard(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=NURSE, at="L3H2")
    button = section(bench).get_by_role("button", name="Test all heads")
    button.focus()
    bench.page.keyboard.press("Enter")
    done = section(bench).get_by_role("button", name="All heads tested")
    expect(done).to_be_visible()
    expect(done).to_be_focused()
    expect(done).to_have_attribute("aria-disabled", "true")
    badges = faithfulness.quick_check(gpt, NURSE)
    verdicts = [badge.verdict for badge in badges.values()]
    assert {"not supported", "mixed"} == set(verdicts)
    for verdict in ("not supported", "mixed"):
        names = [str(head) for head, badge in badges.items() if badge.verdict == verdict]
        heads = ", ".join(names) if len(names) <= 6 else f"{len(names)} of {len(badges)} heads"
        expect(bench.status).to_contain_text(f"{SIGNS[verdict]}: {heads}")
    for verdict, sign in (("not supported", "✕"), ("mixed", "?")):
        expect(bench.label(sign)).to_have_count(verdicts.count(verdict))
    # The table has a column of words for those who do not see the picture.
    bench.page.locator("[data-picture]").focus()
    bench.press("t")
    expect(bench.page.get_by_role("columnheader", name="quick set")).to_be_visible()
    expect(bench.page.get_by_role("cell", name=SIGNS["not supported"])).to_have_count(verdicts.count("not supported"))


def test_badges_belong_to_a_run_with_its_edits(bench: Workbench) -> None:
    bench.open(text=NURSE, at="L3H2")
    section(bench).get_by_role("button", name="Test this attention").click()
    expect(section(bench)).to_contain_text("Answer tested")
    address = bench.page.url
    bench.page.get_by_role("button", name=re.compile("^Silence")).first.click()
    bench.ready()
    expect(section(bench).get_by_role("button", name="Test this attention")).to_be_visible()
    expect(section(bench)).not_to_contain_text("Answer tested")
    bench.page.go_back()
    bench.ready()
    expect(section(bench)).to_contain_text("Answer tested")
    # A link asks for no test: whoever opens it has to.
    bench.goto(address)
    expect(section(bench).get_by_role("button", name="Test this attention")).to_be_visible()


def test_a_saved_page_shows_the_badges_and_tests_nothing(
    bench: Workbench, offline: Workbench, tmp_path: Path, gpt: hs.Model
) -> None:
    bench.open(text=OTHER, at="L3H2")
    section(bench).get_by_role("button", name="Test this attention").click()
    expect(section(bench)).to_contain_text("Answer tested")
    file = bench.save("HTML", tmp_path)
    offline.visit(file.as_uri())
    badge = faithfulness.quick_check(gpt, OTHER, "L3H2")["L3H2"]
    expect(section(offline)).to_contain_text(badge.sentence)
    expect(section(offline).get_by_role("button")).to_have_count(0)
    expect(offline.status).to_contain_text(f"{SIGNS[badge.verdict]}: L3H2")
    offline.page.locator("[data-picture]").focus()
    offline.press("ArrowRight")
    expect(section(offline)).to_contain_text("L3H3 was not tested.")


def test_what_cannot_be_tested_says_why(bench: Workbench) -> None:
    bench.open(text="Hi")
    expect(section(bench)).to_contain_text("the test needs 3")
    expect(section(bench).get_by_role("button", name="Test this attention")).to_have_attribute("aria-disabled", "true")
    bench.open(model="builtin:translate", text="The cat sat on the mat.")
    expect(section(bench)).to_contain_text("This is an encoder-decoder.")
    # What only the server knows is said when it answers.
    bench.open(text="The cat sat")
    section(bench).get_by_role("button", name="Test all heads").click()
    expect(section(bench).get_by_role("alert")).to_contain_text("fewer than 3 tokens")
