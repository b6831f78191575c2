"""Text as the model's inputs: a text or pair, a chat, a target to write, text with an image in its midst."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError, TooLongError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.batch import check_ids, flat_names
from headscope.models.inputs.display_tokens import encode, tokens_of_ids
from headscope.models.inputs.media import picture
from headscope.models.inputs.picture_tiles import CHECKED_FAMILIES
from headscope.models.inputs.placed_tokens import placed_image
from headscope.models.inputs.reading_warnings import warn_reader
from headscope.traces.media import Seen
from headscope.traces.tokens import Token, Tokens


def render_chat(intake: Intake, messages: Any, image: Any) -> tuple[str, Any]:
    """The text that the model's template makes of a chat, and the image that its messages hold, if any."""
    messages = [messages] if isinstance(messages, Mapping) else list(messages)
    holder = intake.processor if getattr(intake.processor, "chat_template", None) else intake.tokenizer
    if holder is None or not getattr(holder, "chat_template", None):
        raise InputError(
            f"chat messages were given, but the tokenizer of {intake.name} has no chat template: give plain text, or "
            "set `tokenizer.chat_template`."
        )
    contents = [message.get("content") for message in messages]
    if not any(content and (not isinstance(content, str) or content.strip()) for content in contents):
        raise InputError("the chat is empty: no message has any content.")
    for content in contents:
        for part in content if isinstance(content, list) else ():
            part_image = part.get("image") or part.get("path") if part.get("type") == "image" else None
            image = part_image if image is None else image
    try:
        prompt = messages[-1]["role"] != "assistant"
        text = holder.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
    except Exception as error:  # the template is code of the model's authors and raises what it likes
        raise InputError(f"the chat template of {intake.name} refuses these messages: {error}") from error
    return str(text), image


def text_inputs(
    intake: Intake,
    text: str,
    pair: str | None = None,
    role: str = "text",
    *,
    truncate: bool = False,
    special: bool = True,
    n_before: int = 0,
) -> tuple[dict[str, Tensor], Tokens]:
    """Token ids and what belongs to them, within the model's positions; `n_before` of these are taken already."""
    tokenizer: Any = intake.tokenizer
    limit = intake.limit(role)
    options: dict[str, Any] = {"as_target": role == "target", "special": special}
    if limit and str(getattr(intake.config, "model_type", "")).startswith("siglip"):
        options["pad_to"] = limit.positions  # SigLIP was trained on full windows and has no mask
    encoded = encode(tokenizer, text, pair, **options)
    if len(encoded) == 0:
        raise InputError(f"the tokenizer of {intake.name} makes no tokens of {text[:40]!r}: give other text.")
    n = n_before + len(encoded)
    # Rotations go on beyond the length that a model was trained on, which `check_ids` warns of; a table does not.
    is_cut = limit is not None and n > limit.positions and (truncate or limit.is_hard)
    too_long = ""
    if limit is not None and is_cut:
        what = "target" if role == "target" else "pair" if pair is not None else "text"
        too_long = f"the {what} is {n:,} tokens long but {intake.name} has positions for {limit.positions:,}"
        if not truncate:
            cut_to = f"{limit.positions:,} tokens"
            raise TooLongError(f"{too_long}. Shorten it, or pass `truncate=True` to cut it to {cut_to}.", cut_to)
        encoded = encode(
            tokenizer, text, pair, **(options | {"max_length": limit.positions - n_before, "pad_to": None})
        )
    tokens = encoded.display(intake.marks)
    if is_cut:
        is_end = tokenizer.truncation_side == "right"
        side, verb = ("end", "ends") if is_end else ("beginning", "begins")
        warn_reader(
            f"{too_long}: {n - n_before - len(tokens):,} tokens were cut off at its {side}; it now {verb} with "
            f"{_excerpt(text, pair, tokens, is_end=is_end)!r}."
        )
    name = intake.name_for("text") if role == "text" else "input_ids"
    fields = encoded.fields
    inputs = {name: torch.tensor(fields["input_ids"], dtype=torch.long)}
    check_ids(intake, inputs[name], role, name)
    if role == "text" and "token_type_ids" in fields and intake.has_segments:
        inputs["token_type_ids"] = torch.tensor(fields["token_type_ids"], dtype=torch.long)
    return inputs, tokens


def _excerpt(text: str, pair: str | None, tokens: Tokens, *, is_end: bool) -> str:
    """The last three tokens, or the first, as they stand in the text."""
    own = [token for token in tokens if not token.special]
    few = own[-3:] if is_end else own[:3]
    whole = pair if pair is not None and few and few[0].segment == "B" else text
    first, last = (few[0].start, few[-1].end) if few else (None, None)
    is_one = len({token.segment for token in few}) == 1
    if first is None or last is None or not is_one:
        return " ".join(token.text for token in few)
    return whole[first:last]


