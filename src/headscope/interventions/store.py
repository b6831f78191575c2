"""Interventions on disk: a JSON file, and beside it each tensor as safetensors named by its own hash."""

import ast
import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from headscope.arguments import as_path, instances
from headscope.errors import InterventionError, LoadError
from headscope.files import parse_json, write_file
from headscope.interventions.calls import canonical, parse, read, token_range
from headscope.interventions.edits import Apply
from headscope.interventions.intervention import EDITS, STAGES, Intervention, payload_name
from headscope.sites import parse as parse_site

FORMAT = "headscope-interventions"
_BUILDERS = frozenset(
    {"silence", "scale", "gate", "mean_ablate", "patch", "temperature", "distance_bias", "block", "replace_pattern"}
    | {"uniform", "set_weight", "set_row", "set_neuron", "scale_neuron", "add_neuron", "replace_token"}
)
VERSION = 1
# What reading raises where rows are not what `save_interventions` writes: other types, other names, nested too deep.
_DAMAGE = (AttributeError, KeyError, TypeError, RecursionError)


def save_interventions(interventions: Iterable[Intervention], path: str | Path) -> Path:
    """Write interventions to a JSON file; tensors land beside it. The old file stays until the new one is whole."""
    path = as_path(path, "the file of interventions")
    interventions = instances(interventions, Intervention, "interventions", "make them with hs.silence, hs.scale, …")
    for intervention in interventions:
        if isinstance(intervention.edit, Apply):
            raise InterventionError(
                f"{intervention!r} calls a Python function and cannot be saved: use one of the named edits."
            )
    rows, payloads = [], {}
    for intervention in interventions:
        arguments = _arguments(intervention)
        for name, value in arguments.items():
            if isinstance(value, Tensor):
                payloads[payload_name(value)] = value
                arguments[name] = {"payload": payload_name(value)}
        rows.append(
            {
                "site": _place(intervention),
                "stage": intervention.stage,
                "edit": type(intervention.edit).__name__,
                "arguments": arguments,
                "tokens": _plain(intervention.tokens),
                "label": intervention.label,
            }
        )
    folder = _folder(path)
    missing = {folder / name: values for name, values in payloads.items() if not _is_there(folder / name)}
    for file, values in missing.items():
        write_file(file, save({"values": values.detach().contiguous().cpu()}))
    text = json.dumps({"format": FORMAT, "version": VERSION, "interventions": rows}, indent=1)
    write_file(path, text.encode())
    return path


def _folder(path: Path) -> Path:
    """Where the tensors of a file lie: beside the file itself, also where the path is a link to it."""
    return Path(os.path.realpath(path)).parent


def _is_there(file: Path) -> bool:
    """Whether a tensor lies there already; another file under its name is left alone, and nothing is written."""
    if not os.path.lexists(file):
        return False
    try:
        payload(file)
    except LoadError as error:
        raise LoadError(
            f"{file} is damaged or not a tensor that Headscope wrote, so it is left alone: move it away, or save the "
            "interventions in another folder."
        ) from error
    return True


def load_interventions(path: str | Path) -> list[Intervention]:
    """Read what `save_interventions` wrote."""
    path = as_path(path, "the file of interventions")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read interventions from {path}: {error}") from error
    rows = _rows(text, str(path))
    try:
        return [_read(row, _folder(path)) for row in rows]
    except _DAMAGE as error:
        raise LoadError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def calls_in(text: str | bytes, most: int | None = None) -> list[str]:
    """The Python of each intervention in such a file, without the tensors that lie beside it.

    What the file says an intervention prints as must be what it does, or it is refused; as is a file of more than
    `most`, before any is read.
    """
    rows = _rows(text, "the file")
    if most is not None and len(rows) > most:
        raise LoadError(f"the file holds {len(rows):,} interventions; up to {most} are read here.")
    try:
        return [_call(row) for row in rows]
    except _DAMAGE as error:
        raise LoadError(f"the file is damaged: {type(error).__name__}: {error}") from error


