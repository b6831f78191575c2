"""The manifest: all that decides the numbers of a run. The same manifest gives the same bytes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from headscope.corpora import Corpus, Survey
from headscope.errors import HeadscopeError
from headscope.glossary import current_name
from headscope.models import Model
from headscope.runs.batch_plan import Plan
from headscope.runs.measure import Measure

FORMAT = "headscope-run"
VERSION = 3
# The version before manifests and shards had checksums.
UNVERIFIED = 1
# The version before "confidence" and "distance" had one meaning each.
FORMER_MEASURES = 2
# Another version of these may give another last digit, or other bytes for the same numbers.
_PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "numpy", "pyarrow")
# Told for people; a run goes on though they changed.
_ASIDE = ("where",)


def make_manifest(
    model: dict[str, Any], corpus: Corpus, survey: Survey, measures: Sequence[Measure], plan: Plan
) -> dict[str, Any]:
    """The manifest of a run that is about to begin."""
    files = [{"name": path.name, "bytes": path.stat().st_size} for path in corpus.files if path.is_file()]
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "model": model,
        "corpus": {"name": corpus.name, "kind": corpus.kind, "limit": corpus.limit, "files": files, **survey._asdict()},
        "measures": [
            {"name": measure.name, "settings": measure.settings, "record": measure.record} for measure in measures
        ],
        "plan": asdict(plan),
        "packages": {name: _version(name) for name in _PACKAGES},
        "where": {"corpus": [str(path) for path in corpus.files], "about": corpus.about},
    }
    try:
        return json.loads(json.dumps(manifest))
    except TypeError as error:
        raise HeadscopeError(f"the settings of a measure must be plain JSON: {error}.") from error


def measure_names(manifest: dict[str, Any]) -> dict[str, str]:
    """The names of a run's measures, and those that its shards have, which may be of an earlier version."""
    stored = [measure["name"] for measure in manifest["measures"]]
    is_former = manifest["version"] <= FORMER_MEASURES
    return {current_name(name) if is_former else name: name for name in stored}


def digest_of(manifest: dict[str, Any]) -> str:
    """A hash of all that counts in a manifest."""
    counting = {key: value for key, value in manifest.items() if key not in _ASIDE}
    return hashlib.sha256(json.dumps(counting, sort_keys=True).encode()).hexdigest()


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """What differs between two manifests, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        changes = []
        for key in dict.fromkeys([*old, *new]):
            if name or key not in _ASIDE:
                changes += differences(old.get(key), new.get(key), f"{name}.{key}" if name else key)
        return changes
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            change
            for at, pair in enumerate(zip(old, new, strict=True))
            for change in differences(*pair, f"{name}[{at}]")
        ]
    return [] if old == new else [f"{name} was {_short(old)}, is {_short(new)}"]


def identity(model: Model) -> dict[str, Any]:
    """What a model is, down to its weights and what reads its inputs."""
    device = model.device
    kind = f"{device.type} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type
    return {
        "name": model.name,
        "class": type(model.module).__name__,
        "weights": _weights(model),
        "processor": _processor(model.processor),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": kind,
    }


def _weights(model: Model) -> str:
    """A hash of all parameters and buffers, their names and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.module.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        if tensor.device.type != "meta" and tensor.numel():  # offloaded weights have nothing to read here
            plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(memoryview(plain.numpy()))
    return digest.hexdigest()


def _processor(processor: Any) -> str:
    """A hash of a tokenizer's rules or of an image processor's settings."""
    if processor is None:
        return ""
    parts_json = [type(processor).__name__]
    parts: list[Any] = [processor, getattr(processor, "tokenizer", None), getattr(processor, "image_processor", None)]
    for part in parts:
        fast = getattr(part, "backend_tokenizer", None)
        if fast is not None:
            rules = json.loads(fast.to_str())
            parts_json.append(json.dumps({key: rules[key] for key in rules if key not in ("truncation", "padding")}))
        elif hasattr(part, "get_vocab"):
            parts_json.append(json.dumps(part.get_vocab(), sort_keys=True))
        elif hasattr(part, "to_dict"):
            settings = {key: value for key, value in part.to_dict().items() if key not in ("name_or_path", "tokenizer")}
            parts_json.append(json.dumps(settings, sort_keys=True, default=str))
    return hashlib.sha256("\n".join(parts_json).encode()).hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:28]}…{text[-28:]}"