def text_with_image(intake: Intake, text: str, image: Any) -> dict[str, tuple[dict[str, Tensor], Tokens, Seen | None]]:
    """One sequence of text and image, made by the model's own processor."""
    if str(intake.image_token) not in text:
        text = f"{intake.image_token}{text}"
        warn_reader(f"the text does not say where the image goes: {intake.image_token!r} was put before it.")
    vision = intake.section("vision")
    start = getattr(intake.tokenizer, "bos_token", None)
    image = picture(image, getattr(vision, "num_channels", 3))
    processed = intake.processor(
        text=[text],
        images=[image],
        return_tensors="pt",
        add_special_tokens=not (start and text.startswith(start)),  # a chat template has written it already
    )
    inputs = _without_batch_axis(intake, processed)
    check_ids(intake, inputs["input_ids"], "text")
    tokens, _ = tokens_of_ids(intake.tokenizer, inputs["input_ids"].tolist())
    placed = placed_image(intake, tokens, inputs, image.size)
    if all(seen is None for _, seen in placed.values()):
        warn_reader(f"how {intake.name} lays out a picture is not known: its image tokens have no places in it.")
    elif getattr(intake.config, "model_type", None) not in CHECKED_FAMILIES:
        warn_reader(
            f"where the image tokens of {intake.name} lie follows from their number alone: it was not checked for its "
            "family."
        )
    return {role: (inputs if role == "text" else {}, *read) for role, read in placed.items()}


def _without_batch_axis(intake: Intake, processed: Mapping[str, Any]) -> dict[str, Tensor]:
    """What a processor made of one example, as far as the model takes it."""
    tensors = {
        name: value
        for name, value in processed.items()
        if name in intake.arguments and isinstance(value, Tensor) and name not in ("attention_mask", "labels")
    }
    flat = flat_names(intake, tensors)
    is_whole = {name: name in flat and not (value.ndim == 4 and len(value) == 1) for name, value in tensors.items()}
    return {name: value if is_whole[name] else value[0] for name, value in tensors.items()}


def target_inputs(intake: Intake, target: str, *, truncate: bool = False) -> tuple[dict[str, Tensor], Tokens]:
    """The decoder's input when it is made to write the target: shifted as the model shifts its labels."""
    inputs, tokens = text_inputs(intake, target, None, "target", truncate=truncate)
    return _after_start(intake, inputs["input_ids"], tokens)


def text_after_start(
    intake: Intake, start: list[int], target: str, *, truncate: bool = False
) -> tuple[dict[str, Tensor], Tokens]:
    """The decoder's input when it is made to write the target after the ids it starts from."""
    options: dict[str, Any] = {"truncate": truncate, "special": False, "n_before": len(start)}
    inputs, tokens = text_inputs(intake, target, None, "target", **options)
    before, _ = tokens_of_ids(intake.tokenizer, start)
    special = (Token(token.text, token.id, special=True) for token in before)
    ids = torch.cat([torch.tensor(start, dtype=torch.long), inputs["input_ids"]])
    return {"decoder_input_ids": ids}, Tokens((*special, *tokens.items))


def source_as_target(intake: Intake, source: dict[str, Tensor], tokens: Tokens) -> tuple[dict[str, Tensor], Tokens]:
    """What an encoder-decoder that classifies gives its decoder: its own source, shifted."""
    return _after_start(intake, source["input_ids"], tokens)


def _after_start(intake: Intake, labels: Tensor, tokens: Tokens) -> tuple[dict[str, Tensor], Tokens]:
    ids = _shift_right(intake, labels)
    is_shifted = torch.equal(ids[1:], labels[:-1])
    decoder_tokens, _ = tokens_of_ids(intake.tokenizer, (ids[:1] if is_shifted else ids).tolist())
    if is_shifted:
        start = Token(decoder_tokens[0].text, decoder_tokens[0].id, special=True)
        decoder_tokens = Tokens((start, *tokens.items[:-1]))
    return {"decoder_input_ids": ids}, decoder_tokens


def _shift_right(intake: Intake, labels: Tensor) -> Tensor:
    config = intake.config
    if getattr(config, "model_type", None) == "mbart":
        return torch.cat([labels[-1:], labels[:-1]])  # the language code at the end goes to the front
    own = getattr(intake.module, "prepare_decoder_input_ids_from_labels", None)
    start = getattr(config, "decoder_start_token_id", None)
    if own is not None and start is not None:
        try:
            return own(labels=labels[None])[0]
        except (ValueError, TypeError) as error:
            raise InputError(f"{intake.name} cannot be given a target: {error}") from error
    if start is None:
        start = getattr(getattr(intake.module, "generation_config", None), "decoder_start_token_id", None)
    if start is None:
        raise InputError(
            f"{intake.name} does not say which token its decoder starts with: set `config.decoder_start_token_id`, or "
            "give `decoder_input_ids` among `inputs=`."
        )
    return torch.cat([torch.tensor([start]), labels[:-1]])
