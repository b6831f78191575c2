"""Generation with edits: the text, and one trace over the whole sequence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList

from headscope.arguments import whole_number
from headscope.choices import Record
from headscope.errors import InputError, InterventionError
from headscope.interventions import Intervention
from headscope.interventions.edits import Mean
from headscope.interventions.intervention import pin_tokens
from headscope.models.capture.edit_checks import intervention_list
from headscope.models.capture.passes import Pass
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.decoder_start import StartIds, is_whisper, most_start_tokens
from headscope.models.inputs.prepare import extend, prepare
from headscope.models.inputs.token_replacement import replace_tokens
from headscope.progress import Cancel, OnProgress, Progress
from headscope.traces import Inputs, Predictions, Trace

if TYPE_CHECKING:
    from headscope.models.model import Model

# A target that nobody gave is generated, up to this many tokens.
MAX_TARGET = 128
MOST_NEW_TOKENS = 100_000


@dataclass(frozen=True, eq=False)
class Generation:
    """What a model wrote (`text`, without the prompt) and the trace of prompt and text together.

    `trace.steps` says at which step each token came; None for the prompt's.
    """

    text: str
    trace: Trace


def generate(
    model: "Model",
    source: Any,
    interventions: Sequence[Intervention],
    *,
    max_new_tokens: int,
    seed: int,
    record: Record | None,
    budget: int | None,
    cancel: Cancel | None,
    progress: OnProgress | None,
    do_sample: bool,
    temperature: float,
    top_k: int,
    num_beams: int,
    **media: Any,
) -> Generation:
    """Generate with edits, then run the whole sequence once more with them and record it."""
    interventions = intervention_list(interventions)
    if num_beams < 1 or temperature <= 0 or top_k < 0:
        raise InputError("num_beams is at least 1, temperature above 0, and top_k at least 0 (0: all tokens).")
    prompt = replace_tokens(model, _prompt(model, source, media), interventions)
    options = {"do_sample": do_sample, "num_beams": num_beams}
    if do_sample:
        options |= {"temperature": temperature, "top_k": top_k}
    # Tokens are replaced already.
    pinned = _pin([edit for edit in interventions if edit.stage != "tokens"], prompt, ahead=max_new_tokens)
    steps = _Steps(max_new_tokens, model.token_text, progress)
    written = continue_inputs(
        model, prompt, pinned, max_new_tokens=max_new_tokens, seed=seed, cancel=cancel, steps=steps, **options
    )
    inputs, new_ids = written.inputs, written.new_ids
    pinned = _until(pinned, len(inputs.tokens[_text_stack(inputs)]))
    trace = model.run(inputs, pinned, record=record, budget=budget, cancel=cancel)
    stack = "decoder" if model.is_encoder_decoder else _text_stack(inputs)
    n_tokens = len(trace.tokens[stack])
    n_prompt = len(written.start) if model.is_encoder_decoder else n_tokens - len(new_ids)
    if model.is_causal and num_beams == 1:
        trace = replace(trace, answers=_all_answers(trace.answers, steps.seen, n_prompt))
    text = model.tokenizer.decode(new_ids, skip_special_tokens=True) if model.tokenizer is not None else ""
    edits = tuple(repr(intervention) for intervention in interventions)
    return Generation(
        text.strip() if model.is_encoder_decoder else text,
        replace(trace, steps=steps_of(n_tokens, n_prompt), edits=edits),
    )


def _prompt(model: "Model", source: Any, media: dict[str, Any]) -> Inputs:
    """The single input to go on from, without a target."""
    prompt = prepare(model.processor, model.module, source, stacks=model.stacks, **media)
    if isinstance(prompt, list):
        raise InputError("generate takes one input at a time.")
    if model.is_encoder_decoder and "decoder" in prompt.tokens:
        raise InputError("generate writes the target itself: give the source alone, or use run for a target of yours.")
    return prompt


def steps_of(n_tokens: int, n_prompt: int) -> tuple[int | None, ...]:
    """At which step each token was written; None for those that were there before."""
    return tuple(None if place < n_prompt else place - n_prompt for place in range(n_tokens))


def longest_target(model: "Model", *, most: int = MAX_TARGET) -> int:
    """How many tokens the decoder may write: `most`, or fewer where it has no more positions."""
    limit = Intake.of(model.processor, model.module).limit("target")
    return most if limit is None else max(1, min(most, limit.positions - most_start_tokens(model.module)))


@dataclass(frozen=True, eq=False)
class Continuation:
    """The input with what the model wrote after it (or as its target), and the ids that it wrote.

    `start` are the ids that the decoder of an encoder-decoder starts from, before it writes.
    """

    inputs: Inputs
    new_ids: list[int]
    start: list[int]

    @property
    def target_steps(self) -> tuple[int | None, ...]:
        """At which step each token of the decoder was written; None for those that it starts from."""
        return steps_of(len(self.inputs.tokens["decoder"]), len(self.start))


def continue_inputs(
    model: "Model",
    prompt: Inputs,
    interventions: Sequence[Intervention] = (),
    *,
    max_new_tokens: int,
    seed: int = 0,
    cancel: Cancel | None = None,
    steps: "_Steps | None" = None,
    **options: Any,
) -> Continuation:
    """Have the model write after the prompt, or write its target."""
    _check_generation(model, interventions, max_new_tokens)
    max_new_tokens = _room(model, prompt, max_new_tokens)
    forward = Pass.of(model, [prompt], interventions, are_checked=_is_pinned(interventions))
    start = StartIds()
    options |= _own_options(model)
    options["logits_processor"] = LogitsProcessorList([start] if steps is None else [start, steps])
    # Choices of tokens that were pinned to positions would not be found by their texts.
    tokens = {} if _is_pinned(interventions) else None
    options |= prompt.decoding
    row = forward.generate(max_new_tokens, seed=seed, cancel=cancel, tokens=tokens, **options)[0].tolist()
    if model.is_encoder_decoder:
        # The decoder reads its start and all that was written but the last token, which nothing follows.
        n_start = len(start.ids or row[:1])
        read = row[:-1] if len(row) > n_start else row
        inputs = extend(prompt, model.processor, model.module, read, stacks=model.stacks)
        return Continuation(inputs, row[n_start:], row[:n_start])
    new = row[prompt.model_inputs["input_ids"].shape[0] :]
    if not new:
        raise InputError("the model wrote nothing: the prompt may fill its whole context already.")
    inputs = extend(prompt, model.processor, model.module, new, stacks=model.stacks)
    return Continuation(inputs, new, [])


def _check_generation(model: "Model", interventions: Sequence[Intervention], max_new_tokens: int) -> None:
    """Refuse models that write nothing, lengths that do not fit, and edits that have no meaning while text grows."""
    if not hasattr(model.module, "generate") or not getattr(model.module, "can_generate", lambda: True)():
        raise InputError(
            f"{type(model.module).__name__} cannot generate text: it has no language-model head. Give a target."
        )
    whole_number(max_new_tokens, "max_new_tokens", 1, MOST_NEW_TOKENS)
    most = longest_target(model, most=max_new_tokens)
    if is_whisper(model.module) and most < max_new_tokens:
        raise InputError(f"max_new_tokens={max_new_tokens} is more than its decoder has positions for: at most {most}.")
    for intervention in interventions:
        if isinstance(intervention.edit, Mean) and intervention.edit.mean is None:
            raise InterventionError(
                f"{intervention!r}: the mean over a text that is still being written changes at every step. "
                "Give a fixed mean: hs.mean_ablate(head, trace)."
            )


def _room(model: "Model", prompt: Inputs, most: int) -> int:
    """How many tokens the model can write after a prompt: `most`, or fewer where its positions end before."""
    limit, ids = Intake.of(model.processor, model.module).limit("text"), prompt.model_inputs.get("input_ids")
    if model.is_encoder_decoder or limit is None or not limit.is_hard or ids is None:
        return most
    room = limit.positions - ids.shape[0]
    if room < 1:
        raise InputError(f"the input fills all {limit.positions} positions of {model.name}: it can write nothing more.")
    return min(most, room)


def _own_options(model: "Model") -> dict[str, Any]:
    """What this model's `generate` needs beside the settings that a caller chooses."""
    options: dict[str, Any] = {}
    pad = getattr(model.config, "pad_token_id", None)
    eos: Any = getattr(getattr(model.module, "generation_config", None), "eos_token_id", None)
    if model.is_causal and pad is None and eos is not None:
        options["pad_token_id"] = eos if isinstance(eos, int) else eos[0]
    if getattr(model.config, "num_decoder_layers", 0) > getattr(model.config, "num_hidden_layers", 0):
        options["use_cache"] = False  # Transformers sizes T5's cache by the encoder's depth
    if is_whisper(model.module):
        options["force_unique_generate_call"] = True  # one text, with what the decoder starts from
    return options


