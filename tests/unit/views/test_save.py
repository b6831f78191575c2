"""Saving: by suffix, whole or not at all."""

import json

import pytest
import torch

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.traces import Trace

VIEW = hs.head_view(Trace.from_patterns([torch.eye(3)[None]], ["a", "日", "</b>"]))
BEGINNINGS = {
    "html": b"<!doctype html>",
    "png": b"\x89PNG",
    "pdf": b"%PDF",
    "svg": b"<?xml",
    "csv": b"\xef\xbb\xbfhead",
    "json": b'{"model"',
    "parquet": b"PAR1",
}


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_says_what_is_written(suffix, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = VIEW.save(tmp_path / f"x.{suffix}")
    assert path == tmp_path / f"x.{suffix}"
    assert path.read_bytes().startswith(BEGINNINGS[suffix])
    assert [path.name for path in tmp_path.iterdir()] == [f"x.{suffix}"]


def test_other_suffixes_and_folders_that_are_not_there_are_refused(tmp_path):
    for path, error_text in (
        ("x.gif", "'x.gif' ends in none of them"),
        ("x", "has no suffix"),
        ("missing/x.html", "there is no folder"),
        (".", "has no suffix"),
    ):
        with pytest.raises(HeadscopeError, match=error_text):
            VIEW.save(tmp_path / path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(HeadscopeError, match="a folder is there"):
        VIEW.save(tmp_path / "folder.html")


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    VIEW.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        VIEW.save(path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        VIEW.save(tmp_path / "x.parquet")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("headscope.views.figures")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install headscope\[notebook\]"):
        VIEW.save(tmp_path / "x.png")
