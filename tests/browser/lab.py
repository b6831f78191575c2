"""JupyterLab in a process of its own, as a user starts it, and a notebook open in it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from browser.workbench import LIMIT

# Not the user's own settings, and no questions to the web for news.
OPTIONS = ["--no-browser", "--ServerApp.port_retries=0", "--LabApp.news_url=", "--ServerApp.disable_check_xsrf=True"]
OPTIONS += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--ServerApp.terminals_enabled=False"]


class Lab:
    """`jupyter lab` over one folder; stopped on leaving, its kernels with it."""

    def __init__(self, folder: Path, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.folder, self.log, self.token = folder, log, "a-token-of-this-test"
        home = folder.parent / "jupyter"
        places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        workspaces = {"JUPYTERLAB_SETTINGS_DIR": str(home / "set"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "spaces")}
        command = [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--ServerApp.port={port}", "--allow-root"]
        command += [f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}"]
        news = home / "set" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        news.parent.mkdir(parents=True)
        news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env={**os.environ, **places, **workspaces, "IPYTHONDIR": str(home / "ipython"), "OMP_NUM_THREADS": "1"},
            )
        self.host = f"http://127.0.0.1:{port}"
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 90
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.host}/api?token={self.token}").close()
                return
            except OSError:
                time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text()}")

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Notebook:
    """One notebook in JupyterLab. It remembers errors of the page."""

    def __init__(self, page: Page, lab: Lab, cells: list[str]) -> None:
        self.page, self.path = page, lab.folder / "test.ipynb"
        notebook_cells = [
            {
                "cell_type": "code",
                "id": f"cell-{n}",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": source,
            }
            for n, source in enumerate(cells)
        ]
        spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        self.path.write_text(
            json.dumps({"cells": notebook_cells, "metadata": spec, "nbformat": 4, "nbformat_minor": 5})
        )
        self.problems: list[str] = []
        page.set_default_timeout(LIMIT)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.goto(f"{lab.host}/doc/tree/{self.path.name}?token={lab.token}&reset")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(f"{message.text} ({message.location.get('url', '')})")

    def cell(self, number: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def run(self, number: int) -> Locator:
        """Run a cell, wait for its end, and give its output."""
        cell = self.cell(number)
        prompt = cell.locator(".jp-InputPrompt")
        # What is run before there is a kernel is not run, and nothing says so.
        for _ in range(LIMIT // 1000):
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            try:
                expect(prompt).not_to_have_text("[ ]:", timeout=1000)
                break
            except AssertionError:
                continue
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=2 * LIMIT)
        return cell.locator(".jp-OutputArea")

    def view(self, number: int) -> Locator:
        """The view that a cell shows, once it is drawn."""
        root = self.cell(number).locator("[data-headscope]")
        self.page.wait_for_function(
            "host => host.shadowRoot.firstElementChild.dataset.ready === 'true'",
            arg=self.cell(number).locator("[data-lm-suppress-shortcuts]").element_handle(),
        )
        return root
