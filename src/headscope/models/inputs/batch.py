"""One input ready for the model, several of them as one batch, and model inputs that a person made themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headscope.errors import InputError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.display_tokens import tokens_of_ids
from headscope.models.inputs.media import frames, seen_patches, sound_seen
from headscope.models.inputs.placed_tokens import placed_image
from headscope.models.inputs.reading_warnings import warn_reader
from headscope.traces.inputs import Inputs
from headscope.traces.media import Seen
from headscope.traces.tokens import Tokens

_MASK_OF = {"text": "attention_mask", "target": "decoder_attention_mask"}
_RANKS = {"pixel_values": 3, "input_features": 2, "input_values": 1, "inputs_embeds": 2, "decoder_inputs_embeds": 2}


@dataclass(frozen=True, eq=False)
class Batch:
    """Inputs for one forward pass: tensors with a batch axis, and for each stack which positions are real.

    `real[stack]` is boolean [batch, position]; its width is 0 where the number of positions is known only to the model.
    """

    model_inputs: dict[str, Any]
    real: dict[str, Tensor]
    examples: list[Inputs] = field(default_factory=list)

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> "Batch":
        """The same batch elsewhere; only floating-point inputs take the dtype."""
        moved = {}
        for name, value in self.model_inputs.items():
            is_float = isinstance(value, Tensor) and value.is_floating_point()
            moved[name] = value.to(device, dtype if is_float else None) if isinstance(value, Tensor) else value
        return Batch(moved, {stack: real.to(device) for stack, real in self.real.items()}, self.examples)

    @property
    def is_padded(self) -> bool:
        """Whether any position is not real."""
        return not all(bool(real.all()) for real in self.real.values())


def collate(examples: Sequence[Inputs], module: nn.Module, processor: Any = None) -> Batch:
    """Several inputs as one batch, padded on the right: real positions then read exactly as they do alone."""
    if not examples:
        raise InputError("there is nothing to run: the list of inputs is empty.")
    intake = Intake.of(processor, module)
    masks = set(_MASK_OF.values()) if _text_name(examples[0], intake) else {"decoder_attention_mask"}
    names = [name for name in examples[0].model_inputs if name not in masks]
    if any(set(names) != set(example.model_inputs) - masks for example in examples):
        raise InputError("inputs of different kinds cannot share a batch: run them one at a time.")
    inputs: dict[str, Any] = {name: _stack(name, examples, intake) for name in names}
    real = {}
    for stack in examples[0].tokens:
        role = "target" if stack == "decoder" else "text"
        name = "decoder_input_ids" if role == "target" else _text_name(examples[0], intake)
        if examples[0].tokens[stack].kind == "patches" and "spatial_shapes" in inputs:
            real[stack] = inputs["pixel_attention_mask"].bool()
            continue
        if examples[0].tokens[stack].kind != "text" or name not in inputs:
            real[stack] = torch.ones(len(examples), len(examples[0].tokens[stack]), dtype=torch.bool)
            continue
        real[stack] = _real(examples, name, _MASK_OF[role])
        parameter = intake.arguments.get(_MASK_OF[role])
        is_needed = parameter is not None and parameter.default is parameter.empty
        if not bool(real[stack].all()) or is_needed:
            if parameter is None:
                raise InputError(
                    f"texts of different lengths cannot share a batch: {intake.name} takes no {_MASK_OF[role]!r}. "
                    "Run them one at a time."
                )
            inputs[_MASK_OF[role]] = real[stack].long()
    return Batch(inputs, real, list(examples))


def batchable(examples: Sequence[Inputs], module: nn.Module, processor: Any = None) -> list[list[int]]:
    """Which examples may share a batch without changing a number: groups of their places in the list."""
    intake = Intake.of(processor, module)
    can_pad = "attention_mask" in intake.arguments
    if intake.name.endswith("ForSequenceClassification") and intake.is_causal:
        can_pad = (
            can_pad and getattr(intake.config, "pad_token_id", None) is not None
        )  # it looks for the last token by it
    groups: dict[tuple, list[int]] = {}
    for place, example in enumerate(examples):
        shapes = []
        for name, value in sorted(example.model_inputs.items()):
            is_mask = name in _MASK_OF.values() and _text_name(example, intake) is not None
            if not is_mask:
                free = can_pad and value.ndim == 1 and name != "input_values"
                shapes.append((name, "any" if free else tuple(value.shape)))
        groups.setdefault(tuple(shapes), []).append(place)
    return list(groups.values())


def _text_name(example: Inputs, intake: Intake) -> str | None:
    """The model input that holds the source's token ids, if the source is text."""
    name = intake.name_for("text")
    value = example.model_inputs.get(name)
    return name if value is not None and value.ndim == 1 and not value.is_floating_point() else None


