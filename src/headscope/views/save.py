"""Saving a view: by suffix, whole or not at all."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.arguments import as_path
from headscope.errors import InputError, LoadError
from headscope.files import write_file
from headscope.views.table import about

if TYPE_CHECKING:
    from headscope.views.figures.paper import Width
    from headscope.views.view import View

PAGES, PICTURES, NUMBERS = (".html",), (".png", ".svg", ".pdf"), (".csv", ".json", ".parquet")
SUFFIXES = (*PAGES, *PICTURES, *NUMBERS)


def check_path(path: str | Path) -> Path:
    """Refuse a file that cannot be written, before anything is computed."""
    path = as_path(path, "the file of a view")
    if path.suffix.lower() not in SUFFIXES:
        named = f"{path.name!r} ends in none of them" if path.suffix else f"{path.name!r} has no suffix"
        raise InputError(f"the suffix says what to write, {', '.join(SUFFIXES)}; {named}.")
    if path.is_dir():
        raise LoadError(f"cannot write {path}: a folder is there.")
    if not path.parent.is_dir():
        raise LoadError(f"cannot write {path}: there is no folder {path.parent}.")
    folder = Path(os.path.realpath(path)).parent  # that of the file itself, where the path is a link to it
    if not os.access(folder, os.W_OK):
        raise LoadError(f"cannot write {path}: {folder} is missing or not writable.")
    return path


def check_width(width: "Width | None", path: Path) -> None:
    """Refuse a width of what is no picture."""
    if width is not None and path.suffix.lower() not in PICTURES:
        raise InputError(f"width={width!r} is for pictures ({', '.join(PICTURES)}), not for {path.name!r}.")


def save(view: "View", path: str | Path, width: "Width | None" = None) -> list[str]:
    """Write a view; what was left out to keep the file small is told."""
    path = check_path(path)
    check_width(width, path)
    data, notes = contents(view, path.suffix.lower(), width)
    write_file(path, data)
    return notes


def contents(view: "View", suffix: str, width: "Width | None" = None) -> tuple[bytes, list[str]]:
    """The bytes of a file with this suffix, and what was left out of it."""
    if suffix in PAGES:
        from headscope.views.saved_page import page

        document = page(view)
        return document.html.encode(), document.notes
    if suffix in PICTURES:
        picture = io.BytesIO()
        view.figure(width=width).savefig(picture, format=suffix[1:])
        return picture.getvalue(), []
    table = view.table()
    if suffix == ".csv":
        return table.csv(), []
    return (table.json(about(view)) if suffix == ".json" else table.parquet()), []
