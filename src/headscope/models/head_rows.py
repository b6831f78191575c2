"""Which parts of an attention module's weights belong to which head: found by running it and following gradients."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headscope.errors import InterventionError
from headscope.models.capture.probe_inputs import probe_inputs
from headscope.models.layout import AttentionLayer
from headscope.models.model import Model


@dataclass(frozen=True)
class HeadRows:
    """The weights of one attention module, head by head.

    `rows` gives for each projection the owner of every output: ("head", index) or ("group", index) of key-value heads;
    None where all heads use it. `projections` gives for "query", "key" and "value" the projections they come from.
    `other` are further parameters with one entry a head, and the axis of it. `n_outputs` is how many values the module
    returns (0: a bare tensor).
    """

    rows: dict[str, list[tuple[str, int] | None]]
    projections: dict[str, list[str]]
    other: dict[str, int] = field(default_factory=dict)
    n_outputs: int = 0


class HeadRowFinder:
    """Runs a copy of a model once, with gradients, and tells of each attention layer which weights its heads use."""

    def __init__(self, model: Model):
        inputs = probe_inputs(model.module)
        if inputs is None:
            raise InterventionError(f"{model.name}: no inputs could be made up to find the weights of its heads with.")
        twin = Model(copy.deepcopy(model.module), name=model.name, verify=False)
        if any(not parameter.is_floating_point() or parameter.is_meta for parameter in twin.module.parameters()):
            raise InterventionError(f"{model.name} has quantised or offloaded weights: load it without, then slim it.")
        twin.module.requires_grad_(True)
        self.module, self.layers = twin.module, twin.layout.layers
        self._outputs: dict[str, list[Tensor]] = {}
        self._n_outputs: dict[str, int] = {}
        with torch.enable_grad(), _hooks(self._watch()), twin.session(grad=True) as session:
            twin.module(**{name: twin.to_device(value) for name, value in inputs.items()})
        self._captured = session.captured

    def rows(self, layer: AttentionLayer) -> HeadRows:
        """The weights of a layer's heads; an error where they cannot be told apart."""
        names = [name for name in self._outputs if name.startswith(f"{layer.module}.")]
        owners: dict[str, list[set[tuple[str, int]]]] = {
            name: [set() for _ in range(self._outputs[name][0].shape[-1])] for name in names
        }
        projections: dict[str, list[str]] = {}
        captured = self._captured[layer.site]
        for stage in ("query", "key", "value"):
            vectors = getattr(captured, stage)  # [batch, head or group, token, dim]
            kind = "head" if stage == "query" else "group"
            for index in range(vectors.shape[1]):
                for name, used in self._used(vectors[:, index], names).items():
                    for row in used:
                        owners[name][row].add((kind, index))
        rows = {}
        for name in names:
            own = self._own_rows(layer, name, owners[name])
            if own is not None:
                rows[name] = own
        for stage, kind in (("query", "head"), ("key", "group"), ("value", "group")):
            vectors = getattr(captured, stage)
            used_by_first = self._used(vectors[:, 0], names)
            projections[stage] = [name for name in rows if used_by_first.get(name)]
            if not projections[stage]:
                raise InterventionError(
                    f"{layer.site}: its {stage} vectors do not come from rows of a projection that belong to one "
                    f"{kind} each (a norm over all heads, or code of its own, lies between)."
                )
        return HeadRows(rows, projections, self._other(layer, rows), self._n_outputs.get(layer.module, 1))

    def _watch(self) -> list[Any]:
        """Hooks that note what projections inside attention give, and how many values attention returns."""
        hooks = []
        for name in dict.fromkeys(layer.module for layer in self.layers):
            attention = self.module.get_submodule(name)
            hooks.append(attention.register_forward_hook(self._note_outputs(name)))
            for inner, part in attention.named_modules():
                if type(part) is nn.Linear or type(part).__name__ == "Conv1D":
                    hooks.append(part.register_forward_hook(self._note(f"{name}.{inner}")))
        return hooks

    def _note(self, name: str):
        def hook(module: nn.Module, args: tuple, output: Tensor) -> None:
            self._outputs.setdefault(name, []).append(output)

        return hook

    def _note_outputs(self, name: str):
        def hook(module: nn.Module, args: tuple, output: Any) -> None:
            self._n_outputs[name] = len(output) if isinstance(output, tuple) else 0

        return hook

    def _used(self, target: Tensor, names: list[str]) -> dict[str, list[int]]:
        """The outputs of each projection on which a tensor depends."""
        outputs = [(name, output) for name in names for output in self._outputs[name]]
        gradients = _gradients(target, [output for _, output in outputs])
        used: dict[str, set[int]] = {}
        for (name, output), gradient in zip(outputs, gradients, strict=True):
            if gradient is not None:
                is_used = gradient.reshape(-1, output.shape[-1]).abs().amax(0) > 0
                used.setdefault(name, set()).update(is_used.nonzero()[:, 0].tolist())
        return {name: sorted(rows) for name, rows in used.items()}

    def _own_rows(
        self, layer: AttentionLayer, name: str, owners: list[set[tuple[str, int]]]
    ) -> list[tuple[str, int] | None] | None:
        """Each row's owner; None for a projection no head owns a row of (the output's, or one that all heads share)."""
        n_units = {"head": layer.n_heads, "group": layer.n_groups}
        rows: list[tuple[str, int] | None] = []
        for users in owners:
            kinds = {kind for kind, _ in users}
            is_shared = all(sum(user[0] == kind for user in users) == n_units[kind] for kind in kinds)
            if len(users) == 1:
                rows.append(next(iter(users)))
            elif is_shared:  # also: used by nobody
                rows.append(None)
            else:
                raise InterventionError(f"{layer.site}: rows of {name} are shared by some of its heads and not by all.")
        if not any(rows):
            return None
        if any(not users for users in owners):
            raise InterventionError(f"{layer.site}: {name} has rows that are no query, key or value of a head.")
        return rows

    def _other(self, layer: AttentionLayer, rows: dict[str, Any]) -> dict[str, int]:
        """Parameters of the module beside its projections with one entry a head: sinks, tables of biases."""
        attention = self.module.get_submodule(layer.module)
        parameters = {
            f"{layer.module}.{name}": parameter
            for name, parameter in attention.named_parameters()
            if f"{layer.module}.{name}".rpartition(".")[0] not in self._outputs and layer.n_heads in parameter.shape
        }
        if not parameters:
            return {}
        mixed = self._captured[layer.site].mixed
        by_head = [_gradients(mixed[:, head], list(parameters.values())) for head in range(layer.n_heads)]
        axes: dict[str, int] = {}
        for place, (name, parameter) in enumerate(parameters.items()):
            for axis in range(parameter.ndim):
                gradients = [gradients[place] for gradients in by_head]
                if parameter.shape[axis] == layer.n_heads and _are_apart(gradients, axis):
                    axes[name] = axis
        return axes


def _are_apart(gradients: list[Tensor | None], axis: int) -> bool:
    """Whether head i depends on entry i along this axis, and on no other."""
    n_used = 0
    for head, gradient in enumerate(gradients):
        if gradient is None:
            continue
        others = [place for place in range(gradient.ndim) if place != axis]
        sums = gradient.abs().sum(others) if others else gradient.abs()
        used_heads = (sums > 0).nonzero()[:, 0].tolist()
        if any(used_head != head for used_head in used_heads):
            return False
        n_used += len(used_heads)
    return n_used > 0


def _gradients(target: Tensor, sources: list[Tensor]) -> list[Tensor | None]:
    """The gradients of a random sum of `target`: zero exactly where it does not depend on a source."""
    sources_with_graph = [source for source in sources if source.requires_grad]
    if not target.requires_grad or not sources_with_graph:
        return [None] * len(sources)
    noise = torch.randn(target.shape, generator=torch.Generator().manual_seed(0)).to(target)
    gradients = iter(
        torch.autograd.grad((target * noise).sum(), sources_with_graph, retain_graph=True, allow_unused=True)
    )
    return [next(gradients) if source.requires_grad else None for source in sources]


@contextmanager
def _hooks(handles: list[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