def flat_names(intake: Intake, tensors: Mapping[str, Tensor]) -> set[str]:
    """The inputs of a text with images that have no batch axis: patches or tiles of all images lie in one row."""
    if "image_grid_thw" in tensors:
        return {"pixel_values", "image_grid_thw"}
    pixels = tensors.get("pixel_values")
    is_in_text = "input_ids" in tensors and bool(intake.image_ids)
    has_axis = {"image_sizes", "pixel_attention_mask", "aspect_ratio_ids"} & set(tensors)
    return {"pixel_values"} if is_in_text and not has_axis and pixels is not None and pixels.ndim == 4 else set()


def _stack(name: str, examples: Sequence[Inputs], intake: Intake) -> Any:
    values = [example.model_inputs[name] for example in examples]
    if values[0].ndim == 0:
        if any(value != values[0] for value in values):
            raise InputError(f"{name!r} differs between inputs of one batch: run them one at a time.")
        return values[0].item()
    if name in flat_names(intake, examples[0].model_inputs):
        return torch.cat(values)
    if len({value.shape for value in values}) == 1:
        return torch.stack(values)
    if values[0].ndim != 1 or values[0].is_floating_point():
        shapes = ", ".join(str(list(value.shape)) for value in values[:4])
        raise InputError(f"{name!r} has different shapes in one batch ({shapes}): run these inputs one at a time.")
    fill = intake.pad_id if name in (intake.name_for("text"), "input_ids", "decoder_input_ids") else 0
    return nn.utils.rnn.pad_sequence(values, batch_first=True, padding_value=fill)


def _real(examples: Sequence[Inputs], name: str, mask: str) -> Tensor:
    lengths = [len(example.model_inputs[name]) for example in examples]
    real = torch.zeros(len(examples), max(lengths), dtype=torch.bool)
    for row, (example, length) in enumerate(zip(examples, lengths, strict=True)):
        own = example.model_inputs.get(mask)
        real[row, :length] = True if own is None else own.bool()
    return real


def ready_inputs(
    processor: Any, module: nn.Module, inputs: Mapping[str, Any], *, stacks: Sequence[str] | None = None
) -> Batch:
    """Model inputs that a person made: checked, given a batch axis where it is missing, and otherwise left as they are.

    Padding on either side is read from `attention_mask`. The examples are cut free of padding on the right; one padded
    on the left keeps its mask, since models with absolute positions read it differently without.
    """
    intake = Intake.of(processor, module, stacks)
    if not inputs:
        raise InputError(f"there is nothing to run: {intake.name} takes {intake.takes}.")
    arguments = intake.arguments
    unknown = [name for name in inputs if arguments and name not in arguments]
    if unknown:
        raise InputError(f"{intake.name} takes no {unknown[0]!r}: its inputs are {', '.join(arguments)}.")
    tensors = {name: _with_batch_axis(name, value, intake) for name, value in inputs.items() if value is not None}
    if not any(value.ndim for value in tensors.values()):
        raise InputError(f"there is nothing to run: give {intake.main!r}.")
    flat = _flat_of_rows(tensors, intake)
    _check_sizes(tensors, flat)
    _check_pixels(tensors, intake)
    roles = _roles(tensors, intake)
    for name, role in roles.items():
        if role in _MASK_OF and not tensors[name].is_floating_point():
            check_ids(intake, tensors[name], role, name)
    n = next(len(value) for name, value in tensors.items() if value.ndim and name not in flat)
    real: dict[str, Tensor] = {}
    for name, role in roles.items():
        mask = tensors.get(_MASK_OF.get(role, ""))
        if role == "image" and "pixel_attention_mask" in tensors and "spatial_shapes" in tensors:
            real[intake.stack(role)] = tensors["pixel_attention_mask"].bool()
        if role in _MASK_OF and tensors[name].ndim > 1:
            whole = torch.ones(tensors[name].shape[:2], dtype=torch.bool)
            real[intake.stack(role)] = mask.bool() if mask is not None and mask.ndim == 2 else whole
    examples = [_example(intake, tensors, roles, real, row, flat) for row in range(n)]
    for stack, tokens in examples[0].tokens.items():
        real.setdefault(stack, torch.ones(n, len(tokens), dtype=torch.bool))
    batched = {name: value if value.ndim else value.item() for name, value in tensors.items()}
    return Batch(batched, real, examples)


