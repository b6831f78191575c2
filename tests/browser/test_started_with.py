"""What a server was started with: a treebank to start from, and a model whose answers cannot be explained."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_models
from playwright.sync_api import expect

from browser.server import Server
from browser.test_trees import ROWS, TREE
from browser.workbench import Workbench


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A mixture of experts, whose router has no rule."""
    folder = tmp_path_factory.mktemp("models") / "mixtral"
    tiny_models.FAMILIES["mixtral"].build().save_pretrained(folder)  # type: ignore[operator]
    tiny_models.tiny_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory, experts: str) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    bank: Path = folder / "bank.conllu"
    bank.write_text(TREE + "\n\n", encoding="utf-8")
    with Server(folder / "log", experts, "--corpus", str(bank)) as running:
        yield running


def test_a_sentence_of_the_corpus_is_run_with_its_gold_tree(own_bench: Workbench) -> None:
    bench = own_bench
    bench.open(model="builtin:bert", text="Another sentence.", view="head", at="L5H7")
    offered = bench.page.get_by_role("region", name="Start from")
    expect(offered).to_contain_text("bank.conllu, with gold trees")
    row = offered.get_by_role("button", name="The doctor asked the nurse a question .")
    row.click()
    expect(bench.status).to_contain_text("gold tree")
    for *_, relation in ROWS:
        expect(bench.label(relation).first).to_be_visible()
    expect(row).to_have_attribute("aria-current", "true")
    bench.open(model="builtin:vit", media="preset:lorry")
    expect(offered).to_contain_text("lorry")
    expect(offered).not_to_contain_text("bank.conllu")


def test_the_first_visit_runs_an_example_of_the_model_that_was_given(own_bench: Workbench, experts: str) -> None:
    bench = own_bench
    bench.visit(bench.server.host)
    expect(bench.status).to_contain_text("8 heads")
    bench.links_to(model=experts)
    offered = bench.page.get_by_role("region", name="Start from").get_by_role("button").first
    expect(offered).to_have_attribute("aria-current", "true")
    facts = bench.page.locator("p.facts")
    expect(facts).to_have_text("all 2 attention layers can be seen and edited")
    expect(facts).to_have_attribute("title", re.compile("2/2 attention modules captured"))


def test_a_model_without_rules_is_refused_in_the_strip(own_bench: Workbench, experts: str) -> None:
    bench = own_bench
    bench.open(model=experts, text="the cat sat on the mat")
    bench.page.locator(".answers button").first.click()
    strip = bench.page.get_by_role("region", name="Relevance")
    expect(strip.get_by_role("alert")).to_contain_text("router")
    expect(strip.locator(".token")).to_have_count(0)
    bench.button("No relevance").click()
    bench.links_to(relevance=None)
