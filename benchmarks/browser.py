"""What the page costs, in Chromium: BertViz 1.4.1 and the workbench drawing the same attention, one after the other.

Promises (12 × 12 heads; from a trace that the server holds, from opening the page to drawn): model view at T=128 at
least 50 × as fast as BertViz, under 0.5 s at T=1,024 and 1 s at T=4,096; head view at T=256 at least 50 ×; hover at
most 50 ms at any T; another layer at most 300 ms at T=1,024; neuron view under 1 s at T=1,024. A saved page at most 3
MB at T=128 and 20 MB at T=512. The bundle at most 250 kB gzipped. One tile at T=512: at most 100 ms (p95), and 32
clients at once without an error.

    python benchmarks/browser.py            # everything, about five minutes
    python benchmarks/browser.py --quick    # without BertViz
"""

import argparse
import gzip
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import headscope as hs

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".benchmarks"
PEER = RESULTS / "bertviz-1.4.1"
MODEL = RESULTS / "random-12x12"
# What BertViz's pages load from elsewhere. The jQuery it asks for, 2.0.0, is not in npm; 2.1.0 is the next one.
SCRIPTS = {
    "require.js/2.3.6/require.min.js": ("requirejs@2.3.6", "package/require.js"),
    "d3/5.7.0/d3.min.js": ("d3@5.7.0", "package/dist/d3.min.js"),
    "jquery/2.0.0/jquery.min.js": ("jquery@2.1.0", "package/dist/jquery.min.js"),
}
WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "klmnprst"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
FLAGS += ["--js-flags=--max-old-space-size=8192"]  # kinder to BertViz than a user's browser is

# Milliseconds from the start of navigation to the second frame after there is something to see.
TIME_TO_DRAWN = """
(isDrawn => {
  const look = () => {
    if (document.documentElement && isDrawn()) {
      requestAnimationFrame(() => requestAnimationFrame(() => { window.drawnAfter = performance.now(); }));
    } else requestAnimationFrame(look);
  };
  look();
})
"""
OURS = "() => document.querySelector('[data-headscope]')?.dataset.ready === 'true'"
THEIRS = "() => document.querySelectorAll('svg line').length > 0"
# Milliseconds from an event to the frame that shows what came of it, kept in `window.waits`.
WATCH = """
type => {
  window.waits = [];
  const root = document.querySelector('[data-headscope]');
  addEventListener(type, event => {
    const begun = performance.now();
    const look = () => {
      if (root.dataset.ready !== 'true') return requestAnimationFrame(look);
      const painted = new MessageChannel();
      painted.port1.onmessage = () => window.waits.push(performance.now() - begun);
      painted.port2.postMessage(null);
    };
    requestAnimationFrame(look);
  }, { capture: true });
}
"""

# The middles of the tokens at the left of the head view.
TOKENS = """
() => [...document.querySelectorAll('.view span')].filter(one => !one.hidden && one.textContent.length > 1)
  .map(one => one.getBoundingClientRect()).map(box => [box.x + box.width / 2, box.y + box.height / 2])
  .filter(([x], _, all) => x < Math.min(...all.map(([other]) => other)) + 60).slice(1, -1)
"""


class Server:
    """`headscope serve` in a process of its own, with one model."""

    def __init__(self, model: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [
            str(Path(sys.executable).with_name("headscope")),
            "serve",
            str(model),
            "--port",
            str(port),
            "--no-browser",
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "NO_COLOR": "1"}
        )
        output_lines = []
        for line in self.process.stdout or ():
            output_lines.append(line)
            if address := re.search(r"http://[^\s\"']+", line):
                self.url = address[0]
                break
        else:
            raise SystemExit("the server did not start:\n" + "".join(output_lines))
        threading.Thread(target=lambda: [None for _ in self.process.stdout or ()], daemon=True).start()
        self.host = re.match(r"http://[^/]+", self.url)[0]  # pyright: ignore[reportOptionalSubscript]
        self.open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open
        self.open(self.url).read()  # signs in
        self.model = json.load(self.open(f"{self.host}/api/settings"))["default_model"]

    def record(self, text: str) -> str:
        """Run the model, so that the server holds the trace; its id."""
        body = json.dumps({"model": self.model, "text": text}).encode()
        request = urllib.request.Request(f"{self.host}/api/runs", body, {"content-type": "application/json"})
        last = json.loads(self.open(request).read().splitlines()[-1])
        if last["state"] != "done":
            raise SystemExit(f"the run failed: {last}")
        return last["trace"]

    def address(self, text: str, **selection: str) -> str:
        return f"{self.host}/#{urlencode({'model': self.model, 'text': text, **selection})}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


def random_model() -> Path:
    """A BERT of 12 × 12 heads with random weights, but sharp: each query has its few favourites, as in real ones."""
    if (MODEL / "tokenizer.json").is_file():
        return MODEL
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=192, intermediate_size=192, max_position_embeddings=4096,
        num_hidden_layers=12, num_attention_heads=12,
    )  # fmt: skip
    module = BertModel(config)
    for layer in module.encoder.layer:
        attention = layer.attention.self
        for projection in (attention.query, attention.key):
            torch.nn.init.normal_(projection.weight, std=0.11)
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=4096,
    )  # fmt: skip
    module.save_pretrained(MODEL)
    fast.save_pretrained(MODEL)
    return MODEL


