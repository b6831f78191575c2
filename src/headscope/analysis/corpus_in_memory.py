"""A corpus through a model once, in this process, for measures that need no folder of a run."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from headscope.analysis.memory_table import MemoryTable
from headscope.corpora import Corpus, Example, corpus
from headscope.errors import InputError
from headscope.progress import Cancel, OnProgress, Steps
from headscope.runs import Measure
from headscope.runs.batch_plan import Plan, block_for

if TYPE_CHECKING:
    from headscope.models import Model


def count_corpus(
    model: "Model",
    source: Any,
    measure: Measure,
    *,
    limit: int | None = None,
    batch_size: int = 64,
    batch_tokens: int = 4096,
    seed: int = 0,
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> MemoryTable:
    """Show every batch of a corpus (its first `limit` examples) to one measure.

    `progress` hears how many examples are done, of how many; `cancel` stops before the next attention layer.
    """
    from headscope.runs.worker import Worker  # brings transformers

    examples = as_corpus(source)
    n_examples = sum(1 for _ in first(examples, limit))
    if not n_examples:
        raise InputError(f"there is nothing to measure: {examples!r} has no examples.")
    shard_size = Plan().shard_size
    block = block_for(n_examples, shard_size)
    plan = Plan(
        shard_size=shard_size,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        block=block,
        seed=seed,
        threads=torch.get_num_threads(),
        truncate=truncate,
        on_error=examples.on_error,
    )
    worker, table = Worker(model, [measure], plan), MemoryTable(measure, -(-n_examples // block))
    steps = Steps("examples", n_examples, progress)
    stream = first(examples, limit)
    for index in range(-(-n_examples // shard_size)):
        shard = list(itertools.islice(stream, shard_size))
        ledger = worker.shard(index, shard, report=steps.add, cancel=cancel)
        table.take(ledger, index * shard_size // block)
        table.n_examples += len(shard) - len(ledger.passed_over)
    return table


def as_corpus(source: Any) -> Corpus:
    """A corpus, from one or from whatever `corpus` takes."""
    return source if isinstance(source, Corpus) else corpus(source)


def first(examples: Corpus, limit: int | None) -> Iterator[Example]:
    """The first so many examples; without a limit all of them."""
    if limit is not None and limit < 1:
        raise InputError(f"a limit is at least one example, got {limit}.")
    return itertools.islice(examples, limit)
