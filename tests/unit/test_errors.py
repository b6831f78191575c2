"""Errors: every one is documented, with the built-in that it also is."""

import inspect
import re
from pathlib import Path

import pytest

from headscope import errors

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
CLASSES = {
    name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and cls.__module__ == errors.__name__
}


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if not issubclass(cls, Warning)])
def test_every_error_is_documented_with_what_else_it_is(name: str) -> None:
    row = re.search(rf"^\| `{name}` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row, f"docs/errors.md lacks {name}"
    others = {base.__name__ for base in CLASSES[name].__bases__} - {"HeadscopeError", "Exception"}
    assert set(re.findall(r"`(\w+)`", row[1])) == others


def test_no_error_is_documented_that_there_is_not() -> None:
    documented = re.findall(r"^\| `(\w+)` \| .*? \| .*? \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert documented and set(documented) <= CLASSES.keys()


def test_all_of_them_are_caught_as_one() -> None:
    assert all(issubclass(cls, errors.HeadscopeError | errors.HeadscopeWarning) for cls in CLASSES.values())


def test_the_example_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    exec(code[1], {})
    assert capsys.readouterr().out.strip() == code[1].partition("#")[2].strip()
