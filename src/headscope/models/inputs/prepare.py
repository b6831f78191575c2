"""Whatever a person gives a model (text, pairs, a translation, a chat, images, sound, tensors), made ready to run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from headscope.errors import InputError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.batch import Batch, Inputs, batchable, check_ids, collate, ready_inputs
from headscope.models.inputs.decoder_start import check_decoding, decoder_start, is_whisper
from headscope.models.inputs.display_tokens import tokens_of_ids
from headscope.models.inputs.media import audio_inputs, image_inputs, image_tokens
from headscope.models.inputs.placed_tokens import with_places_of
from headscope.models.inputs.reading_warnings import collected_warnings
from headscope.models.inputs.texts import (
    render_chat,
    source_as_target,
    target_inputs,
    text_after_start,
    text_inputs,
    text_with_image,
)
from headscope.traces.media import Seen
from headscope.traces.tokens import Tokens

__all__ = [
    "Batch", "Inputs", "batchable", "collate", "extend", "image_tokens", "prepare", "ready_inputs",
]  # fmt: skip

# What there is of each token of a text; of those that are written, as of the last.
_BESIDE_TEXT = ("token_type_ids", "mm_token_type_ids", "attention_mask", "cross_attention_mask")
_SOUND_FILES = {".wav", ".wave", ".flac", ".mp3", ".ogg", ".m4a"}


def prepare(
    processor: Any,
    module: nn.Module,
    source: Any = None,
    *,
    pair: Any = None,
    target: Any = None,
    image: Any = None,
    audio: Any = None,
    truncate: bool = False,
    sampling_rate: int | None = None,
    language: str | None = None,
    task: str | None = None,
    stacks: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Inputs | list[Inputs]:
    """Make anything a person gives ready for the model: one `Inputs`, or a list of them for a list.

    A tuple is a sentence pair, or source and target of an encoder-decoder; a list of role-and-content dictionaries is
    a chat. A `Path` is a file; a string is one only where the model takes no text. `inputs` are ready tensors by
    name; with one example in them (a batch axis of one, or none) they give one `Inputs`. `language` and `task` are
    those that a speech model writes in; a `target` for it is preceded by their tokens, with the language that the model
    detects where none is given. `stacks` are the names of the model's stacks, where they are known.
    """
    if inputs is not None:
        check_alone(inputs, source=source, pair=pair, target=target, image=image, audio=audio)
        examples = ready_inputs(processor, module, inputs, stacks=stacks).examples
        return examples[0] if len(examples) == 1 else examples
    intake = Intake.of(processor, module, stacks)
    decoding = {name: value for name, value in (("language", language), ("task", task)) if value is not None}
    check_decoding(intake, decoding)
    options = {"truncate": truncate, "sampling_rate": sampling_rate, "decoding": decoding}
    rows = _rows(source, intake)
    if any(_is_ready(row) for row in (source, *(rows or []))):
        raise InputError(
            "a dictionary of tensors is not something to read: give it as `model.run(inputs={…})`, or make an input of "
            "it with `model.read(inputs={…})`."
        )
    if rows is None:
        return _prepare_example(intake, source, pair=pair, target=target, image=image, audio=audio, **options)
    beside = {"pair": pair, "target": target, "image": image, "audio": audio}
    columns = {name: _column(name, value, len(rows)) for name, value in beside.items()}
    return [
        _prepare_example(intake, row, **{name: column[place] for name, column in columns.items()}, **options)
        for place, row in enumerate(rows)
    ]


def check_alone(inputs: Mapping[str, Any], **sources: Any) -> None:
    """Refuse ready inputs together with something to read: which of the two to run is not ours to choose."""
    if isinstance(inputs, Inputs):
        raise InputError("`inputs=` takes ready tensors by name; the inputs of a trace are given as the source.")
    if not isinstance(inputs, Mapping):
        raise InputError(
            f"`inputs=` takes ready tensors by name, as {{'input_ids': …}}, not {type(inputs).__name__}. Several "
            "examples are the rows of each tensor."
        )
    both = [name for name, source in sources.items() if source is not None]
    if both:
        raise InputError(
            f"`inputs=` holds ready model inputs ({', '.join(inputs)}), and {', '.join(f'`{name}`' for name in both)} "
            "was given too: give either something to read or ready inputs, not both."
        )


def extend(
    inputs: Inputs,
    processor: Any,
    module: nn.Module,
    new_ids: Sequence[int] | Tensor,
    *,
    stacks: Sequence[str] | None = None,
) -> Inputs:
    """The same input with more tokens at its end, as generation adds them: to the text, or to the decoder's side."""
    intake = Intake.of(processor, module, stacks)
    new = torch.as_tensor(new_ids, dtype=torch.long).reshape(-1)
    is_target = "encoder" in inputs.tokens
    role, name = ("target", "decoder_input_ids") if is_target else ("text", intake.name_for("text"))
    old = inputs.model_inputs.get(name, torch.empty(0, dtype=torch.long))
    model_inputs = dict(inputs.model_inputs) | {name: torch.cat([old, new])}
    for other in () if is_target else _BESIDE_TEXT:
        if other in model_inputs:
            last = model_inputs[other][-1:]
            if other == "token_type_ids" and _are_prefix(intake, old, model_inputs[other]):
                last = torch.ones_like(last)
            model_inputs[other] = torch.cat([model_inputs[other], last.expand(len(new), *last.shape[1:])])
    if not is_target:
        model_inputs.pop("position_ids", None)  # of the old length; the model counts them itself
    mask = model_inputs.get("attention_mask") if not is_target else None
    ids = model_inputs[name] if mask is None else model_inputs[name][mask.bool()]
    check_ids(intake, model_inputs[name], role, name)
    tokens, texts = tokens_of_ids(intake.tokenizer, ids.tolist())
    before = inputs.tokens.get(intake.stack(role))
    if intake.image_ids and before is not None:
        tokens = with_places_of(tokens, before)
    text, target = (inputs.text, texts[0]) if is_target else (texts[0], inputs.target)
    named = inputs.tokens | {intake.stack(role): tokens}
    return replace(inputs, model_inputs=model_inputs, tokens=named, text=text, target=target)


