"""A stand-in for the built front end: what the page is made of does not matter to these tests."""

from pathlib import Path

import pytest

from headscope.views import saved_page

SCRIPT = 'const ends = "</script>", mark = "<!--", sign = "▾ 😀";\n'
STYLE = 'p::after { content: "▾"; }\n'


@pytest.fixture(autouse=True)
def stand_in(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "headscope.js").write_text(SCRIPT, "utf-8")
    (folder / "headscope.css").write_text(STYLE, "utf-8")
    monkeypatch.setattr(saved_page, "STATIC", folder)
    return folder
