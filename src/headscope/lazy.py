"""Packages whose public names are imported at first use, so that a package costs only what is used of it."""

import ast
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any


def public_names(package: str, modules: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that states its names once, under `if TYPE_CHECKING:`.

    Type checkers read `from headscope.traces.trace import Trace as Trace` there; at run time the same line says where
    a name is to be found. `modules` are submodules that attribute access imports too. No public name may be the name
    of a submodule of its package: importing that submodule would hide it.
    """
    places = _places(package)

    def get(name: str) -> Any:
        value: Any
        if name == "__all__":
            value = list(places)
        elif name in places:
            module, attribute = places[name]
            value = getattr(importlib.import_module(module), attribute)
        elif name in modules:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted([*vars(sys.modules[package]), *places, *modules])


def _places(package: str) -> dict[str, tuple[str, str]]:
    """Module and attribute of every name that the package imports under `if TYPE_CHECKING:`."""
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package) if spec is not None and spec.loader is not None else None  # type: ignore[union-attr]
    if source is None:
        raise ImportError(f"{package} needs its source file: it says there where its names are.")
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module is not None
        for alias in statement.names
    }
