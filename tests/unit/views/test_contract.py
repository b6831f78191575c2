"""The page's types are those of Python."""

import json
import re
import runpy
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Literal, get_type_hints

import pytest

from headscope.views.typescript import _type, typescript

ROOT = Path(__file__).parents[3]


def test_the_page_knows_the_same_types(monkeypatch, tmp_path):
    script = ROOT / "scripts" / "contract"
    written = {}
    monkeypatch.setattr(Path, "write_text", lambda self, text, **_: written.setdefault(self.name, text))
    runpy.run_path(str(script), run_name="__main__")
    assert written["contract.ts"] == (ROOT / "web/src/contract.ts").read_text(), "run scripts/contract"


def test_every_type_that_python_uses_has_one_on_the_page():
    from headscope.views.contract import PARTS

    source_code = typescript(PARTS)
    assert re.search(r"weights|TraceProps", source_code)
    assert 'form: "dense" | "sparse";' in source_code
    assert "grid: [number, number] | null;" in source_code
    assert "words: (number | null)[];" in source_code


@dataclass
class Inner:
    """Of a test."""

    size: int


@dataclass
class Outer:
    """All that a field may be."""

    side: Literal["left", "right"] = "left"
    """Which side: left
    or right."""
    columns: list[Literal["a", "b"]] = field(default_factory=list)
    fold: Literal["x"] | None = None
    inner: Inner | None = None
    note: str = ""


def test_fields_keep_their_words_and_constants_their_choices():
    source = typescript([Outer], constants=[Outer])
    assert '  /** Which side: left or right. */\n  side: "left" | "right";\n  columns: ("a" | "b")[];' in source
    assert "  inner: Inner | null;" in source
    assert "export interface Inner {\n  size: number;\n}" in source
    (defaults,) = re.findall(r"export const DEFAULT_OUTER: Outer = (\{.*?\n\});", source, re.DOTALL)
    assert json.loads(defaults) == {"side": "left", "columns": [], "fold": None, "inner": None, "note": ""}
    (choices,) = re.findall(r"export const OUTER_CHOICES = \{\n(.*?)\n\} as const;", source, re.DOTALL)
    assert choices == '  side: ["left", "right"],\n  columns: ["a", "b"],\n  fold: ["x"],'


def test_a_type_that_the_page_cannot_have_is_refused():
    Wrong = make_dataclass("Wrong", [("names", set[str])])
    with pytest.raises(TypeError, match="no type for set"):
        _type(get_type_hints(Wrong)["names"], {})
