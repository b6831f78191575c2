"""Memory, foreseen: what a run will keep, before it starts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psutil
import torch

from headscope.attention.summaries import N_TOP, cell
from headscope.choices import Record
from headscope.errors import BudgetError
from headscope.interventions import Intervention
from headscope.models.inputs.batch import Batch
from headscope.traces.trace import RECORDS

if TYPE_CHECKING:
    from headscope.models.model import Model

# Half of what is free: the model needs room to work as well.
SHARE = 0.5


def choose_record(
    model: "Model", batch: Batch, record: Record | None, budget: int | None, interventions: Sequence[Intervention]
) -> tuple[Record, str]:
    """The record to keep, and what to tell the user if it is less than usual; refuses what would not fit."""
    allowed = int(psutil.virtual_memory().available * SHARE) if budget is None else budget
    needs: dict[Record, int] = {kind: record_bytes(model, batch, kind, interventions) for kind in RECORDS}
    if record is None:
        if needs["heads"] <= allowed:
            return "heads", ""
        if needs["summary"] <= allowed:
            size = size_text(needs["heads"])
            return (
                "summary",
                f"queries and keys would take {size}, more than the budget of {size_text(allowed)}: "
                "a summary was kept.",
            )
        record = "summary"
    if needs[record] > allowed:
        fits: list[Record] = [kind for kind in RECORDS if needs[kind] <= allowed]
        advice = f"record={fits[-1]!r} would fit ({size_text(needs[fits[-1]])})" if fits else "shorten the input"
        raise BudgetError(
            f"record={record!r} would keep {size_text(needs[record])} of memory, the budget is {size_text(allowed)}: "
            f"{advice}, or raise `budget=` (bytes)."
        )
    return record, ""


def record_bytes(model: "Model", batch: Batch, record: Record, interventions: Sequence[Intervention] = ()) -> int:
    """How much memory a record of this batch takes."""
    lengths = {stack: real.shape[1] for stack, real in batch.real.items() if real.shape[1]}
    for example in batch.examples:
        for stack, tokens in example.tokens.items():
            lengths[stack] = max(lengths.get(stack, 0), len(tokens))
    longest = max(lengths.values(), default=0)
    n_examples = max(1, len(batch.examples))
    n_bytes = torch.empty((), dtype=model.dtype).element_size()
    edited = any(intervention.stage in ("scores", "pattern") for intervention in interventions)
    total = 0
    for layer in model.layout.layers:
        n_queries, n_keys = lengths.get(layer.site.stack, longest), lengths.get(layer.key_stack, longest)
        total += layer.n_heads * n_queries * 4 * 5
        if record == "rows":
            continue
        cells = -(-n_queries // cell(n_queries)) * -(-n_keys // cell(n_keys))
        total += layer.n_heads * (n_queries * N_TOP * 8 + n_keys * 4 + cells * 4)
        if record == "summary":
            continue
        total += n_bytes * layer.n_heads * n_queries * (layer.head_dim + layer.value_dim)
        total += n_bytes * layer.n_groups * n_keys * (layer.head_dim + layer.value_width)
        if layer.stores_patterns or edited:
            total += 4 * layer.n_heads * n_queries * n_keys
    for router in model.layout.routers:
        each = router.n_chosen * 8 + (router.n_experts * n_bytes if record == "full" else 0)
        total += lengths.get(router.site.stack, longest) * each
    if record == "full":
        width = getattr(model.config, "hidden_size", None) or max(
            (layer.n_heads * layer.head_dim for layer in model.layout.layers), default=0
        )
        total += n_bytes * sum(lengths.get(site.stack, longest) * 5 * width for site in model.layout.blocks)
        total += n_bytes * longest * (getattr(model.config, "vocab_size", 0) or 0)
    return total * n_examples


def size_text(size: float) -> str:
    """A number of bytes as people say it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable: GB is the last unit")
