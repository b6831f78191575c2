"""The smaller model: pruned heads folded into the weights (`baked/`), and taken out of them (`slim/`), side by side."""

import hashlib
import json
import secrets
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headscope import files
from headscope.errors import CaptureError, HeadscopeError, HeadscopeWarning, InputError, InterventionError, LoadError
from headscope.models import Model, bake, load, slim
from headscope.models.capture.passes import training_mode
from headscope.models.slim_layers import slim_plan_of
from headscope.progress import Cancel, OnProgress, Steps
from headscope.pruning.head_mask import HeadMask
from headscope.pruning.size_and_speed import (
    ForwardFlops,
    forward_flops,
    forward_seconds,
    n_parameters,
    sized_inputs,
    weight_bytes,
)

FILE = "smaller.json"
VERSION = 1
FOLDERS = ("baked", "slim")
_REMEDY = "Write the smaller models again."


@dataclass(frozen=True)
class ModelCost:
    """What a model costs: parameters, bytes of its weight files, operations and median seconds of a forward pass."""

    parameters: int
    bytes: int
    flops: ForwardFlops
    seconds: float


@dataclass(frozen=True)
class SmallerModels:
    """What `write_smaller_models` wrote. `batch` and `length` are of the input that was timed.

    `point` is the point of a sweep that they are of ("" for a mask alone), `mask_sha256` the checksum of its mask.
    `slim` is None where the model cannot be made slim, and `slim_refused` says why. A slim folder that `is_plain` loads
    with Transformers alone; any other, with `headscope.load`. The baked model costs what the original costs.
    """

    heads: tuple[int, int]
    baked: ModelCost
    slim: ModelCost | None
    slim_refused: str
    is_plain: bool
    batch: int
    length: int
    device: str
    point: str = ""
    mask_sha256: str = ""

    @property
    def timed_on(self) -> str:
        """The input that was timed, and where: models without tokens take one size alone."""
        inputs = f"{self.batch} × {self.length} tokens" if self.length else f"a batch of {self.batch}"
        return f"{inputs} on {self.device}"

    @classmethod
    def open(cls, folder: Path | str) -> "SmallerModels":
        """What is known of the smaller models in a folder."""
        file = Path(folder).expanduser() / FILE
        if not file.exists():
            raise LoadError(f"there is no {FILE} in {folder}: `headscope prune` writes it, with baked/ and slim/.")
        data = files.read_json(file, _REMEDY)
        if data.pop("version", None) != VERSION or not files.take_checksum({"version": VERSION, **data}, file, _REMEDY):
            raise LoadError(f"{file} is damaged, or of another version of Headscope. {_REMEDY}")
        data.pop("checksum")
        if data.get("unfinished"):
            raise LoadError(f"baked/ and slim/ in {folder} are of two points: writing them was cut short. {_REMEDY}")
        return cls(**data | {"heads": tuple(data["heads"]), "baked": _cost(data["baked"]), "slim": _cost(data["slim"])})


