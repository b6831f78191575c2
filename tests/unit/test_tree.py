"""The package as a whole: what it promises by name, what it ships, what it pins."""

import ast
import inspect
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import headscope

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", headscope.__all__)
def test_every_public_name_resolves_and_is_explained(name: str) -> None:
    value = getattr(headscope, name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        assert value.__doc__, f"headscope.{name} has no docstring"
    assert name in dir(headscope)


def test_no_two_classes_of_the_package_have_the_same_name() -> None:
    modules_by_name: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src" / "headscope").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules_by_name[node.name].append(str(file.relative_to(ROOT)))
    assert {name: modules for name, modules in modules_by_name.items() if len(modules) > 1} == {}


def test_the_wheel_ships_every_file_of_the_package() -> None:
    package = ROOT / "src" / "headscope"
    shipped = {Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    written = {
        file.relative_to(ROOT / "src")
        for pattern in ("**/*.py", "builtin/**/*", "static/**/*")
        for file in package.glob(pattern)
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert written - shipped == set()


def test_the_version_of_the_wheel_is_that_of_the_package() -> None:
    assert WheelBuilder(str(ROOT)).metadata.version == headscope.__version__


def test_every_direct_dependency_is_pinned_within_its_range() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    declared = [Requirement(text) for text in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]]
    for requirement in declared:
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_pins_are_plain_versions() -> None:
    # A local label such as `+cpu` would tie the pins to one machine's packages.
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line
