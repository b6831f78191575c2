"""Edits as they are typed on the command line, `silence("L3H2")`: read as Python, never run as Python."""

import ast
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError, InterventionError

if TYPE_CHECKING:
    from headscope.interventions import Intervention

EXAMPLES = {
    "silence": 'silence("L3H2")',
    "scale": 'scale("L3H2", 0.5)',
    "mean_ablate": 'mean_ablate("L3H2")',
    "temperature": 'temperature("L3H2", 2.0)',
    "distance_bias": 'distance_bias("L3H2", -0.5)',
    "block": 'block("L3H2", "She", "nurse")',
    "set_weight": 'set_weight("L3H2", -1, 0, 0.9)',
    "set_neuron": 'set_neuron("L2H0", "key", 12, 0.0)',
    "scale_neuron": 'scale_neuron("L2", "mlp", 7, 2.0)',
    "add_neuron": 'add_neuron("L2H0", "query", 3, 1.5)',
    "replace_token": 'replace_token(2, "nurse")',
}
_PREFIXES = ("hs", "headscope")
_RANGES = {"range": range, "slice": slice}


def read_edits(typed: Sequence[str], file: Path | None = None) -> "list[Intervention]":
    """The edits of a saved file, then those typed, in order."""
    saved: list[Intervention] = []
    if file is not None:
        from headscope.interventions import load_interventions

        saved = load_interventions(file)
    return [*saved, *(parse_edit(text) for text in typed)]


def parse_edit(text: str) -> "Intervention":
    """Read one call of an intervention's builder with literal arguments.

    >>> parse_edit('hs.silence("L3H2", tokens=[0, 1])')
    hs.silence('L3H2', tokens=[0, 1])
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unread(text, f"it is not valid Python ({getattr(error, 'msg', error)})") from error
    name = _name(tree, text)
    assert isinstance(tree, ast.Call)  # a name is only read from a call
    arguments = [_literal(one, text, name) for one in tree.args]
    options = {}
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise _unread(text, "arguments cannot be unpacked with **", name)
        options[keyword.arg] = _literal(keyword.value, text, name)
    return _build(name, arguments, options, text)


def _name(tree: ast.expr, text: str) -> str:
    func = tree.func if isinstance(tree, ast.Call) else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _PREFIXES:
        name = func.attr
    elif isinstance(func, ast.Name):
        name = func.id
    else:
        raise _unread(text, "it is not the call of an edit")
    if name not in EXAMPLES:
        raise _unread(text, f"there is no edit {name!r} here; the edits are {', '.join(EXAMPLES)}")
    return name


def _literal(node: ast.expr, text: str, name: str) -> Any:
    """A string, number, None, or list of those; also `range(…)` and `slice(…)`, which name tokens."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _RANGES and not node.keywords:
        bounds = [_literal(one, text, name) for one in node.args]
        try:
            return _RANGES[node.func.id](*bounds)
        except (TypeError, ValueError) as error:
            raise _unread(text, f"{ast.unparse(node)} is no {node.func.id}: {error}", name) from error
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        is_bare = isinstance(node, ast.Name)
        hint = f': put it in quotes, "{ast.unparse(node)}"' if is_bare else ": only plain texts and numbers are read"
        raise _unread(text, f"{ast.unparse(node)} is not a literal{hint}", name) from error


def _build(name: str, arguments: list, options: dict[str, Any], text: str) -> "Intervention":
    import headscope

    builder = getattr(headscope, name)
    signature = inspect.signature(builder)
    try:
        bound = signature.bind(*arguments, **options).arguments
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise _unread(text, f"{error}; its arguments are {names}", name) from error
    place = next(key for key in signature.parameters)
    if place != "position" and not isinstance(bound[place], str | None):
        raise _unread(text, f"{bound[place]!r} is not the address of a head: write it as text, 'L5H1'", name)
    try:
        return builder(*arguments, **options)
    except HeadscopeError as error:
        raise _unread(text, str(error).rstrip("."), name) from error
    except (TypeError, ValueError, RuntimeError) as error:  # torch, asked to make a tensor of something else
        raise _unread(text, f"{type(error).__name__}: {error}".rstrip("."), name) from error


def _unread(text: str, why: str, name: str = "silence") -> InterventionError:
    return InterventionError(f"cannot read --edit {text!r}: {why}. Write for example --edit '{EXAMPLES[name]}'")
