"""A link computes nothing by itself: what the server holds is shown, everything else waits for a click."""

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import Request as PageRequest

import headscope as hs
from browser.server import Server
from browser.workbench import LOOKUP, Workbench, answer_absent

EDIT = "silence('L3H2')"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def other_site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address on another port where it is served."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{site.server_port}"
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture
def sent_requests(bench: Workbench) -> list[str]:
    """What the page asks the server to compute: paths of requests, as they are sent."""
    paths: list[str] = []

    def watch(request: PageRequest) -> None:
        path = request.url.removeprefix(f"{bench.server.host}/api/")
        if request.method == "POST" and path in ("runs", "tasks", "models"):
            paths.append(path)

    bench.page.on("request", watch)
    return paths


@pytest.fixture
def text() -> str:
    """An input that no other test has run."""
    return f"The doctor asked the nurse a question about {uuid4().hex[:6]}. She"


def held_runs(server: Server) -> list[dict[str, Any]]:
    with server.opener.open(f"{server.host}/api/traces") as answer:
        return sorted(json.load(answer), key=lambda run: run["id"])


def run_on(server: Server, model: str = "builtin:gpt", **options: Any) -> None:
    """Run an input by the server's API, as a script does."""
    body = json.dumps({"model": model, **options}).encode()
    request = Request(f"{server.host}/api/runs", body, {"content-type": "application/json"})
    with server.opener.open(request) as answer:
        assert json.loads(answer.read().splitlines()[-1])["state"] == "done"


def card(bench: Workbench) -> Locator:
    return bench.page.get_by_role("region", name="This link asks to")


def bar(bench: Workbench) -> Locator:
    return bench.page.get_by_role("status").filter(has_text="This link also asks for")


def click_run(place: Locator) -> None:
    place.get_by_role("button", name="Run", exact=True).click()


def test_a_page_on_another_port_has_nothing_computed(
    bench: Workbench, sent_requests: list[str], other_site: tuple[Path, str], text: str
) -> None:
    folder, host = other_site
    link = bench.address(text=text, edit=EDIT, view="head", at="L3H2", write="3")
    (folder / "index.html").write_text(f"<script>location = {json.dumps(link)}</script>", encoding="utf-8")
    before = held_runs(bench.server)
    bench.expect(host)
    bench.page.goto(f"{host}/index.html")
    bench.page.wait_for_url(f"{bench.server.host}/**")
    bench.ready()
    expect(card(bench)).to_contain_text("This link asks to run builtin:gpt with 1 edit.")
    expect(card(bench)).to_contain_text("Nothing has been computed yet.")
    assert sent_requests == [] and held_runs(bench.server) == before
    click_run(card(bench))
    expect(bench.page.get_by_role("region", name="Edits", exact=True)).to_contain_text("silence L3H2")
    bench.ready()
    assert sent_requests[0] == "runs"
    requests = [run["request"] for run in held_runs(bench.server) if run["request"]["text"] == text]
    assert [request for request in requests if request["edits"] == [EDIT] and request["generate"] == 3]


def test_the_card_lists_what_would_be_computed_and_the_form_is_filled_in(
    bench: Workbench, sent_requests: list[str], text: str
) -> None:
    other = {"with": urlencode({"text": "Something else", "edit": ""})}
    find = json.dumps({"by": "pattern"})
    bench.goto(bench.address(text=text, edit=EDIT, **other, view="activations", relevance="9:5", find=find))
    for words in (
        "builtin:gpt",
        text,
        EDIT,
        "Something else",
        "Original: not edited",
        "Activations",
        "relevance",
        "heads",
    ):
        expect(card(bench)).to_contain_text(words)
    assert bench.page.get_by_label("Text", exact=True).input_value() == text
    assert bench.page.locator(".view").count() == 0
    assert sent_requests == []


@pytest.mark.parametrize("way", ["card", "form", "keys"])
def test_a_click_or_ctrl_enter_runs_the_whole_link(bench: Workbench, text: str, way: str) -> None:
    bench.goto(bench.address(text=text, edit=EDIT, view="head", at="L3H5", by="words"))
    button = card(bench).get_by_role("button", name="Run")
    if way == "card":
        button.click()
    elif way == "form":
        click_run(bench.page.get_by_role("form", name="Input"))
    else:
        expect(button).to_be_enabled()
        bench.page.keyboard.press("Control+Enter")
    expect(bench.page.get_by_role("region", name="Edits", exact=True)).to_contain_text("silence L3H2")
    bench.ready()
    bench.links_to(text=text, edit=EDIT, view="head", at="L3H5", by="words")


