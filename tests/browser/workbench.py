"""The workbench as a user meets it: opened by a link, waited for, watched."""

import io
import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import made_media
import numpy as np
import planted_vision_language
from PIL import Image
from playwright.sync_api import ConsoleMessage, Locator, Page, Request, Route, expect

from browser.server import Server

ROOT = "[data-headscope]"
LIMIT = 30_000  # ms; long, as machines may be busy with other tests
LOOKUP = "**/api/runs?only_kept=true"
expect.set_options(timeout=LIMIT)


class Workbench:
    """One page. It remembers what went wrong in it: errors, and anything asked of another machine."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server = page, server
        self._wrong: list[str] = []
        self._expected: list[str] = []
        page.set_default_timeout(LIMIT)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._wrong.append(f"page error: {error}"))
        page.on("request", self._watch)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._wrong.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _watch(self, request: Request) -> None:
        where = urlsplit(request.url)
        if where.scheme in ("http", "https", "ws", "wss") and f"{where.scheme}://{where.netloc}" != self.server.host:
            self._wrong.append(f"asked another machine: {request.url}")

    def expect(self, pattern: str) -> None:
        """This is meant to go wrong."""
        self._expected.append(pattern)

    def problems(self) -> list[str]:
        return [
            problem for problem in self._wrong if not any(re.search(pattern, problem) for pattern in self._expected)
        ]

    def open(self, model: str = "builtin:gpt", **selection: str) -> None:
        """Open a link to an input and a selection, and run it."""
        self.visit(self.address(model, **selection))

    def visit(self, address: str) -> None:
        """Open an address and run what it asks for, even if the server holds it from an earlier test."""
        self.page.route(LOOKUP, answer_absent)
        self.goto(address)
        self.page.unroute(LOOKUP, answer_absent)
        run = self.page.locator("main").get_by_role("button", name="Run", exact=True)
        if run.is_visible():
            run.click()
            self.page.mouse.move(0, 0)  # not on the view that takes the place of the button
            self.ready()

    def goto(self, address: str) -> None:
        """Open an address, and click nothing."""
        # Only the fragment differs between links: without this, the page would stay and merely follow.
        self.page.goto("about:blank")
        self.page.goto(address)
        self.ready()

    def address(self, model: str = "builtin:gpt", **selection: str) -> str:
        """A link to an input and a selection, as `web/src/app/link.ts` writes it."""
        return f"{self.server.host}/#{urlencode({'model': model, **selection})}"

    def ready(self) -> None:
        """Wait until everything is drawn."""
        self.page.wait_for_selector(f'{ROOT}[data-ready="true"]', state="attached")

    def links_to(self, **expected: str | None) -> None:
        """Wait until the address says so; None: until it says nothing of the kind. Sliders and keys take a moment."""
        self.page.wait_for_function(
            """expected => {
                const found = new URLSearchParams(location.hash.slice(1));
                return Object.entries(expected).every(([name, value]) => found.get(name) === value);
            }""",
            arg=expected,
        )

    def choose(self, group: str, option: str) -> None:
        """Press one of a row of buttons."""
        self.page.get_by_role("group", name=group, exact=True).get_by_role("button", name=option, exact=True).click()
        self.ready()

    def is_chosen(self, group: str, option: str) -> bool:
        button = self.page.get_by_role("group", name=group, exact=True).get_by_role("button", name=option, exact=True)
        return button.get_attribute("aria-pressed") == "true"

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.ready()

    @property
    def status(self) -> Locator:
        """The line that says what is drawn."""
        return self.page.locator("main .status [role=status]")

    def label(self, text: str) -> Locator:
        """Text drawn by the view: names of heads, tokens."""
        return self.page.locator(".view span:visible").get_by_text(text, exact=True)

    def head_at(self, name: str) -> tuple[float, float]:
        """The middle of a head's picture in the model view: where its row and its column meet."""
        # Measures come after the first picture and write under the heads: a click before that may be lost.
        self.page.locator("aside.right .bars, aside.right [aria-label=Measures]").first.wait_for()
        return self.heads()[name]

    def heads(self) -> dict[str, tuple[float, float]]:
        texts = self._texts()
        rows = [(text, y) for text, _, y in texts if re.fullmatch(r"L\d+", text)]
        columns = [(text, x) for text, x, _ in texts if re.fullmatch(r"H\d+", text)]
        return {layer + head: (x, y) for layer, y in rows for head, x in columns}

    def token(self, text: str, side: str) -> tuple[float, float]:
        """The middle of a token in the head view, its columns side by side: queries left, keys right."""
        boxes = sorted((box for box in self._texts() if box[0] == text), key=lambda box: box[1])
        assert len(boxes) >= 2, f"{text!r} is not on both sides: {self._texts()}"
        return boxes[0 if side == "query" else -1][1:]

    def hover(self, text: str, side: str) -> None:
        self.page.mouse.move(*self.token(text, side), steps=3)
        self.ready()

    def numbers(self) -> dict[str, float]:
        """What is written beside tokens, by the token: the weights of the one that the pointer is on."""
        texts = self._texts()
        figures = [box for box in texts if re.fullmatch(r"[−-]?\d*\.?\d+", box[0])]
        values = {}
        for figure, x, y in figures:
            beside = [box for box in texts if abs(box[2] - y) < 4 and not re.search(r"\d", box[0])]
            token = min(beside, key=lambda box: abs(box[1] - x))[0]
            values[token] = float(figure.replace("−", "-"))
        return values

    def _texts(self) -> list[tuple[str, float, float]]:
        """Everything written in the picture, with its middle."""
        return self.page.evaluate("""() => [...document.querySelectorAll('.view span')].filter(one => !one.hidden)
            .map(one => [one.textContent, one.getBoundingClientRect()])
            .map(([text, box]) => [text, box.x + box.width / 2, box.y + box.height / 2])""")

    def stage(self) -> str:
        """What the view has drawn: pixels, then text."""
        self.ready()
        return self.page.evaluate("""() => [...document.querySelectorAll('.view canvas')].map(one => one.toDataURL())
            .concat([...document.querySelectorAll('.view span')].filter(one => !one.hidden).map(one => one.outerHTML))
            .join('')""")

    def save(self, kind: str, folder: Path) -> Path:
        """Choose something of the Save menu; the file."""
        self.button("Save").click()
        with self.page.expect_download() as download:
            self.page.get_by_role("group", name="Save").get_by_role("button", name=re.compile(kind)).first.click()
        return Path(shutil.move(download.value.path(), folder / download.value.suggested_filename))

    def picture(self, name: str) -> None:
        """Keep what is on screen for the documentation: in the folder HEADSCOPE_PICTURES, if one is named."""
        if folder := os.environ.get("HEADSCOPE_PICTURES"):
            for hint in self.button("Got it").all():
                if not self.page.locator("dialog[open]").count():  # which covers it
                    hint.click()
            self.ready()
            (Path(folder) / f"{name}.png").write_bytes(small(self.screen()))

    def screen(self) -> Image.Image:
        return Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)


