"""How much memory the workbench's server takes: `--max-memory` bounds what it holds beside its models.

Promise: the resident memory stays below its base + the limit + 100 MB, which are for what libraries load at first use
and for what the allocator keeps. The base is read after the built-in models are loaded and a first run is made.

1. 5,000 different runs at --max-memory 50MB: short texts for three models; of every tenth, parts are fetched, every
   25th has a task, every 20th is an uploaded picture.
2. Twelve pictures of 49 million pixels, 143 kB each, are uploaded at once, at 400 MB and at 2 GB.

python benchmarks/server_memory.py                  # five minutes
python benchmarks/server_memory.py --runs 500       # one minute
PYTHONPATH=OTHER/src python benchmarks/server_memory.py   # another version of the package
"""

import argparse
import http.client
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import psutil
from PIL import Image

RESULTS = Path(__file__).parents[1] / ".benchmarks"
START = "from headscope.cli import app; app()"
MEGABYTE = 10**6
BESIDE = 100
LIMITS = ("400MB", "2000MB")
WORDS = "the doctor asked a nurse about her sister while rain fell on old roofs and nobody saw it coming".split()  # noqa: SIM905  a list of 19 strings is longer
N_PICTURES, SIDE = 12, 7000


class Server:
    """A server in a process of its own, and the most memory it was seen to take."""

    def __init__(self, process: subprocess.Popen, address: str):
        parts = urlsplit(address)
        assert parts.hostname and parts.port
        self.host, self.port = parts.hostname, parts.port
        self.headers = {"Authorization": f"Bearer {parse_qs(parts.query)['token'][0]}"}
        self.process = psutil.Process(process.pid)
        self.most, self._is_over = 0.0, threading.Event()
        self._watch = threading.Thread(target=self._sample)
        self._watch.start()

    def resident(self) -> float:
        """Megabytes."""
        return self.process.memory_info().rss / MEGABYTE

    def stop_watching(self) -> None:
        """No more samples."""
        self._is_over.set()
        self._watch.join()

    def _sample(self) -> None:
        while not self._is_over.wait(0.02):
            self.most = max(self.most, self.resident())


class Client:
    """One connection."""

    def __init__(self, server: Server):
        self.headers = server.headers
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=600)

    def ask(self, method: str, path: str, body: bytes | dict | None = None) -> tuple[int, bytes]:
        """Status and answer."""
        is_json = isinstance(body, dict)
        kind = {"Content-Type": "application/json" if is_json else "application/octet-stream"}
        data = json.dumps(body).encode() if is_json else body
        self.connection.request(method, path, data, self.headers | kind)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def last_event(self, path: str, body: dict) -> dict:
        """The last event of a run or a task; it must have been done."""
        status, answer = self.ask("POST", path, body)
        assert status == 200, answer
        event = json.loads(answer.splitlines()[-1])
        assert event["state"] == "done", event
        return event


@contextmanager
def serving(max_memory: str) -> Iterator[Server]:
    """A server with its built-in models loaded and a first run made."""
    options = ["--no-browser", "--json", "--port", "0", "--max-memory", max_memory]
    command = [sys.executable, "-c", START, "serve", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "}\n")
        server = Server(process, json.loads("".join(lines) + "}")["address"])
        try:
            client = Client(server)
            client.ask("GET", "/api/settings")
            client.last_event("/api/runs", {"model": "builtin:gpt", "text": "the first run"})
            yield server
        finally:
            server.stop_watching()
    finally:
        process.terminate()
        process.communicate()


def text_of(number: int) -> str:
    """A short text that no other number has."""
    words = [WORDS[(number * 7 + place * (1 + number % 5)) % len(WORDS)] for place in range(4 + number % 24)]
    return f"{number} {' '.join(words)}"