def _with_batch_axis(name: str, value: Any, intake: Intake) -> Tensor:
    """A checked tensor with a batch axis (a plain number or switch stays without)."""
    try:
        tensor = value.detach() if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name!r} is not a tensor, an array or a list of equally long rows of numbers ({error}). "
            "Pad the rows and give an `attention_mask` too, or give a list of texts."
        ) from error
    if tensor.ndim == 0:
        return tensor
    shape = list(tensor.shape)
    if tensor.numel() == 0:
        raise InputError(f"{name!r} is empty: its shape is {shape}.")
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()) and not name.endswith("mask"):
        raise InputError(f"{name!r} has {int((~torch.isfinite(tensor)).sum())} values that are NaN or infinite.")
    if name.endswith("_ids") and (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool):
        raise InputError(f"{name!r} must be whole numbers; these are {tensor.dtype}. Convert them: `{name}.long()`.")
    if name.endswith("_ids"):
        tensor = tensor.long()
    if name in ("pixel_values", "input_features", "input_values", "inputs_embeds", "decoder_inputs_embeds"):
        if not tensor.is_floating_point():
            raise InputError(
                f"{name!r} must be floating-point numbers as the model takes them; these are {tensor.dtype}."
            )
        tensor = tensor.float() if tensor.dtype == torch.float64 else tensor
    rank = _rank(name, tensor, intake)
    if rank is None or tensor.ndim > rank:
        too_many = rank == 1 and tensor.ndim > rank + 1 and name in ("input_ids", "decoder_input_ids", "token_type_ids")
        if too_many:
            raise InputError(f"{name!r} has shape {shape}: it must be [tokens] or [batch, tokens].")
        return tensor
    if tensor.ndim < rank:
        raise InputError(f"{name!r} has shape {shape}: it must have {rank} axes, or {rank + 1} with the batch first.")
    return tensor[None]


def _rank(name: str, tensor: Tensor, intake: Intake) -> int | None:
    """How many axes an input has without the batch, where that is known."""
    if name == "image_grid_thw" or (name == "pixel_values" and "image_grid_thw" in intake.arguments):
        return None
    if name == "pixel_values" and "spatial_shapes" in intake.arguments:
        return 2  # patches of all channels
    if name == "token_type_ids" and hasattr(intake.section("text"), "type_vocab_sizes"):
        return 2  # TAPAS says of each token its row, column, rank …
    if name == "input_values" and hasattr(intake.section("audio"), "time_stride"):
        return 2
    if name.endswith(("_ids", "_mask", "spatial_shapes")) or (name == intake.main and not tensor.is_floating_point()):
        return 1
    return _RANKS.get(name)


