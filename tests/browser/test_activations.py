"""Activations: layers by tokens, a token's column; and text that the model writes, step by step."""

import re

from playwright.sync_api import expect

import headscope as hs
from browser.conftest import TEXTS
from browser.word_model import words
from browser.workbench import Workbench

NURSE = "The doctor asked the nurse a question. She"
STORY = "Once upon a time there was a miller"


def test_the_lens_shows_what_each_layer_would_predict(bench, gpt):
    bench.open(text=NURSE, view="activations")
    activations = gpt.activations(gpt.run(NURSE))
    expect(bench.status).to_contain_text("6 layers × 10 tokens")
    last = [activations.predictions(token)["L5"][0].text.strip() for token in range(1, 10)]
    for text in last:
        if text:
            expect(bench.label(text).first).to_be_attached()
    bench.press("ArrowLeft")
    bench.links_to(token="query:9")
    card = bench.page.get_by_label("Predictions layer by layer")
    row_text = card.get_by_role("row").nth(7).inner_text()
    for prediction in activations.predictions(9)["L5"]:
        assert prediction.text.strip() in row_text
        assert f"{prediction.logprob:.2f}".replace("-", "−") in row_text
    assert card.get_by_role("row").nth(1).inner_text().split()[-1] == f"{activations.ranks(9)['input'] + 1:,}"
    neurons = bench.page.get_by_label("MLP neurons", exact=True)
    index, _, share = activations.top_neurons("L0", 9)[0]
    expect(neurons.locator("li").first).to_contain_text(str(index))
    expect(neurons.locator("li").first).to_contain_text(f"{share * 100:.1f} %")
    bench.press("ArrowDown")
    index = activations.top_neurons("L1", 9)[0][0]
    expect(neurons.locator("li").first).to_contain_text(str(index))
    bench.page.get_by_label("What heads wrote").get_by_role("button").first.click()
    bench.links_to(view="head")


def test_norms_and_what_was_written(bench, gpt):
    bench.open(text=NURSE, view="activations", stream="norm")
    norms = gpt.activations(gpt.run(NURSE)).norms
    expect(bench.label(f"{norms[0, 1]:.2f}").first).to_be_attached()
    before = bench.stage()
    bench.choose("What is shown", "MLP")
    bench.links_to(stream="mlp")
    expect(bench.status).to_contain_text("a layer adds just what these write")
    assert bench.stage() != before
    bench.page.keyboard.press("t")
    table = bench.page.get_by_label("Numbers as a table")
    expect(table.locator("tbody tr")).to_have_count(70)
    bench.page.keyboard.press("t")


def test_a_long_text_is_read_in_parts(bench):
    text = " ".join(["The farmer asked the housekeeper for the key because he wanted to open the barn."] * 20)
    bench.open(text=text, view="activations", token="query:300")
    expect(bench.page.get_by_label("The token in focus")).to_contain_text("token 300 of 361")
    expect(bench.page.get_by_label("Predictions layer by layer").get_by_role("row")).to_have_count(8)
    expect(bench.label("…")).to_have_count(0)
    bench.press("Home")
    expect(bench.label("<|endoftext|>").first).to_be_visible()
    expect(bench.label("…")).to_have_count(0)


def test_norms_of_thousands_of_tokens_on_one_screen(bench, word_model):
    bench.open(word_model, text=words(2000), view="activations", stream="norm", token="query:1501")
    expect(bench.status).to_contain_text("6 layers × 2,000 tokens")
    numbers = sorted((x, int(text)) for text, x, _ in bench._texts() if re.fullmatch(r"\d+", text))
    assert len(numbers) >= 5 and all(number % 100 == 0 for _, number in numbers)
    token = bench.page.locator(".view span:visible").filter(has_text=re.compile(r"^[bdfg][aeiou][klmnprst]$"))
    box = token.first.bounding_box()
    assert all(abs(x - box["x"]) > 30 for x, _ in numbers)  # they make room for it


