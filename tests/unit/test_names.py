"""The check of names: which bindings `scripts/names` refuses, and which it leaves alone."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "names"


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]):
    """Exit status and lines of the check of some paths."""
    main = runpy.run_path(str(SCRIPT))["main"]
    return lambda *paths: (main([str(path) for path in paths]), capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("found = 1", "variable"),
        ("head, *found = heads", "variable"),
        ("for layer, found in layers: pass", "variable"),
        ("with open(path) as found: pass", "variable"),
        ("print(found := 1)", "variable"),
        ("heads = [found.index for found in heads]", "variable"),
        ("try: pass\nexcept OSError as found: pass", "variable"),
        ("match head:\n case [*found]: pass", "variable"),
        ("match head:\n case {'L0H1': 1, **found}: pass", "variable"),
        ("match head:\n case str() as found: pass", "variable"),
        ("class Trace:\n found: int", "variable"),
        ("class Trace:\n def __init__(self): self.found = 1", "attribute"),
        ("def measure(head, /, *, found=1): pass", "parameter"),
        ("def measure(**found): pass", "parameter"),
        ("key = lambda found: found.index", "parameter"),
        ("def found(): pass", "function"),
        ("async def found(): pass", "function"),
        ("class found: pass", "class"),
        ("import numpy as found", "import"),
        ("from heads import found", "import"),
    ],
)
def test_a_binding_with_an_empty_name_is_refused(check, source: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source + "\n")
    line = 1 + source[: source.index("found")].count("\n")
    status, lines = check(tmp_path)
    assert status == 1
    assert lines[:-1] == [f"{file}:{line}: the {kind} 'found' does not say what it holds"]
    assert lines[-1].startswith("Names to choose anew: 1.")


def test_what_is_not_bound_may_be_called_anything(check, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import shop\n\n# found\nprice = shop.item(one=1)\nshop.thing = {'obj': found}\nitems = 'it'\n")
    assert check(file) == (0, [])


def test_scripts_without_a_suffix_are_read_and_other_files_are_not(check, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/usr/bin/env python3\nres = 1\n")
    (tmp_path / "shell").write_text("#!/bin/sh\nres=1\n")
    (tmp_path / "notes.txt").write_text("res = 1\n")
    _, lines = check(tmp_path)
    assert lines[:-1] == [f"{tmp_path / 'script'}:2: the variable 'res' does not say what it holds"]


def test_as_a_program_it_ends_with_the_status(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("res = 1\n")
    assert subprocess.run([sys.executable, SCRIPT, tmp_path], stdout=subprocess.DEVNULL, check=False).returncode == 1
    (tmp_path / "module.py").write_text("residual = 1\n")
    assert subprocess.run([sys.executable, SCRIPT, tmp_path], stdout=subprocess.DEVNULL, check=False).returncode == 0