def _flat_of_rows(tensors: dict[str, Tensor], intake: Intake) -> set[str]:
    """The inputs that are no rows: of a batch, as many images as texts are one each."""
    flat = flat_names(intake, tensors)
    if "image_grid_thw" in flat or not flat:
        return flat
    is_one_text = len(tensors["input_ids"]) == 1
    return flat if is_one_text and len(tensors["pixel_values"]) > 1 else set()


def _check_sizes(tensors: dict[str, Tensor], flat: set[str]) -> None:
    sizes = {name: len(value) for name, value in tensors.items() if value.ndim and name not in flat}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"the inputs do not agree on the number of examples: {listed}.")
    beside = {
        "attention_mask": "input_ids",
        "token_type_ids": "input_ids",
        "decoder_attention_mask": "decoder_input_ids",
    }
    for name, ids in beside.items():
        if name in tensors and ids in tensors and tensors[name].ndim >= 2:
            own, its = list(tensors[name].shape[:2]), list(tensors[ids].shape)
            if own != its:
                raise InputError(f"{name!r} has shape {own} but {ids!r} has {its}: they must be equal.")
    for name in _MASK_OF.values():
        mask = tensors.get(name)
        if mask is not None and mask.ndim == 2:
            if not bool(((mask == 0) | (mask == 1)).all()):
                raise InputError(f"{name!r} must be 1 for real positions and 0 for padding; it has other values.")
            if not bool(mask.bool().any(dim=1).all()):
                raise InputError(f"{name!r} hides every position of an example: there is nothing left to read.")


def _check_pixels(tensors: dict[str, Tensor], intake: Intake) -> None:
    pixels, config = tensors.get("pixel_values"), intake.section("vision")
    if pixels is not None and "spatial_shapes" in intake.arguments:
        _check_packed(tensors, pixels)
    if pixels is None or pixels.ndim != 4 or "image_grid_thw" in tensors:
        return
    n_channels, size = getattr(config, "num_channels", None), getattr(config, "image_size", None)
    if n_channels is not None and pixels.shape[1] != n_channels:
        raise InputError(
            f"'pixel_values' has shape {list(pixels.shape)}: {intake.name} takes {n_channels} channels, "
            f"[batch, {n_channels}, height, width]."
        )
    is_fixed = "interpolate_pos_encoding" in intake.arguments and not hasattr(config, "window_size")
    is_fixed = is_fixed and isinstance(size, int) and not bool(tensors.get("interpolate_pos_encoding", False))
    if is_fixed and tuple(pixels.shape[2:]) != (size, size):
        raise InputError(
            f"'pixel_values' has shape {list(pixels.shape)}: {intake.name} has positions for {size}×{size} pixels. "
            "Resize the image, or add 'interpolate_pos_encoding': True to `inputs=`."
        )


def _check_packed(tensors: dict[str, Tensor], pixels: Tensor) -> None:
    """Refuse patches [image, patch, values] without their numbers down and across, or fewer than these say."""
    shapes, mask = tensors.get("spatial_shapes"), tensors.get("pixel_attention_mask")
    if shapes is None or mask is None or shapes.shape[-1] != 2:
        raise InputError(
            "patches of images need 'spatial_shapes' (how many there are down and across, [image, 2]) and "
            "'pixel_attention_mask' ([image, patch]: 1 for real ones) beside 'pixel_values' [image, patch, values]."
        )
    if list(mask.shape) != list(pixels.shape[:2]) or not torch.equal(shapes.prod(-1).long(), mask.sum(-1).long()):
        raise InputError(
            f"'pixel_attention_mask' {list(mask.shape)} has {mask.sum(-1).tolist()} real patches of "
            f"{list(pixels.shape[:2])}, where 'spatial_shapes' says {shapes.prod(-1).tolist()}."
        )


def _roles(tensors: dict[str, Tensor], intake: Intake) -> dict[str, str]:
    """Which of the inputs hold positions, and whose."""
    known = {
        "input_ids": "text", "inputs_embeds": "text", "decoder_input_ids": "target", "decoder_inputs_embeds": "target",
        "pixel_values": "image", "input_values": "audio", "input_features": "audio",
    }  # fmt: skip
    roles = {name: known[name] for name in tensors if name in known}
    if not roles and intake.main in tensors and tensors[intake.main].ndim in (2, 3):
        roles[intake.main] = "text"
    return roles


