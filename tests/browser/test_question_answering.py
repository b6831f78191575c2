"""The span that a model answers a question with, in the views and on the card."""

import pytest
from playwright.sync_api import expect
from transformers import AutoModelForQuestionAnswering

import headscope as hs
from headscope.analysis.attribution.relevance import relevance

QUESTION = "Where did the farmer find the key?"
CONTEXT = "In the evening the farmer found the key under the old cart."


@pytest.fixture(scope="module")
def answered():
    import torch

    torch.manual_seed(5)
    bert = hs.load("builtin:bert")
    model = hs.Model(AutoModelForQuestionAnswering.from_config(bert.config).eval(), bert.tokenizer, name="questions")
    return model, model.run(QUESTION, pair=CONTEXT)


def test_the_answer_is_underlined_and_explained(offline, answered, tmp_path):
    model, trace = answered
    first, last = trace.span.span
    view = hs.head_view(trace, relevance=relevance(model, trace.inputs))
    offline.visit(view.save(tmp_path / "answer.html").as_uri())
    underlined = offline.page.locator("span[dir=auto]").evaluate_all(
        "spans => spans.filter((span) => span.style.textDecoration.includes('underline')).map((s) => s.textContent)"
    )
    words = [trace.tokens["main"][place].text for place in range(first, last + 1)]
    assert underlined == words * 2  # among the queries and among the keys
    card = offline.page.get_by_text("A span of the text: the first of these is underlined in it.")
    expect(card).to_be_visible()
    expect(offline.page.locator(".answers li").first).to_contain_text(trace.span.text)
    expect(offline.page.get_by_role("status").filter(has_text="from the input")).to_contain_text("logit")


def test_the_answer_is_underlined_in_the_matrix(offline, answered, tmp_path):
    _, trace = answered
    offline.visit(hs.head_view(trace, "L0H0", form="matrix").save(tmp_path / "answer.html").as_uri())
    marked = offline.page.locator("span[dir=auto]").evaluate_all(
        "spans => spans.filter((span) => span.style.textDecoration.includes('underline')).length"
    )
    first, last = trace.span.span
    assert marked == 2 * (last - first + 1)