def write_smaller_models(
    model: Model,
    mask: HeadMask,
    folder: Path | str,
    *,
    point: str = "",
    batch: int = 8,
    length: int = 128,
    rounds: int = 5,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> SmallerModels:
    """Write the model without the pruned heads: `baked/` (the same sizes) and `slim/` (fewer weights) in a folder.

    Both are compared with the model whose pruned heads are switched off before they appear, and take the place of
    earlier ones together. Their sizes and their speed, beside each other, are in `smaller.json`, with the `point` of
    a sweep that they are of. Where the model cannot be made slim exactly, `slim/` is left out with a warning that says
    why; where weights cannot express the mask at all, it is an error.
    """
    mask.check(model)
    folder = Path(folder).expanduser()
    if batch < 1 or length < 1 or rounds < 1:
        raise InputError(f"batch, length and rounds are at least 1, got {batch}, {length} and {rounds}.")
    steps = Steps("smaller models", 3, progress, cancel)
    with _replaced_together(folder) as staging, training_mode(model.module, False):
        steps.next()
        bake(model, mask.interventions(), staging / "baked")
        steps.next()
        refused = ""
        try:
            slim(model, mask.heads_kept(), staging / "slim")
        except (InterventionError, CaptureError) as error:
            refused = str(error)
            warnings.warn(f"only baked/ was written: {refused}", HeadscopeWarning, stacklevel=2)
        steps.next()
        smaller = _measure(model, mask, staging, refused, batch, length, rounds)
        smaller = replace(smaller, point=point, mask_sha256=_checksum(mask))
        _write_about(staging, asdict(smaller))
    return smaller


def smaller_models_of(folder: Path, point: str, mask: HeadMask) -> SmallerModels | None:
    """The smaller models in a folder if they are whole, and of this point; else None."""
    try:
        smaller = SmallerModels.open(folder)
    except LoadError:  # none, damaged, or cut short
        return None
    names = FOLDERS if smaller.slim is not None else FOLDERS[:1]
    is_there = all((folder / name).is_dir() for name in names)
    return smaller if is_there and (smaller.point, smaller.mask_sha256) == (point, _checksum(mask)) else None


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process had begun to write. Call with the folder locked, as whoever writes models does."""
    for leftover in folder.glob(f"{files.UNFINISHED}*.partial"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)


def _checksum(mask: HeadMask) -> str:
    return hashlib.sha256(json.dumps(mask.to_json()).encode()).hexdigest()


def _write_about(folder: Path, about: dict[str, Any]) -> None:
    whole = files.with_checksum(json.loads(json.dumps({"version": VERSION, **about})))
    files.write_file(folder / FILE, json.dumps(whole, indent=1).encode())


def _measure(
    model: Model, mask: HeadMask, folder: Path, refused: str, batch: int, length: int, rounds: int
) -> SmallerModels:
    inputs = sized_inputs(model, batch=batch, length=length)
    models = [model]
    if not refused:
        models.append(load(folder / "slim", device=model.device, dtype=model.dtype))
    seconds = forward_seconds(models, inputs, rounds=rounds)
    costs = [
        ModelCost(n_parameters(own), weight_bytes(folder / name), forward_flops(own, inputs), own_seconds)
        for name, own, own_seconds in zip(FOLDERS, models, seconds, strict=False)
    ]
    plan = None if refused else slim_plan_of(models[1].module)
    is_plain = plan is not None and plan.is_plain
    n_tokens = max((tensor.shape[1] for tensor in inputs.values() if not tensor.is_floating_point()), default=0)
    slim_cost = None if refused else costs[1]
    return SmallerModels(mask.total(), costs[0], slim_cost, refused, is_plain, batch, n_tokens, str(model.device))


@contextmanager
def _replaced_together(folder: Path) -> Iterator[Path]:
    """A folder to write in; when the block ends without an error, its contents take the place of those of `folder`."""
    if not (folder / FILE).exists():
        for name in FOLDERS:
            files.refuse_foreign(folder / name, "a model", is_replaced=True)
    staging = folder / f"{files.UNFINISHED}{secrets.token_hex(8)}.partial"
    try:
        (staging / "before").mkdir(parents=True)
        yield staging
        _write_about(folder, {"unfinished": True})  # who is killed before the last line leaves a mixture
        for name in FOLDERS:
            if (folder / name).exists():
                (folder / name).rename(staging / "before" / name)
            if (staging / name).exists():
                (staging / name).rename(folder / name)
        (staging / FILE).replace(folder / FILE)
    except OSError as error:
        if isinstance(error, HeadscopeError):
            raise
        raise LoadError(f"could not write the smaller models to {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _cost(data: dict[str, Any] | None) -> Any:
    if data is None:
        return None
    return ModelCost(data["parameters"], data["bytes"], ForwardFlops(**data["flops"]), data["seconds"])