def open_answer(bench: Workbench, model: str, **selection: str) -> None:
    """A planted model's answer about a red, a green and a blue box."""
    picture = made_media.png(planted_vision_language.picture((320, 240)))
    sent = bench.page.context.request.post(
        f"{bench.server.host}/api/media", data=picture, headers={"Origin": bench.server.host}
    )
    bench.open(model, text=planted_vision_language.TEXT, write="5", media=sent.json()["id"], **selection)


def answer_absent(route: Route) -> None:
    """Answer as a server that does not hold the run. A refusal is passed on."""
    answer = route.fetch()
    if answer.ok:
        route.fulfill(response=answer, body='{"state": "absent"}\n')
    else:
        route.fulfill(response=answer)


def small(picture: Image.Image, most: int = 150_000) -> bytes:
    """A PNG with a palette of its own, a third of the size: as many colours as fit, so that no eye misses any."""
    pixels = np.asarray(picture.convert("RGB"))
    colours, place, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    often = np.argsort(-counts)[:32]  # grounds, lines and letters stay just what they are
    # Of the others, one of which there is little, as on a button, counts for nearly as much as any.
    spread = np.repeat(colours, np.ceil(counts**0.3).astype(int), axis=0)
    data = b""
    for n_colours in (256, 192, 128, 96, 64):
        rest = Image.fromarray(spread[None]).quantize(n_colours - len(often), Image.Quantize.MEDIANCUT, kmeans=1)
        palette = np.concatenate([colours[often], np.array(rest.getpalette()).reshape(-1, 3)[: n_colours - len(often)]])
        palette = palette.astype(np.uint8)
        apart = ((colours[:, None].astype(np.int32) - palette[None].astype(np.int32)) ** 2).sum(-1)
        few = Image.fromarray(apart.argmin(1)[place].reshape(pixels.shape[:2]).astype(np.uint8), "P")
        few.putpalette(palette.tobytes())
        into = io.BytesIO()
        few.save(into, "PNG", optimize=True)
        data = into.getvalue()
        if len(data) <= most:
            break
    return data


def around(screen: Image.Image, x: float, y: float, size: float) -> Image.Image:
    """A square of a picture about a point."""
    return screen.crop((round(x - size / 2), round(y - size / 2), round(x + size / 2), round(y + size / 2)))


def is_drawn(picture: Image.Image) -> bool:
    """Whether there is more than one colour."""
    return len(picture.getcolors(1 << 12) or "many") > 1
