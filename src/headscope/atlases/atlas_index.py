"""The folder of an atlas: its index, and its files, each whole or not there, and each verified when it is read."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from headscope.choices import Coordinates, MapMethod
from headscope.errors import InputError, LoadError, MissingExtraError
from headscope.files import read_json, refuse_foreign, take_checksum, with_checksum, write_file

FORMAT, VERSION = "headscope-atlas", 2
INDEX, TOKENS, SCORES, RUN, MAPS, NORMS, PICTURES = (
    "atlas.json", "tokens.parquet", "scores.parquet", "run", "maps", "norms.safetensors", "pictures.safetensors",
)  # fmt: skip
OURS = frozenset({INDEX, TOKENS, SCORES, RUN, MAPS, NORMS, PICTURES})
REMEDY = "Delete it, and make the atlas again with the same folder and options to repair it."
_STEPS = 65535


@dataclass(frozen=True)
class Cloud:
    """The points of a head (or of a depth of the residual stream) that play one role.

    `table` and `row` say where their vectors are in the files of the run. A point is a token of `stack`.
    """

    role: str
    stack: str
    table: str
    row: int


@dataclass(frozen=True)
class AtlasPlace:
    """What one picture of an atlas shows: the clouds of a head, in the order of its points."""

    address: str
    site: str
    clouds: tuple[Cloud, ...]
    is_causal: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AtlasPlace":
        """What `asdict` gave."""
        clouds = tuple(Cloud(**cloud) for cloud in data["clouds"])
        return cls(data["address"], data["site"], clouds, data["is_causal"])


@dataclass(frozen=True)
class MapName:
    """A way to draw: coordinates, method and dimensions; the name of the folder that its maps are in."""

    method: MapMethod = "pca"
    dims: int = 2
    coordinates: Coordinates = "scaled"

    def __str__(self) -> str:
        return f"{self.coordinates}-{self.method}-{self.dims}d"

    @classmethod
    def parse(cls, name: str) -> "MapName":
        """Read what `str` gave."""
        coordinates, method, dims = name.split("-")
        return cls(method, int(dims[:-1]), coordinates)  # type: ignore[arg-type]


def read_index(folder: Path) -> dict[str, Any]:
    """The fields of `atlas.json`, verified."""
    file = folder / INDEX
    if not file.is_file():
        is_begun = (folder / RUN).is_dir()
        state = f"the atlas in {folder} is not complete" if is_begun else f"there is no atlas in {folder}"
        remedy = "Make it again with the same folder to resume." if is_begun else "`headscope atlas` makes one."
        raise LoadError(f"{state}: {INDEX} is missing. {remedy}")
    index = read_json(file, REMEDY)
    has_checksum = take_checksum(index, file, REMEDY)
    if index.get("format") != FORMAT or index.get("version") != VERSION:
        raise LoadError(
            f"{file} is of another kind or version: {index.get('format')} {index.get('version')}, and this Headscope "
            f"reads {FORMAT} {VERSION}. Make the atlas again in another folder."
        )
    if not has_checksum:
        raise LoadError(f"{file} is damaged: it has no checksum. {REMEDY}")
    return index


def write_index(folder: Path, index: Mapping[str, Any]) -> None:
    """Write `atlas.json`; refuse where another atlas is there."""
    refuse_another(folder, index)
    if not (folder / INDEX).is_file():
        data = json.dumps(with_checksum(index_fields(index)), indent=1, ensure_ascii=False)
        write_file(folder / INDEX, data.encode())


def refuse_another(folder: Path, index: Mapping[str, Any]) -> None:
    """Refuse a folder whose index has other fields than these."""
    if not (folder / INDEX).is_file():
        return
    before, fields = read_index(folder), index_fields(index)
    changed = [name for name in dict.fromkeys([*before, *fields]) if before.get(name) != fields.get(name)]
    if changed:
        raise LoadError(f"{folder} holds another atlas: {', '.join(changed)} differ. Choose another folder.")


def index_fields(index: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `atlas.json` but its checksum, as plain data."""
    return json.loads(json.dumps({"format": FORMAT, "version": VERSION, **index}))


def check_options(folder: Path, options: Mapping[str, Any]) -> None:
    """Refuse a folder that holds something else, or an atlas made with other options, before anything is computed."""
    refuse_foreign(folder, "an atlas", ours=OURS, writes=OURS)
    if (folder / NORMS).is_file():
        raise LoadError(f"{folder} holds an atlas that was imported. Choose another folder.")
    if (folder / INDEX).is_file():
        before = read_index(folder)["options"]
        changed = [f"{name} was {before.get(name)}, is {value}" for name, value in options.items()
                   if before.get(name) != value]  # fmt: skip
        if changed:
            raise LoadError(f"{folder} holds another atlas: {'; '.join(changed)}. Choose another folder.")


def places_json(places: Sequence[AtlasPlace]) -> list[dict[str, Any]]:
    """Places as plain data."""
    return [asdict(place) for place in places]


# Maps


def map_file(folder: Path, name: MapName, address: str) -> Path:
    """Where the map of a head is."""
    return folder / MAPS / str(name) / f"{address}.safetensors"


def write_map(file: Path, points: np.ndarray) -> None:
    """Keep a map [point, dimension] in 16 bits a coordinate: one step for all dimensions, so that shapes stay."""
    if not np.isfinite(points).all():
        raise InputError(f"the map {file.stem} holds NaN or infinity.")
    low = points.min(0)
    step = max(float((points - low).max()) / _STEPS, 1e-30)
    steps = np.rint((points - low) / step).clip(0, _STEPS).astype(np.uint16)
    about: dict[str, Any] = {"low": [float(value) for value in low], "step": step}
    about["sha256"] = _digest(steps, about)
    # One field: safetensors writes several in any order.
    write_file(file, save({"points": torch.from_numpy(steps)}, metadata={"about": json.dumps(about)}))


def read_map(file: Path) -> np.ndarray:
    """A map [point, dimension], verified."""
    steps, about = read_steps(file)
    return (np.asarray(about["low"]) + steps.astype(np.float64) * about["step"]).astype(np.float32)


def read_steps(file: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """A map as it is kept: 16-bit steps [point, dimension], with `low` and `step`."""
    from safetensors import safe_open

    try:
        with safe_open(str(file), "np") as opened:
            steps, about = opened.get_tensor("points"), json.loads((opened.metadata() or {})["about"])
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # safetensors raises its own kinds at a damaged file
        raise LoadError(f"{file} is damaged: {error}. Delete it, and it is computed again.") from error
    if about.get("sha256") != _digest(steps, about):
        raise LoadError(f"{file} is damaged: it does not match its checksum. Delete it, and it is computed again.")
    return steps, about


def _digest(steps: np.ndarray, about: Mapping[str, Any]) -> str:
    """A hash of a map's steps and of where and how wide they are."""
    digest = hashlib.sha256(json.dumps([about.get("low"), about.get("step")]).encode())
    digest.update(np.ascontiguousarray(steps).tobytes())
    return digest.hexdigest()


def duckdb_package() -> Any:
    """DuckDB, which searches."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("search needs the package duckdb: pip install 'headscope[atlas]'.") from error
    return duckdb
