"""One Chromium and one server for all browser tests, kept in one process by `tests/conftest.py`; a page for each."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted_vision_language
import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

import headscope as hs
from browser.server import Server
from browser.word_model import save_word_model
from browser.workbench import Workbench

# What examples of heads and neurons are taken from.
TEXTS = [
    "The doctor asked the nurse a question.",
    "She gave him the key of the barn.",
    "It was raining, and the river was high.",
    "The king said to the queen that he would go away.",
]
ROOT = Path(__file__).parents[2]
PICTURES = ROOT / ".pictures"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
WINDOW: Any = {"viewport": {"width": 1440, "height": 860}, "color_scheme": "light", "reduced_motion": "reduce"}


def pytest_exception_interact(node: pytest.Item | pytest.Collector, report: pytest.CollectReport | pytest.TestReport):
    """Keep a picture of the page that a test failed on."""
    if report.when == "call" and (bench := getattr(node, "funcargs", {}).get("bench")):
        PICTURES.mkdir(exist_ok=True)
        name = "".join(letter if letter.isalnum() else "_" for letter in node.name)[:100]
        bench.page.screenshot(path=PICTURES / f"{name}.png")


# For this folder and no longer: while Playwright runs, its event loop does, and no other test could start one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    process = subprocess.run(["sh", str(ROOT / "scripts" / "chromium")], capture_output=True, text=True, check=False)
    if process.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(process.stderr.strip())
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=process.stdout.strip(), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.is_file():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("axe-core is absent: run `scripts/web npm ci`")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def gpt() -> hs.Model:
    """The model that most pages here show, to compare numbers with."""
    return hs.load("builtin:gpt")


@pytest.fixture(scope="session")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a model for texts that the built-in ones would cut to pieces, or that are too long for them."""
    folder = tmp_path_factory.mktemp("models") / "words"
    save_word_model(folder)
    return str(folder)


@pytest.fixture(scope="session")
def colours(word_model: str) -> str:
    """The folder of a model that looks at the patches of the colour that a word names."""
    return str(planted_vision_language.save(Path(word_model).parent / "colours"))


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory, word_model: str) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    options = ("--allow", str(Path(word_model).parent), "--corpus", str(folder / "texts.txt"))
    with Server(folder / "log", *options) as running:
        yield running


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """A browser of someone who is signed in and has been here before."""
    fresh = browser.new_context(**WINDOW)
    fresh.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.host)
    fresh.add_cookies([{"name": name, "value": value, "url": server.host} for name, value in server.cookies.items()])
    yield fresh
    fresh.close()


@pytest.fixture
def bench(context: BrowserContext, server: Server) -> Iterator[Workbench]:
    """The workbench in a fresh page. Whatever goes wrong in it fails the test, asked about or not."""
    workbench = Workbench(context.new_page(), server)
    yield workbench
    assert workbench.problems() == []


@pytest.fixture
def offline(browser: Browser, server: Server) -> Iterator[Workbench]:
    """A browser without any network, and without a cookie: what it shows, it has from a file."""
    context = browser.new_context(**WINDOW, offline=True)
    workbench = Workbench(context.new_page(), server)
    yield workbench
    assert workbench.problems() == []
    context.close()


@pytest.fixture
def own_bench(browser: Browser, own_server: Server) -> Iterator[Workbench]:
    """A page on the server that a test file starts for itself, as its fixture `own_server`."""
    context = browser.new_context(**WINDOW)
    cookies = [{"name": name, "value": value, "url": own_server.host} for name, value in own_server.cookies.items()]
    context.add_cookies(cookies)  # type: ignore[arg-type]
    bench = Workbench(context.new_page(), own_server)
    yield bench
    assert bench.problems() == []
    context.close()
