"""A trace on disk: a folder with `trace.json` and one file of tensors, which the JSON names and checksums.

The JSON is replaced last and in one step, so the folder holds the old trace or the new one, never half of either.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headscope.attention import Bias, Formula, Mask, Summary
from headscope.errors import HeadscopeError, LoadError
from headscope.sites import Site
from headscope.traces.inputs import Inputs
from headscope.traces.layer import LayerRecord
from headscope.traces.predictions import Predictions
from headscope.traces.seen import tensors_of
from headscope.traces.tokens import Tokens
from headscope.traces.trace import RECORDS, Trace

try:
    import fcntl
except ImportError:  # Windows has no such locks: two saves at once into one folder are then on their own
    fcntl = None

FORMAT = "headscope-trace"
VERSION = 1
_VECTORS = ("query", "key", "value", "mixed", "value_norms", "places")
_PLAIN = ("n_heads", "n_queries", "n_keys", "key_stack", "way", "no_norms", "no_scores")
# What a save that was killed left behind is cleared away by a later one, once it is this old (in seconds).
_ABANDONED = 3600


def save_trace(trace: Trace, folder: str | Path) -> Path:
    """Write a trace; a trace that was there before stays readable until the new one is complete."""
    if trace.readings:
        raise HeadscopeError(
            "save the trace itself: words() and without() are ways of reading it, applied again after loading."
        )
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise LoadError(f"cannot save a trace at {folder}: a file is there.")
    _refuse_foreign(folder)
    box = _Box()
    header = _header(trace, box)
    new = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as work:
            partial = Path(work) / "tensors"
            partial.touch()
            mode = partial.stat().st_mode  # save_file makes a file of its own, which nobody else may read
            save_file(box.tensors, partial)
            partial.chmod(mode)
            digest = checksum(partial)
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            header["tensors"] = {"file": f"tensors-{digest[:16]}.safetensors", "sha256": digest}
            header["checksum"] = _header_checksum(header)
            with _alone(folder):
                file = folder / header["tensors"]["file"]
                new = None if file.exists() else file
                partial.replace(file)
                write_whole(folder / "trace.json", json.dumps(header).encode())
                _clear(folder, file)
    except (OSError, SafetensorError) as error:
        if new is not None:
            new.unlink(missing_ok=True)
        raise LoadError(
            f"could not save the trace in {folder}: {error}. What was there before is untouched."
        ) from error
    return folder


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other saves into the same folder waiting; a process that dies lets go by itself."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def load_trace(folder: str | Path) -> Trace:
    """Read a trace and check it against its checksum."""
    folder = Path(folder)
    header = _read_header(folder)
    try:
        file = folder / _inside(header["tensors"]["file"])
        if not file.is_file():
            raise LoadError(f"{folder} is incomplete: {file.name} is missing.")
        if checksum(file) != header["tensors"]["sha256"]:
            raise LoadError(f"{folder} is damaged: {file.name} does not match its checksum. Save the trace again.")
        return _trace(header, load_file(file))
    except (AttributeError, KeyError, TypeError, ValueError, SafetensorError, OSError) as error:
        if isinstance(error, HeadscopeError):
            raise
        raise LoadError(f"{folder} is damaged: {type(error).__name__}: {error}") from error


def checksum(file: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(2**22):
            digest.update(piece)
    return digest.hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is either the old one or all of the new one, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class _Box:
    """Tensors under names; one that several layers share is kept once."""

    def __init__(self):
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[tuple, str] = {}

    def put(self, name: str, tensor: Tensor) -> str:
        # Views of one storage are the same only if they show the same part of it.
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if key not in self.names or not tensor.numel():
            self.names[key] = name
            # A copy: safetensors refuses tensors that share memory, and a view would keep its whole base alive.
            self.tensors[name] = tensor.detach().cpu().contiguous().clone()
        return self.names[key]


def _header(trace: Trace, box: _Box) -> dict[str, Any]:
    answers = trace.answers
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": trace.model,
        "record": trace.record,
        "tokens": {stack: tokens.to_json() for stack, tokens in trace.tokens.items()},
        "inputs": None
        if trace.inputs is None
        else trace.inputs.to_json()
        | {"model_inputs": {name: box.put(f"inputs/{name}", one) for name, one in trace.inputs.model_inputs.items()}}
        | {"looks": _looks_header(trace.inputs, box)},
        "edits": trace.edits,
        "steps": trace.steps,
        "warnings": trace.warnings,
        "answers": None
        if answers is None
        else {
            "stack": answers.stack,
            "positions": answers.positions,
            "texts": answers.texts,
            "ids": box.put("answers/ids", answers.ids),
            "logprobs": box.put("answers/logprobs", answers.logprobs),
        },
        "residuals": {stack: box.put(f"residual/{stack}", one) for stack, one in trace.residuals.items()},
        "activations": [
            {"stack": site.stack, "layer": site.layer, "tensor": box.put(f"neurons/{site}", one)}
            for site, one in trace.activations.items()
        ],
        "logits": None if trace.logits is None else box.put("logits", trace.logits),
        "layers": [_layer_header(layer, box) for layer in trace.layers.values()],
    }


def _looks_header(inputs: Inputs, box: _Box) -> dict[str, dict[str, str]]:
    """The tensors of the pictures and sounds, by stack and name."""
    return {
        stack: {name: box.put(f"seen/{stack}/{name}", tensor) for name, tensor in tensors_of(one).items()}
        for stack, one in inputs.seen.items()
    }


def _layer_header(layer: LayerRecord, box: _Box) -> dict[str, Any]:
    at = str(layer.site)
    vectors = {name: getattr(layer, name) for name in _VECTORS}
    return {
        "stack": layer.site.stack,
        "layer": layer.site.layer,
        "kind": layer.site.kind,
        **{name: getattr(layer, name) for name in _PLAIN},
        "grid": layer.grid,
        "summary": {name: box.put(f"{at}/{name}", one) for name, one in layer.summary.tensors().items()},
        "vectors": {name: box.put(f"{at}/{name}", one) for name, one in vectors.items() if one is not None},
        "stored": {str(index): box.put(f"{at}/pattern{index}", one) for index, one in layer.stored.items()},
        "formula": None if layer.formula is None else _formula_header(layer.formula, at, box),
    }


def _formula_header(formula: Formula, at: str, box: _Box) -> dict[str, Any]:
    mask, bias = formula.mask, formula.bias
    return {
        "scaling": formula.scaling,
        "softcap": formula.softcap,
        "sinks": None if formula.sinks is None else box.put(f"{at}/sinks", formula.sinks),
        "mask": None
        if mask is None
        else {
            "n_queries": mask.n_queries,
            "n_keys": mask.n_keys,
            "query_offset": mask.query_offset,
            "key_offset": mask.key_offset,
            "tensors": {name: box.put(f"{at}/mask.{name}", one) for name, one in mask.tensors().items()},
        },
        "bias": None
        if bias is None
        else {
            "form": bias.form,
            "n_queries": bias.n_queries,
            "n_keys": bias.n_keys,
            "values": box.put(f"{at}/bias", bias.values),
        },
    }


def _trace(header: dict[str, Any], tensors: dict[str, Tensor]) -> Trace:
    if header["record"] not in RECORDS:
        raise LoadError(f"the trace has record {header['record']!r}, which is none of {', '.join(RECORDS)}.")
    inputs, answers = header["inputs"], header["answers"]
    layers = [_layer(one, tensors) for one in header["layers"]]
    return Trace(
        model=header["model"],
        record=header["record"],
        layers={layer.site: layer for layer in layers},
        tokens={stack: Tokens.from_json(one) for stack, one in header["tokens"].items()},
        inputs=None
        if inputs is None
        else Inputs.from_json(
            inputs,
            {name: tensors[one] for name, one in inputs["model_inputs"].items()},
            {
                stack: {name: tensors[one] for name, one in looks.items()}
                for stack, looks in inputs.get("looks", {}).items()
            },
        ),
        edits=tuple(header["edits"]),
        steps=None if header["steps"] is None else tuple(header["steps"]),
        warnings=tuple(header["warnings"]),
        answers=None
        if answers is None
        else Predictions(
            answers["stack"],
            tuple(answers["positions"]),
            tensors[answers["ids"]],
            tensors[answers["logprobs"]],
            tuple(tuple(row) for row in answers["texts"]),
        ),
        residuals={stack: tensors[name] for stack, name in header["residuals"].items()},
        activations={
            Site(one["stack"], one["layer"], "neurons"): tensors[one["tensor"]] for one in header["activations"]
        },
        logits=None if header["logits"] is None else tensors[header["logits"]],
    )


def _layer(data: dict[str, Any], tensors: dict[str, Tensor]) -> LayerRecord:
    summary = Summary(**{name: tensors[one] for name, one in data["summary"].items()})
    formula = None if data["formula"] is None else _formula(data["formula"], tensors)
    vectors: dict[str, Any] = {name: tensors[one] for name, one in data["vectors"].items()}
    return LayerRecord(
        site=Site(data["stack"], data["layer"], data["kind"]),
        summary=summary,
        formula=formula,
        stored={int(index): tensors[name] for index, name in data["stored"].items()},
        grid=tuple(data["grid"]) if data.get("grid") else None,
        **{name: data[name] for name in _PLAIN},
        **vectors,
    )


def _formula(data: dict[str, Any], tensors: dict[str, Tensor]) -> Formula:
    mask, bias = data["mask"], data["bias"]
    if mask is not None:
        parts: dict[str, Any] = {name: tensors[one] for name, one in mask.pop("tensors").items()}
        mask = Mask(**mask, **parts)
    if bias is not None:
        bias = Bias(bias["form"], tensors[bias["values"]], bias["n_queries"], bias["n_keys"])
    sinks = None if data["sinks"] is None else tensors[data["sinks"]]
    return Formula(data["scaling"], data["softcap"], sinks, mask, bias)


def _read_header(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise LoadError(f"there is no trace at {folder}: it is not a folder.")
    file = folder / "trace.json"
    if not file.is_file():
        raise LoadError(f"{folder} is not a trace: it has no trace.json. `trace.save(folder)` makes one.")
    try:
        header = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise LoadError(f"{file} is damaged: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise LoadError(f"{folder} is not a Headscope trace: trace.json has another format.")
    if header.get("version") != VERSION:
        raise LoadError(f"{folder} has trace format {header.get('version')}, this Headscope reads format {VERSION}.")
    if header.pop("checksum", None) != _header_checksum(header):
        raise LoadError(f"{folder} is damaged: trace.json does not match its checksum. Save the trace again.")
    return header


def _header_checksum(header: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(header).encode()).hexdigest()


def _refuse_foreign(folder: Path) -> None:
    """A trace goes into a new or empty folder, or over another trace: nothing else is ours to change."""
    file = folder / "trace.json"
    if file.exists():
        try:
            is_ours = json.loads(file.read_bytes())["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise LoadError(f"{file} is damaged or not a Headscope trace, so it is left alone: choose another folder.")
    # (Another save may put its trace.json there between the two looks.)
    elif folder.exists() and any(not one.name.startswith((".", "tensors-", "trace.json")) for one in folder.iterdir()):
        raise LoadError(f"{folder} holds other files and no trace: choose an empty or new folder.")


def _clear(folder: Path, in_use: Path) -> None:
    """Delete the tensors of the trace that was replaced, and what killed saves left."""
    with contextlib.suppress(OSError):  # the new trace is whole: what stays behind is only clutter
        for file in set(folder.glob("tensors-*.safetensors")) - {in_use}:
            file.unlink(missing_ok=True)
        for work in folder.glob(".saving-*"):
            if time.time() - work.stat().st_mtime > _ABANDONED:
                shutil.rmtree(work, ignore_errors=True)


def _inside(name: str) -> str:
    if Path(name).name != name:
        raise LoadError(f"trace.json names a file outside its folder: {name!r}.")
    return name