def check_ids(intake: Intake, ids: Tensor, role: str, name: str = "input_ids") -> None:
    """Refuse ids that the model has no embedding for, and more of them than it has positions for."""
    size = intake.vocabulary(role)
    bad = (ids < 0) | (ids >= size) if size is not None else ids < 0
    for number in intake.placeholder_ids:
        bad &= ids != number
    if bool(bad.any()):
        place = [int(k) for k in bad.nonzero()[0]]
        number = int(ids[tuple(place)])
        own = "" if intake.tokenizer is None else " If the ids come from a tokenizer, it is not this model's."
        known = f"the vocabulary has {size} (0 to {size - 1})" if size is not None else "ids count from 0"
        raise InputError(f"{name!r} has the token id {number} at {place}: {known}.{own}")
    limit = intake.limit(role)
    if limit is not None and limit.is_hard and ids.shape[-1] > limit.positions:
        problem = f"{name!r} has {ids.shape[-1]} tokens but {intake.name} has positions for {limit.positions}"
        raise InputError(f"{problem}: cut it before you give it.")
    if note := intake.beyond_training(role, ids.shape[-1]):
        warn_reader(note)


def _example(
    intake: Intake,
    tensors: dict[str, Tensor],
    roles: dict[str, str],
    real: dict[str, Tensor],
    row: int,
    flat: set[str],
) -> Inputs:
    own = {name: value[row] if value.ndim and name not in flat else value for name, value in tensors.items()}
    tokens: dict[str, Tokens] = {}
    text = pair = target = None
    looks: dict[str, Seen | None] = {}
    for name, role in roles.items():
        stack = intake.stack(role)
        if role == "image":
            tokens[stack], looks[stack] = seen_patches(intake, own, name)
        elif role == "audio":
            tokens[stack] = frames(intake, own[name])
            looks[stack] = sound_seen(intake, own[name], tokens[stack]) if len(tokens[stack]) else None
        else:
            keep = real[stack][row]
            tokens[stack], rebuilt_texts = _tokens_of(intake, own, name, keep)
            if role == "target":
                target = rebuilt_texts[0]
            else:
                text, pair = rebuilt_texts
            _drop_padding(own, keep, len(keep), role)
    if intake.image_ids and "input_ids" in own and "pixel_values" in own:
        for role, read in placed_image(intake, tokens[intake.stack("text")], own).items():
            tokens[intake.stack(role)], looks[intake.stack(role)] = read
    seen = {stack: look for stack, look in looks.items() if look is not None}
    return Inputs("ready", own, tokens, text, pair, target, seen)


def _tokens_of(intake: Intake, own: dict[str, Tensor], name: str, keep: Tensor) -> tuple[Tokens, list[str | None]]:
    if own[name].is_floating_point():
        return Tokens.numbered(int(keep.sum())), [None, None]
    types = own.get("token_type_ids") if name == "input_ids" else None
    types = types[:, 0] if types is not None and types.ndim == 2 else types  # TAPAS: question and table first
    segments = types[keep].clamp(0, 1).tolist() if types is not None and intake.tokenizer is not None else None
    return tokens_of_ids(intake.tokenizer, own[name][keep].tolist(), segments)


def _drop_padding(own: dict[str, Tensor], keep: Tensor, length: int, role: str) -> None:
    """Drop padding on the right and a mask that says nothing more, in place."""
    n = int(keep.nonzero()[-1]) + 1
    mask = _MASK_OF[role]
    is_target = role == "target"
    for name, value in own.items():
        belongs = name.startswith("decoder_") == is_target and name not in ("labels", "pixel_values")
        if belongs and value.ndim and value.shape[0] == length and n < length:
            own[name] = value[:n]
    if mask in own and own[mask].ndim == 1 and bool(keep[:n].all()):
        del own[mask]
