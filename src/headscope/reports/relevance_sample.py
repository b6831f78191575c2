"""A sample of a corpus on which relevance and importance are measured: what the model is asked about each example."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headscope.analysis.attribution.logit_target import Target
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.models import Model
from headscope.models.run_options import Single

# Long texts cost much and show little more: those in between are asked about.
SHORTEST, LONGEST = 20, 240


@dataclass
class RelevanceSample:
    """What is asked: `inputs` for `relevance_scores` and its kind, `targets` where the answer is known."""

    inputs: list[Any] = field(default_factory=list)
    targets: list[Target] | None = None
    ids: list[str] = field(default_factory=list)
    about: str = ""


def source_of(example: Example) -> Single:
    """An example as `Model.run` takes it."""
    if example.text is None:
        return example.image
    second = example.pair if example.pair is not None else example.target
    return example.text if second is None else (example.text, second)


def take_sample(model: Model, examples: Sequence[Example], n: int) -> RelevanceSample:
    """Examples spread evenly over those given: texts to go on with or to translate, images to name; in texts of a
    masked model one word is masked and asked for. An encoder that answers nothing is refused.
    """
    known = [
        example for example in examples if example.text is None or SHORTEST <= len(example.text) <= LONGEST
    ] or list(examples)
    places = np.unique(np.linspace(0, len(known) - 1, min(4 * n, len(known))).round().astype(int))
    spread = [known[place] for place in places]
    if not _wants_mask(model, spread[0]):
        chosen = [
            spread[place] for place in np.unique(np.linspace(0, len(spread) - 1, min(n, len(spread))).astype(int))
        ]
        about = (
            "what comes next"
            if model.is_causal
            else "each word it writes"
            if model.is_encoder_decoder
            else "its answer"
        )
        return RelevanceSample(
            [source_of(example) for example in chosen], None, [example.id for example in chosen], about
        )
    rng, masked_sample = np.random.default_rng(0), RelevanceSample(targets=[], about="one masked word each")
    assert masked_sample.targets is not None
    for example in spread:
        masked = _mask_word(model, example, rng)
        if masked is not None and len(masked_sample.inputs) < n:
            masked_sample.inputs.append(masked[0])
            masked_sample.targets.append(masked[1])
            masked_sample.ids.append(example.id)
    masked_text: Any = masked_sample.inputs[0] if masked_sample.inputs else getattr(model.tokenizer, "mask_token", None)
    if model.run(masked_text, record="rows", truncate=True).answers is None:
        raise InputError("the model gives no answer, not even to a masked word: it has no head to explain.")
    if not masked_sample.inputs:
        raise InputError(f"in none of {len(spread)} texts was there a word of one piece to mask and to ask for.")
    return masked_sample


def _wants_mask(model: Model, example: Example) -> bool:
    """Whether the model answers only where something is masked."""
    tokenizer: Any = model.tokenizer
    if model.is_causal or model.is_encoder_decoder or example.text is None or tokenizer is None:
        return False
    trace = model.run(source_of(example), record="rows", truncate=True)
    return trace.answers is None and getattr(tokenizer, "mask_token", None) is not None


def _mask_word(model: Model, example: Example, rng: np.random.Generator) -> tuple[Any, int] | None:
    """The example with a word of one piece masked, and that piece; None where the word drawn has several."""
    tokenizer: Any = model.tokenizer
    words = (example.text or "").split()
    place = int(rng.integers(len(words)))
    ids = tokenizer(words[place], add_special_tokens=False)["input_ids"]
    if len(ids) != 1 or not words[place].isalpha():
        return None
    text = " ".join([*words[:place], tokenizer.mask_token, *words[place + 1 :]])
    return (text if example.pair is None else (text, example.pair)), int(ids[0])
