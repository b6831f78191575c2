"""A trace on disk: a folder with `trace.json` and one file of tensors, which the JSON names and checksums.

The JSON is replaced last and in one step, so the folder holds the old trace or the new one, never half of either. Only
files that a trace wrote are replaced or deleted: the tensors that `trace.json` names, and those that a save which was
killed had noted before it put them there.
"""

import contextlib
import json
import re
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headscope.arguments import as_path
from headscope.attention import Bias, Formula, Mask, Summary
from headscope.errors import HeadscopeError, LoadError
from headscope.files import (
    UNFINISHED,
    checksum,
    lock,
    place_file,
    read_json,
    refuse_foreign,
    take_checksum,
    with_checksum,
    write_file,
)
from headscope.sites import Site
from headscope.traces.experts import experts_header, experts_of
from headscope.traces.inputs import Inputs
from headscope.traces.layer import LayerRecord
from headscope.traces.media import tensors_of
from headscope.traces.predictions import Predictions
from headscope.traces.tokens import Tokens
from headscope.traces.trace import RECORDS, Trace

FORMAT = "headscope-trace"
VERSION = 1
_VECTORS = ("query", "key", "value", "mixed", "value_norms", "places")
_PLAIN = ("n_heads", "n_queries", "n_keys", "key_stack", "way", "no_norms", "no_scores")
_SAVING = f"{UNFINISHED}saving-"
_TENSORS = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
# A note in the folder of a save, that it put tensors of this name beside it.
_PLACED = ".placed"
# What a save that was killed left behind is cleared away by a later one, once it is this old (in seconds).
_ABANDONED = 3600
_SAVE_AGAIN = "Save the trace again."


def save_trace(trace: Trace, folder: str | Path) -> Path:
    """Write a trace; a trace that was there before stays readable until the new one is complete."""
    if trace.readings:
        raise HeadscopeError(
            "save the trace itself: words() and without() are ways of reading it, applied again after loading."
        )
    folder = as_path(folder, "the folder of a trace")
    is_new = not folder.exists()
    check_trace_folder(folder)
    box = _Box()
    header = _header(trace, box)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_SAVING, dir=folder) as work:
            partial = Path(work) / "tensors"
            save_file(box.tensors, partial)
            digest = checksum(partial)
            header["tensors"] = {"file": f"tensors-{digest[:16]}.safetensors", "sha256": digest}
            with lock(folder):
                _put(folder, partial, header)
    except BaseException as error:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError | SafetensorError) and not isinstance(error, HeadscopeError):
            raise LoadError(
                f"could not save the trace in {folder}: {error}. What was there before is untouched."
            ) from error
        raise
    return folder


def check_trace_folder(folder: Path) -> None:
    """Refuse a folder that is not new, empty or that of a trace: nothing else is ours to change."""
    if folder.is_dir():
        with lock(folder):  # or a save at work might be seen half done
            _previous(folder)
    else:
        refuse_foreign(folder, "a trace")


def _previous(folder: Path) -> dict[str, Any]:
    """The header of the trace that is there, {} where there is none; a folder of something else is refused."""
    file = folder / "trace.json"
    if not file.exists():
        refuse_foreign(folder, "a trace", ours=_noted_tensors(folder))
        return {}
    try:
        header = read_json(file, "")
    except LoadError:
        header = {}
    if header.get("format") != FORMAT:
        raise LoadError(f"{file} is damaged or not a Headscope trace, so it is left alone: choose another folder.")
    return header


def _put(folder: Path, partial: Path, header: dict[str, Any]) -> None:
    """Put finished tensors into the folder, then the header that names them, then delete what they replace."""
    before, name = _previous(folder), header["tensors"]["file"]
    replaced = before.get("tensors", {}).get("file") if _is_whole(before) else None
    file, note = folder / name, partial.with_name(name + _PLACED)
    is_new = not file.exists()
    if is_new:
        note.touch()
        place_file(partial, file)
    elif checksum(file) != header["tensors"]["sha256"]:
        if name not in (replaced, *_noted_tensors(folder)):
            refuse_foreign(folder, "a trace", ours=["trace.json"], writes=[name])
        place_file(partial, file)
    try:
        write_file(folder / "trace.json", json.dumps(with_checksum(header)).encode())
    except BaseException:
        if is_new:
            file.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # the new trace is whole: what stays behind is only clutter
        _clear(folder, {replaced, *_noted_tensors(folder)} - {name, None})


