"""The server that browser tests start is that of this tree."""

from pathlib import Path

import pytest

from browser import server
from browser.server import Server


def test_the_headscope_of_this_tree_is_served() -> None:
    server.check_source.cache_clear()
    server.check_source()


def test_another_headscope_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headscope").mkdir()
    (tmp_path / "headscope" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server.check_source.cache_clear()
    with pytest.raises(RuntimeError, match=r"would start .*headscope, and the tests are of .*src"):
        Server(tmp_path / "log")
    assert not (tmp_path / "log").exists()
    server.check_source.cache_clear()
