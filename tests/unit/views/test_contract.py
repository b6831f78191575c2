"""The page's types are those of Python."""

import re
import runpy
from pathlib import Path

from headscope.views.typescript import typescript

ROOT = Path(__file__).parents[3]


def test_the_page_knows_the_same_types(monkeypatch, tmp_path):
    script = ROOT / "scripts" / "contract"
    written = {}
    monkeypatch.setattr(Path, "write_text", lambda self, text, **_: written.setdefault(self.name, text))
    runpy.run_path(str(script), run_name="__main__")
    assert written["contract.ts"] == (ROOT / "web/src/contract.ts").read_text(), "run scripts/contract"


def test_every_type_that_python_uses_has_one_on_the_page():
    from headscope.views.contract import PARTS

    told = typescript(PARTS)
    assert re.search(r"weights|TraceProps", told)
    assert 'form: "dense" | "sparse";' in told
    assert "grid: [number, number] | null;" in told
    assert "words: (number | null)[];" in told
