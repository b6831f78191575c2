"""The page's words for a selection, in Python."""

import dataclasses
import json
import re
from pathlib import Path

from headscope.views.selection import Selection

WEB = Path(__file__).parents[3] / "web/src"
CONTRACT = WEB / "contract.ts"


def test_python_and_the_page_have_the_same_words_and_defaults():
    (block,) = re.findall(r"export const DEFAULT_SELECTION: Selection = (\{.*?\n\});", CONTRACT.read_text(), re.DOTALL)
    assert json.loads(block) == dataclasses.asdict(Selection())


def test_python_and_the_page_have_the_same_choices():
    from typing import get_args

    from headscope import choices

    (block,) = re.findall(r"const SELECTION_CHOICES = \{\n(.*?)\n\} as const;", CONTRACT.read_text(), re.DOTALL)
    page = {name: tuple(json.loads(values)) for name, values in re.findall(r"(\w+): (\[.*?\]),", block)}
    mine = {
        "scale": choices.Scale, "form": choices.Form, "axis": choices.Axis, "what": choices.What, "by": choices.By,
        "filter": choices.Filter, "pair": choices.Pair, "thumbnails": choices.Thumbnails,
        "compare": choices.Compare, "order": choices.Order, "every": choices.Vectors, "stream": choices.Stream,
        "direction": choices.Direction, "whose": choices.Whose,
        "arcs": choices.Arcs, "hide": choices.Hide, "fold": choices.Fold,
    }  # fmt: skip
    assert page == {name: get_args(kind) for name, kind in mine.items()}


def test_the_page_has_no_selection_of_its_own():
    declared = re.compile(r"(interface|type) Selection\b\s*[={]")
    assert [path for path in WEB.rglob("*.ts") if path != CONTRACT and declared.search(path.read_text())] == []
    assert len(re.findall(r"interface Selection {", CONTRACT.read_text())) == 1


def test_the_page_has_the_words_about_each_field():
    (block,) = re.findall(r"interface Selection \{\n(.*?)\n\}", CONTRACT.read_text(), re.DOTALL)
    assert "  /** The head in focus, by its index in that layer. */\n  head: number;" in block
    fields = re.findall(r"^  (\w+): .*;$", block, re.MULTILINE)
    assert fields == [field.name for field in dataclasses.fields(Selection)]
