"""How the page is built: when, and from what."""

import json
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(tmp_path):
    """`scripts/web` of a copy of the sources, whose page is built by nobody."""
    for part in ("scripts/web", "web/package.json", "web/package-lock.json", "web/src/wire.ts"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    loader = SourceFileLoader("web_script", str(tmp_path / "scripts" / "web"))
    module = module_from_spec(spec_from_loader("web_script", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", ["src/wire.ts", "package.json", "package-lock.json", "src/new.svelte"])
def test_a_change_of_anything_that_is_built_calls_for_a_build(script, file):
    script.STATIC.mkdir(parents=True)
    (script.STATIC / script.SOURCE).write_text(script.content_hash())
    assert script.is_built()
    with (script.WEB / file).open("a") as changed:
        changed.write("\n")
    assert not script.is_built()


@pytest.mark.parametrize("file", ["src/wire.test.ts", "node_modules/vite/index.js", ".cache"])
def test_tests_and_packages_call_for_none(script, file):
    before = script.content_hash()
    (script.WEB / file).parent.mkdir(parents=True, exist_ok=True)
    (script.WEB / file).write_text("changed")
    assert script.content_hash() == before


def test_a_page_that_is_built_needs_no_node(script):
    script.STATIC.mkdir(parents=True)
    (script.STATIC / script.SOURCE).write_text(script.content_hash())
    command = [sys.executable, script.__file__]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("version", ["v20.19.0", "v20.20.2", "v22.12.0", "v24.19.0"])
def test_a_node_that_vite_runs_on_is_used(script, monkeypatch, version):
    monkeypatch.setattr(script, "answers", lambda command: version)
    assert script.runs_vite("node")


@pytest.mark.parametrize("version", ["", "v18.20.0", "v20.18.9", "v21.7.3", "v22.11.0"])
def test_no_other_is(script, monkeypatch, version):
    monkeypatch.setattr(script, "answers", lambda command: version)
    assert not script.runs_vite("node")


def test_the_lock_has_a_hash_of_every_pinned_package_but_torch():
    def lines(name):
        rows = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
        return dict(row.split("==") for row in rows if row)

    pins, locked = lines("constraints.txt"), lines("constraints.lock")
    assert pins.keys() - locked.keys() == {"torch"}
    for name, line in locked.items():
        assert re.fullmatch(re.escape(pins[name]) + r" --hash=sha256:[0-9a-f]{64}", line), name


def test_the_lock_file_names_the_binaries_of_every_platform():
    # npm writes a lock without those that its registry does not have, and then refuses to install from it.
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    for place, package in packages.items():
        for name in package.get("optionalDependencies", {}):
            assert f"node_modules/{name}" in packages or f"{place}/node_modules/{name}" in packages, (place, name)