def many_runs(n_runs: int, max_memory: str) -> dict:
    """One run after another, and what was looked at of them."""
    models = ("builtin:gpt", "builtin:bert", "builtin:translate")
    refused: dict[str, int] = {}
    with serving(max_memory) as server:
        client = Client(server)
        base, begun = server.resident(), time.perf_counter()
        server.most = base
        for number in range(n_runs):
            if number % 20 == 19:
                status, answer = client.ask("POST", "/api/media", picture(number))
                assert status == 200, answer
                wanted = {"model": "builtin:vit", "text": None, "media": json.loads(answer)["id"]}
            else:
                wanted = {"model": models[number % 3], "text": text_of(number)}
                wanted |= {"target": text_of(number + 1)} if number % 3 == 2 else {}
            trace = client.last_event("/api/runs", wanted)["trace"]
            keys = ("trace", "maps", "layer/decoder.L0" if number % 3 == 2 and number % 20 != 19 else "layer/L0")
            for key in keys if number % 10 == 0 else ():
                status, answer = client.ask("GET", f"/api/traces/{trace}/{key}")
                refused |= {} if status == 200 else {f"{status} {key}": refused.get(f"{status} {key}", 0) + 1}
            if number % 25 == 0:
                task = client.last_event("/api/tasks", {"name": "activations", "trace": trace})
                client.ask("GET", f"/api/results/{task['result']}")
            if sys.stderr.isatty() and number % 100 == 0:
                print(f"{number:>6} runs  {server.resident():.0f} MB", end="\r", file=sys.stderr)
        seconds = time.perf_counter() - begun
        n_kept = len(json.loads(client.ask("GET", "/api/traces")[1]))
        row = {"runs": n_runs, "limit": max_memory, "base": base, "most": server.most, "end": server.resident()}
    return row | {"seconds": seconds, "kept": n_kept, "refused": refused}


def picture(number: int, side: int = 64) -> bytes:
    """A small picture that no other number has."""
    noise = np.random.default_rng(number).integers(0, 255, (side, side, 3), np.uint8)
    return png(Image.fromarray(noise))


def png(image: Image.Image) -> bytes:
    """The bytes of its file."""
    into = io.BytesIO()
    image.save(into, "PNG")
    return into.getvalue()


def large_pictures(max_memory: str) -> dict:
    """Twelve clients upload a picture each at the same time."""
    files = [png(Image.new("RGB", (SIDE, SIDE), (number, 0, 0))) for number in range(N_PICTURES)]
    with serving(max_memory) as server:
        base, begun = server.resident(), time.perf_counter()
        server.most = base
        with ThreadPoolExecutor(N_PICTURES) as pool:
            answers = list(pool.map(lambda data: Client(server).ask("POST", "/api/media", data), files))
        seconds = time.perf_counter() - begun
        row = {"limit": max_memory, "base": base, "most": server.most, "end": server.resident()}
    statuses = sorted({status for status, _ in answers})
    return row | {"seconds": seconds, "statuses": statuses, "bytes": len(files[0])}


def is_kept(row: dict) -> bool:
    """Whether the promise holds; prints the row."""
    allowed = int(row["limit"].removesuffix("MB")) + BESIDE
    print(
        f"  base {row['base']:.0f} MB, most {row['most']:.0f} MB (base + {row['most'] - row['base']:.0f}), end "
        f"{row['end']:.0f} MB, {row['seconds']:.0f} s"
    )
    holds = row["most"] - row["base"] < allowed
    print(f"  {'holds' if holds else 'BROKEN'}: most < base + {allowed} MB", flush=True)
    return holds


def main() -> None:
    """Measure, print, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5000, help="how many runs; 0: only the pictures")
    parser.add_argument("--max-memory", default="50MB", help="of the server that runs them, in MB")
    parser.add_argument("--no-pictures", action="store_true", help="leave out the twelve large pictures")
    options = parser.parse_args()
    rows = []
    if options.runs:
        row = many_runs(options.runs, options.max_memory)
        print(f"{row['runs']} runs at {row['limit']}, {row['kept']} traces kept", row["refused"] or "")
        rows.append(row | {"holds": is_kept(row)})
    for limit in () if options.no_pictures else LIMITS:
        row = large_pictures(limit)
        size = f"{SIDE} × {SIDE} pixels, {row['bytes'] / 1e3:.0f} kB"
        print(f"{N_PICTURES} pictures of {size} at {row['limit']}: answers {row['statuses']}")
        rows.append(row | {"holds": is_kept(row)})
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "server_memory.json").write_text(json.dumps(rows, indent=1))
    sys.exit(not all(row["holds"] for row in rows))


if __name__ == "__main__":
    main()
