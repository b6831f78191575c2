"""Inputs that bring out what can go wrong in a capture: padding, windows, cached decoding, images of two sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from headscope.models.capture.probe_inputs import config_field, forward_arguments, probe_inputs

SHORT, LONG = 7, 12
WINDOW_LIMIT = 64
N_STEPS = 2


@dataclass(frozen=True, eq=False)
class VerificationInput:
    """One input to compare on: a batch, how many of its last tokens are decoded one by one, and what is no padding."""

    name: str
    inputs: Mapping[str, Any]
    n_steps: int = 0
    real: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def target_name(self) -> str:
        """The tokens that decoding continues."""
        return "decoder_input_ids" if "decoder_input_ids" in self.inputs else "input_ids"

    def to(self, device: torch.device, dtype: torch.dtype) -> "VerificationInput":
        """The same input where a model is, in its precision."""

        def moved(tensors: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: tensor.to(device, dtype if tensor.is_floating_point() else None)
                if isinstance(tensor, Tensor)
                else tensor
                for name, tensor in tensors.items()
            }

        return replace(self, inputs=moved(self.inputs), real=moved(self.real))

    def prefill(self) -> dict[str, Any]:
        """What the model reads before the first step; everything, where nothing is decoded."""
        if not self.n_steps:
            return dict(self.inputs)
        length = self.inputs[self.target_name].shape[1] - self.n_steps
        return dict(self.inputs) | self._target_until(length) | {"use_cache": True}

    def step(self, number: int, outputs: Any) -> dict[str, Any]:
        """What the model reads at a decoding step, given what it gave before."""
        length = self.inputs[self.target_name].shape[1]
        end = length - self.n_steps + number + 1
        inputs = self._target_until(end) | {"past_key_values": outputs.past_key_values, "use_cache": True}
        inputs[self.target_name] = inputs[self.target_name][:, -1:]
        if self.target_name == "decoder_input_ids":
            inputs["encoder_outputs"] = (outputs.encoder_last_hidden_state,)
            if "attention_mask" in self.inputs:
                inputs["attention_mask"] = self.inputs["attention_mask"]
        return inputs

    def _target_until(self, end: int) -> dict[str, Any]:
        mask_name = "decoder_attention_mask" if self.target_name == "decoder_input_ids" else "attention_mask"
        names = [name for name in (self.target_name, mask_name, "token_type_ids") if name in self.inputs]
        if self.target_name == "decoder_input_ids":
            names = [name for name in names if name.startswith("decoder_")]
        return {name: self.inputs[name][:, :end] for name in names}


def load_inputs(module: nn.Module) -> list[VerificationInput]:
    """What to compare on at load: the first of these that the model can run, without a cache, as a pass runs it."""
    base = probe_inputs(module)
    if base is None:
        return []
    padded = _padded(module, base)
    cases = [*([padded] if padded else []), VerificationInput("one input", base)]
    if not takes(module, "use_cache"):
        return cases
    return [replace(case, inputs=dict(case.inputs) | {"use_cache": False}) for case in cases]


def whole_inputs(module: nn.Module) -> list[VerificationInput]:
    """All that a whole verification compares on; what a model cannot run by itself is left out."""
    base = probe_inputs(module)
    if base is None:
        return []
    cases = [VerificationInput("one input", base)]
    padded = _padded(module, base)
    if padded is not None:
        cases.insert(0, padded)
        if decodes(module):
            cases.append(replace(padded, name=f"{N_STEPS} cached decoding steps", n_steps=N_STEPS))
    return cases + _images(module, base)


def decoding_inputs(module: nn.Module) -> list[VerificationInput]:
    """Cached decoding steps alone."""
    return [case for case in whole_inputs(module) if case.n_steps]


def decodes(module: nn.Module) -> bool:
    """Whether a model generates, and takes a cache."""
    can_generate = getattr(module, "can_generate", None)
    return can_generate is not None and bool(can_generate()) and takes(module, "use_cache")


def takes(module: nn.Module, name: str) -> bool:
    """Whether a model's forward has an argument of this name."""
    return name in forward_arguments(module)


