"""Edits written into weights: a plain Hugging Face folder that behaves as the edited run does."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.arguments import as_path, instance
from headscope.errors import CaptureError, InterventionError
from headscope.files import new_folder, refuse_foreign
from headscope.interventions import Intervention
from headscope.interventions.edits import Coordinate, Mean, Scale
from headscope.models.capture.edit_checks import intervention_list, resolve
from headscope.models.capture.probe_inputs import probe_inputs
from headscope.models.layout import AttentionLayer
from headscope.models.model import Model

# How far the baked model may be from the edited run, as a share of its largest output.
TOLERANCE = 1e-5


def bake(model: Model, edits: Sequence[Intervention], folder: str | Path) -> Path:
    """Write the model with its edits into a folder that plain `from_pretrained` loads.

    What weights can express: silencing, scaling and (where the output projection has a bias) mean-ablating heads with
    a fixed mean, and setting, scaling or shifting coordinates of queries, keys and values that come straight from a
    projection. Rotary positions come after the projection, so queries and keys of such models are refused; values are
    not. The result is run against the edited model before the folder appears.
    """
    folder = as_path(folder, "the folder of a baked model")
    refuse_foreign(folder, "a model", is_replaced=True)
    baked = baked_model(model, edits)
    with new_folder(folder) as partial:
        save_model(baked.module, model.processor, partial)
    return folder


def baked_model(model: Model, edits: Sequence[Intervention]) -> Model:
    """The same in memory: a copy of the model that behaves as the edited run does, compared with it."""
    instance(model, Model, "the model", "hs.load gives one")
    if not isinstance(model.module, PreTrainedModel):
        raise InterventionError(f"only Hugging Face models can be baked, this is a {type(model.module).__name__}.")
    edits = intervention_list(edits)
    _check_expressible(edits)
    baked = Model(copy.deepcopy(model.module), model.processor, name=model.name)
    with torch.no_grad():
        for (site, stage), chosen in resolve(edits, model.layout).items():
            layer = next(layer for layer in model.layout.layers if layer.site == site)
            _check_shared(model, layer, stage, chosen, edits)
            # An edit of the output is undone from the projection backwards: the last one stands next to it.
            for intervention, heads in reversed(chosen) if stage == "mixed" else chosen:
                for head in range(heads.start, heads.stop):
                    if stage == "mixed":
                        _bake_head(baked, layer, intervention, head, head - heads.start)
                    else:
                        _bake_coordinate(baked, model, layer, stage, intervention, head, chosen)
    _check_equal(model, edits, baked)
    return baked


def save_model(module: Any, processor: Any, folder: Path) -> None:
    """Save a network and what reads its inputs; a full disk is an `OSError`, whichever library meets it."""
    try:
        module.save_pretrained(folder)
        if processor is not None:
            processor.save_pretrained(folder)
    except SafetensorError as error:
        raise OSError(str(error)) from error


def _check_expressible(edits: Sequence[Intervention]) -> None:
    for intervention in edits:
        is_head = intervention.stage == "mixed" and isinstance(intervention.edit, Scale | Mean)
        is_coordinate = intervention.stage in ("query", "key", "value", "mixed") and isinstance(
            intervention.edit, Coordinate
        )
        if not (is_head or is_coordinate):
            raise InterventionError(
                f"{intervention!r} cannot be written into weights: only heads (silence, scale, mean_ablate) and "
                "coordinates of queries, keys and values can."
            )
        if intervention.tokens is not None:
            raise InterventionError(f"{intervention!r} acts on some tokens only, which weights cannot express.")
        if isinstance(intervention.edit, Mean) and intervention.edit.mean is None:
            raise InterventionError(f"{intervention!r}: give the mean to bake, as in hs.mean_ablate(head, trace).")


def _check_shared(model: Model, layer: AttentionLayer, stage: str, chosen: list, edits: Sequence[Intervention]) -> None:
    """A module that serves several layers can only be changed in all of them."""
    layers = model.layout.of_module(layer.module)
    if len(layers) == 1:
        return
    resolved = resolve(edits, model.layout)
    mine = [_comparable(intervention, heads) for intervention, heads in chosen]
    for other in layers:
        theirs = [_comparable(intervention, heads) for intervention, heads in resolved.get((other.site, stage), [])]
        if theirs != mine:
            raise InterventionError(
                f"{layer.site} and {other.site} share their weights: give the same edits to both, "
                "or neither can be baked."
            )
    if layer.site != layers[0].site:
        chosen.clear()  # written once, with the first of them


def _comparable(intervention: Intervention, heads: slice) -> tuple:
    """An edit as plain values, which `==` compares; of a mean only that it is one."""
    fields = {} if isinstance(intervention.edit, Mean) else vars(intervention.edit)
    plain = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in fields.items()}
    return type(intervention.edit), plain, heads


def _bake_head(baked: Model, layer: AttentionLayer, intervention: Intervention, head: int, place: int) -> None:
    projection, weight = _projection(baked, layer)
    columns = slice(head * layer.value_dim, (head + 1) * layer.value_dim)
    if isinstance(intervention.edit, Scale):
        factor = intervention.edit.factor
        weight[:, columns] *= (
            float(factor) if not isinstance(factor, Tensor) or factor.numel() == 1 else float(factor[place])
        )
        return
    if isinstance(intervention.edit, Coordinate):
        column = columns.start + intervention.edit.index
        _shift(projection, weight[:, column] * intervention.edit.amount, intervention)
        weight[:, column] *= intervention.edit.factor
        return
    assert isinstance(intervention.edit, Mean) and intervention.edit.mean is not None
    mean = intervention.edit.mean.reshape(-1, layer.value_dim)[place].to(weight)
    _shift(projection, weight[:, columns] @ mean, intervention)
    weight[:, columns] = 0.0


def _projection(model: Model, layer: AttentionLayer) -> tuple[nn.Module, Tensor]:
    """The output projection and its weight as [output, head · dim], a view that writes through."""
    if layer.out_projection is None:
        raise InterventionError(
            f"{layer.site}: no output projection was found, so its heads cannot be written into weights."
        )
    projection = model.module.get_submodule(layer.out_projection)
    weight = getattr(projection, "weight", None)
    if any(True for _ in projection.children()):
        raise InterventionError(
            f"{layer.site}: its output projection is made of several modules (an adapter, as LoRA): merge them into "
            "the weights first."
        )
    if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.device.type == "meta":
        raise InterventionError(f"{layer.site}: its output projection is quantised or offloaded.")
    return projection, (weight.T if type(projection).__name__ == "Conv1D" else weight).detach()


def _shift(projection: nn.Module, amount: Tensor, intervention: Intervention) -> None:
    if not bool((amount != 0).any()):
        return
    bias = getattr(projection, "bias", None)
    if not isinstance(bias, Tensor):
        raise InterventionError(
            f"{intervention!r} needs a bias to write to, and {type(projection).__name__} here has none."
        )
    bias.detach().add_(amount.to(bias))


def _bake_coordinate(
    baked: Model, model: Model, layer: AttentionLayer, stage: str, intervention: Intervention, head: int, chosen: list
) -> None:
    assert isinstance(intervention.edit, Coordinate)
    n_sharing = layer.n_heads // layer.n_groups if stage in ("key", "value") else 1
    group = head // n_sharing
    if n_sharing > 1:
        members = range(group * n_sharing, (group + 1) * n_sharing)
        covered = all(
            any(
                heads.start <= member < heads.stop and vars(other.edit) == vars(intervention.edit)
                for other, heads in chosen
            )
            for member in members
        )
        if not covered:
            raise InterventionError(
                f"{intervention!r}: heads {members.start} to {members.stop - 1} of {layer.site} share their {stage}s, "
                "so the same edit must be given for each of them."
            )
        if head != members.start:
            return  # written once for the group
    name, row, ratio = _source_row(model, layer, stage, group if n_sharing > 1 else head, intervention)
    projection = baked.module.get_submodule(name)
    is_transposed = type(projection).__name__ == "Conv1D"
    whole: Any = projection.weight
    weight: Tensor = (whole.T if is_transposed else whole).detach()
    bias = getattr(projection, "bias", None)
    amount = float(intervention.edit.amount) / ratio
    if not isinstance(bias, Tensor) and amount != 0:
        raise InterventionError(f"{intervention!r} needs a bias to write to, and {name} has none.")
    weight[row] *= intervention.edit.factor
    if isinstance(bias, Tensor):
        bias.detach()[row] = bias.detach()[row] * intervention.edit.factor + amount


def _source_row(
    model: Model, layer: AttentionLayer, stage: str, head: int, intervention: Intervention
) -> tuple[str, int, float]:
    """Which output of which projection is this coordinate: found by running the model and comparing the numbers."""
    assert isinstance(intervention.edit, Coordinate)
    outputs: dict[str, Tensor] = {}
    inside = model.module.get_submodule(layer.module)
    hooks = [
        part.register_forward_hook(lambda _, __, out, name=f"{layer.module}.{name}": outputs.__setitem__(name, out))
        for name, part in inside.named_modules()
        if isinstance(getattr(part, "weight", None), Tensor) and part.weight.ndim == 2  # type: ignore[union-attr]
    ]
    try:
        with model.session(grad=True) as session:
            model.module(**_probe_inputs(model))
    finally:
        for hook in hooks:
            hook.remove()
    vectors = getattr(session.captured[layer.site], stage)[:, head].detach()  # [batch, token, dim]
    wanted = vectors[..., intervention.edit.index].reshape(-1).double()
    for name, out in outputs.items():
        columns = out.detach().reshape(-1, out.shape[-1]).double()
        if columns.shape[0] != wanted.shape[0]:
            continue
        for ratio in (1.0, layer.head_dim**-0.5, layer.head_dim**-0.25):
            near = (columns * ratio - wanted[:, None]).abs().amax(0) <= 1e-6 * max(1.0, float(wanted.abs().max()))
            if int(near.sum()) == 1:
                return name, int(near.nonzero()[0, 0]), ratio
    raise InterventionError(
        f"{intervention!r}: the {stage} of {layer.site} does not come straight from a projection (rotary positions "
        "or a norm lie between), so weights cannot express this edit."
    )


def _probe_inputs(model: Model) -> dict[str, Tensor]:
    inputs = probe_inputs(model.module)
    if inputs is None:
        raise InterventionError(f"{model.name}: no inputs could be made up to try the baked model on.")
    return {name: model.to_device(value) for name, value in inputs.items()}


def _check_equal(model: Model, edits: Sequence[Intervention], baked: Model) -> None:
    """Run both: nothing is written that does not behave as it was asked to."""
    inputs = _probe_inputs(model)
    with model.session(edits):
        expected = model.module(**inputs)
    with baked.session():
        outputs = baked.module(**inputs)
    for name, value in expected.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            largest = max(1.0, float(value.abs().max()))
            difference = float((value - outputs[name]).abs().max())
            if not difference <= TOLERANCE * largest:  # NaN too
                raise CaptureError(f"the baked model's {name} differs from the edited run's: nothing was written.")
