"""Heads taken out of a model: their parts of every projection are removed, and its outputs stay those without them."""

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import PreTrainedModel

from headscope.arguments import as_path
from headscope.errors import CaptureError, HeadscopeError, InterventionError, UnknownHeadError
from headscope.files import new_folder, refuse_foreign
from headscope.interventions import Intervention, gate, silence
from headscope.models.baking import save_model
from headscope.models.capture.passes import training_mode
from headscope.models.capture.verification_inputs import load_inputs
from headscope.models.head_rows import HeadRowFinder, HeadRows
from headscope.models.layout import AttentionLayer
from headscope.models.model import Model
from headscope.models.slim_layers import cut_heads, slim_class, slim_plan_of
from headscope.models.slim_plan import Cut, SlimLayer, SlimPlan
from headscope.sites import Head, Kind

# How far a slim model may be from the one whose heads are switched off, as a share of its largest output.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
_HALF_TOLERANCE = 3e-2
# Attributes of attention modules that their code reads, by what they count.
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head")
_GROUPS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
_GROUP_SIZE = ("num_key_value_groups", "n_rep")
_QUERY_WIDTH = ("all_head_size", "inner_dim", "split_size", "embed_dim", "q_dim")
_KEY_WIDTH = ("kv_dim",)


def slim(model: Model, heads: Iterable[Head], folder: str | Path) -> Path:
    """Write the model with these heads alone into a folder that `headscope.load` opens, like any other.

    The other heads are removed from the projections. The folder holds safetensors, the original's configuration and
    `headscope_slim.json`. Where all layers keep the same number of heads and the configuration can say so, plain
    Transformers loads it too; otherwise that refuses it, since its weights have other sizes.
    The slim model is run against this one with the other heads silenced before the folder appears.
    """
    folder = as_path(folder, "the folder of a slim model")
    refuse_foreign(folder, "a model", is_replaced=True)
    module = slim_module(model, heads)
    with new_folder(folder) as partial:
        save_model(module, model.processor, partial)
    return folder