def _padded(module: nn.Module, base: dict[str, Tensor]) -> VerificationInput | None:
    """Two texts of different lengths in one batch: padded on the left where a model writes on, else on the right."""
    if set(base) - {"input_ids", "decoder_input_ids", "global_attention_mask"} or not takes(module, "attention_mask"):
        return None
    ids = base["input_ids"]
    long = min(_long_length(module), _most_positions(module, ids.shape[1]))
    short = min(SHORT, long - 1)
    if short < 1:
        return None
    is_decoder = "decoder_input_ids" not in base
    on_left = is_decoder and decodes(module)
    values = ids[0].repeat(long // ids.shape[1] + 1)[:long]
    batch = torch.stack([values, values.roll(1)])
    mask = torch.ones_like(batch)
    padding = slice(0, long - short) if on_left else slice(short, long)
    mask[1, padding] = 0
    batch[1, padding] = _padding_id(module)
    inputs: dict[str, Tensor] = {"input_ids": batch, "attention_mask": mask}
    is_real = mask.bool()
    real = {"main": is_real, "encoder": is_real, "text": is_real}
    if "global_attention_mask" in base:
        inputs["global_attention_mask"] = torch.zeros_like(batch).index_fill(1, torch.tensor(0), 1)
    if "decoder_input_ids" in base:
        target = base["decoder_input_ids"]
        inputs["decoder_input_ids"] = torch.cat([target, target.roll(1, dims=1)])
        del real["main"]
    return VerificationInput(f"a padded batch of {long} and {short} tokens", inputs, real=real)


def _long_length(module: nn.Module) -> int:
    """Long enough to leave a short window."""
    window = _smallest_window(getattr(module, "config", None))
    return LONG if window is None or window + 4 <= LONG or window >= WINDOW_LIMIT else window + 4


def _smallest_window(config: Any) -> int | None:
    sections = [config, *(getattr(config, name, None) for name in ("text_config", "encoder", "decoder"))]
    windows: list[int] = []
    for section in sections:
        for name in ("sliding_window", "attention_window", "local_attention", "window_size", "attention_window_size"):
            sizes = config_field(section, name)
            sizes = sizes if isinstance(sizes, list | tuple) else [sizes]
            windows += [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0]
    return min(windows, default=None)


def _most_positions(module: nn.Module, known: int) -> int:
    """How many tokens a model has positions for, so far as its configuration tells."""
    config = getattr(module, "config", None)
    for section in (config, getattr(config, "text_config", None), getattr(config, "encoder", None)):
        for name in ("max_position_embeddings", "n_positions", "max_source_positions"):
            positions = config_field(section, name)
            if isinstance(positions, int) and positions > 0:
                # RoBERTa and its kin number positions from the padding id on.
                return max(known, positions - 1 - _padding_id(module))
    return 10**6


def _padding_id(module: nn.Module) -> int:
    config = getattr(module, "config", None)
    for section in (config, getattr(config, "text_config", None)):
        padding = getattr(section, "pad_token_id", None)
        size = getattr(section, "vocab_size", None)
        if isinstance(padding, int) and padding >= 0 and (not isinstance(size, int) or padding < size):
            return padding
    return 0


def _images(module: nn.Module, base: dict[str, Tensor]) -> list[VerificationInput]:
    """Two images at once, and a wider one where the model takes other sizes."""
    if set(base) != {"pixel_values"} or base["pixel_values"].ndim != 4:
        return []
    pixels = base["pixel_values"]
    cases = [VerificationInput("two images", {"pixel_values": torch.cat([pixels, pixels.flip(-1)])})]
    if takes(module, "interpolate_pos_encoding"):
        wider = torch.cat([pixels, pixels[..., : pixels.shape[-1] // 2]], dim=-1)
        cases.append(VerificationInput("a wider image", {"pixel_values": wider, "interpolate_pos_encoding": True}))
    return cases