def _are_prefix(intake: Intake, ids: Tensor, types: Tensor) -> bool:
    """Whether types of tokens tell a prompt, seen both ways, from what follows it (PaliGemma): images are of no type of
    their own."""
    return not bool(types.any()) and any(bool((ids == number).any()) for number in intake.image_ids)


def _rows(source: Any, intake: Intake) -> list | None:
    """The examples of a batch, or None for a single one."""
    if isinstance(source, np.ndarray | Tensor) and source.ndim == 4 and "image" in intake.kinds:
        return list(source)
    if not isinstance(source, list | tuple) or _is_chat(source):
        return None
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return None
    if not source:
        raise InputError("there is nothing to run: the list is empty.")
    if any(isinstance(number, Number) for number in source):
        return None
    return list(source)


def _column(name: str, value: Any, n: int) -> list:
    """One value for each example; a single image serves them all."""
    if isinstance(value, list):
        if len(value) != n:
            raise InputError(f"there are {n} inputs but {len(value)} in `{name}=`: give one for each.")
        return value
    if value is not None and name in ("pair", "target"):
        raise InputError(f"with a list of inputs, `{name}=` must be a list of {n} texts too.")
    return [value] * n


def _is_ready(source: Any) -> bool:
    return isinstance(source, Mapping) and "role" not in source


def _is_chat(source: Any) -> bool:
    messages = [source] if isinstance(source, Mapping) else source
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, Mapping) and "role" in message for message in messages)
    )


def _prepare_example(intake: Intake, source: Any, **options: Any) -> Inputs:
    """One input, with what was warned of while it was read."""
    with collected_warnings() as messages:
        inputs = _read_example(intake, source, **options)
    return replace(inputs, warnings=tuple(dict.fromkeys(messages))) if messages else inputs


