"""Pictures and sounds in the workbench, as a user meets them."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import made_media
import numpy as np
import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench
from headscope.analysis.structure.rollout import rollout
from headscope.models.loading import BUILTIN

LORRY = BUILTIN / "images" / "lorry.png"


@pytest.fixture(scope="module")
def lorry() -> hs.Trace:
    return hs.load("builtin:vit").run(LORRY)


def picture_box(bench: Workbench) -> tuple[float, float, float]:
    """Left, top and side of the (square) picture of the only head: under its name, up to the end of its figures."""
    texts = bench.page.evaluate("""() => [...document.querySelectorAll('.view span')].filter(one => !one.hidden)
        .map(one => [one.textContent, one.getBoundingClientRect()])
        .map(([text, box]) => [text, box.left, box.right, box.top + box.height / 2])""")
    name = next(label for label in texts if re.fullmatch(r"L\d+H\d+|rollout to L\d+", label[0]))
    figures = next(label for label in texts if label[0].startswith("strongest") and abs(label[3] - name[3]) < 3)
    return name[1], name[3] + 11, figures[2] - name[1]


def point_at(bench: Workbench, row: int, column: int) -> None:
    """The pointer onto a patch of the 8 × 8 that there are."""
    left, top, side = picture_box(bench)
    bench.page.mouse.move(left + (column + 0.5) * side / 8, top + (row + 0.5) * side / 8, steps=2)


def tip(bench: Workbench) -> str:
    return bench.page.locator("[role=tooltip]").inner_text()


def test_the_strongest_pairs_of_a_head_are_shown_as_patches_in_the_model_view(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="model")
    bench.ready()
    bench.page.mouse.move(*bench.head_at("L3H2"), steps=2)
    patches = bench.page.locator("[role=tooltip] canvas")
    patches.first.wait_for()
    assert 1 <= patches.count() <= 6  # three pairs; a special token has no picture
    assert re.search(r"\d·\d", tip(bench))
    lit = patches.first.evaluate("""one => one.getContext('2d').getImageData(0, 0, one.width, one.height).data
        .some((value, at) => at % 4 < 3 && value > 0)""")
    assert lit


def test_a_preset_is_run_and_its_patches_tell_the_pattern(bench: Workbench, lorry: hs.Trace) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H2")
    bench.status.get_by_text("what each patch gets").wait_for()
    point_at(bench, 3, 4)
    bench.status.get_by_text("from 4·5").wait_for()
    row = lorry.pattern("L3H2")[1 + 3 * 8 + 4]
    best = int(row[1:].argmax())
    tip_text = tip(bench)
    assert f"{best // 8 + 1}·{best % 8 + 1}" in tip_text
    assert float(tip_text.split()[-1]) == pytest.approx(row[1:].max(), abs=0.006)
    # Pinned, the pointer tells the weight of any pair.
    bench.page.mouse.down()
    bench.page.mouse.up()
    bench.links_to(token="query:29")
    bench.ready()
    point_at(bench, 2, 1)
    bench.page.wait_for_function("() => document.querySelector('[role=tooltip]')?.textContent.includes('→ 3·2')")
    assert float(tip(bench).split()[-1]) == pytest.approx(row[1 + 2 * 8 + 1], abs=0.006)
    # The other way round: who looks at it.
    bench.choose("Direction", "to")
    bench.links_to(token="key:29", direction="to")
    bench.status.get_by_text("to 4·5").wait_for()
    bench.press("t")
    first = bench.page.locator("table tbody tr").first.inner_text().split("\t")
    column = lorry.pattern("L3H2")[:, 29]
    assert int(first[1]) == int(column.argmax()) and float(first[-1]) == pytest.approx(float(column.max()), abs=1e-3)


def test_arrows_rollout_and_several_heads(bench: Workbench, lorry: hs.Trace) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H2")
    plain = bench.stage()
    bench.page.get_by_label("arrows", exact=True).check()
    bench.links_to(arrows="1")
    bench.status.get_by_text("looks at most").wait_for()
    assert bench.stage() != plain
    bench.page.get_by_label("arrows", exact=True).uncheck()
    bench.page.get_by_label("rollout", exact=True).check()
    bench.links_to(rollout="1", at="L5H2")
    bench.ready()
    assert bench.label("rollout to L5").count() == 1
    point_at(bench, 0, 0)
    bench.status.get_by_text("from 1·1").wait_for()
    rolled = rollout(lorry)["L5"][1]
    assert float(tip(bench).split()[-1]) == pytest.approx(float(rolled.max()), abs=0.006)
    bench.page.get_by_label("rollout", exact=True).uncheck()
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H0", heads="0,1,2,3,4,5", token="query:0")
    assert all(bench.label(f"L3H{head}").count() == 1 for head in range(6))


def test_a_picture_of_ones_own(bench: Workbench, tmp_path: Path) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H2")
    made_media.picture(60, 40, "P").save(tmp_path / "mine.png")
    bench.page.set_input_files("input[type=file]", tmp_path / "mine.png")
    bench.page.get_by_text("60 × 40 pixels, PNG").wait_for()
    bench.page.locator("form").get_by_text("a palette").wait_for()
    bench.page.get_by_role("button", name=re.compile("^mine.png vit")).wait_for()
    bench.ready()
    bench.expect("422")
    (tmp_path / "broken.png").write_bytes(made_media.png(made_media.picture())[:120])
    bench.page.set_input_files("input[type=file]", tmp_path / "broken.png")
    bench.page.get_by_role("alert").get_by_text("cut off").wait_for()


def test_edits_that_need_a_text_are_disabled_for_a_picture_with_the_reason(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H2")
    forms = bench.page.get_by_role("group", name="More edits")
    reasons = {"Token": "only tokens of a text can be replaced", "Patch": "another run is named by its text"}
    for name, why in reasons.items():
        button = forms.get_by_role("button", name=name, exact=True)
        expect(button).to_be_disabled()
        expect(button).to_have_accessible_description(re.compile(f"{name}: {why}"))
        expect(bench.page.get_by_text(f"{name}: {why}, and the model reads a picture.")).to_be_visible()
    expect(forms.get_by_role("button", name="Weight", exact=True)).to_be_enabled()
    bench.open(text="The cat sat.", view="head", at="L3H2")
    expect(forms.get_by_role("button", disabled=True)).to_have_count(0)
    expect(bench.page.get_by_text("another run is named by its text")).to_have_count(0)


def test_a_saved_page_shows_the_picture_without_a_server(offline: Workbench, lorry: hs.Trace, tmp_path: Path) -> None:
    file = hs.head_view(lorry, "L3H2", token=29).save(tmp_path / "lorry.html")
    offline.visit(file.as_uri())
    offline.status.get_by_text("from 4·5").wait_for()
    left, top, side = picture_box(offline)
    picture = offline.screen().crop((round(left), round(top), round(left + side), round(top + side)))
    # The patch in focus has its own colours: those of the picture that was run.
    row, column, cell = 3, 4, side / 8
    middle, half = ((column + 0.5) * cell, (row + 0.5) * cell), cell / 2 - 5
    inside = round(middle[0] - half), round(middle[1] - half), round(middle[0] + half), round(middle[1] + half)
    seen = np.asarray(picture.crop(inside)).reshape(-1, 3).mean(0)
    pixels = lorry.inputs.seen["main"].pixels.numpy()[12:16, 16:20].reshape(-1, 3)
    assert np.abs(seen - pixels.mean(0)).max() < 8
    offline.choose("Drawn as", "Lines")
    assert offline.label("4·5").count() >= 2
    offline.choose("Drawn as", "Picture")


def test_there_is_no_text_to_find_in_a_picture(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="head", at="L3H2")
    field = bench.page.get_by_label("Find in text")
    expect(field).to_be_disabled()
    expect(field).to_have_attribute("title", re.compile("no text to find in a picture"))
    bench.press("/")
    expect(bench.page.get_by_text("no text to find in a picture")).to_be_visible()
    bench.choose("Drawn as", "Lines")
    expect(field).to_be_enabled()
    bench.press("/")
    bench.page.keyboard.type("4·5")
    expect(bench.page.get_by_role("search")).to_contain_text("1 of 1")


@pytest.fixture
def speech_model(word_model: str) -> Iterator[str]:
    """The folder of a Whisper that knows two languages, where the server may read."""
    folder = Path(word_model).parent / "whisper"
    made_media.save_whisper(folder, languages=True)
    yield str(folder)
    shutil.rmtree(folder)


def test_a_speech_model_is_told_the_language_and_the_task(bench: Workbench, speech_model: str) -> None:
    bench.open(speech_model, media="preset:rising tone", cut="1", target="asked")
    form = bench.page.get_by_role("form", name="Input")
    language, task = form.get_by_label("Language"), form.get_by_label("Task")
    expect(language.locator("option")).to_have_text(["detected by the model", "English", "French"])
    language.select_option("French")
    task.select_option("translate")
    expect(form).to_contain_text("not run yet")
    form.get_by_role("button", name="Run").click()
    bench.links_to(language="fr", task="translate")
    bench.ready()
    expect(bench.page.get_by_label("What the picture shows")).to_contain_text("“rising tone”, in French, translate")
    # A model without them has no such fields, and what was chosen for the other is not sent to it.
    bench.open("builtin:gpt", text="The cat sat.")
    expect(form.get_by_label("Language")).to_have_count(0)


def test_what_is_written_attends_to_moments_of_a_sound(offline: Workbench, tmp_path: Path) -> None:
    made_media.save_whisper(tmp_path / "whisper")
    (tmp_path / "tone.wav").write_bytes(made_media.wav(0.8))
    trace = hs.load(tmp_path / "whisper").run(tmp_path / "tone.wav", target="the doctor asked a nurse")
    offline.visit(hs.head_view(trace, "cross.L1H0").save(tmp_path / "tone.html").as_uri())
    offline.status.get_by_text("what each written token attends to in time").wait_for()
    texts = {text: (x, y) for text, x, y in offline._texts()}
    x, y = texts["0.4 s"][0] + 1, texts["doctor"][1]
    offline.page.mouse.move(x, y, steps=2)
    offline.page.locator("[role=tooltip]").get_by_text("doctor → 0.40–0.42 s").wait_for()
    assert float(tip(offline).split()[-1]) == pytest.approx(trace.pattern("cross.L1H0")[2, 20], abs=0.006)
