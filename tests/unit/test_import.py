import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headscope

PACKAGES = [
    module.name
    for module in pkgutil.walk_packages(headscope.__path__, "headscope.")
    if module.ispkg and ".builtin" not in module.name and ".static" not in module.name
]


def loaded_by(program: str, *libraries: str) -> set[str]:
    """Which of these libraries a program loads."""
    program += f"; import sys; print(*({set(libraries)!r} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_importing_headscope_imports_neither_torch_nor_transformers() -> None:
    assert loaded_by("import headscope", "torch", "transformers", "numpy") == set()


@pytest.mark.parametrize("module", ["errors", "sites", "scores", "views.wire", "views.contract"])
def test_what_holds_data_alone_loads_neither_torch_nor_transformers(module: str) -> None:
    assert loaded_by(f"import headscope.{module}", "torch", "transformers") == set()


@pytest.mark.parametrize("package", ["views", "corpora", "attention", "interventions", "traces"])
def test_packages_below_and_beside_models_load_no_transformers(package: str) -> None:
    names = [module.name for module in pkgutil.walk_packages(*search_place(package))]
    program = f"import importlib; [importlib.import_module(name) for name in {names!r}]"
    assert loaded_by(program, "transformers") == set()


def search_place(package: str) -> tuple[list[str], str]:
    """Where the submodules of a package lie, and what their names begin with."""
    return [str(Path(headscope.__path__[0]) / package)], f"headscope.{package}."


def test_a_package_loads_nothing_of_its_own_before_it_is_used() -> None:
    # Three that are more than a list of names: a program, a table of tasks, and drawing.
    for package in sorted({*PACKAGES} - {"headscope.cli", "headscope.server.tasks", "headscope.views.figures"}):
        program = f"import {package}; print(*[name for name in sys.modules if name.startswith('headscope')])"
        answer = subprocess.run([sys.executable, "-c", f"import sys; {program}"], capture_output=True, text=True)
        parents = {".".join(package.split(".")[:depth]) for depth in range(1, 5)}
        assert set(answer.stdout.split()) <= parents | {"headscope.lazy"}, package


@pytest.mark.parametrize("package", ["headscope", *PACKAGES])
def test_every_public_name_is_found_and_none_is_the_name_of_a_submodule(package: str) -> None:
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert all(getattr(module, name) is not None for name in names)
    submodules = {submodule.name for submodule in pkgutil.iter_modules(module.__path__)}
    assert not submodules & set(names)  # importing the submodule would hide the name
