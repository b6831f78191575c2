"""Every kind of saved page, opened as a file with the network off: it draws, answers, and nothing goes wrong in it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import headscope as hs
from browser.conftest import WINDOW
from browser.workbench import Workbench
from headscope.models.loading import BUILTIN

SHE = "The doctor asked the nurse a question. She"
HE = "The doctor asked the nurse a question. He"
LORRY = BUILTIN / "images" / "lorry.png"

KINDS: dict[str, tuple[Callable[[hs.Model], hs.View], str, str]] = {
    "model": (lambda gpt: hs.model_view(gpt.run(SHE)), "Model", "48 heads, 10 tokens"),
    "head": (lambda gpt: hs.head_view(gpt.run(SHE), "L3H2"), "Head", "55 lines drawn"),
    "matrix": (lambda gpt: hs.head_view(gpt.run(SHE), "L3H2", form="matrix", token=-1), "Head", "10 × 10"),
    "neuron": (lambda gpt: hs.neuron_view(gpt.run(SHE), "L3H2"), "Neuron", "L3H2, query She (9)"),
    "activations": (
        lambda gpt: hs.activations_view(gpt.run(SHE), gpt, token=-1),
        "Activations",
        "6 layers × 10 tokens",
    ),
    "difference": (lambda gpt: hs.head_view(hs.compare(gpt.run(SHE), gpt.run(HE)), "L5H0"), "Head", "full colour"),
    "unchanged": (
        lambda gpt: hs.head_view(hs.compare(gpt.run(SHE), gpt.run(SHE)), "L5H0"),
        "Head",
        "both runs attend alike in L5H0; what it writes may still differ",
    ),
    "picture": (lambda _: hs.head_view(hs.load("builtin:vit").run(LORRY), "L3H2"), "Head", "what each patch gets"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_without_a_network(kind: str, offline: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    build_view, scale, status = KINDS[kind]
    offline.visit(build_view(gpt).save(tmp_path / f"{kind}.html").as_uri())
    assert offline.is_chosen("Scale", scale)
    expect(offline.status).to_contain_text(status)
    # It answers: out to all heads and into one, by key; the numbers as a table.
    offline.press("1")
    expect(offline.status).to_contain_text("heads")
    offline.press("2", "t")
    if kind != "unchanged":  # of which there are no numbers
        expect(offline.page.locator("table tbody tr").first).to_be_visible()


def test_two_beside_each_other_open_too(offline: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    pair = hs.side_by_side(hs.head_view(gpt.run(SHE), "L3H2"), hs.head_view(gpt.run(HE), "L3H2"))
    offline.page.goto(pair.save(tmp_path / "two.html").as_uri())
    for at in (0, 1):
        inside = offline.page.frame_locator("iframe").nth(at)
        expect(inside.locator('[data-headscope][data-ready="true"]')).to_be_attached()
        expect(inside.locator("main .status [role=status]")).to_contain_text("lines drawn")


def test_a_page_saved_from_a_saved_page_is_as_large(offline: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    first = hs.model_view(gpt.run(SHE)).save(tmp_path / "first.html")
    offline.visit(first.as_uri())
    (tmp_path / "again").mkdir()
    again = offline.save("HTML", tmp_path / "again")
    # What was unpacked to draw it does not go into the copy.
    assert abs(again.stat().st_size - first.stat().st_size) < 2000


def alert_text(browser: Browser, page: Path, before: str = "") -> str:
    """What a page that cannot be drawn says."""
    context = browser.new_context(**WINDOW, offline=True)
    try:
        tab = context.new_page()
        if before:
            tab.add_init_script(before)
        tab.goto(page.as_uri())
        return tab.get_by_role("alert").inner_text()
    finally:
        context.close()


def test_an_old_browser_is_told_what_it_lacks(browser: Browser, gpt: hs.Model, tmp_path: Path) -> None:
    file = hs.model_view(gpt.run(SHE)).save(tmp_path / "model.html")
    assert "needs a newer browser" in alert_text(browser, file, "delete window.DecompressionStream")


def test_a_damaged_file_says_so(browser: Browser, gpt: hs.Model, tmp_path: Path) -> None:
    file = hs.model_view(gpt.run(SHE)).save(tmp_path / "model.html")
    text = file.read_text("ascii")
    packed = re.search(r'data-program="script">([^<]+)<', text)
    assert packed
    file.write_text(text.replace(packed[1], packed[1][: len(packed[1]) // 2 // 4 * 4]), "ascii")
    assert "seems to be damaged" in alert_text(browser, file)


def test_a_page_that_0_1_0_saved_opens(offline: Workbench) -> None:
    offline.visit((Path(__file__).parents[1] / "fixtures" / "0.1.0" / "head.html").as_uri())
    assert offline.is_chosen("Scale", "Head")
    expect(offline.status).to_contain_text("44 of 45 lines drawn")


def test_a_saved_page_names_no_key_that_finds_nothing_in_it(
    bench: Workbench, offline: Workbench, gpt: hs.Model, tmp_path: Path
) -> None:
    hints = offline.page.locator("footer")
    offline.visit(hs.head_view(gpt.run(SHE), "L3H2").save(tmp_path / "head.html").as_uri())
    expect(hints).to_contain_text("all heads")
    expect(hints).not_to_contain_text("neurons")
    offline.page.keyboard.press("?")
    keys = offline.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("numbers as a table")
    for absent in ("run the input", "undo an edit", "find heads", "atlas", "step before", "paint", "set the neuron"):
        expect(keys).not_to_contain_text(absent)
    # Where there are neurons, the key to them is named; and the workbench has all keys.
    offline.visit(hs.neuron_view(gpt.run(SHE), "L3H2").save(tmp_path / "neuron.html").as_uri())
    offline.press("2")
    expect(hints).to_contain_text("neurons")
    bench.open(text=SHE, view="head", at="L3H2")
    expect(bench.page.locator("footer")).to_contain_text("neurons")
    bench.page.keyboard.press("?")
    expect(bench.page.get_by_role("dialog", name="Keys")).to_contain_text("run the input")
    expect(bench.page.get_by_role("dialog", name="Keys")).to_contain_text("set the neuron")