def words(length: int) -> str:
    """A text that the model reads as so many tokens, the two at its ends among them."""
    chosen = np.random.default_rng(length).choice(WORDS, length - 2)
    return " ".join(chosen)


def peer_python() -> Path:
    """BertViz in an environment of its own, made once."""
    python = PEER / "bin" / "python"
    if not (PEER / "ready").is_file():
        print("Making BertViz's environment: once, a few minutes.", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        # Our pins for what both need; the rest of BertViz's needs do not all go with ours.
        pins = (ROOT / "constraints.txt").read_text().splitlines()
        own = [pin for pin in pins if pin.startswith(("torch==", "transformers==", "numpy=="))]
        subprocess.run([str(python), "-m", "pip", "install", "-q", "bertviz==1.4.1", *own], check=True)
        for place, (package, inside) in SCRIPTS.items():
            folder = PEER / "scripts" / place
            folder.parent.mkdir(parents=True, exist_ok=True)
            pack = [sys.executable, str(ROOT / "scripts" / "web"), "npm", "pack", "--silent", package]
            subprocess.run([*pack, "--pack-destination", str(folder.parent)], check=True, stdout=subprocess.DEVNULL)
            (archive,) = folder.parent.glob("*.tgz")
            with tarfile.open(archive) as opened:
                content = opened.extractfile(inside)
                folder.write_bytes(content.read() if content else b"")
        (PEER / "ready").touch()
    return python


def peer_time(browser: Browser, view: str, trace: hs.Trace) -> float:
    """Seconds until BertViz has drawn these patterns."""
    source, target = RESULTS / "patterns.npz", RESULTS / "bertviz.html"
    patterns = np.stack([[trace.pattern(f"L{layer}H{head}") for head in range(12)] for layer in range(12)])
    np.savez(source, patterns=patterns.astype(np.float32), tokens=next(iter(trace.tokens.values())).texts)
    script = str(Path(__file__).with_name("bertviz_page.py"))
    subprocess.run([str(peer_python()), script, view, str(source), str(target)], check=True, stdout=subprocess.DEVNULL)

    def script_for(route):
        (place,) = [place for place in SCRIPTS if route.request.url.endswith(place)]
        route.fulfill(path=PEER / "scripts" / place, content_type="text/javascript")

    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.route("https://cdnjs.cloudflare.com/**", script_for)
    try:
        return seconds_to_draw(context.new_page(), target.as_uri(), THEIRS, limit=300)
    finally:
        context.close()
        source.unlink()
        target.unlink()


def seconds_to_draw(page: Page, url: str, is_drawn: str, *, limit: float = 60) -> float:
    """Seconds from navigation to drawn."""
    page.add_init_script(f"({TIME_TO_DRAWN})({is_drawn})")
    page.goto(url, wait_until="commit", timeout=limit * 1000)
    page.wait_for_function("() => window.drawnAfter", timeout=limit * 1000, polling=50)
    return page.evaluate("window.drawnAfter") / 1000


def open_view(browser: Browser, server: Server, text: str, **selection: str) -> tuple[float, Page]:
    """Seconds from opening a link to drawn, as someone who is signed in; the best of three, and the last page."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.new_page().goto(server.url)
    times = []
    for _ in range(3):
        page = context.new_page()
        times.append(seconds_to_draw(page, server.address(text, **selection), OURS))
    return min(times), page


def hovers(page: Page) -> list[float]:
    """Milliseconds from the pointer's move to the frame that shows it, down the tokens at the left."""
    tokens = page.evaluate(TOKENS)
    page.evaluate(WATCH, "pointermove")
    for step in range(40):
        page.mouse.move(*tokens[step % len(tokens)])
        page.wait_for_function("count => window.waits.length > count", arg=step)
    return page.evaluate("window.waits")


def cell_hovers(page: Page) -> list[float]:
    """Milliseconds from the pointer's move to the frame that shows it, over cells of the neuron view."""
    page.evaluate(WATCH, "pointermove")
    for step in range(40):
        page.mouse.move(420 + 17 * (step % 30), 330 + 11 * step)
        page.wait_for_function("count => window.waits.length > count", arg=step)
    return page.evaluate("window.waits")


def layer_changes(page: Page) -> list[float]:
    """Milliseconds from asking for the layer before to the frame that shows it, layers not seen before."""
    page.evaluate(WATCH, "keydown")
    for step in range(5):
        page.keyboard.press("[")
        page.wait_for_function("count => window.waits.length > count", arg=step)
    return page.evaluate("window.waits")


def tiles(server: Server, trace: str) -> tuple[float, int, int]:
    """Milliseconds (p95) for one client, then how many of 32 × 8 requests at once failed."""
    keys = [f"window/L{layer}H{head}?rows=0:512&columns=0:512&size=512" for layer in range(12) for head in range(12)]

    def fetch(key: str) -> float:
        begun = time.perf_counter()
        server.open(f"{server.host}/api/traces/{trace}/{key}").read()
        return 1000 * (time.perf_counter() - begun)

    def failed(key: str) -> bool:
        try:
            fetch(key)
        except (urllib.error.URLError, OSError):
            return True
        return False

    sequential = [fetch(key) for key in keys]
    with ThreadPoolExecutor(32) as clients:
        many = list(clients.map(failed, keys * 2))
    return p95(sequential), sum(many), len(many)


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


class Table:
    """What was found, what was promised, and whether it holds."""

    def __init__(self) -> None:
        self.rows: list[dict] = []
        print(f"{'':<44}{'found':>12}{'promised':>14}")

    def add(self, name: str, value: float, unit: str, holds: Callable[[float], bool], bar: str) -> None:
        verdict = "ok" if holds(value) else "MISSED"
        self.rows.append({"name": name, "value": value, "unit": unit, "bar": bar, "holds": verdict == "ok"})
        print(f"{name:<44}{value:>9.3g} {unit:<3}{bar:>13}  {verdict}", flush=True)


def main() -> None:
    """Measure, print a table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without BertViz")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    chromium = subprocess.run(["sh", str(ROOT / "scripts" / "chromium")], capture_output=True, text=True, check=True)
    folder = random_model()
    model = hs.load(str(folder))
    server = Server(folder)
    table = Table()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium.stdout.strip(), args=FLAGS)
            measure(browser, server, model, table, with_peer=not options.quick)
            browser.close()
    finally:
        server.stop()
    (RESULTS / "browser.json").write_text(json.dumps(table.rows, indent=1))


def measure(browser: Browser, server: Server, model: hs.Model, table: Table, *, with_peer: bool) -> None:
    lengths = {length: words(length) for length in (128, 256, 512, 1024, 4096)}
    traces = {length: server.record(text) for length, text in lengths.items()}
    at = {"view": "head", "at": "L5H3", "heads": ",".join(map(str, range(12)))}

    for view, length, selection in (("model", 128, {}), ("head", 256, at)):
        ours, page = open_view(browser, server, lengths[length], **selection)
        page.context.close()
        print(f"{f'{view} view, T={length}':<44}{ours:>9.3g} s")
        if with_peer:
            theirs = peer_time(browser, view, model.run(lengths[length]))
            print(f"{f'BertViz, {view} view, T={length}':<44}{theirs:>9.3g} s")
            table.add(f"{view} view, T={length}, against BertViz", theirs / ours, "×", lambda x: x >= 50, "≥ 50 ×")
    for length, bar in ((1024, 0.5), (4096, 1.0)):
        ours, page = open_view(browser, server, lengths[length])
        page.context.close()
        table.add(f"model view, T={length:,}", ours, "s", lambda x, bar=bar: x < bar, f"< {bar} s")
    for length in (128, 1024, 4096):
        ours, page = open_view(browser, server, lengths[length], **at)
        print(f"{f'head view, T={length:,}':<44}{ours:>9.3g} s")
        table.add(f"hover, T={length:,} (p95)", p95(hovers(page)), "ms", lambda x: x <= 50, "≤ 50 ms")
        if length == 1024:
            table.add("next layer, T=1,024 (p95)", p95(layer_changes(page)), "ms", lambda x: x <= 300, "≤ 300 ms")
        page.context.close()
    ours, page = open_view(browser, server, lengths[1024], view="neuron", at="L5H3", token="query:512")
    table.add("neuron view, T=1,024", ours, "s", lambda x: x < 1.0, "< 1 s")
    table.add("neuron view, hover, T=1,024 (p95)", p95(cell_hovers(page)), "ms", lambda x: x <= 50, "≤ 50 ms")
    page.context.close()
    for length, bar in ((128, 3.0), (512, 20.0)):
        trace, file = model.run(lengths[length]), RESULTS / "saved.html"
        for view in (hs.model_view, hs.head_view):
            view(trace).save(file)
            name = f"saved {view.__name__.replace('_', ' ')}, T={length}"
            table.add(name, file.stat().st_size / 1e6, "MB", lambda x, bar=bar: x <= bar, f"≤ {bar:g} MB")
        file.unlink()
    static = ROOT / "src" / "headscope" / "static"
    bundle = sum(len(gzip.compress((static / name).read_bytes())) for name in ("headscope.js", "headscope.css"))
    table.add("bundle, gzip", bundle / 1e3, "kB", lambda x: x <= 250, "≤ 250 kB")
    tile_ms, failures, total = tiles(server, traces[512])
    table.add("one tile, T=512 (p95)", tile_ms, "ms", lambda x: x <= 100, "≤ 100 ms")
    table.add(f"32 clients, {total} tiles: failures", failures, "", lambda x: x == 0, "0")


if __name__ == "__main__":
    main()
