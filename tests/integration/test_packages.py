"""What is shipped: a wheel, made of the source distribution, installed into an empty environment, serves the page."""

import itertools
import json
import os
import site
import subprocess
import sys
import tarfile
import urllib.request
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HEADSCOPE_STATIC")}
    done = subprocess.run(command, cwd=folder, env=plain | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.strip()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has Headscope from its wheel, and what it needs from here."""
    place = tmp_path_factory.mktemp("packages")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", place, folder=ROOT)
    (sdist,) = place.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(place, filter="data")
    source = place / sdist.name.removesuffix(".tar.gz")
    # Without Node: the page is in it, and is as new as its sources.
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place, folder=source, PATH="")
    (wheel,) = place.glob("*.whl")
    venv.create(place / "venv", with_pip=False, symlinks=True)
    python = place / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    run(*pip, wheel, folder=place)
    own = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])", folder=place))
    # A line of a .pth file is a path and no more: how Headscope is installed here is not followed.
    (own / "needed.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python


@pytest.mark.skipif(os.name != "posix", reason="knows where a virtual environment has its Python on Linux and macOS")
def test_a_wheel_made_of_the_source_distribution_serves_the_page(environment: Path, tmp_path: Path) -> None:
    where = run(environment, "-c", "import headscope; print(headscope.__file__)", folder=tmp_path)
    assert Path(where).is_relative_to(environment.parents[1])
    command = [environment.parent / "headscope", "serve", "--no-browser", "--json", "--port", "0"]
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HEADSCOPE_STATIC")}
    with subprocess.Popen(command, cwd=tmp_path, env=plain, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads("".join(itertools.islice(server.stdout, 3)))["address"]
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert b"<title>Headscope" in opener.open(address, timeout=60).read()
            page = address.partition("?")[0]
            assert len(opener.open(f"{page}static/headscope.js", timeout=60).read()) > 100_000
            settings = json.loads(opener.open(f"{page}api/settings", timeout=60).read())
            assert {"builtin:gpt", "builtin:bert", "builtin:translate", "builtin:vit"} <= {
                model["name"] for model in settings["models"]
            }
        finally:
            server.terminate()
            server.wait(30)
