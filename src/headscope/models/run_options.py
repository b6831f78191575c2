"""What `Model.run` and `Model.read` take, as types: what can be read, and the options of a run."""

from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from PIL.Image import Image
from torch import Tensor

from headscope.choices import Keep, Record
from headscope.progress import Cancel, OnProgress
from headscope.traces import Inputs

# Messages with role and content.
Chat = list[dict[str, Any]]
Single = str | Path | Inputs | tuple[Any, Any] | Image | np.ndarray | Tensor | Chat
# What one trace is of; a list of numbers is sound.
Source = Single | dict[str, Any] | list[float] | None


class MediaOptions(TypedDict, total=False):
    """How an input is read."""

    image: Any
    audio: Any
    sampling_rate: int | None
    language: str | None
    task: str | None
    truncate: bool


class RecordOptions(TypedDict, total=False):
    """How a run is recorded and followed."""

    record: Record | None
    keep: Keep
    budget: int | None
    cancel: Cancel | None
    progress: OnProgress | None


class RunOptions(MediaOptions, RecordOptions, total=False):
    """Both."""
