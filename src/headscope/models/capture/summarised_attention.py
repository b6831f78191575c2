"""Attention over inputs too long to hold a pattern: mixed values and summaries, in fused kernels or in tiles."""

from typing import TYPE_CHECKING

from torch import Tensor

from headscope.attention import Summariser, Summary, attend_fused, attend_in_tiles, is_covered
from headscope.interventions import At
from headscope.models.capture.recorder import Captured, example_parts

if TYPE_CHECKING:
    from headscope.models.capture.session import Session


def summarise(session: "Session", captured: Captured, at: At) -> None:
    """Fill in `mixed`, and the summaries where a recorder asks for them.

    Example by example, without its padding; padded rows come out as zero, as from SDPA.
    """
    assert captured.query is not None and captured.value is not None and captured.formula is not None
    recorder = session.examples
    positions = [recorder.real_positions(captured, example) for example in range(captured.query.shape[0])]
    is_padded = any(part is not None for both in positions for part in both)
    if not is_padded and is_fused(session, captured):
        summaries = _attend_batch(session, captured)
    else:
        summaries = _attend_each(session, captured, at, positions, is_padded=is_padded)
    if session.recorder is not None:
        captured.summaries = summaries


def is_fused(session: "Session", captured: Captured) -> bool:
    """Whether the GPU kernels compute this layer."""
    assert captured.query is not None and captured.value is not None and captured.formula is not None
    is_edited = session.edits.has(captured.layer.site, "scores", "pattern")
    return not is_edited and is_covered(captured.query, captured.value, captured.formula)


def _attend_batch(session: "Session", captured: Captured) -> list[Summary]:
    """All examples at once: none has padding."""
    assert captured.query is not None and captured.key is not None
    assert captured.value is not None and captured.formula is not None
    formula = session.examples.smallest_formula(captured.formula)
    captured.mixed, summaries = attend_fused(
        captured.query, captured.key, captured.value, formula, rows_only=session.record in (None, "rows")
    )
    return summaries


def _attend_each(
    session: "Session",
    captured: Captured,
    at: At,
    positions: list[tuple[Tensor | None, Tensor | None]],
    *,
    is_padded: bool,
) -> list[Summary]:
    """One example after another."""
    assert captured.query is not None and captured.value is not None and captured.formula is not None
    batch, n_heads, n_queries = captured.query.shape[:3]
    fused = is_fused(session, captured)
    if batch > 1 or is_padded:
        captured.mixed = captured.query.new_zeros(batch, n_heads, n_queries, captured.value.shape[-1])
    summaries = []
    for example, (queries, keys) in enumerate(positions):
        session.check()
        query, key, value = example_parts(captured, example, queries, keys)
        formula = session.examples.example_formula(captured.formula, example, queries, keys)
        if fused:
            rows_only = session.record in (None, "rows")
            out, of_example = attend_fused(query[None], key[None], value[None], formula, rows_only=rows_only)
            out, summary = out[0], of_example[0]
        else:
            summariser = None
            if session.recorder is not None:
                shape = (n_heads, query.shape[1], key.shape[1])
                summariser = Summariser(*shape, rows_only=session.record == "rows", device=query.device)
            edit = session.edits.of_tiles(captured.layer.site, at, example, queries, keys, formula)
            out = attend_in_tiles(query, key, value, formula, summariser=summariser, edit=edit, check=session.check)
            summary = None if summariser is None else summariser.summary()
        if batch == 1 and queries is None:
            captured.mixed = out[None]
        elif queries is None:
            captured.mixed[example] = out
        else:
            captured.mixed[example][:, queries.to(out.device)] = out
        if summary is not None:
            summaries.append(summary)
    return summaries
