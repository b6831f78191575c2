"""The splits of a task's data."""

from typing import Literal

Split = Literal["train", "dev", "test"]