def _read_example(
    intake: Intake,
    source: Any,
    *,
    pair: str | None,
    target: str | None,
    image: Any,
    audio: Any,
    truncate: bool,
    sampling_rate: int | None,
    decoding: dict[str, str],
) -> Inputs:
    if isinstance(source, Inputs):
        return _replay(intake, source, decoding)
    if isinstance(source, tuple) and len(source) == 2:
        source, second = source
        if pair is not None or target is not None:
            raise InputError("the input is already a pair: leave out `pair=` and `target=`.")
        pair, target = (None, second) if intake.is_encoder_decoder else (second, None)
    kind = _kind(source, intake)
    text = str(source) if kind == "text" else None
    if kind == "chat":
        text, image = render_chat(intake, source, image)
    image = source if kind == "image" else image
    audio = source if kind == "audio" else audio
    sources = {"text": text, "image": image, "audio": audio}
    _check_kinds(intake, sources, pair=pair, target=target)

    inputs: dict[str, Tensor] = {}
    tokens: dict[str, Tokens] = {}
    inputs_by_role: dict[str, tuple[dict[str, Tensor], Tokens, Seen | None]] = {}
    if text is not None and image is not None and intake.image_token is not None:
        inputs_by_role = text_with_image(intake, text, image)
    else:
        if text is not None:
            inputs_by_role["text"] = (*text_inputs(intake, text, pair, truncate=truncate, special=kind != "chat"), None)
        if image is not None:
            inputs_by_role["image"] = image_inputs(intake, image)
        if audio is not None:
            inputs_by_role["audio"] = audio_inputs(intake, audio, sampling_rate=sampling_rate, truncate=truncate)
    if target is not None:
        if is_whisper(intake.module):
            start = decoder_start(intake, inputs_by_role["audio"][0], decoding)
            inputs_by_role["target"] = (*text_after_start(intake, start, target, truncate=truncate), None)
        else:
            inputs_by_role["target"] = (*target_inputs(intake, target, truncate=truncate), None)
    elif text is not None and intake.is_encoder_decoder and intake.name.endswith(("Classification", "Answering")):
        inputs_by_role["target"] = (*source_as_target(intake, *inputs_by_role["text"][:2]), None)
    looks: dict[str, Seen] = {}
    for role, (own, positions, seen) in inputs_by_role.items():
        inputs |= own
        tokens[intake.stack(role)] = positions
        looks |= {} if seen is None else {intake.stack(role): seen}
    if sum(part is not None for part in sources.values()) > 1:
        kind = "multimodal"
    elif kind == "text":
        kind = "translation" if intake.is_encoder_decoder else "pair" if pair is not None else "text"
    elif kind is None:
        kind = next(name for name, part in sources.items() if part is not None)
    return Inputs(kind, inputs, tokens, text, pair, target, looks, decoding)


def _kind(source: Any, intake: Intake) -> str | None:
    """What a source is: text, chat, image, audio; None for none."""
    kinds = intake.kinds
    media = [kind for kind in ("image", "audio") if kind in kinds]
    if source is None:
        return None
    if _is_chat(source):
        return "chat"
    if isinstance(source, str) and ("text" in kinds or not media):
        return "text"
    if isinstance(source, str | Path):
        sounds = Path(source).suffix.lower() in _SOUND_FILES
        return (
            media[0]
            if len(media) == 1 and isinstance(source, str)
            else "audio"
            if sounds or media == ["audio"]
            else "image"
        )
    if isinstance(source, Image.Image):
        return "image"
    if isinstance(source, list | tuple) and all(isinstance(number, Number) for number in source):
        source = np.asarray(source)
    if isinstance(source, np.ndarray | Tensor):
        if not media:
            raise InputError(
                f"{intake.name} takes {intake.takes}, not an array of shape {list(source.shape)}: if these are token "
                f"ids, give them as `inputs={{'{intake.main}': …}}`."
            )
        return media[0] if len(media) == 1 else "audio" if source.ndim == 1 else "image"
    raise InputError(
        f"{type(source).__name__} is not something a model can read: {intake.name} takes {intake.takes}. Give a text, "
        "a tuple of two, a list of chat messages, an image, sound, or ready model inputs."
    )


