"""Chunk F1 of many taggers at once, with the rules of `headscope.tasks.iob_chunks`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from headscope.tasks.iob_chunks import ChunkCounts


class StackedChunks:
    """Counts phrases in tags given as numbers. `names` has the IOB tag of each number; others than IOB's count as O."""

    def __init__(self, names: Sequence[str], device: torch.device | str = "cpu"):
        types = sorted({name[2:] for name in names if name[:2] in ("B-", "I-")})
        numbers = {chunk_type: number for number, chunk_type in enumerate(types, 1)}
        self.types = torch.tensor([numbers.get(name[2:], 0) for name in names], device=device)
        self.is_begin = torch.tensor([name.startswith("B-") for name in names], device=device)

    def counts(self, gold: Tensor, predicted: Tensor, is_word: Tensor) -> Tensor:
        """How many phrases are right, predicted, and in the gold tags [model, 3].

        `gold` and `is_word` are [sentence, word], `predicted` is [model, sentence, word].
        """
        gold_types, gold_starts, gold_ends = self._phrases(gold, is_word)
        types, starts, ends = self._phrases(predicted, is_word)
        is_right = gold_starts & starts & (gold_types == types) & (gold_ends == ends)
        n_gold = gold_starts.sum().expand(len(predicted))
        return torch.stack([is_right.sum((1, 2)), starts.sum((1, 2)), n_gold], -1)

    def _phrases(self, tags: Tensor, is_word: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The type of each word's phrase (0: none), whether one begins there, and the place after its last word."""
        types = self.types[tags] * is_word
        before = torch.nn.functional.pad(types[..., :-1], (1, 0))
        starts = (types > 0) & (self.is_begin[tags] | (types != before))
        length = types.shape[-1]
        places = torch.arange(length, device=types.device).expand_as(types)
        bounds = torch.where(starts | (types == 0), places, length)
        at_or_after = bounds.flip(-1).cummin(-1).values.flip(-1)
        return types, starts, torch.nn.functional.pad(at_or_after[..., 1:], (0, 1), value=length)


def stacked_f1(counts: Tensor) -> list[float]:
    """The F1 of each row of `StackedChunks.counts`, summed over sentences [model, 3]."""
    return [ChunkCounts(*map(int, row)).f1 for row in counts.tolist()]
