"""The examples in the documentation run, as a reader would run them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(
        f"docs/{page}.md"
        for page in (
            "traces",
            "compare",
            "interventions",
            "editing",
            "models",
            "measures",
            "builtin",
            "views",
            "activations",
            "notebook",
            "relevance",
            "corpora",
            "runs",
            "heads",
            "testing",
            "neurons",
            "compat",
            "structure",
            "images",
        )
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # one page, one conversation


def test_pictures_are_small():
    # Everybody who clones the repository gets them: a palette (`browser/workbench.py: small`) is enough for a screen.
    large = {one.name: one.stat().st_size for one in ROOT.glob("docs/**/*.png") if one.stat().st_size > 160_000}
    assert not large


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_the_architecture_names_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    places = [ROOT, ROOT / "src/headscope", ROOT / "web/src", *(ROOT / "src/headscope").rglob("*/")]
    named = [
        name for name in re.findall(r"`([\w./-]+?/?)(?:: \w+)?`", text) if "/" in name or name.endswith((".py", ".ts"))
    ]
    assert len(named) > 50
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert not missing