def test_other_keys_run_nothing_and_tab_leads_to_the_button(
    bench: Workbench, sent_requests: list[str], text: str
) -> None:
    bench.goto(bench.address(text=text))
    expect(card(bench).get_by_role("button", name="Run")).to_be_enabled()
    expect(card(bench)).to_be_focused()
    for key in ("Enter", "Space"):  # as they may be pressed in a game that changes the address
        bench.page.keyboard.press(key)
    assert sent_requests == []
    bench.page.keyboard.press("Tab")
    expect(card(bench).get_by_role("button", name="Run")).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Space", "Control+Enter"])
@pytest.mark.parametrize("place", ["card", "form"])
def test_a_key_that_is_held_down_since_the_address_before_runs_nothing(
    bench: Workbench, sent_requests: list[str], text: str, key: str, place: str
) -> None:
    other = f"{text} said"  # which no test has run either
    bench.open(text=text)
    *modifiers, last = key.split("+")
    for name in (*modifiers, last):
        bench.page.keyboard.down(name)
    bench.ready()
    before = list(sent_requests)
    bench.page.evaluate("link => { location.hash = link }", f"model=builtin:gpt&text={quote(other)}")
    where = card(bench) if place == "card" else bench.page.get_by_role("form", name="Input")
    button = where.get_by_role("button", name="Run", exact=True)
    expect(button).to_be_enabled()
    button.focus()
    for _ in range(3):
        bench.page.keyboard.down(last)
    for name in (last, *modifiers):
        bench.page.keyboard.up(name)
    bench.ready()
    expect(card(bench)).to_contain_text(other)
    assert sent_requests == before


def test_a_form_that_was_changed_runs_what_it_says(bench: Workbench, text: str) -> None:
    bench.goto(bench.address(text=text, edit=EDIT))
    bench.page.get_by_label("Text", exact=True).fill(f"{text} said")
    click_run(bench.page.get_by_role("form", name="Input"))
    bench.links_to(text=f"{text} said", edit=None)
    bench.ready()
    picture = bench.page.get_by_label("What the picture shows")
    expect(picture).to_contain_text(f"{text} said")
    expect(picture).to_contain_text("not edited")


def test_a_link_whose_run_is_held_is_shown_at_once(bench: Workbench, sent_requests: list[str], text: str) -> None:
    run_on(bench.server, text=text)
    before = held_runs(bench.server)
    bench.goto(bench.address(text=text, view="head", at="L3H2"))
    assert bench.is_chosen("Scale", "Head")
    expect(card(bench)).to_have_count(0)
    expect(bench.page.locator("aside.right .bars, aside.right [aria-label=Measures]").first).to_be_visible()
    assert sent_requests == [] and held_runs(bench.server) == before


def test_a_fragment_that_changes_waits_too_and_back_shows_what_was_run(
    bench: Workbench, sent_requests: list[str], text: str
) -> None:
    other = f"{text} said"  # which no test has run either
    bench.open(text=text)
    before = list(sent_requests)
    bench.page.evaluate("link => { location.hash = link }", f"model=builtin:gpt&text={quote(other)}")
    expect(card(bench)).to_contain_text(other)
    assert bench.page.locator(".view").count() == 0
    assert bench.page.get_by_label("Text", exact=True).input_value() == other
    bench.page.go_back()
    expect(card(bench)).to_have_count(0)
    expect(bench.status).to_contain_text("48 heads")
    bench.page.go_forward()
    expect(card(bench)).to_contain_text(other)
    assert sent_requests == before
    click_run(card(bench))
    expect(bench.status).to_contain_text("48 heads")


