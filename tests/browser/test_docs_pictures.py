"""The pictures of the workbench in the documentation, taken anew: `HEADSCOPE_PICTURES=docs/pictures` says where to."""

import json
import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest

import headscope as hs
from browser.server import Server
from browser.workbench import Workbench, open_answer

pytestmark = pytest.mark.skipif(not os.environ.get("HEADSCOPE_PICTURES"), reason="no pictures are wanted")

NURSE = "The doctor asked the nurse a question. She"
RED = "The cat found the red key, and the king laughed. The cat found the red"
WHO = ("nurse", "patient"), ("teacher", "student"), ("farmer", "neighbour"), ("baker", "customer"), ("driver", "guest")
SAID = (
    "The {0} told the {1} that he would finish before dinner.",
    "The {0} asked the {1} whether she had slept well.",
    "The {1} thanked the {0} because he had been of help.",
    "The {0} gave the {1} the tools that she needed.",
    "The {1} said to the {0} that it was late, and that he was tired.",
    "The {0} and the {1} met again when the snow was gone.",
    "The {1} never forgot what the {0} had told her that day.",
    "The {0} wrote to the {1} that all was well in the village.",
)
STORY = [sentence.format(*who) for who, sentence in product(WHO, SAID)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, word_model: str) -> Iterator[Server]:
    """As a user starts it, without a corpus, with an atlas of the built-in sentences."""
    folder = tmp_path_factory.mktemp("server")
    sentences = Path(hs.__file__).parent / "builtin" / "sentences.txt"
    atlas = hs.atlas("builtin:bert", str(sentences), folder / "sentences", points=None)
    with Server(folder / "log", "--allow", str(Path(word_model).parent), "--atlas", str(atlas.folder)) as running:
        yield running


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest, bench: Workbench) -> str:
    bench.page.emulate_media(color_scheme=request.param)
    return request.param


@pytest.fixture(scope="module")
def long_llama(tmp_path_factory: pytest.TempPathFactory, shared_weights: Path, word_model: str) -> str:
    """A Llama for 256 tokens that is said to take 8,192: its positions are rotations, which have no end."""
    folder = Path(word_model).parent / "longllama"  # where the server may read
    shutil.copytree(shared_weights / "stories15m-llama-fp16", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    return str(folder)


def save_picture(bench: Workbench, name: str) -> None:
    """A picture, once the card of the head has its measures, which come last."""
    bench.page.locator("aside.right .bars, aside.right [aria-label=Measures], aside.right table").first.wait_for()
    bench.picture(name)


@pytest.mark.parametrize("tokens", [12, 120, 1200])
def test_short_and_long(bench: Workbench, theme: str, tokens: int, request: pytest.FixtureRequest) -> None:
    text = {12: NURSE, 120: " ".join(STORY[:8]), 1200: " ".join((STORY * 3)[:88])}[tokens]
    model = "builtin:gpt" if tokens < 1200 else request.getfixturevalue("long_llama")
    few = {"filter": "threshold", "threshold": "0.05"} if tokens == 1200 else {}
    bench.open(model, text=text)
    save_picture(bench, f"model-{tokens}-{theme}")
    bench.open(model, text=text, view="head", at="L5H6" if tokens == 12 else "L3H2", hide="first", **few)
    save_picture(bench, f"head-{tokens}-{theme}")


def test_the_first_of_all(bench: Workbench) -> None:
    pair = {"text": "The boy bought a new bicycle yesterday.", "pair": "Yesterday the boy bought a new bike."}
    bench.open("builtin:bert", **pair, view="head", at="L2H3")
    bench.hover("bought", "query")
    save_picture(bench, "workbench")


def test_the_atlas(bench: Workbench) -> None:
    bench.goto(f"{bench.server.host}/#view=atlas&atlas=builtin:gpt")
    bench.page.locator("aside.right button.head canvas").first.wait_for()
    bench.picture("atlas-workbench")


def test_neurons(bench: Workbench, theme: str) -> None:
    bench.open(text=NURSE, view="neuron", at="L3H2", neurons="contribution")
    save_picture(bench, f"neuron-{theme}")


def test_an_edit_and_what_it_did(bench: Workbench) -> None:
    bench.open(text=RED, view="head", at="L4H1", edit="silence('L4H1')")
    card = bench.page.locator("aside.right")
    card.get_by_role("button", name="Write 20 tokens: original and edited").click()
    card.locator(".written dd").first.wait_for()
    save_picture(bench, "edit-silence")
    bench.open(text=RED, at="L3H2", edit="silence('L3H2')")
    card.get_by_role("button", name="Difference", exact=True).click()
    bench.status.get_by_text("full colour").wait_for()
    save_picture(bench, "edit-difference")


def test_where_an_edit_changes_the_answer(bench: Workbench) -> None:
    two = {"edit": "silence('L3H2')", "with": urlencode({"edit": ""}), "compare": "difference"}
    bench.open(text=RED, view="activations", at="L4H0", token="query:16", **two)
    bench.picture("activations-difference")


def test_two_runs_that_differ_in_a_word(bench: Workbench) -> None:
    texts = (
        "The nurse went to the hospital because she was tired.",
        "The doctor went to the hospital because she was tired.",
    )
    two = {"with": urlencode({"text": texts[1]}), "compare": "difference", "sort": "total_variation"}
    bench.open(text=texts[0], **two)
    bench.status.get_by_text("full colour").wait_for()
    save_picture(bench, "compare")


def test_patches(bench: Workbench) -> None:
    bench.open(
        "builtin:vit", media="preset:sailing boat", view="head", at="L4H1", heads="0,1,2,3,4,5", token="query:30"
    )
    save_picture(bench, "image-heads")


def test_words_over_a_picture(bench: Workbench, colours: str) -> None:
    bench.page.set_viewport_size({"width": 1180, "height": 760})
    open_answer(bench, colours, view="head", at="L1H2", token="query:262")
    box = bench.page.locator(".view canvas").last.bounding_box() or {}
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    bench.page.mouse.move(middle[0] + 40, middle[1] - 120)
    bench.page.mouse.down()
    bench.page.mouse.move(middle[0] + 190, middle[1] + 30, steps=4)
    bench.page.mouse.up()
    bench.picture("vision-language")


def test_one_head_of_an_atlas_and_an_example(bench: Workbench) -> None:
    bench.page.emulate_media(color_scheme="dark")
    selection = {"cloud": "L3H0", "paint": "position5", "on": "lines,sentence", "point": "query:21"}
    bench.goto(bench.address(view="atlas", atlas="sentences", **selection))
    bench.picture("atlas-head")
