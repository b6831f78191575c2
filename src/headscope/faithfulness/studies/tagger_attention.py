"""What the taggers of the chunking study attend by: own queries and keys, a replacement, or another's pattern."""

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from headscope.faithfulness.attention_rows import AttentionRows
from headscope.faithfulness.replacements import REPLACEMENTS, permuted
from headscope.faithfulness.studies.chunking_data import TagBatch
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.faithfulness.studies.stacked_tagger import Attend, own_log_pattern


def own_attention(_batch: TagBatch) -> Attend:
    """By the taggers' own queries and keys."""
    return Attend()


def no_attention(_batch: TagBatch) -> Attend:
    """There is no attention block: each word is tagged by itself."""
    return Attend(is_absent=True)


class ReplacedAttention:
    """All heads attend as a replacement says: "uniform", "identity" or "previous_token"."""

    def __init__(self, kind: str):
        self.replace = REPLACEMENTS[kind]

    def __call__(self, batch: TagBatch) -> Attend:
        """The same rows for every model and head."""
        return Attend(self.pattern(batch)[None, :, None])

    def pattern(self, batch: TagBatch) -> Tensor:
        """The rows [sentence, query, key]."""
        n_sentences, length = batch.mask.shape
        blank = torch.zeros(n_sentences, 1, length, length, device=batch.mask.device)
        return self.replace(_rows(blank, batch))


class FrozenAttention:
    """The patterns of trained taggers, without dropout, for probes: a pattern for each model of the stack.

    Each source is the parameters of a tagger, or None for uniform attention. Where `is_permuted`, its rows' weights are
    shuffled over the words: the control. The order depends on the batch alone.
    """

    def __init__(
        self, sources: Sequence[Parameters | None], is_permuted: Sequence[bool], *, n_heads: int, has_residual: bool
    ):
        self.sources, self.is_permuted = sources, is_permuted
        self.n_heads, self.has_residual = n_heads, has_residual

    @torch.no_grad()
    def __call__(self, batch: TagBatch) -> Attend:
        """The frozen patterns on a batch."""
        known: dict[int, Tensor] = {}
        patterns = []
        for source, is_permuted in zip(self.sources, self.is_permuted, strict=True):
            if id(source) not in known:
                known[id(source)] = self._pattern(source, batch)
            patterns.append(_shuffled(known[id(source)], batch) if is_permuted else known[id(source)])
        return Attend(torch.stack(patterns), has_residual=self.has_residual)

    def _pattern(self, source: Parameters | None, batch: TagBatch) -> Tensor:
        """[sentence, head, query, key]."""
        if source is None:
            return ReplacedAttention("uniform").pattern(batch)[:, None].expand(-1, self.n_heads, -1, -1)
        return own_log_pattern(source, batch.inputs, batch.mask, n_heads=self.n_heads)[0].exp()


def _shuffled(pattern: Tensor, batch: TagBatch) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(repr(batch.places).encode()))
    return permuted(_rows(pattern, batch), generator).view(pattern.shape)


def _rows(pattern: Tensor, batch: TagBatch) -> AttentionRows:
    """The rows of all heads, one after another, of a pattern [sentence, head, query, key]."""
    n_sentences, n_heads, length, _ = pattern.shape
    flat = pattern.reshape(n_sentences, n_heads * length, length)
    places = torch.arange(length, device=flat.device).repeat(n_sentences, n_heads)
    real = batch.mask.repeat(1, n_heads)
    return AttentionRows(flat, batch.mask[:, None].expand_as(flat), real=real, own=places)
