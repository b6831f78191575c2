"""Activations of two runs, the first minus the second: on the tokens that both have, some of them at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.errors import HeadscopeError, InputError
from headscope.interventions import Intervention
from headscope.interventions.calls import parse
from headscope.models.activations import N_NEURONS, Streams, cosine, read_around, watch
from headscope.models.logit_lens import lens_stack, logits_of, read_lenses, why_no_lens
from headscope.progress import Cancel, OnProgress
from headscope.traces import Comparison, Trace
from headscope.traces.activations import Activations
from headscope.traces.activations_difference import ActivationsDifference, LensDifference
from headscope.traces.token_alignment import Alignment

if TYPE_CHECKING:
    from headscope.models.model import Model

Both = tuple["Model", "Model"]


@dataclass(frozen=True)
class Paired:
    """Positions of the same tokens in the streams of both runs, and which of the pairs are read one by one."""

    alignment: Alignment
    first: int
    last: int

    @classmethod
    def of(
        cls, model: "Model", comparison: Comparison, stack: str | None = None, first: int = 0, count: int | None = None
    ) -> "Paired":
        """The aligned tokens of a stack (of the one that predicts, where none is named); refused, with the reason,
        where the runs cannot be subtracted there."""
        if reason := comparison.no_difference:
            raise InputError(f"{reason}.")
        known = comparison.alignment
        name = stack or (lens_stack(model) if lens_stack(model) in known else next(iter(known)))
        if name not in known:
            raise InputError(f"there is no stack {name!r} in both runs: there are {', '.join(known)}.")
        alignment = known[name]
        if any(len(group) != 1 for group in (*alignment.ones, *alignment.others)):
            raise InputError("activations belong to single tokens: compare by tokens, not by words.")
        length = len(alignment)
        if not 0 <= first < length:
            raise InputError(f"there is no token {first}: {name} has {length} in both runs, 0 to {length - 1}.")
        return cls(alignment, first, length if count is None else min(length, first + max(1, count)))

    @property
    def stack(self) -> str:
        """The stack whose tokens they are."""
        return self.alignment.stack

    def places(self, side: int) -> list[int]:
        """All aligned tokens, by their positions in one of the runs."""
        return [group[0] for group in (self.alignment.ones, self.alignment.others)[side]]

    def rows(self, side: int) -> list[int]:
        """Those that are read one by one."""
        return self.places(side)[self.first : self.last]


def watch_both(
    models: Both,
    comparison: Comparison,
    interventions: tuple[Sequence[Intervention], Sequence[Intervention]] | None = None,
    *,
    stack: str | None = None,
    tokens: range | int | None = None,
    k: int = 5,
    budget: int | None = None,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> ActivationsDifference:
    """Run both inputs once more, and subtract what passed through one stack."""
    if comparison.a.model != comparison.b.model and models[0] is models[1]:
        raise InputError(
            f"the runs are of two models, {comparison.a.model} and {comparison.b.model}, and each is repeated: "
            "give both models."
        )
    length = len(Paired.of(models[0], comparison, stack).alignment)
    tokens = read_around(tokens, length)
    if not len(tokens) or tokens.step != 1 or not 0 <= tokens.start < tokens.stop <= length:
        raise InputError(f"tokens={tokens!r} is no range of the {length} tokens of both runs: give range(0, {length}).")
    paired = Paired.of(models[0], comparison, stack, tokens.start, len(tokens))
    streams = []
    for side, (model, trace) in enumerate(zip(models, (comparison.a, comparison.b), strict=True)):
        edits = edits_of(model, trace) if interventions is None else interventions[side]
        rows = paired.rows(side)
        streams.append(
            watch(model, trace, edits, stack=paired.stack, rows=rows, budget=budget, cancel=cancel, progress=progress)
        )
    return subtract(models, (streams[0], streams[1]), paired, k)


def edits_of(model: "Model", trace: Trace) -> list[Intervention]:
    """The edits that a trace was made with, read from what they print as."""
    try:
        return [parse(edit, lambda other: other.of(model)) for edit in trace.edits]
    except HeadscopeError as error:
        raise InputError(
            f"the run is repeated with its edits, and one of them cannot be read from the trace ({error}) "
            "Give those of both runs to model.activations_difference: interventions=([…], [])."
        ) from error


def subtract(
    models: Both,
    streams: tuple[Streams, Streams],
    paired: Paired,
    k: int = 5,
    *,
    check: Callable[[], None] | None = None,
    progress: OnProgress | None = None,
) -> ActivationsDifference:
    """Both runs on the aligned tokens: norms of all of them; lens, neurons and heads of those that are paired for it.

    The streams hold all neurons of those tokens (`watch(rows=…)`).
    """
    first, second = streams
    for side, stream, length in ((0, first, paired.alignment.n_one), (1, second, paired.alignment.n_other)):
        if stream.residual.shape[1] != length:
            raise InputError(
                f"the residual stream of run {'AB'[side]} has {stream.residual.shape[1]} places and its {first.stack} "
                f"{length} tokens, so there is nothing to align."
            )
    if len(first.residual) != len(second.residual):
        layers = [len(stream.residual) - 1 for stream in streams]
        raise InputError(f"the two models have {layers[0]} and {layers[1]} layers, so they cannot be subtracted.")
    lens, no_lens = _lens(models, streams, paired, k, check, progress)
    neurons, values, no_neurons = _neurons(first, second, paired)
    sides = [_align(stream, paired, side) for side, stream in enumerate(streams)]
    if neurons is not None:
        sides = [replace(side, neurons=neurons, values=own) for side, own in zip(sides, values, strict=True)]
    reasons = dict.fromkeys(stream.no_written for stream in streams if stream.no_written)
    return ActivationsDifference(
        sides[0],
        sides[1],
        paired.first,
        paired.last - paired.first,
        lens=lens,
        no_lens=no_lens,
        no_neurons=no_neurons,
        no_written="; ".join(reasons),
    )


def _align(stream: Streams, paired: Paired, side: int) -> Activations:
    """One run on the aligned tokens, without what is read in both at once."""
    places, rows = torch.tensor(paired.places(side)), torch.tensor(paired.rows(side))
    last = stream.residual[-1, places]
    return Activations(
        stack=stream.stack,
        layers=stream.layers,
        tokens=paired.alignment.tokens,
        norms=torch.stack([place[places].float().norm(dim=-1) for place in stream.residual]).numpy(),
        cosines=np.stack([cosine(place[places], last) for place in stream.residual]),
        written={name: values[:, places].numpy() for name, values in stream.written.items()},
        is_sum=stream.is_sum,
        first=paired.first,
        n_neurons=stream.n_neurons,
        heads={site: values[:, rows].numpy() for site, values in stream.heads.items()},
    )


def _lens(
    models: Both,
    streams: tuple[Streams, Streams],
    paired: Paired,
    k: int,
    check: Callable[[], None] | None,
    progress: OnProgress | None,
) -> tuple[LensDifference | None, str]:
    """The lens of both runs, or why there is none."""
    reasons = dict.fromkeys(why_no_lens(model, stream.stack) for model, stream in zip(models, streams, strict=True))
    if reason := "; ".join(filter(None, reasons)):
        return None, reason
    cut = tuple(stream.residual[:, torch.tensor(paired.rows(side))] for side, stream in enumerate(streams))
    sizes = [logits_of(model, stream[-1, :1]).shape[-1] for model, stream in zip(models, cut, strict=True)]
    if sizes[0] != sizes[1]:
        return None, f"the two models choose among {sizes[0]:,} and {sizes[1]:,} tokens"
    return read_lenses(models, (cut[0], cut[1]), k, check=check, progress=progress), ""


def _neurons(left: Streams, right: Streams, paired: Paired) -> tuple[np.ndarray | None, list[np.ndarray], str]:
    """The neurons whose activations differ most [layer, token, k], with their values in both runs."""
    if left.rows is None or right.rows is None:
        return None, [], left.no_neurons or right.no_neurons or "the MLPs do not see the tokens one by one"
    if left.n_neurons != right.n_neurons:
        return None, [], f"an MLP has {left.n_neurons:,} neurons in one model and {right.n_neurons:,} in the other"
    assert [*left.row_places] == paired.rows(0) and [*right.row_places] == paired.rows(1)
    most_by_layer: list[tuple[Tensor, Tensor, Tensor]] = []
    for first, second in zip(left.rows, right.rows, strict=True):  # a layer at a time
        values = first.float(), second.float()
        most = (values[0] - values[1]).abs().topk(min(N_NEURONS, left.n_neurons), dim=-1).indices
        most_by_layer.append((most.int(), values[0].gather(-1, most), values[1].gather(-1, most)))
    neurons, *values = (torch.stack(each).numpy() for each in zip(*most_by_layer, strict=True))
    return neurons, values, ""
