"""A real server in a process of its own, as a user starts it."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path


class Server:
    """`headscope serve` with the built-in models, signed in to; stopped on leaving."""

    def __init__(self, log: Path, *arguments: str) -> None:
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
