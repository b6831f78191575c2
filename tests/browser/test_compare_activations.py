"""Activations of two runs in the workbench: subtracted layer by layer, side by side, taken away."""

from urllib.parse import urlencode

from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench

SHE = "The doctor asked the nurse a question. She"


def open_edited(bench: Workbench, **selection: str) -> None:
    """The activations of a run with an edit, less those without."""
    edit = {"edit": "silence('L3H2')", "with": urlencode({"edit": ""})}
    bench.open(text=SHE, view="activations", **{**edit, "compare": "difference", **selection})


def cell(bench: Workbench, text: str, place: str) -> None:
    """Point at a token's cell."""
    boxes = [bench.label(label).first.bounding_box() for label in (text, place)]
    assert boxes[0] and boxes[1]
    x, y = boxes[0]["x"] + boxes[0]["width"] / 2, boxes[1]["y"] + boxes[1]["height"] / 2
    bench.page.mouse.move(x, y, steps=3)


def test_activations_are_subtracted_layer_by_layer(bench: Workbench, gpt: hs.Model):
    page = bench.page
    both = hs.compare(gpt.run(SHE, [hs.silence("L3H2")]), gpt.run(SHE))
    difference = gpt.activations_difference(both)
    open_edited(bench, stream="attention")
    expect(bench.status).to_contain_text("A − B: norm of what attention wrote, 6 layers × 10 tokens")
    expect(bench.status).to_contain_text("full colour: a difference of")
    # Nothing before the edit's own layer; there, what attention wrote became less or more, with the sign of Python's.
    cell(bench, "nurse", "L2")
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("nurse, token 5, after L2")
    expect(tip).to_contain_text("written by attention  0: ")
    cell(bench, "nurse", "L3")
    first, other = (side.written["attention"][3, 5] for side in (difference.a, difference.b))
    change = f"{first - other:+.2f}".replace("-", "−")
    expect(tip).to_contain_text(
        f"written by attention  {change}: {float(f'{first:.5g}'):g} less {float(f'{other:.5g}'):g}"
    )
    expect(bench.label(change).first).to_be_attached()
    # The numbers of the table are both runs' own.
    page.keyboard.press("t")
    names = page.get_by_label("Numbers as a table").locator("thead th").all_inner_texts()
    assert {"norm A", "norm B", "norm A − B", "log-probability A − B"} <= set(names)
    page.keyboard.press("t")


def test_predictions_and_neurons_of_two_runs(bench: Workbench, gpt: hs.Model):
    page = bench.page
    difference = gpt.activations_difference(hs.compare(gpt.run(SHE, [hs.silence("L3H2")]), gpt.run(SHE)))
    open_edited(bench, at="L4H0", token="query:9")
    predictions = difference.predictions(9)
    card = page.get_by_label("Predictions layer by layer")
    row = card.get_by_role("row").nth(7).inner_text()  # after the last layer
    assert predictions["L5"][0].text.strip() in row
    assert f"{predictions['L5'][0].difference:+.2f}".replace("-", "−") in row
    focus = page.get_by_role("table", name="Candidates in both runs").locator("tbody tr").first
    expect(focus).to_contain_text(predictions["L4"][0].text.strip())
    neurons = page.get_by_label("MLP neurons", exact=True).locator("li").first
    index, first, other = difference.top_neurons("L4", 9)[0]
    expect(neurons).to_contain_text(str(index))
    expect(neurons).to_contain_text(f"{first - other:+.2f}".replace("-", "−"))
    # Before the edit nothing differs, and the card says so.
    bench.press("ArrowUp", "ArrowUp")
    expect(page.get_by_label("MLP neurons", exact=True)).to_contain_text("neurons differs here")
    bench.press("ArrowLeft")
    bench.links_to(token="query:8")
    bench.choose("Whose prediction is followed", "B's answer")
    bench.links_to(whose="B")
    expect(bench.status).to_contain_text("what B predicts in the end")
    # A run less itself is nothing.
    open_edited(bench, stream="norm", **{"with": urlencode({"text": SHE})})
    expect(bench.status).to_contain_text("no difference in anything shown")


def test_tokens_without_a_partner_are_left_out_and_named(bench: Workbench, gpt: hs.Model):
    other = "A doctor asked the nurse two long questions. He"
    bench.open(
        text=SHE, view="activations", stream="norm", **{"with": urlencode({"text": other}), "compare": "difference"}
    )
    bar = bench.page.get_by_role("group", name="Comparison")
    expect(bar).to_contain_text("8 of 10 and 11 tokens aligned")
    expect(bar).to_contain_text("only in A: a question; only in B: two long questions")
    expect(bench.status).to_contain_text("6 layers × 8 tokens")
    expect(bench.label("question")).to_have_count(0)
    norms = gpt.activations_difference(hs.compare(gpt.run(SHE), gpt.run(other))).norms
    expect(bench.label(f"{norms[-1, 7]:+.2f}".replace("-", "−")).first).to_be_attached()


def test_activations_side_by_side(bench: Workbench):
    page = bench.page
    open_edited(bench, compare="side", token="query:9")
    beside = page.get_by_role("region", name="The other run")
    expect(beside).to_contain_text("what each layer would predict, 6 layers × 10 tokens")
    before = beside.locator("canvas").screenshot()
    page.locator(".half .view").get_by_text("nurse", exact=True).first.hover(force=True)
    page.wait_for_timeout(50)
    assert beside.locator("canvas").screenshot() != before  # its twin is marked


def test_saved_activations_of_two_runs_open_without_a_server(
    bench: Workbench, offline: Workbench, tmp_path, monkeypatch
):
    open_edited(bench, token="query:9")
    page = bench.page
    page.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML").click()
    file = tmp_path / "difference.html"
    download.value.save_as(file)
    offline.visit(file.as_uri())
    expect(offline.status).to_contain_text("A − B: the prediction whose probability differs most")
    expect(offline.page.get_by_role("group", name="Comparison")).to_contain_text("all 10 tokens aligned")
    expect(offline.page.get_by_role("table", name="Candidates in both runs")).to_be_visible()
    # The copied Python gives the same.
    status = bench.status.inner_text()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.get_by_text("Python copied: it runs as pasted.")).to_be_visible()
    monkeypatch.chdir(tmp_path)
    exec(page.evaluate("navigator.clipboard.readText()"), {})
    offline.visit(file.as_uri())
    expect(offline.status).to_have_text(status)