def _pin(interventions: Sequence[Intervention], prompt: Inputs, *, ahead: int) -> list[Intervention]:
    """Token choices as positions, so that they mean the same tokens when the text grows, by up to `ahead` tokens."""
    pinned = []
    for intervention in interventions:
        stack = intervention.site.stack if intervention.site is not None else _text_stack(prompt)
        if intervention.site is not None and intervention.site.kind == "cross" and intervention.token_choices():
            raise InterventionError(
                f"{intervention!r}: edits of chosen tokens in cross-attention cannot be followed while text is "
                "generated."
            )
        tokens = prompt.tokens.get(stack)
        pinned += (
            [intervention]
            if tokens is None or not intervention.token_choices()
            else pin_tokens([intervention], tokens, ahead=ahead)
        )
    return pinned


def _until(pinned: Sequence[Intervention], length: int) -> list[Intervention]:
    """The same without the positions of tokens that were not written, as the model ended before."""
    names = ("queries", "query", "keys", "key")
    shorter = []
    for edit in pinned:
        chosen = {name: getattr(edit.edit, name, None) for name in names} | {"": edit.tokens}
        within = {
            name: [place for place in places if isinstance(place, int) and place < length]
            for name, places in chosen.items()
            if isinstance(places, list)
        }
        if any(chosen[name] and not places for name, places in within.items()):
            continue  # it is about tokens that are not there
        tokens = within.pop("", edit.tokens)
        own: Any = edit.edit
        shorter.append(replace(edit, edit=replace(own, **within) if within else own, tokens=tokens))
    return shorter


