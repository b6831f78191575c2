"""The examples in the documentation run, as a reader would run them."""

import re
from pathlib import Path

import planted_vision_language
import pytest

import headscope as hs

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
            "atlas",
            "images",
            "vision-language",
            "tasks",
            "question-answering",
            "explanation-studies",
            "trust",
            "pruning",
        )
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page == "docs/vision-language.md":  # which no built-in model is
        planted_vision_language.picture((80, 60)).save("boxes.png")
        model = hs.Model(*planted_vision_language.planted())
        monkeypatch.setattr("headscope.load", lambda _: model)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # one page, one conversation


DECISIONS = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_decisions_name_files_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Decided", "Why", "Rejected", "Where"]
    files = re.findall(r"`((?:src|web|tests|benchmarks|scripts)/[^`]*)`", text) + re.findall(r"`(\w+\.md)`", text)
    assert files and [name for name in files if not (ROOT / name).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", index)) == [page.name for page in DECISIONS]
    for page in DECISIONS:
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert f"[{title}]({page.name})" in index


def test_pictures_are_small():
    # Everybody who clones the repository gets them: a palette (`browser/workbench.py: small`) is enough for a screen.
    large = {path.name: path.stat().st_size for path in ROOT.glob("docs/**/*.png") if path.stat().st_size > 160_000}
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