def _is_whole(header: dict[str, Any]) -> bool:
    """Whether a header is as it was written, so that the file it names is one of ours."""
    try:
        return take_checksum(dict(header), Path("trace.json"), "") and bool(
            _TENSORS.fullmatch(header["tensors"]["file"])
        )
    except (LoadError, KeyError, TypeError):
        return False


def _noted_tensors(folder: Path) -> set[str]:
    """The tensors that saves at work, or killed ones, noted to have put into the folder."""
    notes = folder.glob(f"{_SAVING}*/*{_PLACED}")
    return {note.name.removesuffix(_PLACED) for note in notes if _TENSORS.fullmatch(note.name.removesuffix(_PLACED))}


def _clear(folder: Path, names: set[str]) -> None:
    """Delete tensors that no trace needs any more, and what killed saves left."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    for work in folder.glob(f"{_SAVING}*"):
        if time.time() - work.stat().st_mtime > _ABANDONED:
            shutil.rmtree(work, ignore_errors=True)


def load_trace(folder: str | Path) -> Trace:
    """Read a trace and check it against its checksum."""
    folder = as_path(folder, "the folder of a trace")
    header = _read_header(folder)
    try:
        file = folder / _own_file(header["tensors"]["file"])
        if not file.is_file():
            raise LoadError(f"{folder} is incomplete: {file.name} is missing.")
        if checksum(file) != header["tensors"]["sha256"]:
            raise LoadError(f"{folder} is damaged: {file.name} does not match its checksum. {_SAVE_AGAIN}")
        return _trace(header, load_file(file))
    except (AttributeError, KeyError, TypeError, ValueError, SafetensorError, OSError) as error:
        if isinstance(error, HeadscopeError):
            raise
        raise LoadError(f"{folder} is damaged: {type(error).__name__}: {error}") from error


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
        | {
            "model_inputs": {
                name: box.put(f"inputs/{name}", tensor) for name, tensor in trace.inputs.model_inputs.items()
            }
        }
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
            "are_spans": answers.are_spans,
            "ids": box.put("answers/ids", answers.ids),
            "logprobs": box.put("answers/logprobs", answers.logprobs),
        },
        "residuals": {stack: box.put(f"residual/{stack}", residuals) for stack, residuals in trace.residuals.items()},
        "activations": [
            {"stack": site.stack, "layer": site.layer, "tensor": box.put(f"neurons/{site}", neurons)}
            for site, neurons in trace.activations.items()
        ],
        "logits": None if trace.logits is None else box.put("logits", trace.logits),
        "layers": [_layer_header(layer, box) for layer in trace.layers.values()],
        "other_layers": [
            {"stack": site.stack, "layer": site.layer, "mixer": mixer} for site, mixer in trace.other_layers.items()
        ],
        "pruned_heads": [str(head) for head in trace.pruned_heads],
        "experts": experts_header(trace.expert_choices, box.put),
    }


def _looks_header(inputs: Inputs, box: _Box) -> dict[str, dict[str, str]]:
    """The tensors of the pictures and sounds, by stack and name."""
    return {
        stack: {name: box.put(f"seen/{stack}/{name}", tensor) for name, tensor in tensors_of(media).items()}
        for stack, media in inputs.seen.items()
    }


def _layer_header(layer: LayerRecord, box: _Box) -> dict[str, Any]:
    at = str(layer.site)
    vectors = {name: getattr(layer, name) for name in _VECTORS}
    return {
        "stack": layer.site.stack,
        "layer": layer.site.layer,
        "kind": layer.site.kind,
        **{name: getattr(layer, name) for name in _PLAIN},
        "is_causal": layer.is_causal,
        "grid": layer.grid,
        "window": layer.window,
        "global_tokens": layer.global_tokens,
        "summary": {name: box.put(f"{at}/{name}", tensor) for name, tensor in layer.summary.tensors().items()},
        "vectors": {name: box.put(f"{at}/{name}", vector) for name, vector in vectors.items() if vector is not None},
        "stored": {str(index): box.put(f"{at}/pattern{index}", pattern) for index, pattern in layer.stored.items()},
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
            "is_triangle": mask.is_triangle,
            "tensors": {name: box.put(f"{at}/mask.{name}", tensor) for name, tensor in mask.tensors().items()},
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
    layers = [_layer(layer_json, tensors) for layer_json in header["layers"]]
    pruned = set(header.get("pruned_heads", []))
    return Trace(
        model=header["model"],
        record=header["record"],
        layers={layer.site: layer for layer in layers},
        tokens={stack: Tokens.from_json(tokens) for stack, tokens in header["tokens"].items()},
        inputs=None if inputs is None else _inputs(inputs, tensors),
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
            bool(answers.get("are_spans")),
        ),
        residuals={stack: tensors[name] for stack, name in header["residuals"].items()},
        activations={
            Site(neurons["stack"], neurons["layer"], "neurons"): tensors[neurons["tensor"]]
            for neurons in header["activations"]
        },
        logits=None if header["logits"] is None else tensors[header["logits"]],
        other_layers={Site(other["stack"], other["layer"]): other["mixer"] for other in header.get("other_layers", [])},
        pruned_heads=tuple(head for layer in layers for head in layer.heads() if str(head) in pruned),
        expert_choices=experts_of(header.get("experts", []), tensors),
    )


def _inputs(inputs: dict[str, Any], tensors: dict[str, Tensor]) -> Inputs:
    looks = {stack: {name: tensors[key] for name, key in of.items()} for stack, of in inputs.get("looks", {}).items()}
    return Inputs.from_json(inputs, {name: tensors[key] for name, key in inputs["model_inputs"].items()}, looks)


def _layer(data: dict[str, Any], tensors: dict[str, Tensor]) -> LayerRecord:
    summary = Summary(**{name: tensors[key] for name, key in data["summary"].items()})
    formula = None if data["formula"] is None else _formula(data["formula"], tensors)
    vectors: dict[str, Any] = {name: tensors[key] for name, key in data["vectors"].items()}
    layer = LayerRecord(
        site=Site(data["stack"], data["layer"], data["kind"]),
        summary=summary,
        formula=formula,
        stored={int(index): tensors[name] for index, name in data["stored"].items()},
        grid=tuple(data["grid"]) if data.get("grid") else None,
        window=data.get("window"),
        global_tokens=tuple(data.get("global_tokens", ())),
        **{name: data[name] for name in _PLAIN},
        **vectors,
    )
    return replace(layer, is_causal=data["is_causal"] if "is_causal" in data else _derive_is_causal(layer))


def _derive_is_causal(layer: LayerRecord) -> bool:
    """What traces of 0.1.0 do not say: by the mask, or where there is none by stored patterns or the strongest keys."""
    if layer.site.kind == "cross" or layer.n_queries != layer.n_keys:
        return False
    if layer.formula is not None:
        return layer.formula.mask is not None and layer.formula.mask.is_causal
    if layer.stored:
        return not any(bool(pattern.triu(1).any()) for pattern in layer.stored.values())
    return bool((layer.summary.argmax <= torch.arange(layer.n_queries)).all())


def _formula(data: dict[str, Any], tensors: dict[str, Tensor]) -> Formula:
    mask, bias = data["mask"], data["bias"]
    if mask is not None:
        parts: dict[str, Any] = {name: tensors[key] for name, key in mask.pop("tensors").items()}
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
    header = read_json(file, _SAVE_AGAIN)
    if header.get("format") != FORMAT:
        raise LoadError(f"{folder} is not a Headscope trace: trace.json has another format.")
    if header.get("version") != VERSION:
        raise LoadError(f"{folder} has trace format {header.get('version')}, this Headscope reads format {VERSION}.")
    if not take_checksum(header, file, _SAVE_AGAIN):
        raise LoadError(f"{file} is damaged: it has no checksum. {_SAVE_AGAIN}")
    return header


def _own_file(name: str) -> str:
    if Path(name).name != name:
        raise LoadError(f"trace.json names a file outside its folder: {name!r}.")
    return name
