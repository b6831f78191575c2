"""Activations of a run: it is run once more, and what passes is reduced as it passes, so that memory stays small.

Of the residual stream all is held (places × tokens × width, asked of the budget first); of MLP neurons the few that are
furthest from 0, all only of the tokens that are asked for (`rows`); of heads and of what a layer writes only norms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import torch
from torch import Tensor

from headscope.errors import BudgetError, InputError, NotRecordedError
from headscope.interventions import Intervention
from headscope.models.capture.passes import Pass
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer
from headscope.models.logit_lens import lens_stack, read_lens, why_no_lens
from headscope.models.memory_budget import SHARE, size_text
from headscope.progress import Cancel, OnProgress
from headscope.sites import Site
from headscope.traces import Inputs, Tokens, Trace
from headscope.traces.activations import Activations

if TYPE_CHECKING:
    from headscope.models.model import Model

N_NEURONS = 10
# Tokens that are read one by one unless more are asked for.
MOST_READ = 512
# A layer's change is what was written if it differs by less than this share, rounding in half precision included.
NEARLY = 0.02


@dataclass(frozen=True, eq=False)
class Streams:
    """What one stack's run left: `activations` of its tokens are read from it, some at a time.

    It does not hold the model, which is larger: whoever keeps streams may let the model go, and give it again.
    """

    stack: str
    tokens: Tokens
    residual: Tensor
    """[place, token, dim]"""
    written: dict[str, Tensor]
    is_sum: bool
    neurons: Tensor | None
    values: Tensor | None
    squares: Tensor | None
    n_neurons: int
    heads: dict[Site, Tensor] = field(default_factory=dict)
    no_written: str = ""
    rows: Tensor | None = None
    """All neurons [layer, row, neuron] of the tokens `row_places`, as the model made them."""
    row_places: tuple[int, ...] = ()

    @property
    def layers(self) -> tuple[Site, ...]:
        """The layers between the places."""
        return tuple(Site(self.stack, layer) for layer in range(len(self.residual) - 1))

    @property
    def no_neurons(self) -> str:
        """Why there are no MLP neurons; empty where there are."""
        return _NO_NEURONS if self.neurons is None else ""

    def nbytes(self) -> int:
        """Bytes held."""
        tensors = [self.residual, *self.written.values(), *self.heads.values()]
        tensors += [tensor for tensor in (self.neurons, self.values, self.squares, self.rows) if tensor is not None]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def read(
        self,
        model: "Model",
        first: int = 0,
        count: int | None = None,
        k: int = 5,
        *,
        check: Callable[[], None] | None = None,
        progress: OnProgress | None = None,
    ) -> Activations:
        """Norms of all tokens, and of `count` tokens from `first` on the lens, neurons and heads."""
        length = len(self.tokens)
        if not 0 <= first < length:
            raise InputError(f"there is no token {first}: {self.stack} has {length}, 0 to {length - 1}.")
        last = length if count is None else min(length, first + max(1, count))
        no_lens = why_no_lens(model, self.stack)
        lens = None if no_lens else read_lens(model, self.residual[:, first:last], k, check=check, progress=progress)
        neurons = values = shares = None
        if self.neurons is not None and self.values is not None and self.squares is not None:
            neurons, values = (tensor[:, first:last].numpy() for tensor in (self.neurons, self.values))
            shares = values**2 / self.squares[:, first:last, None].clamp_min(1e-30).numpy()
        return Activations(
            stack=self.stack,
            layers=self.layers,
            tokens=self.tokens,
            norms=torch.stack([stream.float().norm(dim=-1) for stream in self.residual]).numpy(),
            cosines=np.stack([cosine(stream, self.residual[-1]) for stream in self.residual]),
            written={name: norms.numpy() for name, norms in self.written.items()},
            is_sum=self.is_sum,
            first=first,
            lens=lens,
            neurons=neurons,
            values=values,
            shares=shares,
            n_neurons=self.n_neurons,
            heads={site: norms[:, first:last].numpy() for site, norms in self.heads.items()},
            no_lens=no_lens,
            no_neurons=self.no_neurons,
            no_written=self.no_written,
        )


_NO_NEURONS = "no MLP with one row of neurons was found (a mixture of experts has several)"


def read_around(tokens: range | int | None, length: int) -> range:
    """The tokens whose lens, neurons and heads are read: as many as take moments, those about a position among them."""
    if isinstance(tokens, range):
        return tokens
    if length <= MOST_READ:
        return range(length)
    if tokens is None:
        return range(length - MOST_READ // 2, length)
    place = tokens % length if -length <= tokens < length else length
    first = max(0, min(length - MOST_READ, place - MOST_READ // 2))
    return range(first, first + MOST_READ) if place < length else range(place, place)


def watch(
    model: "Model",
    source: Any,
    interventions: Sequence[Intervention] = (),
    *,
    stack: str | None = None,
    rows: Sequence[int] = (),
    budget: int | None = None,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Streams:
    """Run an input (a text, or the inputs of a trace) and keep what passed through one stack; of the tokens `rows` all
    MLP neurons."""
    inputs = source.inputs if isinstance(source, Trace) else source
    if inputs is None:
        raise NotRecordedError("this trace does not say what was run: give the input itself.")
    example = inputs if isinstance(inputs, Inputs) else model.read(inputs)
    if isinstance(example, list):
        raise InputError("activations are read of one input at a time.")
    forward = Pass.of(model, [example], interventions)
    stack = stack or (lens_stack(model) if lens_stack(model) in model.stacks else model.stacks[0])
    if stack not in model.stacks:
        raise InputError(f"there is no stack {stack!r}: there are {', '.join(model.stacks)}.")
    allowed = int(psutil.virtual_memory().available * SHARE) if budget is None else budget
    watcher = _StackWatcher(model, stack, allowed, rows)
    forward.run(logits="answers", observers=[watcher], cancel=cancel, progress=progress)
    return watcher.streams(forward.edited[0].tokens.get(stack))


class _StackWatcher(Observer):
    """Reduces what passes through one stack of a single input."""

    def __init__(self, model: "Model", stack: str, allowed: int, rows: Sequence[int]):
        self.model = model
        self.stack, self.allowed, self.row_places = stack, allowed, tuple(rows)
        self.rows: dict[int, Tensor] = {}
        self.stream: dict[int, Tensor] = {}
        self.norms: dict[tuple[str, int], Tensor] = {}
        self.top: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        self.head_norms: dict[Site, Tensor] = {}
        self.n_neurons = 0
        self._sums: dict[int, Tensor] = {}
        self._is_sum = True

    def residual(self, site: Site, stream: Tensor) -> None:
        """Keep the stream, and see whether the layer before added just what was written."""
        if site.stack == self.stack and stream.ndim == 3:
            n_places = 2 + max(block.layer for block in self.model.layout.blocks if block.stack == self.stack)
            size = stream[0].numel() * stream.element_size() * n_places
            if size > self.allowed:
                raise BudgetError(
                    f"the residual stream of this input takes {size_text(size)}, the budget is "
                    f"{size_text(self.allowed)}: shorten the input."
                )
            here = self.stream[site.layer] = stream[0].detach().to("cpu", copy=True)
            written, before = self._sums.pop(site.layer - 1, None), self.stream.get(site.layer - 1)
            if written is not None and before is not None and self._is_sum and before.shape == here.shape:
                change = here.float() - before.float()
                self._is_sum = bool((change - written).norm() <= NEARLY * change.norm())

    def neurons(self, site: Site, activations: Tensor) -> None:
        """Keep the neurons furthest from 0."""
        if site.stack == self.stack:
            whole = activations[0].detach()
            if self.row_places and max(self.row_places) < len(whole):
                self.rows[site.layer] = self._rows(whole)
            values = whole.float()
            best = values.abs().topk(min(N_NEURONS, values.shape[-1]), dim=-1).indices
            squares = values.square().sum(-1)
            self.top[site.layer] = (best.int().cpu(), values.gather(-1, best).cpu(), squares.cpu())
            self.n_neurons = values.shape[-1]

    def _rows(self, whole: Tensor) -> Tensor:
        """All neurons of the tokens that they are asked of."""
        size = len(self.row_places) * whole.shape[-1] * whole.element_size() * len(self.model.layout.neurons)
        if size > self.allowed:
            raise BudgetError(
                f"all MLP neurons of {len(self.row_places)} tokens take {size_text(size)}, the budget is "
                f"{size_text(self.allowed)}: ask for fewer tokens at a time."
            )
        return whole[torch.tensor(self.row_places, device=whole.device)].cpu()

    def layer(self, captured: Captured) -> None:
        """Keep how much every head wrote."""
        layer = captured.layer
        if layer.site.stack == self.stack and not layer.is_windowed:
            gram, _ = self.model.output_gram(layer)
            mixed = captured.mixed[0].detach().float()
            if gram is not None and mixed.shape[0] == gram.shape[0]:
                squared = torch.linalg.vecdot(mixed @ gram.to(mixed.device), mixed)
                self.head_norms[layer.site] = squared.clamp_min(0.0).sqrt().cpu()

    def contribution(self, site: Site, kind: str, output: Tensor) -> None:
        """Keep how much a module wrote."""
        if site.stack != self.stack:
            return
        written = output[0].detach().float().cpu()
        self.norms[kind, site.layer] = written.norm(dim=-1)
        if self._is_sum:
            before = self._sums.get(site.layer)
            self._sums[site.layer] = written if before is None or before.shape != written.shape else before + written

    def streams(self, tokens: Tokens | None) -> Streams:
        """What is left when the pass is over."""
        places = sorted(self.stream)
        if len(places) < 2:
            raise NotRecordedError(f"no residual stream was found in the {self.stack} stack of {self.model.name}.")
        shapes = {self.stream[place].shape for place in places}
        if len(shapes) > 1:
            raise NotRecordedError(
                f"the layers of {self.stack} are not equally wide, so that there is no one residual stream to compare."
            )
        layers, length = places[:-1], self.stream[places[0]].shape[0]
        written = {}
        for name in ("attention", "cross", "mlp"):
            norms = [self.norms.get((name, layer)) for layer in layers]
            if all(norm is not None and norm.shape[0] == length for norm in norms):
                written[name] = torch.stack([norm for norm in norms if norm is not None])
        missing = [name for name in ("attention", "mlp") if name not in written]
        top = [self.top[layer] for layer in layers if layer in self.top]
        has_neurons = len(top) == len(layers) and len({layer_top[0].shape for layer_top in top}) == 1
        return Streams(
            stack=self.stack,
            tokens=tokens if tokens is not None and len(tokens) == length else Tokens.numbered(length),
            residual=torch.stack([self.stream[place] for place in places]),
            written=written,
            is_sum=self._is_sum and not missing,
            neurons=torch.stack([layer_top[0] for layer_top in top]) if has_neurons else None,
            values=torch.stack([layer_top[1] for layer_top in top]) if has_neurons else None,
            squares=torch.stack([layer_top[2] for layer_top in top]) if has_neurons else None,
            n_neurons=self.n_neurons if has_neurons else 0,
            heads={site: norms for site, norms in self.head_norms.items() if norms.shape[1] == length},
            no_written=f"the module that writes what {' and '.join(missing)} found was not seen" if missing else "",
            rows=torch.stack([self.rows[layer] for layer in layers]) if has_neurons and self.rows else None,
            row_places=self.row_places,
        )


class _NeuronWatcher(Observer):
    """Keeps one MLP neuron of one layer."""

    def __init__(self, site: Site, index: int):
        self.site, self.index, self.values = site, index, torch.zeros(0)

    def neurons(self, site: Site, activations: Tensor) -> None:
        if site == self.site:
            self.values = activations[0, :, self.index].detach().float().cpu()


def neuron_values(model: "Model", inputs: Inputs, site: Site, index: int) -> np.ndarray:
    """The activation of one MLP neuron at every token of an input."""
    watcher = _NeuronWatcher(Site(site.stack, site.layer, "neurons"), index)
    Pass.of(model, [inputs]).run(logits="answers", observers=[watcher])
    return watcher.values.numpy()


def cosine(vectors: Tensor, other: Tensor) -> np.ndarray:
    """Between vectors of the same tokens [token, dim]."""
    return torch.nn.functional.cosine_similarity(vectors.float(), other.float(), dim=-1).numpy()
