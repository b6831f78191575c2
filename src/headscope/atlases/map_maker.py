"""Maps of an atlas: made head by head, several at once, each kept as soon as it is done."""

import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.atlases.atlas_index import AtlasPlace, MapName, map_file, read_map, write_map
from headscope.atlases.atlas_vectors import read_vectors
from headscope.atlases.projection import project
from headscope.errors import InputError, NotInAtlasError
from headscope.progress import Cancel, OnProgress, Steps, stop_if

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas


def map_of(atlas: "Atlas", place: AtlasPlace, name: MapName) -> np.ndarray:
    """The map of one place [point, dimension], made where it is not there yet."""
    name = _as_stored(atlas, name)
    file = map_file(atlas.folder, name, place.address)
    if not file.is_file():
        if not atlas.index["has_vectors"]:
            there = ", ".join(map(str, atlas.maps()))
            raise NotInAtlasError(f"the map {name} is not in this atlas: it holds no queries and keys. It has {there}.")
        _make(atlas, place, name)
    return read_map(file)


def make_maps(
    atlas: "Atlas",
    places: Sequence[AtlasPlace],
    name: MapName,
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> None:
    """The maps that are missing; stopped at any moment, those that are done stay."""
    name = _as_stored(atlas, name)
    steps = Steps("maps", len(places), progress, cancel)
    missing = [place for place in places if not map_file(atlas.folder, name, place.address).is_file()]
    steps.add(len(places) - len(missing))
    if not missing:
        return
    atlas.vector_files()  # refused where there are none
    # t-SNE and UMAP are compiled code that takes one core and lets others run; torch uses all cores by itself, and a
    # GPU one head after another.
    is_torch = name.method == "pca" or (name.method == "tsne" and map_device().type == "cuda")
    n_workers = 1 if is_torch else os.cpu_count() or 1
    if n_workers == 1:
        for place in missing:
            stop_if(cancel)
            _make(atlas, place, name)
            steps.add()
        return
    with ThreadPoolExecutor(n_workers) as pool:
        waiting: set[Future[None]] = set()
        for place in missing:
            stop_if(cancel)
            waiting.add(pool.submit(_make, atlas, place, name))
            if len(waiting) >= 2 * n_workers:
                waiting = _wait_for_some(waiting, steps)
        while waiting:
            waiting = _wait_for_some(waiting, steps)


def map_device() -> torch.device:
    """Where PCA, nearest neighbours and exact t-SNE are computed: the GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _wait_for_some(waiting: set[Future[None]], steps: Steps) -> set[Future[None]]:
    done, others = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
        steps.add()
    return others


def _make(atlas: "Atlas", place: AtlasPlace, name: MapName) -> None:
    vectors = read_vectors(atlas, place)
    try:
        drawn = project(
            vectors.points(name.coordinates).to(map_device()),
            name.method,
            dims=name.dims,
            seed=atlas.index["options"]["seed"],
        )
    except InputError as problem:
        raise InputError(f"{place.address}: {problem}") from problem
    write_map(map_file(atlas.folder, name, place.address), drawn.numpy().astype(np.float64))


def _as_stored(atlas: "Atlas", name: MapName) -> MapName:
    """Where there is one cloud a head, it is drawn as it is."""
    is_joint = atlas.index["options"]["space"] == "query_key"
    return name if is_joint else MapName(name.method, name.dims, "raw")
