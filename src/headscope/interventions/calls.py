"""Interventions as text, `silence('L3H2')`: read as Python, never run as Python.

What may be written is the call of a builder with literals, `range(…)`, `slice(…)`, and, where another run is meant,
`model.run('its text')`. It is what an intervention prints as, so whatever is printed can be read and pasted.

A short text can name a huge value, as `range(10000000000)` does, and servers read texts that they did not write. So
every size is checked before a value is built: the text's, that of each integer, the nesting of lists, and how many
numbers a tensor has. Ranges that name tokens are never expanded.
"""

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from headscope.errors import HeadscopeError, InterventionError
from headscope.glossary import EDIT_TERMS
from headscope.interventions import heads, neurons, patterns
from headscope.interventions.intervention import Intervention, call_text
from headscope.traces.trace import Trace

LONGEST = 20_000
"""Characters of one edit."""
LARGEST_INTEGER = 2**53
"""The largest integer that floats, JSON and JavaScript hold exactly."""
DEEPEST = 8
"""Levels of nested lists; a pattern has three: heads, queries, keys."""
MOST_NUMBERS = 100_000
"""Numbers of one tensor. They are copied in one step that no other thread can interrupt: this many take 20 ms."""

EXAMPLES = {edit.name: edit.example for edit in EDIT_TERMS.values()}
_PREFIXES = ("hs", "headscope")
_RANGES = {"range": range, "slice": slice}
_RUN_OPTIONS = ("pair", "target", "truncate")
# Arguments that name tokens: a range stays a range there, whatever its length.
_TOKEN_ARGUMENTS = frozenset({"tokens", "queries", "keys", "query", "key", "position"})
_LONGEST_QUOTE, _LONGEST_REASON = 200, 800
_TOO_DEEP = f"its lists are nested more than {DEEPEST} levels deep"


class _TooLargeError(ValueError):
    """A literal beyond one of the limits above."""


@dataclass(frozen=True)
class OtherRun:
    """`model.run(source, pair=…, target=…, truncate=…)` inside an edit: another run, of a text or a chat."""

    source: str | list[dict[str, str]]
    options: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return call_text("model.run", self.source, **self.options)

    def of(self, model: Any, **keeping: Any) -> Trace:
        """Its trace; `keeping` says how it is run: `cancel`, `budget`."""
        return model.run(self.source, **self.options, **keeping)


@dataclass(frozen=True)
class Call:
    """The call of a builder, read but not made."""

    name: str
    arguments: list[Any]
    options: dict[str, Any]

    @property
    def runs(self) -> list[OtherRun]:
        """The other runs that it names."""
        return [argument for argument in [*self.arguments, *self.options.values()] if isinstance(argument, OtherRun)]

    @property
    def text(self) -> str:
        """The call, as one would type it."""
        return call_text(self.name, *self.arguments, **self.options)

    def with_runs(self, run: Callable[[OtherRun], Any]) -> "Call":
        """The same with traces in place of the runs."""

        def with_trace(value: Any) -> Any:
            return run(value) if isinstance(value, OtherRun) else value

        options = {name: with_trace(value) for name, value in self.options.items()}
        return Call(self.name, [with_trace(value) for value in self.arguments], options)


def parse(text: str, run: Callable[[OtherRun], Trace] | None = None) -> Intervention:
    """The intervention that a text makes; `run` gives the trace of a `model.run(…)` in it.

    >>> parse('hs.silence("L3H2", tokens=[0, 1])')
    hs.silence('L3H2', tokens=[0, 1])
    """
    call = read(text)
    if call.runs and run is None:
        raise refusal(text, "it names another run, and there is no model here to make it with", call.name)
    return _build(call, text, run)


def canonical(text: str) -> str:
    """The one way to write this edit, after everything is checked that can be without a model."""
    call = read(text)
    if call.runs:
        _bound(call, text)
        written = call.text
    else:
        written = repr(_build(call, text)).removeprefix("hs.")
    _check_length(written)  # spaces after commas make it longer, and whoever keeps this text reads it again
    return written


