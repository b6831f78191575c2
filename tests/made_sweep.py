"""Folders of sweeps with made-up scores and chosen survivors, for what reads them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.pruning import HeadMask, PrunePoint, Sweep, layers_of
from headscope.sites import Head
from headscope.tasks import Score


def begin(folder: Path, model: hs.Model, *, task: str, metric: str, higher_is_better: bool = True) -> Sweep:
    """A sweep without points."""
    data = {"train": {"name": "train.tsv", "n": 20}, "dev": {"name": "dev.tsv", "n": 10}, "test": None}
    return Sweep.create(
        folder,
        model=model.name,
        model_class=type(model.module).__name__,
        task=task,
        metric=metric,
        higher_is_better=higher_is_better,
        layers=layers_of(model),
        data=data,
        options={"steps": 4},
    )


def first_heads(model: hs.Model, **counts: int) -> HeadMask:
    """The mask that keeps the first heads of each type, counted from the lowest layer; all of a type left out."""
    survivors: list[Head] = []
    for layer in layers_of(model):
        room = counts.get(layer.type, layer.n_heads)
        kept_here = min(layer.n_heads, room)
        survivors += [layer.site.head(index) for index in range(kept_here)]
        if layer.type in counts:
            counts[layer.type] -= kept_here
    return HeadMask.of(model, survivors)


def some_heads(model: hs.Model, mask: HeadMask, seed: int) -> HeadMask:
    """As many heads of each type as a mask keeps, chosen otherwise."""
    import random

    rng = random.Random(seed)
    survivors: list[Head] = []
    for name, (n_kept, _) in mask.counts().items():
        every = [
            layer.site.head(index) for layer in layers_of(model) if layer.type == name for index in range(layer.n_heads)
        ]
        survivors += rng.sample(every, n_kept)
    return HeadMask.of(model, survivors)


def add_points(sweep: Sweep, points: Iterable[PrunePoint]) -> Sequence[PrunePoint]:
    """Add points in this order."""
    whole = list(points)
    for point in whole:
        sweep.add(point)
    return whole


def made_point(
    name: str, mask: HeadMask, value: float, *, metric: str = "bleu", method: str = "l0", interval: Any = None, **fields
) -> PrunePoint:
    """A point with this score on dev."""
    return PrunePoint(name, method, mask, Score(metric, value, 10, interval), "dev", **fields)
