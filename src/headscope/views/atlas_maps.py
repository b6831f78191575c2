"""The maps of an atlas for the page, in 16 bits a coordinate, and numbers of points."""

from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import NotInAtlasError, NotMadeError
from headscope.views.atlas_keys import AtlasKey
from headscope.views.contract.atlas import AtlasColumnsProps, AtlasHeadMapProps, AtlasMapsProps
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.atlases import Atlas
    from headscope.atlases.atlas_index import AtlasPlace, MapName

_SEED = 0


def maps_part(atlas: "Atlas", key: AtlasKey) -> Part:
    """`maps`: every head that has this map, a common sample of rows."""
    from headscope.atlases.atlas_index import map_file, read_steps

    name = _name(atlas, key)
    places = [place for place in atlas.places.values() if atlas.has_map(place.address, name)]
    if not places:
        raise NotMadeError(f"the map {name} of this atlas has not been made yet.")
    rows = sampled_rows(atlas, key.points)
    arrays: dict[str, np.ndarray] = {f"rows:{stack}": chosen for stack, chosen in rows.items()}
    low, step = np.zeros((len(places), name.dims), np.float32), np.zeros(len(places), np.float32)
    for number, place in enumerate(places):
        steps, about = read_steps(map_file(atlas.folder, name, place.address))
        arrays[place.address] = np.ascontiguousarray(steps[_points(atlas, place, rows)])
        low[number], step[number] = about["low"], about["step"]
    props = AtlasMapsProps(name.method, name.dims, name.coordinates, [place.address for place in places])
    return Part("maps", props, arrays | {"low": low, "step": step})


def head_map_part(atlas: "Atlas", key: AtlasKey) -> Part:
    """`map`: all points of one head."""
    from headscope.atlases.atlas_index import map_file, read_steps

    name, place = _name(atlas, key), atlas.place(key.head)
    if not atlas.has_map(place.address, name):
        raise NotMadeError(f"the map {name} of {place.address} has not been made yet.")
    steps, about = read_steps(map_file(atlas.folder, name, place.address))
    arrays = {
        "points": np.ascontiguousarray(steps),
        "low": np.asarray(about["low"], np.float32),
        "step": np.array([about["step"]], np.float32),
    }
    return Part("map", AtlasHeadMapProps(place.address, name.method, name.dims, name.coordinates), arrays)


def columns_part(atlas: "Atlas", key: AtlasKey) -> Part:
    """`columns`: all numbers of one head's points, or one of all heads for the sample that `maps` has."""
    if key.head:
        place = atlas.place(key.head)
        columns = {name: column.astype(np.float32) for name, column in atlas.columns(place.address).items()}
        return Part("columns", AtlasColumnsProps(head=place.address), columns)
    rows = sampled_rows(atlas, key.points)
    arrays: dict[str, np.ndarray] = {}
    for place in atlas.places.values():
        columns = atlas.columns(place.address)
        if key.name not in columns:
            raise NotInAtlasError(f"the points of {place.address} have no {key.name} in this atlas.")
        arrays[place.address] = columns[key.name][_points(atlas, place, rows)].astype(np.float32)
    return Part("columns", AtlasColumnsProps(name=key.name), arrays)


def sampled_rows(atlas: "Atlas", n_points: int) -> dict[str, np.ndarray]:
    """Rows of each stack, at random and ascending, so that no head has more than `n_points` points.

    Fewer points are among more: the sample grows, and does not change.
    """
    n_clouds = max(len(place.clouds) for place in atlas.places.values())
    generator = np.random.default_rng(_SEED)
    most = max(1, n_points // n_clouds)
    return {
        stack: np.sort(generator.permutation(n_tokens)[:most]).astype(np.int32)
        for stack, n_tokens in atlas.n_tokens.items()
    }


def _points(atlas: "Atlas", place: "AtlasPlace", rows: dict[str, np.ndarray]) -> np.ndarray:
    """The numbers of a head's points in these rows, cloud by cloud."""
    numbers, first = [], 0
    for cloud in place.clouds:
        numbers.append(rows[cloud.stack].astype(np.int64) + first)
        first += atlas.n_tokens[cloud.stack]
    return np.concatenate(numbers)


def _name(atlas: "Atlas", key: AtlasKey) -> "MapName":
    from headscope.atlases.atlas_index import MapName

    is_joint = atlas.index["options"]["space"] == "query_key"
    return MapName(key.method, key.dims, key.coordinates if is_joint else "raw")
