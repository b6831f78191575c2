"""What a model saw or heard, for people to look at: the picture or the sound as it reached the model.

Kept with the input, so that saved traces, saved pages and notebooks have it without the file it came from.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from headscope.traces.tokens import Box


@dataclass(frozen=True)
class PictureArea:
    """One of the copies of a picture that a model reads beside each other, as a thumbnail: its name, its box, and the
    part of the picture as it was given that it shows."""

    name: str
    box: Box
    source: Box


@dataclass(frozen=True, eq=False)
class Picture:
    """An image after resizing and cropping: `pixels` are bytes [height, width, 1 or 3].

    Patches are cut from the upper left corner, `patch` pixels high and wide; what no whole patch fits into, most
    models leave out. `note` says what is not as it was: colours that had to be guessed, a spectrogram. Of a model that
    reads text and image, tokens say themselves where they lie, in one of the `areas`.
    """

    pixels: Tensor
    patch: tuple[int, int]
    note: str = ""
    areas: tuple[PictureArea, ...] = ()


@dataclass(frozen=True, eq=False)
class Sound:
    """A sound: the lowest and highest sample of each short stretch [stretch, 2], over `heard` seconds.

    `spectrogram` holds bytes [band, time], low bands first, over `seconds`: where a model takes more than the sound is
    long, what it was filled up with too. It is None for a model that hears samples.
    """

    envelope: Tensor | None
    spectrogram: Tensor | None
    seconds: float
    heard: float
    note: str = ""


Seen = Picture | Sound
_KINDS: dict[str, type[Picture] | type[Sound]] = {"picture": Picture, "sound": Sound}


def tensors_of(seen: Seen) -> dict[str, Tensor]:
    """Its tensors, by name."""
    values = {attribute.name: getattr(seen, attribute.name) for attribute in fields(seen)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def to_json(seen: Seen) -> dict:
    """All but the tensors."""
    plain = {
        attribute.name: getattr(seen, attribute.name)
        for attribute in fields(seen)
        if attribute.name not in tensors_of(seen)
    }
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    if areas := plain.pop("areas", []):
        plain["areas"] = [[area.name, *area.box, *area.source] for area in areas]
    return {"kind": "picture" if isinstance(seen, Picture) else "sound", **plain}


def from_json(data: dict, tensors: dict[str, Tensor]) -> Seen:
    """Read what `to_json` wrote, with the tensors kept beside it."""
    attributes: dict[str, Any] = {name: value for name, value in data.items() if name != "kind"} | tensors
    if "patch" in attributes:
        attributes["patch"] = tuple(attributes["patch"])
    if "areas" in attributes:
        attributes["areas"] = tuple(
            PictureArea(name, tuple(edges[:4]), tuple(edges[4:])) for name, *edges in attributes["areas"]
        )
    return _KINDS[data["kind"]](**attributes)


def smaller(picture: Picture, most: int) -> tuple[Tensor, tuple[float, float]]:
    """The pixels of a picture of at most so many a side, and how many of them a patch is high and wide."""
    pixels, patch = picture.pixels.cpu(), (float(picture.patch[0]), float(picture.patch[1]))
    height, width = pixels.shape[:2]
    if max(height, width) <= most:
        return pixels, patch
    share = most / max(height, width)
    size = max(1, round(height * share)), max(1, round(width * share))
    planes = pixels.permute(2, 0, 1)[None].float()
    planes = torch.nn.functional.interpolate(planes, size, mode="bilinear", antialias=True)[0]
    smaller_pixels = planes.round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0)
    return smaller_pixels, (patch[0] * size[0] / height, patch[1] * size[1] / width)


def same(a: Seen, b: Seen) -> bool:
    """Whether two look or sound the same."""
    mine, theirs = tensors_of(a), tensors_of(b)
    return to_json(a) == to_json(b) and all(torch.equal(mine[name], theirs[name]) for name in mine)
