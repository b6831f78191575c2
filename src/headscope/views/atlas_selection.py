"""The part of the selection that belongs to the atlas: which one, which map, which head, how its points are drawn."""

from dataclasses import dataclass, field

from headscope.choices import AtlasPlot, AtlasSide, Coordinates, Hide, MapMethod, PointSize
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
