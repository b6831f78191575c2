"""The page's words for a selection, in Python."""

import dataclasses
import json
import re
from pathlib import Path

from headscope.views.selection import Selection

SOURCE = Path(__file__).parents[3] / "web/src/selection.ts"


def test_python_and_the_page_have_the_same_words_and_defaults():
    (block,) = re.findall(r"export const DEFAULT: Selection = \{\n(.*?)\n\};", SOURCE.read_text(), re.DOTALL)
    page = json.loads("{" + re.sub(r"^\s*(\w+):", r'"\1":', block, flags=re.MULTILINE).rstrip(", \n") + "}")
    assert page == dataclasses.asdict(Selection())


def test_python_and_the_page_have_the_same_choices():
    from typing import get_args

    from headscope.views import selection
    from headscope.views.contract import By, Vectors, What

    (block,) = re.findall(r"const CHOICES = \{\n(.*?)\n\} as const;", SOURCE.read_text(), re.DOTALL)
    page = {name: tuple(json.loads(values)) for name, values in re.findall(r"(\w+): (\[.*?\]),", block)}
    mine = {
        "scale": selection.Scale, "form": selection.Form, "axis": selection.Axis, "what": What, "by": By,
        "filter": selection.Filter, "pair": selection.Pair, "thumbnails": selection.Thumbnails,
        "compare": selection.Compare, "order": selection.Order, "every": Vectors, "stream": selection.Stream,
        "direction": selection.Direction, "whose": selection.Whose,
        "arcs": selection.Arcs,
    }  # fmt: skip
    assert page == {name: get_args(kind) for name, kind in mine.items()}