def test_text_that_the_model_writes_step_by_step(bench):
    bench.open(text=STORY, view="head", at="L3H2")
    bench.page.get_by_label("more tokens").fill("6")
    bench.page.get_by_role("button", name="Run", exact=True).click()
    bench.ready()
    steps = bench.page.get_by_role("group", name="Steps of the text that the model wrote")
    expect(steps).to_contain_text("6 steps written")
    bench.links_to(write="6", step=None)
    visible_tokens = bench.page.locator(".view span:visible")
    n_all = visible_tokens.count()
    bench.press(".")
    bench.links_to(step="0", token="query:10")
    expect(steps).to_contain_text("step 1 of 6: wrote 's")
    expect(steps.get_by_label("What it might have written")).to_contain_text("'s")
    assert visible_tokens.count() < n_all
    bench.press(".", ".")
    bench.links_to(step="2", token="query:12")
    bench.press(",")
    bench.links_to(step="1")
    steps.get_by_label("Step", exact=True).fill("5")
    bench.links_to(step="5")
    bench.press("4")
    bench.links_to(view="activations", step="5")
    expect(bench.status).to_contain_text("× 16 tokens")
    address = bench.page.url
    bench.visit(address)
    expect(steps).to_contain_text("step 6 of 6")
    steps.get_by_role("button", name="all", exact=True).click()
    bench.links_to(step=None)
    expect(bench.status).to_contain_text("× 17 tokens")


def test_a_translation_has_the_steps_of_its_decoder(bench):
    bench.open(model="builtin:translate", text="The old man sat by the river.", view="head", at="cross.L2H1")
    steps = bench.page.get_by_role("group", name="Steps of the text that the model wrote")
    expect(steps).to_contain_text(re.compile(r"\d+ steps written"))
    bench.press(".")
    bench.links_to(step="0", token="query:0")
    expect(bench.label("</s>")).to_have_count(1)  # the whole source stays
    steps.get_by_role("button", name="Play the steps").click()
    bench.links_to(step="2")
    steps.get_by_role("button", name="Pause").click()


def test_examples_of_a_neuron_and_of_a_head(bench, gpt, tmp_path):
    bench.open(text=NURSE, view="activations", at="L3H0", token="query:9")
    panel = bench.page.get_by_label("Examples", exact=True)
    index = gpt.activations(gpt.run(NURSE)).top_neurons("L3", 9)[0][0]
    expect(panel).to_contain_text(f"Examples of L3.neurons[{index}]")
    panel.get_by_role("button", name="in texts.txt").click()
    lines = panel.get_by_role("listitem")
    expect(lines).to_have_count(4)
    example = hs.examples(gpt, TEXTS, f"L3.neurons[{index}]", k=1, folder=tmp_path / "kept")[0]
    expect(lines.first).to_contain_text(f"{example.value:.2f}")
    expect(lines.first.locator(".here")).to_have_text(example.tokens[example.token])
    bench.press("2")
    expect(panel).to_contain_text("Examples of L3H0")
    bench.page.get_by_label("of", exact=True).select_option("query")
    bench.page.get_by_label("Coordinate").fill("5")
    panel.get_by_role("button", name="in texts.txt").click()
    expect(panel).to_contain_text("Examples of L3H0.query[5]")
    expect(lines).to_have_count(4)
    bench.page.get_by_label("Coordinate").fill("999")
    expect(panel).to_contain_text("0 to 31")


def test_predictions_are_not_offered_where_no_layer_makes_any(bench: Workbench) -> None:
    bench.open("builtin:vit", media="preset:lorry", view="activations", at="L1H3")
    streams = bench.page.get_by_role("group", name="What is shown")
    predictions = streams.get_by_role("button", name="Predictions")
    expect(predictions).to_have_attribute("aria-disabled", "true")
    expect(predictions).to_have_accessible_description("Predictions: the model has no language-model head")
    # What is pressed is what is drawn.
    expect(streams.get_by_role("button", name="Norms")).to_have_attribute("aria-pressed", "true")
    expect(bench.status).to_contain_text("norm of the residual stream")
    bench.choose("What is shown", "MLP")
    bench.links_to(stream="mlp")
    bench.open(text="The cat sat.", view="activations", at="L1H3")
    expect(predictions).not_to_have_attribute("aria-disabled", "true")