def read(text: str) -> Call:
    """Take a call apart; what is not one is refused, with the reason and an example."""
    _check_length(text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise refusal(text, f"it is not valid Python ({getattr(error, 'msg', error)})") from error
    name = _name(tree, text)
    assert isinstance(tree, ast.Call)  # a name is only read from a call
    arguments = [_value(argument, text, name) for argument in tree.args]
    return Call(name, arguments, _keywords(tree, text, name))


def token_range(kind: str, bounds: list[Any]) -> range | slice:
    """The range or slice of tokens with these bounds; Python itself takes any object as the bound of a slice."""
    for bound in bounds:
        if not isinstance(bound, int | None):
            raise TypeError(f"{_shorten(repr(bound), _LONGEST_QUOTE)} is not an integer")
    tokens = _RANGES[kind](*bounds)
    if tokens.step == 0:
        raise ValueError("its step must not be zero")
    return tokens


def refusal(text: str, why: str, name: str = "silence") -> InterventionError:
    """The refusal of a text."""
    quote, reason = _shorten(text, _LONGEST_QUOTE), _shorten(why, _LONGEST_REASON)
    return InterventionError(f"cannot read the edit {quote!r}: {reason}. Write for example {EXAMPLES[name]}")


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise InterventionError(f"an edit has at most {LONGEST:,} characters, this one {len(text):,}.")


def _name(tree: ast.expr, text: str) -> str:
    func = tree.func if isinstance(tree, ast.Call) else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _PREFIXES:
        name = func.attr
    elif isinstance(func, ast.Name):
        name = func.id
    else:
        raise refusal(text, "it is not the call of an edit")
    if name not in EXAMPLES:
        raise refusal(text, f"there is no edit {name!r} here; the edits are {', '.join(EXAMPLES)}")
    return name


def _keywords(call: ast.Call, text: str, name: str) -> dict[str, Any]:
    options = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise refusal(text, "arguments cannot be unpacked with **", name)
        if keyword.arg in options:
            raise refusal(text, f"it gives {keyword.arg} twice", name)
        options[keyword.arg] = _value(keyword.value, text, name)
    return options


def _value(node: ast.expr, text: str, name: str, depth: int = 0) -> Any:
    """A string, number, None, or list of those; `range(…)` and `slice(…)`, which name tokens; another run."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _RANGES and not node.keywords:
        bounds = [_value(bound, text, name, depth) for bound in node.args]
        try:
            return token_range(node.func.id, bounds)
        except (TypeError, ValueError) as error:
            raise refusal(text, f"{_source_text(node)} is no {node.func.id}: {error}", name) from error
    if isinstance(node, ast.Call) and _is_run(node.func):
        return _other_run(node, text, name)
    if isinstance(node, ast.List | ast.Tuple):
        if depth == DEEPEST:
            raise refusal(text, _TOO_DEEP, name)
        return [_value(element, text, name, depth + 1) for element in node.elts]
    try:
        return _plain(ast.literal_eval(node), depth)
    except _TooLargeError as error:
        raise refusal(text, str(error), name) from error
    except UnicodeEncodeError as error:
        raise refusal(text, "it holds half of a character, which no text can", name) from error
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        is_bare = isinstance(node, ast.Name)
        hint = f': put it in quotes, "{_source_text(node)}"' if is_bare else ": only plain texts and numbers are read"
        raise refusal(text, f"{_source_text(node)} is not a literal{hint}", name) from error


def _is_run(func: ast.expr) -> bool:
    named = func.value if isinstance(func, ast.Attribute) and func.attr == "run" else None
    return isinstance(named, ast.Name) and named.id == "model"


def _source_text(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "what it is given"
    return _shorten(text, _LONGEST_QUOTE)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, set | dict) and depth == DEEPEST:
        raise _TooLargeError(_TOO_DEEP)
    if isinstance(value, set):
        return sorted((_plain(element, depth + 1) for element in value), key=repr)
    if isinstance(value, dict):
        return {_plain(key, depth + 1): _plain(content, depth + 1) for key, content in value.items()}
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise _TooLargeError(
            f"it holds an integer beyond ±{LARGEST_INTEGER:,}: write a larger finite number as a float, 1e20"
        )
    elif not isinstance(value, int | float | None):
        raise ValueError("neither a text nor a number")
    return value


def _n_numbers(value: Any) -> int:
    """How many numbers a tensor would have that is made of this."""
    if isinstance(value, range):
        return len(value)
    return sum(map(_n_numbers, value)) if isinstance(value, list) else 1


def _other_run(node: ast.Call, text: str, name: str) -> OtherRun:
    sources, options = [_value(argument, text, name) for argument in node.args], _keywords(node, text, name)
    is_chat = bool(sources) and isinstance(sources[0], list) and all(_is_turn(turn) for turn in sources[0])
    if len(sources) != 1 or not (isinstance(sources[0], str) or (is_chat and sources[0])):
        raise refusal(text, "another run is that of one text or one chat, model.run('its text')", name)
    for key, value in options.items():
        if key not in _RUN_OPTIONS or not isinstance(value, bool if key == "truncate" else str):
            known = "pair='…', target='…' and truncate=True"
            raise refusal(text, f"model.run takes {known} here, not {key}={value!r}", name)
    return OtherRun(sources[0], options)


def _is_turn(value: Any) -> bool:
    is_turn = isinstance(value, dict) and value.keys() == {"role", "content"}
    return is_turn and all(isinstance(text, str) for text in value.values())


def _bound(call: Call, text: str) -> Callable[..., Intervention]:
    """The builder, if the arguments are as many and as named as it takes, and the first names a place."""
    builder = next(getattr(module, call.name) for module in (heads, patterns, neurons) if hasattr(module, call.name))
    signature = inspect.signature(builder)
    try:
        bound = signature.bind(*call.arguments, **call.options).arguments
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise refusal(text, f"{error}; its arguments are {names}", call.name) from error
    for place in ("head", "site"):
        if place in bound and not isinstance(bound[place], str | None):
            address = _shorten(repr(bound[place]), _LONGEST_QUOTE)
            raise refusal(text, f"{address} is not the address of a head: write it as text, 'L5H1'", call.name)
    for key, value in bound.items():
        if key not in _TOKEN_ARGUMENTS and (count := _n_numbers(value)) > MOST_NUMBERS:
            raise refusal(text, f"{key} has {count:,} numbers; an edit takes up to {MOST_NUMBERS:,}", call.name)
        if isinstance(value, OtherRun) and key not in ("source", "mean"):
            raise refusal(text, f"{key} cannot be another run", call.name)
    return builder


def _build(call: Call, text: str, run: Callable[[OtherRun], Trace] | None = None) -> Intervention:
    builder = _bound(call, text)  # before anything is run
    complete = call if run is None else call.with_runs(run)
    try:
        intervention = builder(*complete.arguments, **complete.options)
    except HeadscopeError as error:
        raise refusal(text, str(error).rstrip("."), call.name) from error
    except (TypeError, ValueError, RuntimeError, ArithmeticError) as error:  # torch, asked to make a tensor of it
        raise refusal(text, f"{type(error).__name__}: {error}".rstrip("."), call.name) from error
    # A tensor that was written out, or another run's, is printed as it was given: there is no file to read it from.
    is_payload = "hs.interventions.payload(" in intervention.label
    return replace(intervention, label=call.text) if is_payload else intervention
