"""Inputs to start from: a built-in model's own; for any other model, such as its kind of input takes."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from headscope.errors import InputError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.texts import render_chat
from headscope.models.loading import BUILTIN
from headscope.server.digit_pictures import DIGITS
from headscope.server.media import PICTURES, PRESET, SOUNDS
from headscope.views.contract import PresetProps

# Words of a model's own vocabulary, where it does not know those of the examples.
N_WORDS = 6
MASK = "[MASK]"
_QUESTION = "What is in the picture?"


@cache
def _examples() -> dict[str, Any]:
    return json.loads((BUILTIN / "examples.json").read_text(encoding="utf-8"))


def builtin_presets(name: str) -> list[PresetProps]:
    """The texts that come with a built-in model, and what to look for in them."""
    own = ("name", "look_for", "text", "pair", "target", "sort")
    rows = [row for row in _examples().get(name.removeprefix("builtin:"), []) if "image" not in row]
    return [PresetProps(**({"look_for": ""} | {key: row[key] for key in own if key in row})) for row in rows]


def media_presets(kinds: Sequence[str], *, is_grey: bool = False) -> list[PresetProps]:
    """The pictures and sounds to start from; of a model that sees greys, what those mostly see."""
    names = [*DIGITS, *PICTURES] if is_grey else [*PICTURES]
    names = names if "image" in kinds else [*SOUNDS] if "audio" in kinds else []
    return [PresetProps(name, "", media=f"{PRESET}{name}") for name in names]


def presets_of(
    intake: Intake, kinds: Sequence[str], *, can_write: bool, fills_masks: bool = True, has_spans: bool = False
) -> list[PresetProps]:
    """Inputs for any model, once it is known what it takes; those with a mask only where it says what is behind it.

    `has_spans`: it answers questions with a span of the text, so a question comes first.
    """
    if "text-image" in kinds:
        return _with_pictures(intake)
    presets: list[PresetProps] = []
    if "source-target" in kinds:
        # A model that cannot write the target is given one.
        texts = [preset.text or "" for preset in builtin_presets("translate")]
        presets = [PresetProps(text, "", text, target=None if can_write else text) for text in texts]
    elif "pair" in kinds:
        presets = [
            PresetProps(preset.name, "", _replace_mask(preset.text, intake), preset.pair)
            for preset in builtin_presets("bert")
            if fills_masks or MASK not in (preset.text or "")
        ]
        presets = [*builtin_presets("questions"), *presets] if has_spans else presets
    elif "text" in kinds:
        presets = [PresetProps(preset.name, "", preset.text) for preset in builtin_presets("gpt")]
    if presets:
        presets = [preset for preset in presets if _is_read(intake, preset)] or _own_words(intake)
    is_grey = getattr(intake.section("vision"), "num_channels", 3) == 1
    return presets + media_presets(kinds, is_grey=is_grey)


def _with_pictures(intake: Intake) -> list[PresetProps]:
    """A picture with a text: about it, or with the place in it where the picture goes."""
    if intake.has_two_towers:
        return [PresetProps(name, "", f"a picture of a {name}", media=f"{PRESET}{name}") for name in PICTURES]
    prompt = _question(intake)
    return [PresetProps(name, "", prompt, media=f"{PRESET}{name}") for name in PICTURES]


def _question(intake: Intake) -> str:
    """A question about a picture, as the model's chat template puts it, where it has one."""
    if getattr(intake.processor, "chat_template", None):
        message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": _QUESTION}]}
        try:
            text, _ = render_chat(intake, [message], None)
        except InputError:  # a template for other messages
            text = ""
        if str(intake.image_token) in text:
            return text
    return f"{intake.image_token}\n{_QUESTION}"


def _replace_mask(text: str | None, intake: Intake) -> str | None:
    mask = getattr(intake.tokenizer, "mask_token", None)
    return text.replace(MASK, mask) if text and mask else text


def _is_read(intake: Intake, preset: PresetProps) -> bool:
    """Whether a model knows most of a text, has room for it, and has the mask that stands in it."""
    tokenizer = intake.tokenizer
    if tokenizer is None or not preset.text:
        return False
    ids = tokenizer(preset.text, add_special_tokens=False)["input_ids"]
    unknown = tokenizer.unk_token_id
    limit, n_tokens = intake.limit("text"), len(ids) + len(preset.pair or "") + 4
    has_room = limit is None or n_tokens <= limit.positions
    is_known = bool(ids) and (unknown is None or 4 * ids.count(unknown) <= len(ids))
    return has_room and is_known and (MASK not in preset.text or tokenizer.mask_token == MASK)


def _own_words(intake: Intake) -> list[PresetProps]:
    """A few entries of the vocabulary, for a model of some other language than ours."""
    tokenizer = intake.tokenizer
    if tokenizer is None:
        return []
    special = set(tokenizer.all_special_ids)
    entries = sorted((place, piece) for piece, place in tokenizer.get_vocab().items() if place not in special)
    pieces = (tokenizer.convert_tokens_to_string([piece]).strip() for _, piece in entries[:5000])
    words = list(dict.fromkeys(piece for piece in pieces if piece.isalnum()))[:N_WORDS]
    if not words:
        return []
    # A very small vocabulary, as of a model that sorts three letters, is gone through more than once.
    preset = PresetProps("words of its vocabulary", "", " ".join((words * N_WORDS)[:N_WORDS]))
    return [preset] if _is_read(intake, preset) else []