def _rows(text: str | bytes, name: str) -> list[dict[str, Any]]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise LoadError(f"cannot read interventions from {name}: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise LoadError(f"{name} is not a file of interventions: its format is not {FORMAT!r}.")
    if data.get("version") != VERSION:
        raise LoadError(f"{name} has format version {data.get('version')}, this Headscope reads version {VERSION}.")
    if not isinstance(data.get("interventions"), list):
        raise LoadError(f"{name} is damaged: it holds no list of interventions.")
    return data["interventions"]


def _call(row: dict[str, Any]) -> str:
    label = row["label"]
    if "hs.interventions.payload(" in label or not label:
        raise LoadError(
            f"{label or 'an intervention without a name'} needs a tensor from another file: "
            "read this one with hs.load_interventions."
        )
    if read(label).runs:
        return canonical(label)
    intervention = parse(label)
    plain = {name: value for name, value in _arguments(intervention).items() if not isinstance(value, Tensor)}
    stored_arguments = {name: row["arguments"][name] for name in plain}
    parsed = {
        "site": _place(intervention),
        "stage": intervention.stage,
        "edit": type(intervention.edit).__name__,
        "arguments": plain,
    }
    if parsed | {"tokens": _plain(intervention.tokens)} != {
        **{name: row[name] for name in parsed},
        "arguments": stored_arguments,
        "tokens": row["tokens"],
    }:
        raise LoadError(f"the file is damaged: {label} is not what its numbers say.")
    return repr(intervention).removeprefix("hs.")


def _place(intervention: Intervention) -> str | None:
    return None if intervention.site is None else str(intervention.site)


def _arguments(intervention: Intervention) -> dict[str, Any]:
    """What the edit is made with: plain values, and tensors as they are."""
    edit: Any = intervention.edit  # every edit is a dataclass, which a protocol cannot say
    arguments = {argument.name: getattr(edit, argument.name) for argument in dataclasses.fields(edit)}
    return {name: value if isinstance(value, Tensor) else _plain(value) for name, value in arguments.items()}


def _read(row: dict[str, Any], folder: Path) -> Intervention:
    if row["edit"] not in EDITS or row["stage"] not in STAGES:
        raise LoadError(f"unknown edit {row['edit']!r} at stage {row['stage']!r}: the edits are {', '.join(EDITS)}.")
    _check_label(row["label"])
    arguments = {name: _unplain(value, folder) for name, value in row["arguments"].items()}
    site = None if row["site"] is None else parse_site(row["site"])
    return Intervention(
        site, row["stage"], EDITS[row["edit"]](**arguments), _unplain(row["tokens"], folder), row["label"]
    )


def _check_label(label: str) -> None:
    """A label is what an intervention prints as, and people paste it: it may only be a call with plain arguments."""
    try:
        call = ast.parse(label, mode="eval").body if label else None
    except (SyntaxError, ValueError, MemoryError) as error:
        raise LoadError(f"the label {label!r} is not the Python of an intervention.") from error
    if call is not None and not _is_plain_call(call):
        raise LoadError(f"the label {label!r} is not the Python of an intervention: it does more than name one.")


def _is_plain_call(call: ast.expr) -> bool:
    """Whether Python calls a builder with literals, ranges, tensors that lie beside the file, or another run."""
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in _BUILDERS:
        return False
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(_is_plain(node) for argument in arguments for node in ast.walk(argument))


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("range", "slice", "hs.interventions.payload", "model.run")
    literals = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.keyword)
    return isinstance(node, (*literals, ast.Load, ast.Name, ast.Attribute))


def payload(path: str | Path) -> Tensor:
    """A tensor that was saved with an intervention; its name is the hash of its contents, which is checked."""
    path = Path(path)
    try:
        values = load_file(path)["values"]
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise LoadError(f"cannot read the tensor {path}: {error}") from error
    if payload_name(values) != path.name:
        raise LoadError(f"{path} is damaged: its contents do not match the hash in its name.")
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, range | slice):
        return {type(value).__name__: [value.start, value.stop, value.step]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(element) for element in value]
    return value


def _unplain(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        if "payload" in value:
            name = value["payload"]
            if not isinstance(name, str) or Path(name).name != name:
                raise LoadError(f"a payload must lie beside the file, got {name!r}.")
            return payload(folder / name)
        kind = "range" if "range" in value else "slice"
        try:
            return token_range(kind, value[kind])
        except ValueError as error:  # a step of zero
            raise LoadError(f"{value} names no tokens: {error}.") from error
    return [_unplain(element, folder) for element in value] if isinstance(value, list) else value
