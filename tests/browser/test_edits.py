"""Edits in the page: they change a prediction, undo brings it back to the last bit, and the Python it copies agrees."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench

TEXT = "The doctor asked the nurse a question. She said the doctor asked the nurse a"
LAYER = "layer/L4?what=pattern"


def edit(bench: Workbench, name: str) -> None:
    """Press something in the panel of edits, and wait for what it does."""
    bench.page.locator("aside.right").get_by_role("button", name=name, exact=True).click()
    bench.ready()


def stack(bench: Workbench) -> list[str]:
    return bench.page.get_by_role("region", name="Edits").locator("li .words").all_inner_texts()


def effect(bench: Workbench) -> dict[str, str]:
    """The answers before and after, and the change of each."""
    place = bench.page.get_by_role("region", name="What it did")
    expect(place.locator("li").first).to_be_visible()
    return dict(zip(place.locator(".text").all_inner_texts(), place.locator(".change").all_inner_texts(), strict=True))


def raw(bench: Workbench, key: str) -> str:
    """What the server sends for the run on screen, byte for byte."""
    return bench.page.evaluate(
        """async key => {
            const link = new URLSearchParams(location.hash.slice(1));
            const edits = link.getAll('edit').filter(one => !one.startsWith('off:'));
            const body = JSON.stringify({model: link.get('model'), text: link.get('text'), edits});
            const run = await fetch('api/runs', {method: 'POST', headers: {'content-type': 'application/json'}, body});
            const last = JSON.parse((await run.text()).trim().split('\\n').at(-1));
            const bytes = new Uint8Array(await (await fetch(`api/traces/${last.trace}/${key}`)).arrayBuffer());
            return Array.from(bytes, one => one.toString(16).padStart(2, '0')).join('');
        }""",
        key,
    )


def test_a_weight_is_set_by_keyboard_alone(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=TEXT, view="head", at="L3H2")
    card = bench.page.locator("aside.right")
    card.get_by_role("button", name="Weight", exact=True).focus()
    bench.page.keyboard.press("Enter")
    for label, value in (("From this token", 9), ("To this token", 2)):
        for _ in range(12):
            bench.page.keyboard.press("Tab")
            if bench.page.evaluate("document.activeElement.getAttribute('aria-label')") == label:
                break
        bench.page.keyboard.type(f"{value}: ")
    for _ in range(2):
        bench.page.keyboard.press("Tab")  # past the slider, to the number
    bench.page.keyboard.type("0.75")
    bench.page.keyboard.press("Enter")
    bench.links_to(edit="set_weight('L3H2', 9, 2, 0.75)")
    bench.ready()
    assert stack(bench) == ["She → doctor = 0.75 in L3H2"]
    # Without a sum of 1, by the box that says so.
    box = card.get_by_label("keep the row's sum at 1")
    box.focus()
    bench.page.keyboard.press("Space")
    expect(box).not_to_be_checked()


def test_an_edit_changes_a_prediction_and_undo_restores_it_to_the_bit(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=TEXT, view="head", at="L3H2")
    before = [raw(bench, key) for key in ("trace", LAYER)]
    picture = bench.stage()
    edit(bench, "Silence")
    assert stack(bench) == ["silence L3H2"]
    bench.links_to(edit="silence('L3H2')")
    shown_effect, expected = effect(bench), hs.effect(gpt, TEXT, [hs.silence("L3H2")], k=6)
    first = expected.predictions(1)[0]
    change = first.after - first.before
    assert shown_effect[first.text.strip()] == f"{'−' if change < 0 else '+'}{abs(change):.2f}" and abs(change) > 0.05
    assert raw(bench, "trace") != before[0] and raw(bench, LAYER) != before[1]
    expect(bench.page.get_by_role("region", name="What it did")).to_contain_text(
        f"KL {float(expected.kl[-1]):.3f} here"
    )
    bench.press("Control+z")
    bench.links_to(edit=None)
    assert stack(bench) == [] and [raw(bench, key) for key in ("trace", LAYER)] == before
    assert bench.stage() == picture
    bench.press("Control+Shift+z")
    bench.links_to(edit="silence('L3H2')")
    assert stack(bench) == ["silence L3H2"] and effect(bench) == shown_effect


def test_what_is_copied_as_python_gives_the_same_numbers(bench: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    bench.open(text=TEXT, view="head", at="L3H2")
    edit(bench, "Silence")
    edit(bench, "Weight")
    bench.page.get_by_label("From this token").select_option("10")
    bench.page.get_by_label("To this token").select_option("5")
    edit(bench, "Block")
    bench.page.get_by_label("New weight, typed").fill("0.25")
    bench.page.get_by_label("New weight, typed").press("Enter")
    bench.ready()
    edit(bench, "Neuron")
    edit(bench, "Apply")
    edit(bench, "Token")
    edit(bench, "Mask")
    edit(bench, "Patch")
    bench.page.get_by_label("From this text").fill("The farmer asked the cook a question.")
    bench.page.locator("form .act", has_text="Patch").click()
    bench.ready()
    bench.page.wait_for_function("() => document.querySelectorAll('[aria-label=Edits] li').length === 6")
    edit_texts = stack(bench)
    assert edit_texts[0] == "silence L3H2" and re.match(r"block \S+ → \S+ in L3H2", edit_texts[1])
    assert (
        "= 0.25 in L3H2" in edit_texts[2]
        and edit_texts[3] == "query neuron 0 of L3H2 × 2"
        and edit_texts[4].endswith(" by the mask token")
    )
    assert edit_texts[5] == "patch L3H2 from The farmer asked the cook a question."
    page_trace = bench.page.evaluate(f"async () => {{ {DECODE} return decoded('{raw(bench, 'trace')}') }}")
    edit(bench, "Copy as Python")
    code = bench.page.evaluate("navigator.clipboard.readText()")
    namespace: dict = {}
    exec(code.replace('view.save("', f'view.save("{tmp_path}/'), namespace)
    answers = [candidate.logprob for candidate in namespace["trace"].predictions(10)]
    # Two processes, perhaps with other numbers of threads: equal but for the rounding of sums.
    assert answers == pytest.approx(
        [candidate["logprob"] for candidate in page_trace["answers"][0]["candidates"]], abs=1e-5
    )
    assert list(namespace["trace"].edits)[:5] == page_trace["edits"][:5] and len(page_trace["edits"]) == 6


DECODE = """const decoded = hex => {
    const bytes = Uint8Array.from(hex.match(/../g), one => parseInt(one, 16));
    const length = new DataView(bytes.buffer).getUint32(4, true);
    return JSON.parse(new TextDecoder().decode(bytes.slice(8, 8 + length))).props;
};"""


def test_edits_that_change_nothing_change_nothing(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L3H2")
    plain = raw(bench, LAYER)
    bench.open(text=TEXT, view="head", at="L3H2", edit="scale('L3H2', 1.0)")
    expect(bench.page.get_by_text("These edits change nothing at all.")).to_be_visible()
    assert set(effect(bench).values()) == {"0"}
    assert raw(bench, LAYER) == plain


def test_a_slider_runs_as_it_moves_and_is_one_step_to_undo(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=TEXT, view="model", at="L3H2")
    slider = bench.page.get_by_label("Scale of L3H2")
    for value in ("0.6", "0.4", "0.2"):
        slider.evaluate(
            "(one, value) => { one.value = value; one.dispatchEvent(new Event('input', {bubbles: true})) }", value
        )
        bench.ready()
    slider.dispatch_event("change")
    bench.links_to(edit="scale('L3H2', 0.2)")
    assert stack(bench) == ["scale L3H2 by 0.2"]
    runs = bench.page.get_by_role("region", name="Runs").get_by_role("button")
    assert runs.filter(has_text="scale L3H2").count() == 1
    bench.press("Control+z")
    bench.links_to(edit=None)
    assert stack(bench) == []


def test_edits_are_switched_moved_and_shared_by_their_address(bench: Workbench) -> None:
    bench.open(text=TEXT, at="L3H2")
    edit(bench, "Silence")
    edit(bench, "Uniform")
    bench.page.get_by_role("switch", name="silence L3H2").uncheck()
    bench.ready()
    bench.links_to(edit="off:silence('L3H2')")
    bench.page.get_by_role("button", name="Move up: uniform attention in L3H2").click(force=True)
    bench.links_to(edit="uniform('L3H2')")
    address = bench.page.url
    bench.visit(address)
    assert stack(bench) == ["uniform attention in L3H2", "silence L3H2"]
    assert not bench.page.get_by_role("switch", name="silence L3H2").is_checked()
    assert bench.page.get_by_role("button", name="Uniform", exact=True).get_attribute("aria-pressed") == "true"
    bench.page.get_by_role("button", name="Take out: uniform attention in L3H2").click(force=True)
    bench.ready()
    expect(bench.page.get_by_role("region", name="What it did")).to_have_count(0)
    edit(bench, "Clear")
    bench.links_to(edit=None)
    bench.page.go_back()
    bench.links_to(edit="off:silence('L3H2')")


@pytest.mark.parametrize(
    ("call", "error_text"),
    [
        ("silence('L9H0')", "there is no L9H0: the heads are L0H0 to L5H7"),
        ("scale('L0H0', 1e38)", "hs.scale('L0H0', 1e+38) makes the model's output NaN"),
        ("__import__('os').system('true')", "is not the call of an edit"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(bench: Workbench, call: str, error_text: str) -> None:
    bench.expect("422")
    bench.open(text=TEXT, view="head", at="L3H2", edit=call)
    expect(bench.page.get_by_role("alert")).to_contain_text(error_text, ignore_case=True)


def test_edits_that_cannot_be_run_leave_the_run_on_screen(bench: Workbench, tmp_path: Path) -> None:
    bench.open(text=TEXT, view="head", at="L3H2", edit="silence('L2H0')")
    hs.save_interventions([hs.scale("L0H0", 1e38)], tmp_path / "edits.json")
    bench.page.locator("input[type=file]").set_input_files(tmp_path / "edits.json")
    expect(bench.page.get_by_role("alert")).to_contain_text("makes the model's output NaN")
    assert stack(bench) == ["silence L2H0"]
    bench.button("Dismiss").click()
    expect(bench.page.get_by_role("alert")).to_have_count(0)


def test_edits_are_saved_and_loaded(bench: Workbench, tmp_path: Path) -> None:
    bench.open(text=TEXT, at="L3H2", edit="silence('L3H2')")
    bench.page.get_by_label("Files of edits").first.click()
    with bench.page.expect_download() as download:
        bench.page.get_by_role("button", name=re.compile("Save edits")).click()
    path = tmp_path / "edits.json"
    download.value.save_as(path)
    assert [repr(intervention) for intervention in hs.load_interventions(path)] == ["hs.silence('L3H2')"]
    hs.save_interventions([hs.scale("L3H1", 0.5), hs.block("L2H0", 3, [1, 2])], path)
    bench.page.locator("input[type=file]").set_input_files(path)
    bench.page.wait_for_function("() => document.querySelectorAll('[aria-label=Edits] li').length === 2")
    bench.ready()
    assert stack(bench)[0] == "scale L3H1 by 0.5" and stack(bench)[1].startswith("block asked → ")
    path.write_text(json.dumps({"format": "something else"}))
    bench.expect("422")
    bench.page.locator("input[type=file]").set_input_files(path)
    expect(bench.page.get_by_text("is not a file of interventions")).to_be_visible()
    bench.page.get_by_label("Files of edits").first.click()
    expect(bench.page.get_by_text("headscope serve --save-to DIR")).to_be_visible()


def test_what_the_model_writes_with_and_without(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=TEXT, at="L3H2", edit="silence('L3H2')")
    bench.button("Write 20 tokens: original and edited").click()
    place = bench.page.locator(".written dd")
    expect(place).to_have_count(2)
    expected = gpt.generate(TEXT, max_new_tokens=20, interventions=[hs.silence("L3H2")]).text
    assert place.nth(1).inner_text().split() == expected.split()
