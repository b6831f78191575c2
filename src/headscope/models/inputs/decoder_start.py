"""What a decoder reads before it writes: for Whisper, its start, the language, the task and "no timestamps"."""

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from headscope.errors import InputError
from headscope.models.inputs.accepted import Intake


class StartIds(LogitsProcessor):
    """Notes what the decoder has read when it writes its first token; changes nothing."""

    def __init__(self) -> None:
        self.ids: list[int] | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Called by `generate` at each step, with what has been read so far."""
        if self.ids is None:
            self.ids = input_ids[0].tolist()
        return scores


def is_whisper(module: Any) -> bool:
    """Whether `generate` chooses a language and a task, and leaves out what its decoder starts from."""
    return getattr(getattr(module, "config", None), "model_type", None) == "whisper" and hasattr(module, "generate")


def most_start_tokens(module: Any) -> int:
    """How many tokens the decoder starts from, at most."""
    config = getattr(module, "generation_config", None)
    if not is_whisper(module) or config is None:
        return 1
    names = ("lang_to_id", "task_to_id", "no_timestamps_token_id")
    n_named = sum(getattr(config, name, None) is not None for name in names)
    forced = getattr(config, "forced_decoder_ids", None) or getattr(module.config, "forced_decoder_ids", None) or ()
    return 1 + max(n_named, len(forced))


def check_decoding(intake: Intake, decoding: Mapping[str, str]) -> None:
    """Refuse a language or a task that the model does not know."""
    if not decoding:
        return
    if not is_whisper(intake.module):
        raise InputError(f"{intake.name} takes no {next(iter(decoding))}=: language and task are for Whisper.")
    config = getattr(intake.module, "generation_config", None)
    if getattr(config, "is_multilingual", True) is False:
        raise InputError(f"{intake.name} hears English only: leave out language= and task=.")
    for name, ids_name in (("language", "lang_to_id"), ("task", "task_to_id")):
        known = getattr(config, ids_name, None)
        if name in decoding and not known:
            raise InputError(
                f"the generation configuration of {intake.name} has no {ids_name}, so {name}= cannot be used: take a "
                "newer checkpoint, or set it."
            )
    tasks = getattr(config, "task_to_id", None) or {}
    if "task" in decoding and decoding["task"] not in tasks:
        raise InputError(f"there is no task {decoding['task']!r}: {intake.name} has {', '.join(tasks)}.")
    languages = getattr(config, "lang_to_id", None) or {}
    if "language" in decoding and not _is_known(decoding["language"], languages):
        codes = ", ".join(token.strip("<|>") for token in languages)
        raise InputError(
            f"there is no language {decoding['language']!r}: {intake.name} has {codes}. Give a code or an English name."
        )


def decoding_choices(module: Any) -> tuple[list[str], list[str]]:
    """The languages (as codes) and tasks that may be chosen; none where the model takes neither."""
    config = getattr(module, "generation_config", None)
    if not is_whisper(module) or getattr(config, "is_multilingual", True) is False:
        return [], []
    languages, tasks = (getattr(config, name, None) or {} for name in ("lang_to_id", "task_to_id"))
    return [token.strip("<|>") for token in languages], list(tasks)


def _is_known(language: str, tokens: Collection[str]) -> bool:
    """Whether a code ("fr"), a name ("French") or a token ("<|fr|>") is one of the model's languages."""
    from transformers.models.whisper.tokenization_whisper import TO_LANGUAGE_CODE

    name = str(language).lower()
    return name in tokens or f"<|{TO_LANGUAGE_CODE.get(name, name)}|>" in tokens


def decoder_start(intake: Intake, source: Mapping[str, Tensor], decoding: Mapping[str, str]) -> list[int]:
    """The ids that `generate` has the decoder start from, with the language that the model detects in this sound."""
    start, module = StartIds(), intake.module
    weight = next(iter(module.parameters()))
    inputs = {
        name: value[None].to(weight.device, weight.dtype if value.is_floating_point() else None)
        for name, value in source.items()
    }
    generate: Any = module.generate
    options = {"max_new_tokens": 1, "do_sample": False, "force_unique_generate_call": True}
    generate(**inputs, **decoding, **options, logits_processor=LogitsProcessorList([start]))
    assert start.ids is not None  # at least one token was written
    return start.ids
