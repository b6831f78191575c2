"""A real server in a process of its own, as a user starts it."""

import functools
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "headscope"


@functools.cache
def check_source(python: str = sys.executable) -> None:
    """Refuse to test another headscope than this tree's: that of another checkout, or one that was installed."""
    code = "import headscope, pathlib; print(pathlib.Path(headscope.__file__).resolve().parent)"
    # From a folder of its own, as `headscope` is started: a script does not look in the folder that it is started in.
    process = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=Path(python).parent)
    if Path(process.stdout.strip()) != SOURCE.resolve():
        raise RuntimeError(
            f"`headscope` would start {process.stdout.strip()}, and the tests are of {SOURCE}: "
            f"run `pip install -e .` here, or set PYTHONPATH={SOURCE.parent}."
        )


class Server:
    """`headscope serve` with the built-in models, signed in to; stopped on leaving."""

    def __init__(self, log: Path, *arguments: str) -> None:
        check_source()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [
            str(Path(sys.executable).with_name("headscope")),
            "serve",
            *arguments,
            "--port",
            str(port),
            "--no-browser",
        ]
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
            )
        self.host = f"http://127.0.0.1:{port}"
        self.url = self._wait_for_address()
        jar = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.opener.open(self.url).close()
        self.cookies = {cookie.name: cookie.value or "" for cookie in jar}

    def _wait_for_address(self) -> str:
        """The address with the token, once the server answers there."""
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            if match := re.search(rf"{self.host}/\S*token=[\w-]+", self.log.read_text()):
                try:
                    urllib.request.urlopen(f"{self.host}/static/headscope.js").close()
                    return match[0]
                except OSError:
                    pass
            time.sleep(0.05)
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
