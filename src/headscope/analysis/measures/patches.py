"""What the heads of an image model look for: how far away, how bright, of which hue, with how fine stripes.

All of them are about attention between patches: what goes to special tokens is left out, and the rest taken as one
whole. Chance is an even share among patches.
"""

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows
from headscope.analysis.measures.patch_features import HUES, SIDE, hue_names, looks
from headscope.runs import Layer
from headscope.runs.measure import Tallies

_UP_TO = {"brightness": 1.0, "frequency": SIDE / np.sqrt(2)}


def patch_distance(layer: Layer) -> Tallies:
    """The mean distance between patches in two dimensions, a patch's side being 1."""

    def make() -> Tensor:
        n_rows, n_columns = layer.batch.tokens(layer.site.stack)[0].grid or (0, 0)
        row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
        return torch.from_numpy(np.hypot(row[:, None] - row, column[:, None] - column)).float()

    if _are_patches(layer):
        apart = once_per_batch(layer, "patches apart", make).to(layer.pattern)
        yield _over_pairs(layer, apart.expand(layer.pattern.shape[0], -1, -1), torch.ones_like(apart).bool())


def preference(layer: Layer, of: str) -> Tallies:
    """The brightness or the frequency of the patches that heads look at; patches without are left out."""
    appearance = _looks(layer)
    if appearance is not None:
        values: Tensor = appearance[of]
        has = ~torch.isnan(values)
        yield from _over_keys(layer, values.nan_to_num(), has)


def hue(layer: Layer) -> Tallies:
    """The share of attention that goes to patches of each of six hues, grey ones left out."""
    appearance = _looks(layer)
    if appearance is not None:
        names = appearance["hues"]
        for number, name in enumerate(HUES):
            yield from _over_keys(layer, (names == number).float(), names >= 0, key=name)


def likeness(layer: Layer, of: str) -> Tallies:
    """How like itself are the patches that a patch looks at: cos of the angle between hues, 1 less the difference of
    brightness or frequency. The patch itself is left out, and so are patches without a hue or a frequency.
    """
    appearance = _looks(layer)
    if appearance is None:
        return
    values: Tensor = appearance[of]
    apart = values[:, :, None] - values[:, None, :]
    alike = apart.cos() if of == "hue" else 1 - apart.abs() / _UP_TO[of]
    others = ~torch.eye(values.shape[1], dtype=torch.bool, device=values.device)
    pairs = ~torch.isnan(alike) & others
    if pairs.any():
        yield _over_pairs(layer, alike.nan_to_num(), pairs)


def _over_keys(layer: Layer, values: Tensor, has: Tensor, *, key: str = "") -> Tallies:
    """The same for whatever only the patch that is looked at decides [example, patch]."""
    if has.any():
        shape = (-1, values.shape[1], -1)
        yield _over_pairs(layer, values[:, None].expand(shape), has[:, None].expand(shape), key=key)


def _over_pairs(layer: Layer, values: Tensor, pairs: Tensor, *, key: str = ""):
    """Σ a · value / Σ a over pairs of patches [example, patch, patch]."""
    weights = _between_patches(layer) * pairs.to(layer.pattern)[..., None, :, :]
    total = (weights * values.to(layer.pattern)[:, None]).sum((-1, -2))
    sent = weights.sum(-1)
    even = (values * pairs).sum(-1) / pairs.sum(-1).clamp_min(1)
    return layer.tally(total, sent.sum(-1), (sent * even.to(sent).expand(len(values), -1)[:, None]).sum(-1), key=key)


def _between_patches(layer: Layer) -> Tensor:
    """The pattern without special tokens [example, head, patch, patch]."""

    def make() -> Tensor:
        place = layer.plain_queries[0].nonzero()[:, 0]
        return layer.pattern[:, :, place][..., place]

    return layer.once("between patches", make)


def _are_patches(layer: Layer) -> bool:
    """Whether the layer attends within one grid of patches, which all examples share."""
    if layer.site.kind == "cross":
        return False
    tokens = layer.batch.tokens(layer.site.stack)[0]
    n_rows, n_columns = tokens.grid or (0, 0)
    n_plain = int(rows(layer).layer.plain_queries[0].sum())
    return tokens.kind == "patches" and n_plain == n_rows * n_columns > 0


def _looks(layer: Layer) -> dict[str, Tensor] | None:
    """How the patches of every example look [example, patch]; None where there are no pictures."""
    if not _are_patches(layer) or any(example.image is None for example in layer.examples):
        return None
    grid = layer.batch.tokens(layer.site.stack)[0].grid
    assert grid is not None

    def make() -> dict[str, Tensor]:
        looks_of_examples = [looks(example.image, grid) for example in layer.examples]
        device = layer.pattern.device
        columns = {
            name: np.stack([getattr(example_looks, name) for example_looks in looks_of_examples])
            for name in looks_of_examples[0]._fields
        }
        columns["hues"] = hue_names(columns["hue"])
        return {name: torch.from_numpy(column).to(device) for name, column in columns.items()}

    return once_per_batch(layer, "looks", make)
