"""The part of the selection that belongs to the atlas: which one, which map, which head, how its points are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from headscope.choices import AtlasPlot, AtlasSide, Coordinates, Hide, MapMethod, PointSize
from headscope.errors import InputError
from headscope.views.contract.atlas import CloudRole


@dataclass(frozen=True)
class AtlasSpot:
    """A point of a head: a row of the table of tokens, in one role."""

    role: CloudRole
    row: int


@dataclass(frozen=True)
class AtlasSelection:
    """What of an atlas is looked at, and how."""

    atlas: str = ""
    """The name of the atlas; empty for the first of the model on screen."""
    place: str = ""
    """The head that fills the stage, by its address; empty for all heads."""
    method: MapMethod = "pca"
    dims: int = 2
    coordinates: Coordinates = "scaled"
    colour: str = "role"
    """What points are coloured by: `role`, `position`, `position5`, `token`, `special`, or a column of the atlas."""
    safe: bool = False
    """Colours for people who cannot tell green from pink."""
    size: PointSize = "same"
    side: AtlasSide = "both"
    labels: bool = True
    lines: bool = False
    """Lines from each query to its strongest keys."""
    plot: AtlasPlot = "map"
    """The map of the head in focus, or its distances against logits."""
    token: AtlasSpot | None = None
    """The point in focus."""
    sentence: bool = False
    """Whether the example of that point is open beside the map."""
    hide: list[Hide] = field(default_factory=list)
    """Tokens hidden in that example; rows are renormalised to sum to 1."""
    weigh: bool = False
    """Weight by the norm of values, renormalised."""
    average: bool = False
    """The pattern averaged by position over all examples, in place of the example's own."""
    pictures: bool = False
    """Patches as small pictures instead of points."""
    flows: bool = False
    """All strong flows over the picture, instead of those of one patch."""
    search: str = ""
    regex: bool = False
    ignore_case: bool = False


def checked_selection(options: Mapping[str, Any]) -> AtlasSelection:
    """A selection from plain data, each option of the type and from the choices that it has."""
    kinds, changes = get_type_hints(AtlasSelection), {}
    for name in AtlasSelection.__dataclass_fields__:
        if name not in options:
            continue
        value = options[name]
        if name == "token":
            value = AtlasSpot(**value) if isinstance(value, Mapping) else value
        elif not _fits(value, kinds[name]):
            raise InputError(f"{name}={value!r} cannot be selected.")
        changes[name] = value
    return AtlasSelection(**changes)


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(member, get_args(kind)[0]) for member in value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