def slim_module(model: Model, heads: Iterable[Head]) -> PreTrainedModel:
    """A copy of the model's network with these heads alone, compared with the original in which the others are silent.

    An error where it cannot be made exactly.
    """
    _check_class(model)
    survivors = _survivors(model, heads)
    with training_mode(model.module, False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of weights without elements, and of a probe that fails: the error says it
        plan = _plan(model, survivors)
        module: Any = copy.deepcopy(model.module)
        try:
            cut_heads(module, plan)
            module.__class__ = slim_class(type(module), plan)
            module = _plain(model, module, plan, survivors) or module
            _check_equal(model, survivors, module)
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            if isinstance(error, HeadscopeError):
                raise
            line = str(error).partition("\n")[0]
            raise InterventionError(
                f"{model.name} cannot be made slim: its attention does not run with fewer heads "
                f"({type(error).__name__}: {line}). {_INSTEAD}"
            ) from error
    return module


_INSTEAD = "Write it with hs.bake instead: equal outputs, without the heads, in weights of the same size."


def _check_class(model: Model) -> None:
    if not isinstance(model.module, PreTrainedModel):
        raise InterventionError(f"only Hugging Face models can be slim, this is a {type(model.module).__name__}.")
    if slim_plan_of(model.module) is not None:
        raise InterventionError(f"{model.name} is slim already: slim the original, with the heads that are to stay.")
    if getattr(transformers, type(model.module).__name__, None) is not type(model.module):
        raise InterventionError(
            f"{type(model.module).__name__} is no class of Transformers, so a slim folder could not be loaded. "
            f"{_INSTEAD}"
        )


def _survivors(model: Model, heads: Iterable[Head]) -> list[tuple[int, ...]]:
    """The indices of the heads that stay, for each layer of the layout."""
    chosen = set(heads)
    unknown = chosen - set(model.heads)
    if unknown:
        raise UnknownHeadError(f"{model.name} has no head {min(unknown)}.")
    if not chosen:
        raise InterventionError("no head is left: a model without attention cannot be opened. Keep at least one head.")
    layers = model.layout.layers
    survivors = [tuple(index for index in range(layer.n_heads) if layer.site.head(index) in chosen) for layer in layers]
    for place, layer in enumerate(layers):
        first = layers.index(model.layout.of_module(layer.module)[0])
        if survivors[first] != survivors[place]:
            raise InterventionError(
                f"{layers[first].site} and {layer.site} share their weights: keep the same heads in both. {_INSTEAD}"
            )
    return survivors


def gate_edits(model: Model, heads: Iterable[Head]) -> list[Intervention]:
    """Edits that switch off all heads but these."""
    edits = []
    for layer, left in zip(model.layout.layers, _survivors(model, heads), strict=True):
        if len(left) < layer.n_heads:
            row = torch.tensor([float(index in left) for index in range(layer.n_heads)])
            edits.append(gate(layer.site, row) if left else silence(layer.site))
    return edits


# What to cut


def _plan(model: Model, survivors: Sequence[tuple[int, ...]]) -> SlimPlan:
    layers = model.layout.layers
    finder = HeadRowFinder(model)
    done: set[str] = set()
    planned = []
    for layer, left in zip(layers, survivors, strict=True):
        is_whole = len(left) == layer.n_heads and not _loses_bias(model, layer, survivors)
        if is_whole or layer.module in done:
            planned.append(SlimLayer(*_address(layer), layer.module, layer.n_heads, left))
            continue
        done.add(layer.module)
        planned.append(_plan_layer(model, finder, layer, left, survivors))
    return SlimPlan(model.config.model_type, tuple(planned))


def _plan_layer(
    model: Model,
    finder: HeadRowFinder,
    layer: AttentionLayer,
    left: tuple[int, ...],
    survivors: Sequence[tuple[int, ...]],
) -> SlimLayer:
    _check_layer(layer)
    assert layer.out_projection is not None
    try:
        rows = finder.rows(layer)
    except InterventionError as error:
        raise InterventionError(f"{error} {_INSTEAD}") from error
    groups, n_each = _groups_left(layer, left)
    cuts = _projection_cuts(model, rows, left, groups) + _output_cuts(model, layer, left)
    other = dict(rows.other)
    bias_of = None
    loses_bias = _loses_bias(model, layer, survivors)
    if loses_bias and layer.site.kind == "self" and left:
        bias_of = _bias_table_of(model, layer)
        if bias_of is not None:
            other[f"{layer.module}.relative_attention_bias.weight"] = 1
    cuts += [Cut(name, axis, layer.n_heads, _ranges(left)) for name, axis in other.items()]
    is_inside = layer.out_projection.startswith(f"{layer.module}.")
    return SlimLayer(
        *_address(layer),
        layer.module,
        layer.n_heads,
        left,
        tuple(cuts),
        _sizes(model, layer, len(left), len(groups), n_each),
        _repeats(rows, groups, model),
        bias_of,
        loses_bias,
        layer.out_projection.removeprefix(f"{layer.module}.") if is_inside and not left else "",
        rows.n_outputs if not left else 0,
    )


def _check_layer(layer: AttentionLayer) -> None:
    if layer.way != "routed" or layer.head_modules:
        raise InterventionError(
            f"{layer.site} ({layer.module}) computes attention in code of its own, of which Headscope does not know "
            f"how it reads the number of heads. {_INSTEAD}"
        )
    if layer.out_projection is None:
        raise InterventionError(f"{layer.site}: no output projection was found. {_INSTEAD}")


def _address(layer: AttentionLayer) -> tuple[str, int, Kind]:
    return layer.site.stack, layer.site.layer, layer.site.kind


def _groups_left(layer: AttentionLayer, left: tuple[int, ...]) -> tuple[list[int], int]:
    """The original key-value head of each that the slim layer uses, and how many query heads share each.

    Where the groups have different sizes, a key-value head is used several times by equal groups.
    """
    size = layer.n_heads // layer.n_groups
    of_heads = [head // size for head in left]
    counts = [of_heads.count(group) for group in dict.fromkeys(of_heads)]
    n_each = math.gcd(*counts) if counts else 1
    return of_heads[::n_each], n_each


def _projection_cuts(model: Model, rows: HeadRows, left: tuple[int, ...], groups: list[int]) -> list[Cut]:
    stays = {("head", head) for head in left} | {("group", group) for group in groups} | ({None} if left else set())
    cuts = []
    for name, owners in rows.rows.items():
        ranges = _ranges([place for place, owner in enumerate(owners) if owner in stays])
        projection: Any = model.module.get_submodule(name)
        cuts.append(Cut(f"{name}.weight", int(type(projection).__name__ == "Conv1D"), len(owners), ranges))
        if projection.bias is not None:
            cuts.append(Cut(f"{name}.bias", 0, len(owners), ranges))
    return cuts


def _output_cuts(model: Model, layer: AttentionLayer, left: tuple[int, ...]) -> list[Cut]:
    assert layer.out_projection is not None
    projection: Any = model.module.get_submodule(layer.out_projection)
    is_conv = type(projection).__name__ == "Conv1D"
    size = layer.n_heads * layer.value_dim
    if not (is_conv or type(projection) is nn.Linear) or projection.weight.shape[0 if is_conv else 1] != size:
        raise InterventionError(
            f"{layer.site}: its output projection is a {type(projection).__name__}, of which Headscope does not know "
            f"the part of each head. {_INSTEAD}"
        )
    columns = [head * layer.value_dim + place for head in left for place in range(layer.value_dim)]
    return [Cut(f"{layer.out_projection}.weight", 0 if is_conv else 1, size, _ranges(columns))]


def _sizes(model: Model, layer: AttentionLayer, n_heads: int, n_groups: int, n_each: int) -> dict[str, int]:
    """The attributes of the attention module that say how many heads there are, with their new numbers."""
    attributes = vars(model.module.get_submodule(layer.module))
    size = layer.n_heads // layer.n_groups
    before_and_after = [
        (_HEADS, layer.n_heads, n_heads),
        (_GROUPS, layer.n_groups, n_groups),
        (_GROUP_SIZE, size, n_each),
        (_QUERY_WIDTH, layer.n_heads * layer.head_dim, n_heads * layer.head_dim),
        (_KEY_WIDTH, layer.n_groups * layer.head_dim, n_groups * layer.head_dim),
    ]
    return {
        name: after
        for names, before, after in before_and_after
        for name in names
        if type(attributes.get(name)) is int and attributes[name] == before
    }


def _repeats(rows: HeadRows, groups: list[int], model: Model) -> dict[str, tuple[int, ...]]:
    """How the stored key-value heads are repeated; empty where each is used once."""
    stored = list(dict.fromkeys(groups))
    if len(stored) == len(groups):
        return {}
    names = dict.fromkeys([*rows.projections["key"], *rows.projections["value"]])
    for name in names:
        stages = [stage for stage, sources in rows.projections.items() if name in sources]
        if len(stages) > 1 or type(model.module.get_submodule(name)) is not nn.Linear:
            raise InterventionError(
                f"{name} gives {' and '.join(stages)} together, so key-value heads cannot be shared unevenly: keep as "
                f"many query heads of every group. {_INSTEAD}"
            )
    return {name: tuple(stored.index(group) for group in groups) for name in names}


def _ranges(places: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Consecutive numbers as ranges [start, stop).

    >>> _ranges([0, 1, 2, 6, 7])
    ((0, 3), (6, 8))
    """
    ranges: list[tuple[int, int]] = []
    for place in places:
        if ranges and ranges[-1][1] == place:
            ranges[-1] = (ranges[-1][0], place + 1)
        else:
            ranges.append((place, place + 1))
    return tuple(ranges)


def _loses_bias(model: Model, layer: AttentionLayer, survivors: Sequence[tuple[int, ...]]) -> bool:
    """Whether the layer is handed a bias of each head by another layer (T5) that keeps other heads."""
    if not hasattr(model.module.get_submodule(layer.module), "has_relative_attention_bias"):
        return False
    peers = [
        left
        for other, left in zip(model.layout.layers, survivors, strict=True)
        if (other.site.stack, other.site.kind) == (layer.site.stack, layer.site.kind)
    ]
    return len(set(peers)) > 1


def _bias_table_of(model: Model, layer: AttentionLayer) -> str | None:
    """The module whose table of position biases the layer uses; None where it has one of its own."""
    if hasattr(model.module.get_submodule(layer.module), "relative_attention_bias"):
        return None
    for other in model.layout.layers:
        is_peer = (other.site.stack, other.site.kind) == (layer.site.stack, layer.site.kind)
        if is_peer and hasattr(model.module.get_submodule(other.module), "relative_attention_bias"):
            return other.module
    return None


# The configuration, and the comparison


def _plain(model: Model, module: Any, plan: SlimPlan, survivors: Sequence[tuple[int, ...]]) -> Any:
    """The same network made from a configuration alone; None where the configuration cannot say it."""
    layers = model.layout.layers
    used = {len(_groups_left(layer, left)[0]) for layer, left in zip(layers, survivors, strict=True)}
    n_left = {len(left) for left in survivors}
    before = {(layer.n_heads, layer.n_groups, layer.head_dim, layer.value_dim) for layer in layers}
    if len(used) > 1 or len(n_left) > 1 or len(before) > 1 or any(layer.repeats for layer in plan.layers):
        return None
    n_heads, n_groups, head_dim, _ = next(iter(before))
    config = copy.deepcopy(module.config)
    names = {*_HEADS, "encoder_attention_heads", "decoder_attention_heads", "num_decoder_heads", "num_key_value_heads"}
    changed = {name: getattr(config, name) for name in names if isinstance(getattr(config, name, None), int)}
    if any(value not in (n_heads, n_groups) for value in changed.values()):
        return None
    for name in changed:
        setattr(config, name, next(iter(used)) if name == "num_key_value_heads" else next(iter(n_left)))
    config.head_dim = head_dim
    try:
        plain = type(model.module)(config)
    except (ValueError, RuntimeError, ZeroDivisionError, TypeError):
        return None
    weights = module.state_dict()
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    if {name: tensor.shape for name, tensor in plain.state_dict().items()} != shapes:
        return None
    plain.load_state_dict(weights)
    plain.to(model.device, model.dtype).eval()
    if module.can_generate():
        plain.generation_config = copy.deepcopy(module.generation_config)
    plain.__class__ = slim_class(type(plain), SlimPlan(plan.model_type, plan.layers, is_plain=True))
    return plain


def _check_equal(model: Model, survivors: Sequence[tuple[int, ...]], module: nn.Module) -> None:
    """Run both, with padding where the model takes it: no slim model is given that behaves otherwise."""
    chosen = [
        layer.site.head(index) for layer, left in zip(model.layout.layers, survivors, strict=True) for index in left
    ]
    edits = gate_edits(model, chosen)
    slim_model = Model(module, model.processor, name=f"{model.name}, slim", verify=False)
    for trial in load_inputs(model.module):
        inputs = trial.to(model.device, model.dtype).inputs
        with model.session(edits):
            expected = model.module(**inputs)
        with slim_model.session():
            outputs = slim_model.module(**inputs)
        for name, value in expected.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                largest = max(1.0, float(value.abs().max()))
                difference = float((value - outputs[name]).abs().max())
                if not difference <= TOLERANCE.get(model.dtype, _HALF_TOLERANCE) * largest:
                    raise CaptureError(
                        f"{model.name} cannot be made slim: its {name} would differ by {difference:.2g} from the "
                        f"model without these heads. {_INSTEAD}"
                    )
