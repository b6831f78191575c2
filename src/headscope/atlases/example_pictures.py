"""The pictures of an atlas of images, as the model saw them: beside the vectors, a file per shard."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from headscope.errors import InputError, LoadError
from headscope.traces.media import Picture, smaller

# Larger pictures are kept smaller: an atlas shows patches and whole pictures, not details.
MOST_PIXELS = 256


def pictures_file(pictures: dict[int, Picture]) -> bytes:
    """Pictures by the places of their examples, as a file."""
    tensors: dict[str, Tensor] = {}
    about: dict[str, dict[str, Any]] = {}
    for place in sorted(pictures):
        picture = pictures[place]
        pixels, patch = smaller(picture, MOST_PIXELS)
        tensors[str(place)] = pixels.contiguous()
        about[str(place)] = {"size": list(picture.pixels.shape[:2]), "patch": list(patch), "note": picture.note}
    # One field: safetensors writes several in any order.
    return save(tensors, metadata={"about": json.dumps(about)})


def read_picture(files: Sequence[Path], example: int) -> tuple[Tensor, dict[str, Any]]:
    """The pixels [height, width, channel] of an example of the atlas, and `size`, `patch` and `note`.

    Examples are numbered through all shards, as in the table of tokens.
    """
    first = 0
    for file in files:
        try:
            with safe_open(str(file), "pt") as opened:
                places = sorted(opened.keys(), key=int)
                if example < first + len(places):
                    place = places[example - first]
                    return opened.get_tensor(place), json.loads(opened.metadata()["about"])[place]
        except (OSError, ValueError, KeyError) as error:
            raise LoadError(f"{file} cannot be read: {error}.") from error
        first += len(places)
    raise InputError(f"there is no picture of example {example}: there are {first}.")


def merged_pictures(files: Sequence[Path]) -> bytes:
    """The pictures of all shards in one file, numbered through; nothing where there are none."""
    tensors: dict[str, Tensor] = {}
    about: dict[str, Any] = {}
    for file in files:
        with safe_open(str(file), "pt") as opened:
            texts = json.loads(opened.metadata()["about"])
            for place in sorted(opened.keys(), key=int):
                number = str(len(tensors))
                tensors[number], about[number] = opened.get_tensor(place), texts[place]
    return save(tensors, metadata={"about": json.dumps(about)}) if tensors else b""
