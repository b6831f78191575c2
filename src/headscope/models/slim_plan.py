"""What a slim model has of the original, as JSON beside its weights: heads of each layer, parts of each weight.

The file says all that loading needs, so that no probe runs before the weights are read.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headscope import files
from headscope.errors import LoadError
from headscope.sites import Kind, Site

FILE = "headscope_slim.json"
VERSION = 1
_REMEDY = "Write the slim model again from the original."


@dataclass(frozen=True)
class Cut:
    """The parts of a parameter that stay: ranges [start, stop) along one axis, which was `size` long."""

    parameter: str
    axis: int
    size: int
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SlimLayer:
    """One attention layer of the original, and what is left of it.

    `heads` are the original indices of the heads that stay. `sizes` are attributes of the attention module that its
    code reads, as `num_heads`. `repeats` names projections of key-value heads and how their heads are repeated where
    the query heads that are left do not share them evenly. `bias_of` is the module whose table of position biases the
    layer used and now has a copy of, with its own heads (T5). Without heads, `output` names the module's output
    projection, of which the bias stays ("" where that is outside the module), and `n_outputs` is how many values the
    module returns (0: a bare tensor).
    """

    stack: str
    layer: int
    kind: Kind
    module: str
    n_heads: int
    heads: tuple[int, ...]
    cuts: tuple[Cut, ...] = ()
    sizes: Mapping[str, int] | None = None
    repeats: Mapping[str, tuple[int, ...]] | None = None
    bias_of: str | None = None
    ignores_given_bias: bool = False
    output: str = ""
    n_outputs: int = 0

    @property
    def original_site(self) -> Site:
        """Its address in the original."""
        return Site(self.stack, self.layer, self.kind)


@dataclass(frozen=True)
class SlimPlan:
    """All attention layers of the original. `is_plain`: its configuration says the same, and nothing need be cut."""

    model_type: str
    layers: tuple[SlimLayer, ...]
    is_plain: bool = False

    @property
    def line(self) -> str:
        """How many heads are left, for people."""
        n_left = sum(len(layer.heads) for layer in self.layers)
        return f"slim: {n_left:,} of {sum(layer.n_heads for layer in self.layers):,} heads"

    def to_json(self) -> dict[str, Any]:
        """As plain data, with its checksum."""
        layers = [
            {name: field for name, field in asdict(layer).items() if field not in ((), {}, None)}
            | {"heads": list(layer.heads)}
            for layer in self.layers
        ]
        about = {"version": VERSION, "model_type": self.model_type, "is_plain": self.is_plain, "layers": layers}
        return files.with_checksum(_as_lists(about))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SlimPlan":
        """What `to_json` gave; raises KeyError, TypeError or ValueError where the data are something else."""
        layers = tuple(_layer(dict(row)) for row in data["layers"])
        if not isinstance(data["is_plain"], bool) or not layers:
            raise ValueError("no layers are listed")
        return cls(str(data["model_type"]), layers, data["is_plain"])


def read_plan(folder: Path) -> SlimPlan | None:
    """The plan of a slim folder; None where the folder holds another model."""
    file = folder / FILE
    if not file.exists():
        return None
    data = files.read_json(file, _REMEDY)
    version = data.get("version")
    if version != VERSION:
        raise LoadError(f"{file} has format {version!r}, and this Headscope reads {VERSION}.")
    if not files.take_checksum(data, file, _REMEDY):
        raise LoadError(f"{file} is damaged: its checksum is missing. {_REMEDY}")
    try:
        return SlimPlan.from_json(data)
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError(f"{file} is damaged: {type(error).__name__}: {error}. {_REMEDY}") from error


def _layer(row: dict[str, Any]) -> SlimLayer:
    n_heads, heads = int(row["n_heads"]), _numbers(row["heads"])
    if sorted(set(heads)) != list(heads) or any(not 0 <= head < n_heads for head in heads):
        raise ValueError(f"{row['module']} lists heads {list(heads)} of {n_heads}")
    cuts = tuple(
        Cut(str(cut["parameter"]), int(cut["axis"]), int(cut["size"]), tuple(_pair(pair) for pair in cut["ranges"]))
        for cut in row.pop("cuts", ())
    )
    repeats = {name: _numbers(order) for name, order in row.pop("repeats", {}).items()}
    sizes = {name: int(size) for name, size in row.pop("sizes", {}).items()}
    return SlimLayer(**row | {"n_heads": n_heads, "heads": heads}, cuts=cuts, repeats=repeats, sizes=sizes)


def _numbers(numbers: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers)


def _pair(pair: Any) -> tuple[int, int]:
    start, stop = pair
    return int(start), int(stop)


def _as_lists(data: Any) -> Any:
    """Plain data as JSON gives them back: lists, not tuples."""
    if isinstance(data, Mapping):
        return {name: _as_lists(field) for name, field in data.items()}
    return [_as_lists(field) for field in data] if isinstance(data, list | tuple) else data
