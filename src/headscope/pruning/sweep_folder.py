"""The folder of a sweep: what was pruned by which method, what it cost, and the weights of every point."""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors.torch import load, save
from torch import Tensor

from headscope import files
from headscope.errors import InputError, LoadError
from headscope.models import Model
from headscope.pruning.attention_types import PrunableLayer
from headscope.pruning.head_mask import HeadMask, parse_sites
from headscope.sites import Site
from headscope.tasks.score import Score
from headscope.tasks.task_names import Split
from headscope.tasks.trained_parameters import frozen_checksum

INDEX = "prune.json"
VERSION = 1
OURS = frozenset({INDEX, "points", "baked", "slim", "smaller.json", "report.html", "points.parquet", "heads.parquet"})
_REMEDY = "Prune again in another folder."


@dataclass(frozen=True)
class PrunePoint:
    """A mask with how it was made and what the model scores with it. See docs/pruning.md for the fields' meaning.

    `lambda_` is by type of attention. `log_alpha` and `p_open` are of L0's gates, by layer. A row of `history` has
    "step", "loss", "open" (by type) and, where it was evaluated, "score". `weights` is a file in the sweep's folder.
    `search` says how λ was found for `keep`, and how many heads were then added or removed by log α. `dev` is the score
    on dev of points that may be chosen: `score` is on test where there is one, and must not decide.
    """

    id: str
    method: str
    mask: HeadMask
    score: Score
    split: str
    start: str = "trained"
    parameters: str = "all"
    allocation: str | None = None
    like: str | None = None
    normalised: bool = False
    lambda_: Mapping[str, float] | None = None
    keep: float | None = None
    seed: int = 0
    tuning: str = "none"
    steps: int = 0
    log_alpha: Mapping[Site, tuple[float, ...]] | None = None
    p_open: Mapping[Site, tuple[float, ...]] | None = None
    loss: float | None = None
    seconds: float = 0.0
    history: tuple[dict[str, Any], ...] = ()
    weights: str | None = None
    weights_sha256: str | None = None
    search: Mapping[str, Any] | None = None
    dev: Score | None = None

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many heads survive, and of how many, by type of attention."""
        return self.mask.counts()

    def total(self) -> tuple[int, int]:
        """How many heads survive, and of how many."""
        return self.mask.total()

    def to_json(self) -> dict[str, Any]:
        """As plain data: the fields of `point.json`."""
        plain = ("id", "method", "start", "parameters", "allocation", "like", "normalised", "keep", "seed", "tuning")
        return {
            **{name: getattr(self, name) for name in plain},
            "steps": self.steps,
            "lambda": None if self.lambda_ is None else dict(self.lambda_),
            "mask": self.mask.to_json(),
            "counts": {name: list(pair) for name, pair in self.counts().items()},
            "total": list(self.total()),
            "log_alpha": _by_address(self.log_alpha),
            "p_open": _by_address(self.p_open),
            "score": _score_to_json(self.score) | {"split": self.split},
            "dev": None if self.dev is None else _score_to_json(self.dev),
            "loss": self.loss,
            "seconds": self.seconds,
            "history": [dict(row) for row in self.history],
            "weights": self.weights,
            "weights_sha256": self.weights_sha256,
            "search": None if self.search is None else dict(self.search),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PrunePoint":
        """What `to_json` gave."""
        derived = ("counts", "total", "lambda", "mask", "score", "dev", "log_alpha", "p_open", "history")
        return cls(
            **{name: value for name, value in data.items() if name not in derived},
            mask=HeadMask.from_json(data["mask"]),
            score=_score_from_json(data["score"]),
            split=data["score"]["split"],
            dev=None if data.get("dev") is None else _score_from_json(data["dev"]),
            lambda_=data["lambda"],
            log_alpha=_by_site(data["log_alpha"]),
            p_open=_by_site(data["p_open"]),
            history=tuple(data["history"]),
        )


@dataclass(frozen=True)
class Sweep:
    """The points of a model and a task, in a folder. Read again at every access: another process may add to it."""

    folder: Path

    @classmethod
    def open(cls, folder: Path | str) -> "Sweep":
        """The sweep in a folder, finished or not."""
        sweep = cls(Path(folder).expanduser())
        sweep.read()
        return sweep

    @classmethod
    def create(
        cls,
        folder: Path | str,
        *,
        model: str,
        model_class: str,
        task: str,
        metric: str,
        higher_is_better: bool,
        layers: Iterable[PrunableLayer],
        data: Mapping[str, Any],
        options: Mapping[str, Any],
        baseline: str = "none",
    ) -> "Sweep":
        """Begin a sweep without points in a new or empty folder, or go on with the same one."""
        sweep = cls(Path(folder).expanduser())
        about = {"model": model, "model_class": model_class, "task": task, "metric": metric}
        rows = [
            {"site": str(layer.site), "type": layer.type, "heads": layer.n_heads, "groups": layer.n_groups}
            for layer in layers
        ]
        about |= {"higher_is_better": higher_is_better, "layers": rows, "data": dict(data), "options": dict(options)}
        about = json.loads(json.dumps(about))  # as it will be read: tuples are lists then
        refuse_other_files(sweep.folder)
        files.make_folder(sweep.folder)
        with files.lock(sweep.folder):
            if (sweep.folder / INDEX).exists():
                sweep._check_same(about)
            else:
                sweep._write({**about, "points": [], "chosen": None, "baseline": baseline})
        return sweep

    # Reading

    def read(self) -> dict[str, Any]:
        """The fields of `prune.json`."""
        file = self.folder / INDEX
        if not file.exists():
            raise LoadError(f"there is no sweep in {self.folder}: {INDEX} is missing. `headscope prune` makes one.")
        return _checked_json(file)

    @property
    def points(self) -> list[PrunePoint]:
        """The finished points, in the sweep's order."""
        return [self.point(name) for name in self.read()["points"]]

    def point(self, name: str) -> PrunePoint:
        """A finished point by its id."""
        known = self.read()["points"]
        if name not in known:
            raise InputError(
                f"there is no point {name!r} in {self.folder}: there are {', '.join(known) or 'none yet'}."
            )
        data = _checked_json(self.point_folder(name) / "point.json")
        data.pop("version")
        return PrunePoint.from_json(data)

    @property
    def chosen(self) -> PrunePoint | None:
        """The chosen point, once there is one. `smaller.json` says which point `baked/` and `slim/` are of."""
        name = self.read()["chosen"]
        return None if name is None else self.point(name)

    @property
    def baseline(self) -> PrunePoint | None:
        """The untouched model, once it was evaluated."""
        index = self.read()
        return self.point(index["baseline"]) if index["baseline"] in index["points"] else None

    @property
    def layers(self) -> list[PrunableLayer]:
        """The attention layers of the model, pruned or not."""
        rows = self.read()["layers"]
        sites = parse_sites(row["site"] for row in rows)
        return [PrunableLayer(sites[row["site"]], row["type"], row["heads"], row["groups"]) for row in rows]

    def point_folder(self, name: str) -> Path:
        """Where a point's files are."""
        return self.folder / "points" / name

    def weights(self, point: PrunePoint) -> dict[str, Tensor]:
        """The parameters and buffers that differ from the original model's, by name; empty where none does."""
        if point.weights is None:
            return {}
        file = self.folder / point.weights
        try:
            data = file.read_bytes()
        except OSError as error:
            raise LoadError(f"{file} cannot be read: {error.strerror or error}. {_REMEDY}") from error
        if point.weights_sha256 is not None and hashlib.sha256(data).hexdigest() != point.weights_sha256:
            raise LoadError(f"{file} is damaged: it does not match its checksum. {_REMEDY}")
        return load(data)

    def load(self, model: Model, point: PrunePoint | str) -> Model:
        """The model with the weights of a point; `model` is the original, as the sweep began with it, and stays so.

        The pruned heads are still in it: run it with `point.mask.interventions()`. A point without weights of its own
        gives `model` itself.
        """
        point = self.point(point) if isinstance(point, str) else point
        point.mask.check(model)
        tensors = self.weights(point)
        if not tensors:
            return model
        pruned = copy_model(model)
        own = dict(pruned.module.named_parameters()) | dict(pruned.module.named_buffers())
        unknown = next((name for name in tensors if name not in own or own[name].shape != tensors[name].shape), None)
        if unknown is not None:
            raise InputError(f"{model.name} has no parameter {unknown!r} of this shape: the sweep is of another model.")
        with torch.no_grad():
            for name, tensor in tensors.items():
                own[name].copy_(tensor)
        return pruned

    def check_weights(self, model: Model) -> None:
        """Refuse a model that is not the original: shapes alone do not tell."""
        index = self.read()
        known = index["options"].get("weights")
        if known is not None and known != frozen_checksum(model.module, {}):
            raise LoadError(
                f"the sweep in {self.folder} is of another {index['model']}, with other weights: prune it again."
            )

    # Writing

    def write_weights(
        self, name: str, tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None
    ) -> dict[str, str]:
        """Write the weights of a point; gives `weights` and `weights_sha256`. `dtype` is that on disk."""
        data = save(
            {
                key: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None).contiguous().clone()
                for key, tensor in tensors.items()
            }
        )
        file = self.point_folder(name) / "weights.safetensors"
        files.write_file(file, data)
        place = file.relative_to(self.folder).as_posix()
        return {"weights": place, "weights_sha256": hashlib.sha256(data).hexdigest()}

    def add(self, point: PrunePoint) -> None:
        """Write a finished point, and list it last; or write it again."""
        whole = files.with_checksum({"version": VERSION, **_plain(point.to_json())})
        files.write_file(self.point_folder(point.id) / "point.json", json.dumps(whole, indent=1).encode())
        with files.lock(self.folder):
            index = self.read()
            if point.id not in index["points"]:
                self._write(index | {"points": [*index["points"], point.id]})

    def choose(self, name: str | None) -> None:
        """Note which point is chosen."""
        with files.lock(self.folder):
            index = self.read()
            if name is not None and name not in index["points"]:
                raise InputError(f"there is no point {name!r} in {self.folder}.")
            self._write(index | {"chosen": name})

    def sort(self, order: Iterable[str]) -> None:
        """List the points in this order; those that it does not name come last."""
        with files.lock(self.folder):
            index = self.read()
            names = [name for name in dict.fromkeys(order) if name in index["points"]]
            self._write(index | {"points": [*names, *(name for name in index["points"] if name not in names)]})

    def _write(self, index: Mapping[str, Any]) -> None:
        ordered = {"version": VERSION, **{name: value for name, value in index.items() if name != "version"}}
        files.write_file(self.folder / INDEX, json.dumps(files.with_checksum(ordered), indent=1).encode())

    def _check_same(self, about: Mapping[str, Any]) -> None:
        before = self.read()
        changed = [name for name in about if before.get(name) != about[name]]
        if changed:
            raise InputError(
                f"{self.folder} holds a sweep with other settings ({_difference(changed[0], before, about)}): resume "
                "it with the same, or choose another folder."
            )


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder whose files a sweep would replace and did not write: without `prune.json` none are its own."""
    ours = OURS if (folder / INDEX).exists() else frozenset()
    files.refuse_foreign(folder, "a sweep", ours=ours, writes=OURS)


def copy_model(model: Model) -> Model:
    """A model with the same weights, which may then change."""
    copied = Model(copy.deepcopy(model.module), model.processor, name=model.name, verify=False)
    copied.verification = model.verification  # what was compared is the architecture
    return copied


def _checked_json(file: Path) -> dict[str, Any]:
    data = files.read_json(file, _REMEDY)
    if data.get("version") != VERSION:
        raise LoadError(f"{file} has format {data.get('version')!r}, and this Headscope reads {VERSION}.")
    if not files.take_checksum(data, file, _REMEDY):
        raise LoadError(f"{file} is damaged: its checksum is missing. {_REMEDY}")
    return data


def _plain(data: Any) -> Any:
    """JSON without NaN, which other readers refuse: null instead."""
    if isinstance(data, float) and data != data:
        return None
    if isinstance(data, dict):
        return {name: _plain(value) for name, value in data.items()}
    return [_plain(value) for value in data] if isinstance(data, list | tuple) else data


def _difference(name: str, before: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """How two sweeps differ in a setting, in words."""
    old, new = before.get(name), about[name]
    if isinstance(old, dict) and isinstance(new, dict):
        name = next(key for key in {**old, **new} if old.get(key) != new.get(key))
        old, new = old.get(name), new.get(name)
    if name in get_args(Split):
        old, new = (_data_name(data) for data in (old, new))
        return f"its {name} data were {old}, now {'others of that name' if new == old else new}"
    if name == "weights":
        return "it is of a model of this name with other weights"
    return f"{name} was {old}, now {new}"


def _data_name(data: Mapping[str, Any] | None) -> str:
    if data is None:
        return "none"
    return f"{data['name']} ({data['n']:,} {'example' if data['n'] == 1 else 'examples'})"


def _score_to_json(score: Score) -> dict[str, Any]:
    interval = None if score.interval is None else list(score.interval)
    return {"metric": score.metric, "value": score.value, "n": score.n, "interval": interval}


def _score_from_json(data: Mapping[str, Any]) -> Score:
    value = float("nan") if data["value"] is None else data["value"]
    return Score(data["metric"], value, data["n"], None if data["interval"] is None else tuple(data["interval"]))


def _by_address(values: Mapping[Site, tuple[float, ...]] | None) -> dict[str, list[float]] | None:
    return None if values is None else {str(site): list(row) for site, row in values.items()}


def _by_site(values: Mapping[str, Any] | None) -> dict[Site, tuple[float, ...]] | None:
    if values is None:
        return None
    return {site: tuple(values[address]) for address, site in parse_sites(values).items()}
