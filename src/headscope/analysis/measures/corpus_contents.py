"""What a corpus has to measure, found in one pass before a run: kinds of examples, tags, trees, frequencies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headscope.analysis.measures.syntactic import Offsets, add_offsets, modal_offsets
from headscope.corpora import Example
from headscope.models import Model
from headscope.traces import Trace

# The column of tags that is measured, the first that a corpus has.
TAG_COLUMNS = ("upos", "pos", "xpos")
_AT_A_TIME = 256


@dataclass(frozen=True)
class Inventory:
    """How many examples have what, and what measures must know beforehand: how often each token occurs, and at which
    distance each dependency relation mostly lies.
    """

    n_examples: int = 0
    has: Counter[str] = field(default_factory=Counter)
    tags: dict[str, Counter[str]] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    tokens: Counter[int] = field(default_factory=Counter)
    crops: bool = False

    @property
    def tag_column(self) -> str | None:
        """The column of tags to measure."""
        return next((column for column in TAG_COLUMNS if column in self.tags), None)

    @property
    def modal_offsets(self) -> dict[str, int]:
        """Of every relation and direction the most frequent distance in words."""
        return modal_offsets(self.offsets)


def take_inventory(examples: Iterable[Example], model: Model | None = None) -> Inventory:
    """Go through a corpus once. Token frequencies need a model whose tokenizer can be asked."""
    inventory = Inventory(crops=_crops(model))
    stream, n_examples = iter(examples), 0
    while part := list(islice(stream, _AT_A_TIME)):
        n_examples += len(part)
        for example in part:
            _look_at(inventory, example)
        if model is not None:
            _count_tokens(inventory.tokens, part, model)
    return Inventory(n_examples, inventory.has, inventory.tags, inventory.offsets, inventory.tokens, inventory.crops)


def inventory_of_traces(traces: Sequence[Trace], examples: Sequence[Example]) -> Inventory:
    """The same from traces: frequencies are those of their own tokens."""
    inventory = Inventory(len(traces))
    for trace, example in zip(traces, examples, strict=True):
        _look_at(inventory, example)
        for tokens in trace.tokens.values():
            inventory.tokens.update(token.id for token in tokens if token.id is not None and not token.special)
    return inventory


def _look_at(inventory: Inventory, example: Example) -> None:
    parts = ("text", "pair", "target", "image")
    inventory.has.update(part for part in parts if getattr(example, part) is not None)
    if example.words and example.spans:
        inventory.has["words"] += 1
        for column, tags in example.tags.items():
            inventory.tags.setdefault(column, Counter()).update(tags)
        if example.heads:
            inventory.has["trees"] += 1
            add_offsets(inventory.offsets, example)


def _count_tokens(counts: Counter[int], examples: list[Example], model: Model) -> None:
    tokenizer: Any = model.tokenizer
    if not callable(tokenizer):
        return
    special = set(getattr(tokenizer, "all_special_ids", ()))
    texts = [text for example in examples for text in (example.text, example.pair) if text is not None]
    targets = [example.target for example in examples if example.target is not None]
    for column, column_texts in (("text", texts), ("text_target", targets)):
        if column_texts:
            encoding: Any = tokenizer(**{column: column_texts}, add_special_tokens=False, verbose=False)
            for ids in encoding["input_ids"]:
                counts.update(id for id in ids if id not in special)


def _crops(model: Model | None) -> bool:
    """Whether a model's pictures are cropped, so that a patch is not where the picture says."""
    processor: Any = None if model is None else model.processor
    return bool(getattr(getattr(processor, "image_processor", processor), "do_center_crop", False))
