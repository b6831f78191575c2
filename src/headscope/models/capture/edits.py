"""The interventions of a session, sorted by where they act, and applied there."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from headscope.attention import Formula, Mask, expand_heads
from headscope.errors import InterventionError, UnknownTokenError
from headscope.interventions import At, Intervention
from headscope.models.capture.edit_checks import Resolved
from headscope.models.capture.seam import AttentionCall
from headscope.sites import Site

# Edits the scores or the pattern of a tile: stage, tile [batch, head, row, key], its heads, its rows.
TileEdit = Callable[[str, Tensor, slice, slice], Tensor]


class Edits:
    """What a session does to each layer, by site and stage."""

    def __init__(self, resolved: Resolved):
        self._resolved = resolved

    def __bool__(self) -> bool:
        return bool(self._resolved)

    def has(self, site: Site, *stages: str) -> bool:
        """Whether some edit acts on this layer at one of these stages."""
        return any((site, stage) in self._resolved for stage in stages)

    def heads(self, site: Site) -> list[int]:
        """The heads whose patterns do not follow from queries and keys any more."""
        edited: set[int] = set()
        for stage in ("scores", "pattern"):
            for _, heads in self._resolved.get((site, stage), []):
                edited.update(range(heads.start, heads.stop))
        return sorted(edited)

    def apply(self, site: Site, stage: str, x: Tensor, at: At, heads: slice = slice(None)) -> Tensor:
        """Run the edits of one stage over [batch, head, row, last axis]; `heads` says which heads x holds."""
        edits = self._resolved.get((site, stage))
        if not edits:
            return x
        first, at = at.first_head + (heads.start or 0), at.to(x.device)
        for intervention, chosen in edits:
            begin, end = max(chosen.start - first, 0), min(max(chosen.stop - first, 0), x.shape[1])
            if begin >= end:
                continue
            part = x[:, begin:end]
            new = intervention.edit(part, at)  # type: ignore[operator]
            if new.shape != part.shape:
                raise InterventionError(
                    f"{intervention!r} gave shape {tuple(new.shape)} where {tuple(part.shape)} was needed."
                )
            if intervention.tokens is not None:
                new = torch.where(_row_mask(intervention, at)[:, None, :, None], new, part)
            # Joined anew rather than written into: the gradient needs what was there before. With nothing to join, the
            # old tensor drops out of the graph.
            is_whole = part.shape[1] == x.shape[1]
            x = new.to(x.dtype) if is_whole else torch.cat([x[:, :begin], new.to(x.dtype), x[:, end:]], dim=1)
        return x

    def vectors(self, site: Site, call: AttentionCall, at: At, key_at: At) -> AttentionCall:
        """A call with its queries, keys and values edited."""
        n_heads = call.query.shape[1]
        if not self._resolved and call.key.shape[1] == call.value.shape[1]:
            return call
        query = self.apply(site, "query", call.query, at)
        key, value = call.key, call.value
        # Heads of a group share keys and values: an edit of one head's must not touch the others'.
        if self.has(site, "key"):
            key = self.apply(site, "key", expand_heads(key, n_heads), key_at)
        if self.has(site, "value"):
            value = self.apply(site, "value", expand_heads(value, n_heads), key_at)
        if key.shape[1] != value.shape[1]:
            key, value = expand_heads(key, n_heads), expand_heads(value, n_heads)
        return replace(call, query=query, key=key, value=value)

    def scores(
        self,
        site: Site,
        score_map: Tensor,
        at: At,
        mask: Mask | None,
        heads: slice = slice(None),
        rows: slice = slice(None),
    ) -> Tensor:
        """Scores after their edits, which do not lift the mask."""
        if not self.has(site, "scores"):
            return score_map
        score_map = self.apply(site, "scores", score_map, at, heads)
        return score_map if mask is None else mask.hide(score_map, rows)

    def pattern(self, site: Site, score_map: Tensor, pattern: Tensor, at: At, heads: slice = slice(None)) -> Tensor:
        """A pattern after the edits of scores (which may have emptied rows) and of patterns."""
        # A row in which edits left nothing to see has no weights at all, rather than equal ones on what is forbidden.
        seen = (score_map > torch.finfo(score_map.dtype).min).any(-1, keepdim=True)
        emptied = ~seen & torch.isinf(score_map).any(-1, keepdim=True)
        pattern = torch.where(emptied, 0.0, pattern.nan_to_num(0.0)) if bool(emptied.any()) else pattern
        return self.apply(site, "pattern", pattern, at, heads)

    def of_tiles(
        self, site: Site, at: At, example: int, queries: Tensor | None, keys: Tensor | None, formula: Formula
    ) -> TileEdit | None:
        """The edits of one example's scores and patterns, for tiles of some heads and rows; None without any."""
        if not self.has(site, "scores", "pattern"):
            return None
        own = slice(example, example + 1)
        index = at.index[own] if queries is None else at.index[own][:, queries]
        assert at.key_index is not None  # attention always has keys
        key_index = at.key_index[own] if keys is None else at.key_index[own][:, keys]
        tokens = None if at.tokens is None else at.tokens[own]
        key_tokens = None if at.key_tokens is None else at.key_tokens[own]
        edited: dict[int, Tensor] = {}  # by the first head of a tile: threads have different ones

        def edit(stage: str, tile: Tensor, heads: slice, rows: slice) -> Tensor:
            here = At(index[:, rows], key_index, tokens, key_tokens, at.first_head)
            if stage == "scores":
                tile = edited[heads.start] = self.scores(site, tile, here, formula.heads(heads).mask, heads, rows)
                return tile
            return self.pattern(site, edited.pop(heads.start), tile, here, heads)

        return edit


def _row_mask(intervention: Intervention, at: At) -> Tensor:
    """The rows that an intervention names; one that acts everywhere passes over stacks without such tokens."""
    assert intervention.tokens is not None
    try:
        return at.rows(intervention.tokens)
    except UnknownTokenError:
        if intervention.site is not None:
            raise
        return torch.zeros_like(at.index, dtype=torch.bool)
