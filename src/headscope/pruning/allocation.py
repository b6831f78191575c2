"""How many heads survive where: by scores over the whole model, or as many of each type as another mask has."""

from collections import Counter
from collections.abc import Mapping, Sequence

from headscope.errors import InputError
from headscope.pruning.attention_types import PrunableLayer, attention_type
from headscope.pruning.head_mask import HeadMask
from headscope.sites import Head, Site

HeadScores = Mapping[Head, float]


def heads_of(layers: Sequence[PrunableLayer]) -> list[Head]:
    """The heads of some layers, in order."""
    return [layer.site.head(index) for layer in layers for index in range(layer.n_heads)]


def unit_layers(scores: HeadScores) -> dict[Head, float]:
    """Scores divided by the Euclidean norm of their layer's (Michel et al., 2019).

    >>> site = Site("main", 0)
    >>> [round(score, 3) for score in unit_layers({site.head(0): 3.0, site.head(1): 4.0}).values()]
    [0.6, 0.8]
    """
    squares: Counter[Site] = Counter()
    for head, score in scores.items():
        squares[head.site] += score * score  # type: ignore[assignment]
    return {head: score / squares[head.site] ** 0.5 if squares[head.site] else 0.0 for head, score in scores.items()}


def keep_highest(whole: HeadMask, scores: HeadScores, n: int, *, group_sizes: Mapping[Site, int]) -> HeadMask:
    """The n heads with the highest scores survive, of those that have a score; the rest of `whole` stays as it is.

    Of equal scores the first head in the model's order survives. `group_sizes` are how many heads of a layer survive
    together; groups rank by their mean, and fewer than n heads survive where no group fits into the rest.
    """
    kept_heads: set[Head] = set()
    for group in _ranked_groups(scores, group_sizes):
        if len(kept_heads) + len(group) <= n:
            kept_heads.update(group)
    return _restricted(whole, scores, kept_heads)


def keep_like(whole: HeadMask, scores: HeadScores, like: HeadMask, *, group_sizes: Mapping[Site, int]) -> HeadMask:
    """As many heads of each type of attention survive as in `like`: those with the highest scores of the type."""
    mask = whole
    for name, (n, _) in like.counts().items():
        of_type = {head: score for head, score in scores.items() if attention_type(head.site) == name}
        if of_type:
            mask = keep_highest(mask, of_type, n, group_sizes=group_sizes)
    return mask


def group_sizes(layers: Sequence[PrunableLayer], per: str) -> dict[Site, int]:
    """How many heads of each layer survive together: 1, or those that share a key-value head."""
    return {layer.site: layer.n_heads // layer.n_groups if per == "group" else 1 for layer in layers}


def _ranked_groups(scores: HeadScores, sizes: Mapping[Site, int]) -> list[list[Head]]:
    groups: dict[tuple[Site, int], list[Head]] = {}
    for head in scores:
        groups.setdefault((head.site, head.index // sizes[head.site]), []).append(head)
    means = {key: sum(scores[head] for head in group) / len(group) for key, group in groups.items()}
    if any(mean != mean for mean in means.values()):
        raise InputError("a head's score is NaN: it cannot be ranked.")
    return [groups[key] for key in sorted(groups, key=lambda key: -means[key])]


def _restricted(whole: HeadMask, scores: HeadScores, kept_heads: set[Head]) -> HeadMask:
    def survives(head: Head, before: bool) -> bool:
        return head in kept_heads if head in scores else before

    return HeadMask(
        {
            site: tuple(survives(site.head(index), before) for index, before in enumerate(row))
            for site, row in whole.rows()
        }
    )