def _check_kinds(intake: Intake, sources: dict[str, Any], *, pair: Any, target: Any) -> None:
    """Refuse what this model cannot take, and say what it can."""
    if all(source is None for source in sources.values()):
        raise InputError(f"there is nothing to run: give {intake.name} {intake.takes}.")
    for kind, source in sources.items():
        if source is not None and kind not in intake.kinds:
            what = {"text": "text", "image": "an image", "audio": "sound"}[kind]
            hint = " The text it writes is given as `target=`." if kind == "text" and intake.is_encoder_decoder else ""
            hint = (
                " If it is a file of text, read it first: `path.read_text()`."
                if isinstance(source, Path) and "text" in intake.kinds
                else hint
            )
            raise InputError(f"{what} was given, but {intake.name} takes {intake.takes}.{hint}")
    if intake.has_two_towers and sum(source is not None for source in sources.values()) < 2:
        other = "image" if "image" in intake.kinds else "audio"
        missing = "text" if sources["text"] is None else other
        raise InputError(
            f"{intake.name} compares text with {other}, and the {missing} is missing: give both, "
            f"`run('a cat', {other}=…)`, or load one of its towers alone."
        )
    for name, text in (("text", sources["text"]), ("pair", pair), ("target", target)):
        _check_text(intake, name, text)
    if target is not None and not intake.is_encoder_decoder:
        raise InputError(
            f"a target was given, but {intake.name} has no decoder beside an encoder: leave it out, or give a second "
            "text as `pair=` where the model reads pairs."
        )
    if pair is None:
        return
    if intake.is_encoder_decoder:
        raise InputError(
            f"a pair was given, but {intake.name} is an encoder-decoder: give what it should write as `target=`."
        )
    if sources["text"] is None or len(intake.kinds) > 1:
        raise InputError(f"a pair of texts was given, but {intake.name} takes {intake.takes}: give one text.")
    if intake.is_causal:
        raise InputError(
            f"a pair was given, but {intake.name} is causal: it reads one text from left to right. "
            "Join the two into one text."
        )


def _check_text(intake: Intake, name: str, text: Any) -> None:
    if text is None:
        return
    if not isinstance(text, str):
        raise InputError(f"the {name} must be a string, not {type(text).__name__}.")
    if not text.strip():
        raise InputError(f"the {name} is empty: there is nothing to attend to. Give at least one word.")
    if intake.tokenizer is None:
        ids = "decoder_input_ids" if name == "target" else intake.name_for("text")
        raise InputError(
            f"{intake.name} has no tokenizer, so it cannot read text: pass one (`hs.Model(module, tokenizer)`), or "
            f"give the token ids yourself: `inputs={{'{ids}': …}}`."
        )


def _replay(intake: Intake, inputs: Inputs, decoding: dict[str, str]) -> Inputs:
    if decoding and not inputs.needs_target:
        raise InputError("this input has its target already: leave out language= and task=.")
    unknown = [name for name in inputs.model_inputs if intake.arguments and name not in intake.arguments]
    if unknown:
        raise InputError(
            f"this input was made for another model: {intake.name} takes no {unknown[0]!r}. Give it {intake.takes}."
        )
    for name, role in ((intake.name_for("text"), "text"), ("decoder_input_ids", "target")):
        ids = inputs.model_inputs.get(name)
        if ids is not None and not ids.is_floating_point() and ids.ndim == 1:
            check_ids(intake, ids, role, name)
    return replace(inputs, decoding=decoding) if decoding else inputs