def _is_pinned(interventions: Sequence[Intervention]) -> bool:
    return any(intervention.token_choices() for intervention in interventions)


def _text_stack(inputs: Inputs) -> str:
    return next((stack for stack in ("main", "text", "encoder") if stack in inputs.tokens), next(iter(inputs.tokens)))


def _all_answers(last: Predictions | None, seen: list[Predictions], n_prompt: int) -> Predictions | None:
    """What the model chose from at every step, and what it would write next."""
    if last is None or not seen or last.positions != (n_prompt + len(seen) - 1,):
        return last
    every = [*seen, last]
    return Predictions(
        last.stack,
        tuple(range(n_prompt - 1, n_prompt + len(seen))),
        torch.cat([step.ids for step in every]),
        torch.cat([step.logprobs for step in every]),
        tuple(step.texts[0] for step in every),
    )


class _Steps(LogitsProcessor):
    """Sees the candidates of every step, after all that the generation settings do to them; changes nothing."""

    def __init__(self, most: int, names: Callable[[int], str], progress: OnProgress | None):
        self.most, self.names, self.progress = most, names, progress
        self.seen: list[Predictions] = []
        self._count = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if scores.shape[0] == 1:  # not one of several beams
            self.seen.append(Predictions.of(scores, stack="", positions=(), names=self.names))
        if self.progress is not None:
            self.progress(Progress("tokens", self._count, self.most))
        self._count += 1
        return scores
