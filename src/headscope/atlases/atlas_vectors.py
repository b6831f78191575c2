"""The vectors that an atlas was made from, read from the files of its run: head by head, all texts together."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from headscope.atlases.atlas_index import NORMS, AtlasPlace
from headscope.atlases.joint_space import JointSpace
from headscope.choices import Coordinates, KeyScale
from headscope.errors import LoadError
from headscope.files import has_checksum
from headscope.runs.corpus_run import Run
from headscope.runs.corpus_run import open as open_run

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas


class VectorFiles:
    """The files of an atlas's run that hold vectors; each is verified once."""

    def __init__(self, folder: Path):
        self.folder = folder

    @functools.cached_property
    def run(self) -> Run:
        """The run itself, with what it counted."""
        return open_run(self.folder)

    def paths(self, kind: str, suffix: str) -> list[Path]:
        """The verified files of one kind, "points" or "tokens", shard by shard."""
        files = [self.run.file(shard, f"{kind}-{shard:06d}.{suffix}") for shard in range(self.run.n_shards)]
        return [file for file in files if file is not None]

    @functools.cached_property
    def _points(self) -> list[Any]:
        return [safe_open(str(path), "pt") for path in self.paths("points", "safetensors")]

    def about(self) -> list[dict[str, Any]]:
        """What each file says of its layers: `sites` that it holds and why others are `absent`."""
        return [json.loads(opened.metadata()["about"]) for opened in self._points]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tables that every file has: heads or groups, tokens of all files, dimensions."""
        names = [set(opened.keys()) for opened in self._points]
        shapes: dict[str, tuple[int, ...]] = {}
        for name in sorted(set.intersection(*names) if names else set()):
            parts = [opened.get_slice(name).get_shape() for opened in self._points]
            shapes[name] = (parts[0][0], sum(part[1] for part in parts), parts[0][2])
        return shapes

    def read(self, table: str, row: int) -> Tensor:
        """The vectors of one head or group [token, dim], in fp32."""
        try:
            return torch.cat([opened.get_slice(table)[row].float() for opened in self._points])
        except Exception as error:  # safetensors raises its own kinds
            raise LoadError(f"{table} cannot be read from {self.folder}: {error}.") from error


@dataclass(frozen=True, eq=False)
class HeadVectors:
    """The vectors of one head's clouds: queries and keys [token, dim], or one cloud of another space."""

    place: AtlasPlace
    vectors: tuple[Tensor, ...]
    scale: KeyScale = "norms"

    @functools.cached_property
    def space(self) -> JointSpace | None:
        """How queries and keys are joined; None where there is one cloud."""
        return JointSpace.fit(self.vectors[0], self.vectors[1], scale=self.scale) if len(self.vectors) == 2 else None

    def points(self, coordinates: Coordinates = "scaled") -> Tensor:
        """All points [point, dim], in fp64; one cloud is as it is, whatever the coordinates."""
        if self.space is None:
            return self.vectors[0].double()
        return self.space.points(self.vectors[0], self.vectors[1], coordinates)

    def parts(self, coordinates: Coordinates = "scaled") -> tuple[Tensor, ...]:
        """The points of each cloud."""
        return self.points(coordinates).split([len(part) for part in self.vectors])

    def norms(self) -> np.ndarray:
        """The norm of every point's vector, as the head uses it [point]."""
        return torch.cat([part.norm(dim=-1) for part in self.vectors]).numpy()

    def key_bias(self) -> np.ndarray | None:
        """q̄·(k − k̄) of every key [key]; None where there is one cloud."""
        return None if self.space is None else self.space.key_bias(self.vectors[1]).float().numpy()


def point_columns(atlas: "Atlas", place: AtlasPlace) -> dict[str, np.ndarray]:
    """Numbers of the points of one place [point]; of an imported atlas the norms alone."""
    if not atlas.index["has_vectors"]:
        return _columns_without_vectors(atlas, place)
    vectors = read_vectors(atlas, place)
    columns, bias = {"norm": vectors.norms()}, vectors.key_bias()
    if bias is not None:
        columns["key_bias"] = np.concatenate([np.full(len(vectors.vectors[0]), np.nan, np.float32), bias])
    return columns


def _columns_without_vectors(atlas: "Atlas", place: AtlasPlace) -> dict[str, np.ndarray]:
    """The norms, and key biases where they were kept."""
    file = atlas.folder / NORMS
    if not file.is_file() or not has_checksum(file, atlas.index["norms_sha256"]):
        raise LoadError(f"{file} is missing or damaged: import the atlas again.")
    with safe_open(str(file), "np") as opened:
        columns, bias = {"norm": opened.get_tensor(place.address).astype(np.float32)}, f"{place.address}/key_bias"
        if bias in opened.keys():  # noqa: SIM118 (it is no dictionary)
            of_keys = opened.get_tensor(bias).astype(np.float32)
            unknown = np.full(len(columns["norm"]) - len(of_keys), np.nan, np.float32)
            columns["key_bias"] = np.concatenate([unknown, of_keys])
    return columns


def read_vectors(atlas: "Atlas", place: AtlasPlace) -> HeadVectors:
    """The vectors of one place of an atlas."""
    files = atlas.vector_files()
    vectors = tuple(files.read(cloud.table, cloud.row) for cloud in place.clouds)
    return HeadVectors(place, vectors, atlas.index["options"]["scale"])
