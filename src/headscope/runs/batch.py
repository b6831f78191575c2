"""What a measure sees: a batch of examples, and each attention layer as the batch passes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.corpora import Example, align
from headscope.errors import NotRecordedError
from headscope.models.capture.banded_attention import TWO_VALUES, local_values
from headscope.runs.measure import Tally
from headscope.sites import Head, Site
from headscope.traces import Inputs, Tokens, Trace


@dataclass(frozen=True, eq=False)
class CorpusBatch:
    """Examples that share one forward pass, padded on the right.

    `places` are their numbers within the shard, `real[stack]` [example, position] says what is not padding. Once
    the pass is over there are `classes`, those that a classifier chose, and `traces`, if a measure asked for them.
    """

    examples: Sequence[Example]
    inputs: Sequence[Inputs]
    places: Sequence[int]
    real: dict[str, Tensor]
    seed: tuple[int, ...] = (0,)
    traces: list[Trace] = field(default_factory=list)
    classes: Sequence[str] = ()
    _known: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def text_stack(self) -> str:
        """The stack that reads the example's text."""
        return next((stack for stack in ("encoder", "text") if stack in self.inputs[0].tokens), "main")

    def rng(self) -> np.random.Generator:
        """Random numbers that are this batch's own, the same in every run with this seed."""
        return np.random.default_rng(self.seed)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Something worked out once a batch, and shared by layers and measures."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def release(self) -> None:
        """Forget what was worked out. It refers back to here: only the garbage collector would free it, and late."""
        self._known.clear()

    def tokens(self, stack: str) -> list[Tokens]:
        """The tokens of every example."""
        return [inputs.tokens[stack] for inputs in self.inputs]

    def plain(self, stack: str) -> Tensor:
        """True where a token is neither special nor padding [example, position]."""
        return self.once(("plain", stack), lambda: self._token_values(stack, lambda token: not token.special, False))

    def ids(self, stack: str) -> Tensor:
        """Token ids [example, position]; −1 for padding and for what has none."""
        return self.once(("ids", stack), lambda: self._token_values(stack, lambda token: _id(token.id), -1))

    def words(self) -> list[list[tuple[int, ...]]]:
        """For each example the positions of each word's tokens: empty for a word that has none of its own."""
        stack = self.text_stack
        return self.once(
            "words",
            lambda: [
                align(inputs.tokens[stack], example.spans)
                for inputs, example in zip(self.inputs, self.examples, strict=True)
            ],
        )

    def word_weights(self) -> Tensor:
        """1 where a token is a piece of a word [example, word, position]; words without tokens are all zero."""
        return self.once("word weights", self._word_weights)

    def _word_weights(self) -> Tensor:
        real = self.real[self.text_stack]
        words = self.words()
        weights = np.zeros((len(self), max((len(groups) for groups in words), default=0), real.shape[1]), np.float32)
        for example, groups in enumerate(words):
            for word, positions in enumerate(groups):
                for position in positions:
                    weights[example, word, position] = 1.0
        return torch.from_numpy(weights).to(real.device)

    def _token_values(self, stack: str, value: Callable[[Any], Any], filler: Any) -> Tensor:
        real = self.real[stack]
        filled = torch.full(real.shape, filler)
        for row, tokens in enumerate(self.tokens(stack)):
            filled[row, : len(tokens)] = torch.tensor([value(token) for token in tokens])
        return filled.to(real.device)


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention layer over a batch, or over a part of it where the whole would be too large.

    `pattern` [example, head, query, key] is fp32, where the model is; padded keys have no weight, padded queries mean
    nothing: `queries` and `keys` [example, position] say what is real. Nothing here outlives the call.
    """

    site: Site
    key_stack: str
    is_causal: bool
    batch: CorpusBatch
    rows: slice
    first_head: int
    pattern: Tensor
    queries: Tensor
    keys: Tensor
    value: Tensor | None = None
    gram: Callable[[], tuple[Tensor | None, str]] | None = None
    query: Tensor | None = None
    """Queries [example, head, token, dim] and keys [example, group, token, dim] as used, where they are in sight."""
    key: Tensor | None = None
    _known: dict[Any, Any] = field(default_factory=dict)

    @property
    def examples(self) -> Sequence[Example]:
        """The examples it shows."""
        return self.batch.examples[self.rows]

    @property
    def heads(self) -> list[Head]:
        """The heads it shows."""
        first, count = self.first_head, self.pattern.shape[1]
        return self.once("heads", lambda: [self.site.head(first + index) for index in range(count)])

    @property
    def plain_queries(self) -> Tensor:
        """True for queries that are neither special nor padding [example, query]."""
        return self._plain(self.site.stack, self.queries)

    @property
    def plain_keys(self) -> Tensor:
        """True for keys that are neither special nor padding [example, key]."""
        return self._plain(self.key_stack, self.keys)

    @property
    def visible(self) -> Tensor:
        """How many keys each query can see, windows aside [example, query]."""
        n_keys = self.keys.sum(-1, keepdim=True)
        if not self.is_causal:
            return n_keys.expand(-1, self.pattern.shape[2])
        seen = torch.arange(1, self.pattern.shape[2] + 1, device=self.pattern.device)
        return torch.minimum(seen[None], n_keys)

    def tally(self, total: Tensor, n_queries: Tensor, chance: Tensor | None = None, *, key: str = "") -> Tally:
        """Sums over queries [example, head] (or [example], where all heads agree) as a tally."""
        shaped = [
            None if sums is None else sums if sums.ndim == 2 else sums[:, None] for sums in (total, n_queries, chance)
        ]
        return Tally(self.heads, self.batch.places[self.rows], *shaped, key=key)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Something worked out once a layer, and shared by measures."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def release(self) -> None:
        """Forget what was worked out. It refers back to here: only the garbage collector would free it, and late."""
        self._known.clear()

    def by_words(self) -> Tensor:
        """The pattern by words [example, head, word, word]: to a word the sum over its pieces, from it the mean.

        As Clark et al. (2019, section 4.1) have it. Only for self-attention over the example's text.
        """
        if "words" not in self._known:
            if self.site.stack != self.batch.text_stack or self.site.kind != "self":
                raise NotRecordedError(f"{self.site} does not attend within the example's text: it has no words.")
            weights = self.batch.word_weights()[self.rows].to(self.pattern)[:, None]
            weights = weights[..., : self.pattern.shape[-1]]
            means = weights / weights.sum(-1, keepdim=True).clamp_min(1.0)
            self._known["words"] = means @ self.pattern @ weights.transpose(-1, -2)
        return self._known["words"]

    def contributions(self) -> Tensor:
        """Weight × ‖value · W_O‖ (Kobayashi et al., 2020) [example, head, query, key]."""
        return self.pattern * self.value_norms()[:, :, None]

    def value_norms(self) -> Tensor:
        """‖value · W_O‖ [example, head, key]: how much a key's value could add."""
        if "norms" not in self._known:
            gram, reason = self.gram() if self.gram is not None else (None, "its values are not in sight")
            if gram is None or self.value is None:
                raise NotRecordedError(f"no contributions for {self.site}: {reason or 'its values are not in sight'}.")
            part = gram[self.first_head : self.first_head + self.pattern.shape[1]]
            value = local_values(self.value.to(part.dtype), part.shape[-1])
            if value is None:
                raise NotRecordedError(f"no contributions for {self.site}: {TWO_VALUES}.")
            # One product a head for all examples, rather than one for each of both.
            turned = torch.einsum("ehkd,hdc->ehkc", value, part.to(value.device))
            squared = torch.linalg.vecdot(turned, value)
            self._known["norms"] = squared.clamp_min(0.0).sqrt()
        return self._known["norms"]

    def _plain(self, stack: str, real: Tensor) -> Tensor:
        """Narrowed where the layer is shown without padding; of a coarser grid no special tokens are known."""
        plain, length = self.batch.plain(stack)[self.rows].to(real.device), real.shape[1]
        if plain.shape[1] == length or all(len(tokens) == length for tokens in self.batch.tokens(stack)[self.rows]):
            return plain[:, :length]
        return real


def _id(number: int | None) -> int:
    return -1 if number is None else number