@pytest.fixture
def unloaded_model(word_model: str) -> Iterator[str]:
    """The folder of a model that the server may load, and has not."""
    folder = Path(word_model).with_name(f"model-{uuid4().hex[:6]}")
    shutil.copytree(word_model, folder)
    yield str(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("selection", [{}, {"text": "bak bal"}])
def test_a_link_does_not_load_its_model(
    bench: Workbench, sent_requests: list[str], unloaded_model: str, selection: dict[str, str]
) -> None:
    def loaded_models() -> list[str]:
        with bench.server.opener.open(f"{bench.server.host}/api/settings") as answer:
            return [model["name"] for model in json.load(answer)["models"] if model["is_loaded"]]

    bench.goto(bench.address(unloaded_model, **selection))
    expect(card(bench)).to_contain_text("Not loaded yet.")
    assert sent_requests == [] and unloaded_model not in loaded_models()
    click_run(card(bench))
    expect(bench.status).to_contain_text("heads")
    assert unloaded_model in loaded_models()


TASKS = {
    "relevance": ({"relevance": "9:5"}, "the relevance of the input to a prediction", ".strip .token"),
    "find": ({"find": json.dumps({"by": "pattern"})}, "a search for heads", "table[aria-label='Heads found']"),
    "activations": ({"view": "activations"}, "activations", ".view span:visible"),
    "compare": (
        {"with": urlencode({"text": "The doctor asked the nurse."})},
        "the comparison with another run",
        "[aria-label=Comparison]",
    ),
    "effect": ({"edit": EDIT}, "the effect of the edits", "[aria-label='What it did'] .bars"),
}


@pytest.mark.parametrize("task", TASKS)
def test_tasks_of_a_held_run_wait_for_the_click_and_are_then_held(
    bench: Workbench, sent_requests: list[str], text: str, task: str
) -> None:
    selection, name, result = TASKS[task]
    run_on(bench.server, text=text, edits=[EDIT] if task == "effect" else [])
    before = held_runs(bench.server)
    bench.goto(bench.address(text=text, **selection))
    expect(bar(bench)).to_contain_text(f"This link also asks for {name}.")
    bench.ready()
    assert bench.page.locator(result).count() == 0
    assert sent_requests == [] and held_runs(bench.server) == before
    click_run(bar(bench))
    expect(bench.page.locator(result).first).to_be_visible()
    expect(bar(bench)).to_have_count(0)
    address = bench.page.url
    assert all(f"{key}=" in address for key in selection)
    # Opened again, it is shown without a click.
    sent_requests.clear()
    bench.goto(address)
    expect(bench.page.locator(result).first).to_be_visible()
    expect(bar(bench)).to_have_count(0)
    assert sent_requests == []


def test_a_task_that_the_user_asks_for_is_computed_and_no_other(
    bench: Workbench, sent_requests: list[str], text: str, gpt: hs.Model
) -> None:
    run_on(bench.server, text=text)
    find = json.dumps({"by": "pattern"})
    bench.goto(bench.address(text=text, relevance="9:5", find=find))
    expect(bar(bench)).to_contain_text("relevance of the input to a prediction and a search for heads")
    bench.page.locator(".answers button").first.click()
    expect(bench.page.locator(".strip .token").first).to_be_visible()
    top = gpt.run(text).predictions()[0]
    bench.links_to(relevance=f"{len(gpt.run(text).tokens['main']) - 1}:{top.id}")
    expect(bar(bench)).to_contain_text("This link also asks for a search for heads.")
    assert sent_requests == ["tasks"]
    bar(bench).get_by_role("button", name="Dismiss").click()
    expect(bar(bench)).to_have_count(0)
    bench.links_to(find=None)


def test_the_start_example_needs_no_click_even_if_the_server_has_forgotten_it(
    bench: Workbench, sent_requests: list[str]
) -> None:
    bench.page.route(LOOKUP, answer_absent)
    bench.goto(bench.server.host)
    expect(bench.status).to_contain_text("48 heads")
    bench.page.wait_for_url("**text=*")  # the address now names the example
    bench.page.reload()
    expect(bench.status).to_contain_text("48 heads")
    assert sent_requests == ["runs", "runs"]


def test_a_reload_after_the_server_has_forgotten_the_run_waits(
    bench: Workbench, sent_requests: list[str], text: str
) -> None:
    bench.open(text=text)
    before = list(sent_requests)
    bench.page.route(LOOKUP, answer_absent)
    bench.page.reload()
    expect(card(bench)).to_contain_text(text)
    assert sent_requests == before


@pytest.mark.parametrize("width", [390, 900])
def test_the_card_fits_into_a_narrow_window(bench: Workbench, text: str, width: int) -> None:
    bench.page.set_viewport_size({"width": width, "height": 600})
    bench.goto(bench.address(text=text * 60, edit=f"block('L0H0', 1, {list(range(2, 400))})"))
    assert bench.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card(bench).get_by_role("button", name="Show all").click()
    assert bench.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    click_run(card(bench))
    expect(card(bench)).to_have_count(0)
