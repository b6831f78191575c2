"""A server that was started with a folder of models and no corpus: what it offers all the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.server import Server
from browser.workbench import Workbench


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory, word_model: str) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "log", "--allow", str(Path(word_model).parent)) as running:
        yield running


def test_examples_of_a_head_come_from_the_builtin_sentences(own_bench: Workbench) -> None:
    bench = own_bench
    bench.open(text="The doctor asked the nurse a question. She", view="head", at="L4H2")
    panel = bench.page.get_by_label("Examples", exact=True)
    panel.get_by_role("button", name="in built-in sentences").click()
    expect(panel.get_by_role("listitem")).to_have_count(8)
    expect(panel).to_contain_text("Sentences written for Headscope")
    expect(panel).to_contain_text("--corpus FILE")
    expect(panel).to_contain_text("of 80 examples")
    bench.picture("examples-builtin")


def test_models_of_the_folder_are_in_the_picker(own_bench: Workbench, word_model: str) -> None:
    bench = own_bench
    bench.open(text="The doctor asked the nurse a question. She")
    bench.button(re.compile("Model: builtin:gpt")).click()
    picker = bench.page.get_by_role("group", name=re.compile("Model: builtin:gpt"))
    row = picker.get_by_role("button", name=re.compile("^words"))
    expect(row).to_contain_text("loaded when it is first run")
    row.click()
    bench.ready()
    bench.links_to(model=word_model)
    expect(bench.page.get_by_role("button", name=f"Model: {word_model}")).to_be_visible()
