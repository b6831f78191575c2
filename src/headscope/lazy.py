"""Packages whose public names are imported at first use, so that a package costs only what is used of it."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def public_names(package: str, submodules: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that states its names once, under `if TYPE_CHECKING:`.

    Type checkers read `from headscope.traces.trace import Trace as Trace` there, one name a line; at run time the same
    line says where the name is. `submodules` are those that attribute access imports too. No public name may be that
    of a submodule of its package: importing the submodule would hide it.
    """
    places = _places(package)

    def get(name: str) -> Any:
        value: Any
        if name == "__all__":
            value = list(places)
        elif name in places:
            module, attribute = places[name]
            value = getattr(import_module(module), attribute)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *places, *submodules})


def _places(package: str) -> dict[str, tuple[str, str]]:
    """Module and attribute of every name that the package imports under `if TYPE_CHECKING:`."""
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package) if spec is not None and spec.loader is not None else None  # type: ignore[union-attr]
    if source is None:
        raise ImportError(f"{package} cannot be imported without its source file, which says where its names are.")
    places = {}
    for line in source.partition("\nif TYPE_CHECKING:\n")[2].splitlines():
        match line.split():
            case ["from", module, "import", attribute, "as", name]:
                places[name] = (module, attribute)
    return places
