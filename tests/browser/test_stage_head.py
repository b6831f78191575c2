"""What stands above the picture: what it is of, what was edited, what to beware of. It agrees with the form."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, expect

import headscope as hs
from browser.workbench import Workbench

NURSE = "The doctor asked the nurse a question. She"
SILENCED = "silence('L3H2')"
SCALED = "scale('L2H1', 0.5)"


def picture_line(bench: Workbench) -> Locator:
    return bench.page.get_by_role("group", name="What the picture shows")


def edited_bar(bench: Workbench) -> Locator:
    return bench.page.get_by_role("group", name="Edited run")


def warnings(bench: Workbench) -> Locator:
    return bench.page.get_by_role("region", name="Warnings")


def test_the_picture_says_what_it_is_of_and_a_form_that_differs_is_not_run_yet(bench: Workbench) -> None:
    bench.open(text=NURSE)
    line = picture_line(bench)
    expect(line).to_have_text(re.compile(rf"gpt\s*“{re.escape(NURSE)}”\s*not edited\s*$"))
    bench.page.get_by_label("Text", exact=True).fill("Something else")
    expect(line).to_contain_text("The form has another input: not run yet")
    expect(line).to_contain_text(NURSE)
    expect(bench.page.get_by_role("form", name="Input").get_by_text("not run yet")).to_be_visible()
    bench.button("Run").click()
    expect(line).to_have_text(re.compile(r"“Something else”\s*not edited\s*$"))


def test_a_refused_text_leaves_the_picture_with_the_name_of_its_own_run(bench: Workbench) -> None:
    bench.expect("422|400|413")
    bench.open(text=NURSE)
    bench.page.get_by_label("Text", exact=True).fill("word " * 700)
    bench.button("Run").click()
    expect(bench.page.get_by_role("alert")).to_contain_text("512")
    expect(picture_line(bench)).to_contain_text(NURSE)
    expect(picture_line(bench)).to_contain_text("not run yet")


def test_another_model_is_not_run_yet_while_its_run_is_missing(bench: Workbench) -> None:
    bench.open(text=NURSE)
    bench.expect("50")
    bench.page.route("**/api/runs", lambda route: route.fulfill(status=503, body='{"error": "Busy"}'))
    bench.button(re.compile("Model: builtin:gpt")).click()
    models = bench.page.get_by_role("group", name=re.compile("Model: "))
    models.get_by_role("button", name=re.compile("builtin:bert")).click()
    expect(picture_line(bench)).to_contain_text("The form names bert: not run yet")
    expect(picture_line(bench).locator("b")).to_have_text("gpt")


@pytest.mark.parametrize("view", ["model", "head", "neuron", "activations"])
def test_an_edited_run_is_named_in_every_view(view: str, bench: Workbench) -> None:
    bench.open(text=NURSE, view=view, at="L3H2", edit=SILENCED)
    expect(edited_bar(bench)).to_contain_text("Edited: 1 change")
    expect(edited_bar(bench)).to_contain_text("silence L3H2")
    expect(picture_line(bench)).to_contain_text("edited, 1 change")
    assert "(edited)" in bench.page.title()


def test_edits_are_undone_at_once_and_compared_with_the_original(bench: Workbench) -> None:
    bench.open(text=NURSE, view="head", at="L5H2", edit=SILENCED)
    bar = edited_bar(bench)
    bar.get_by_role("button", name="Compare with original").click()
    bench.links_to(compare="difference")
    comparison = bench.page.get_by_role("group", name="Comparison")
    expect(comparison).to_contain_text(re.compile(r"gpt \(edited, 1 change\).*gpt: "))
    # A silenced head attends as before: an empty picture is not said to be no effect.
    bench.open(text=NURSE, view="head", at="L3H2", edit=SILENCED)
    bar.get_by_role("button", name="Compare with original").click()
    expect(bench.status).to_contain_text("both runs attend alike in L3H2; what it writes may still differ")
    bar.get_by_role("button", name="Leave comparison").click()
    bench.links_to(compare=None)
    bar.get_by_role("button", name="Undo all").click()
    expect(bar).to_have_count(0)
    bench.links_to(edit=None)
    bench.press("Control+z")
    expect(bar).to_contain_text("Edited: 1 change")


def test_a_copied_link_says_that_it_is_of_an_edited_run(bench: Workbench) -> None:
    bench.open(text=NURSE, edit=SILENCED)
    bench.button("Copy link").click()
    expect(bench.page.get_by_text("edited (1 change)")).to_be_visible()


def test_a_saved_page_says_what_was_edited(offline: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    trace = gpt.run(NURSE, interventions=[hs.silence("L3H2"), hs.scale("L2H1", 0.5)])
    offline.visit(hs.model_view(trace).save(tmp_path / "edited.html").as_uri())
    expect(edited_bar(offline)).to_contain_text("Edited: 2 changes")
    expect(edited_bar(offline).get_by_role("button")).to_have_count(0)
    expect(picture_line(offline)).to_contain_text(NURSE)


def test_edited_heads_weights_and_tokens_are_marked_in_every_view(bench: Workbench) -> None:
    edits = ["silence('L3H2')", "set_weight('L2H1', 9, 2, 0.75)", "replace_token(5, ' farmer')"]
    for view in ("model", "head", "neuron", "activations"):
        parameters = urlencode(
            [("view", view), ("at", "L2H1"), ("token", "query:9"), *(("edit", text) for text in edits)]
        )
        bench.visit(f"{bench.address(text=NURSE)}&{parameters}")
        heads = "L2H1, L3H2" if view in ("model", "activations") else "L2H1"
        expect(bench.status).to_contain_text(f"edited: {heads}")
        if view == "model":
            expect(bench.page.locator(".view span:visible").get_by_text("edited", exact=True)).to_have_count(2)
            continue
        underlined = "element => getComputedStyle(element).textDecorationLine"
        assert bench.label("farmer").first.evaluate(underlined) == "underline"
        assert bench.label("nurse").count() == 0
        if view != "activations":
            assert bench.label("doctor").last.evaluate(underlined) == "underline"
            assert bench.label("question").last.evaluate(underlined) == "none"
        if view == "activations":
            assert [bench.label(f"L{layer}").evaluate(underlined) for layer in range(5)] == [
                "none", "none", "underline", "underline", "none",
            ]  # fmt: skip
        if view == "head":
            expect(bench.button("L2H1 (edited)")).to_be_visible()
            expect(bench.button("L2H0")).to_be_visible()
        expect(bench.page.locator("aside.right").get_by_text("edited", exact=True)).to_have_count(
            int(view != "activations")
        )


def test_warnings_stand_above_the_picture_and_are_dismissed_one_by_one(
    bench: Workbench, offline: Workbench, tmp_path: Path
) -> None:
    bench.open(text="The doctor " * 400, cut="1")
    region = warnings(bench)
    expect(region).to_contain_text("512")
    count = region.get_by_role("paragraph").count()
    box, stage = region.bounding_box(), bench.page.locator(".stage").bounding_box()
    assert box and stage and box["y"] + box["height"] <= stage["y"]
    saved = bench.save("HTML", tmp_path)
    for _ in range(count):
        region.get_by_role("button", name=re.compile("^Dismiss")).first.click()
    expect(region.get_by_role("paragraph")).to_have_count(0)
    region.get_by_role("button", name=re.compile("^Show")).click()
    expect(region.get_by_role("paragraph")).to_have_count(count)
    offline.visit(saved.as_uri())
    expect(warnings(offline)).to_contain_text("512")


def test_a_text_that_is_too_long_is_cut_by_one_button(bench: Workbench) -> None:
    bench.open(text=NURSE)
    bench.page.get_by_label("Text", exact=True).fill("word " * 700)
    bench.button("Run").click()
    bench.page.get_by_role("alert").get_by_role("button", name="Run the first 512 tokens").click()
    expect(picture_line(bench)).to_contain_text("word word")
    expect(picture_line(bench)).not_to_contain_text("not run yet")
    expect(warnings(bench)).to_contain_text("tokens were cut off at its end")
    # One that may not even be sent has the same button.
    bench.page.get_by_label("Text", exact=True).fill("a" * 200_001)
    bench.button("Run").click()
    bench.button("Run the first 512 tokens").click()
    expect(picture_line(bench)).to_contain_text("aaaa")


def texts(bench: Workbench) -> dict[str, str]:
    place = bench.page.get_by_role("region", name="Texts of this run")
    expect(place).to_be_visible()
    return dict(zip(place.locator("dt").all_inner_texts(), place.locator("dd").all_inner_texts(), strict=True))


def test_what_the_model_wrote_is_running_text(bench: Workbench, gpt: hs.Model) -> None:
    bench.open(text=NURSE, write="12", view="head", at="L3H2")
    inputs = gpt.generate(NURSE, max_new_tokens=12).trace.inputs
    assert inputs and inputs.text and texts(bench)["Text"].strip() == inputs.text.strip()
    written = bench.page.get_by_role("region", name="Texts of this run").locator(".written").inner_text()
    assert written and not written.startswith(NURSE)
    # A mean over tokens that are still being written would change at every step.
    card = bench.page.locator("aside.right")
    expect(card.get_by_role("button", name="Mean", exact=True)).to_be_disabled()
    expect(card).to_contain_text("Mean: the mean over a text that the model is still writing changes at every step.")


def test_a_translation_opens_on_cross_attention_under_its_two_sentences(bench: Workbench) -> None:
    bench.open(text=NURSE)
    bench.button(re.compile("Model: builtin:gpt")).click()
    models = bench.page.get_by_role("group", name=re.compile("Model: "))
    models.get_by_role("button", name=re.compile("builtin:translate")).click()
    bench.links_to(model="builtin:translate", view="head", at="cross.L2H0")
    bench.ready()
    source = bench.page.get_by_label("Source", exact=True).input_value()
    sentences = texts(bench)
    assert list(sentences) == ["Source", "Translation"] and sentences["Source"] == source
    assert re.search(r"[\u0430-\u044f]{3}", sentences["Translation"])
    expect(bench.status).to_contain_text("mean of 8 heads")
    # What the picture is of is named as such; the card says that it is of one head alone.
    expect(bench.page.get_by_label("Where you are")).to_contain_text("mean of 8 heads of cross.L2")
    card = bench.page.locator("aside.right")
    expect(card).to_contain_text("mean of 8 heads of cross.L2. This panel is of cross.L2H0 alone.")
    # An edited run reads the translation again that the original wrote: that it has not changed means nothing.
    card.get_by_role("button", name="Mean", exact=True).click()
    bench.links_to(edit="mean_ablate('cross.L2H0')")
    bench.ready()
    assert texts(bench) == sentences
    expect(bench.page.get_by_label("Warnings")).to_contain_text(
        "What the model writes is that of the run without edits"
    )
    bench.button("Undo all").click()
    bench.ready()
    expect(bench.page.get_by_label("Warnings")).to_have_count(0)
    card.get_by_role("button", name="Show cross.L2H0").click()
    bench.links_to(mean=None)
    expect(bench.page.get_by_label("Where you are")).to_contain_text("cross.L2H0")
    expect(card).not_to_contain_text("The picture shows")
    bench.button(re.compile("Model: builtin:translate")).click()
    models.get_by_role("button", name=re.compile("builtin:gpt")).click()
    bench.links_to(model="builtin:gpt", mean=None)


IN_LAYER = "set_neuron('L2', 'mlp', 7, 4.0)"


def test_an_edit_of_an_mlp_marks_the_layer_and_no_head(bench: Workbench) -> None:
    bench.open(text=NURSE, at="L3H2", edit=IN_LAYER)
    expect(edited_bar(bench)).to_contain_text("MLP neuron 7 of L2 = 4")
    expect(bench.status).to_contain_text("edited: MLP of L2")
    expect(bench.label("edited")).to_have_count(1)  # under the name of the layer; heads have a tag of that text
    x, y = bench.head_at("L2H1")  # once the measures are there: they move the rows
    name = tag = None
    for _ in range(100):  # labels that are being laid out anew have no box
        name, tag = bench.label("L2").bounding_box(), bench.label("edited").bounding_box()
        if name and tag:
            break
        bench.page.wait_for_timeout(50)
    assert name and tag and abs(name["y"] - tag["y"]) < 20 and tag["x"] < bench.heads()["L2H0"][0]
    bench.page.mouse.move(x, y)
    expect(bench.page.get_by_role("tooltip")).to_contain_text("edited: MLP of L2")
    for view in ("head", "neuron", "activations"):
        bench.choose("Scale", view.capitalize())
        expect(bench.status).to_contain_text("edited: MLP of L2")
    expect(bench.label("L2")).to_have_css("text-decoration-line", "underline")


def test_a_layer_whose_residual_stream_was_edited_is_named_in_the_list_of_layers(bench: Workbench) -> None:
    bench.open(text=NURSE, view="head", at="L3H2", edit="set_neuron('L3', 'residual', 7, 4.0)")
    expect(edited_bar(bench)).to_contain_text("residual stream neuron 7 of L3 = 4")
    layers = bench.page.get_by_label("Layer", exact=True)
    expect(layers.locator("option:checked")).to_have_text("Layer 3 (edited)")
    assert sum("edited" in name for name in layers.locator("option").all_inner_texts()) == 1
    expect(bench.page.locator("aside.right h2").first).not_to_contain_text("edited")


def test_a_saved_page_marks_the_edited_layer_too(offline: Workbench, tmp_path: Path) -> None:
    trace = hs.load("builtin:gpt").run(NURSE, interventions=[hs.set_neuron("L2", "mlp", 7, 4.0)])
    offline.visit(hs.model_view(trace).save(tmp_path / "model.html").as_uri())
    expect(offline.status).to_contain_text("edited: MLP of L2")
    expect(offline.label("edited")).to_have_count(1)
    # Nothing is looked for here, so no key is offered for it.
    expect(offline.page.locator("footer")).to_contain_text("open head")
    expect(offline.page.locator("footer")).not_to_contain_text("find heads")
