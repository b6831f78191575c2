"""What `Model.run` and `Model.read` take, as types: what can be read, and the options of a run."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from PIL.Image import Image
from torch import Tensor

from headscope.choices import Keep, Record
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
    cancel: threading.Event | None
    progress: Callable[[int, int], None] | None


class RunOptions(MediaOptions, RecordOptions, total=False):
    """Both."""
