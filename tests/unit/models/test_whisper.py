"""What Whisper's decoder starts from (language, task, no timestamps) is in its traces, written or given."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import made_media
import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.errors import InputError
from headscope.models import Model
from headscope.models.inputs.prepare import prepare

RATE = 16_000
SOUND = np.sin(np.arange(RATE // 2) / 9)
DECODING = [{}, {"language": "en"}, {"language": "French", "task": "translate"}, {"task": "translate"}]


class _Reads(transformers.LogitsProcessor):
    """What the decoder has read at each step."""

    def __init__(self) -> None:
        self.ids: list[list[int]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.ids.append(input_ids[0].tolist())
        return scores


@pytest.fixture
def model() -> Model:
    module, (extractor, tokenizer) = made_media.many_languages()
    return Model(module, transformers.WhisperProcessor(extractor, tokenizer))


def decoder_reads(model: Model, n: int, **decoding: str) -> Sequence[list[int]]:
    """The ids that Transformers' own `generate` has its decoder read, step by step."""
    extractor = model.processor.feature_extractor
    features = extractor(SOUND, sampling_rate=RATE, return_tensors="pt").input_features
    reads = _Reads()
    processors = transformers.LogitsProcessorList([reads])
    module: Any = model.module
    module.generate(input_features=features, max_new_tokens=n, logits_processor=processors, **decoding)
    return reads.ids


def decoder_ids(trace: hs.Trace) -> list[int]:
    assert trace.inputs is not None
    return trace.inputs.model_inputs["decoder_input_ids"].tolist()


@pytest.mark.parametrize("decoding", DECODING, ids=str)
def test_what_is_written_is_traced_after_what_the_decoder_started_from(model, decoding):
    reads = decoder_reads(model, 6, **decoding)
    written = model.generate(audio=SOUND, sampling_rate=RATE, max_new_tokens=6, **decoding).trace
    assert decoder_ids(written) == reads[-1]
    n_start = len(reads[0])
    assert n_start >= 3 and written.steps == (*[None] * n_start, *range(5))
    with torch.no_grad():
        logits = model.module(**{name: value[None] for name, value in written.inputs.model_inputs.items()}).logits[0]
    assert logits.argmax(-1)[n_start - 1 : -1].tolist() == decoder_ids(written)[n_start:]  # teacher-forced, the same


def test_a_run_writes_as_generate_does_and_says_which_tokens_it_wrote(model):
    longest = 24 - 4  # positions less the tokens that it may start from
    trace = model.run(audio=SOUND, sampling_rate=RATE, language="fr", task="translate")
    assert decoder_ids(trace) == decoder_reads(model, longest, language="fr", task="translate")[-1]
    assert decoder_ids(trace)[:4] == [1, 4, 6, 9] and trace.steps[:6] == (None, None, None, None, 0, 1)


def test_the_end_that_generate_leaves_out_was_read_up_to(model):
    """Whisper's `generate` drops the end of text: all that came before it was read by the decoder."""
    third = decoder_reads(model, 6)[-1][len(decoder_reads(model, 1)[0]) + 2]
    model.module.generation_config.eos_token_id = third
    reads = decoder_reads(model, 6)
    assert len(reads) < 6
    assert decoder_ids(model.generate(audio=SOUND, sampling_rate=RATE, max_new_tokens=6).trace) == reads[-1]


def test_a_text_with_times_in_it_is_one_text(model):
    """Transformers cuts the text at times, and has the model go on from there: that is another pass."""
    model.module.generation_config.no_timestamps_token_id = 3
    reads = decoder_reads(model, 6, task="translate")
    written = model.generate(audio=SOUND, sampling_rate=RATE, max_new_tokens=6, task="translate").trace
    assert any(token > 3 for token in decoder_ids(written)[4:]) and decoder_ids(written) == reads[5]


@pytest.mark.parametrize("decoding", DECODING, ids=str)
def test_a_target_follows_the_same_start(model, decoding):
    start = decoder_reads(model, 1, **decoding)[0]
    trace = model.run(audio=SOUND, sampling_rate=RATE, target="the nurse", **decoding)
    tokens = trace.tokens["decoder"]
    assert decoder_ids(trace) == [*start, 4, 7] and tokens.texts[-2:] == ["the", "nurse"]
    assert [token.special for token in tokens] == [True] * len(start) + [False, False]


def test_language_and_task_stay_with_the_input(model):
    inputs = model.read(audio=SOUND, sampling_rate=RATE, language="fr")
    assert inputs.decoding == {"language": "fr"}
    assert decoder_ids(model.run(inputs))[:3] == [1, 4, 5]
    unseen = replace(inputs, seen={})
    same = hs.traces.Inputs.from_json(unseen.to_json(), unseen.model_inputs)
    assert same.decoding == inputs.decoding
    assert decoder_ids(model.run(inputs, language="en"))[:2] == [1, 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"language": "german"}, "there is no language 'german': WhisperForConditionalGeneration has en, fr"),
        ({"task": "sing"}, "there is no task 'sing': WhisperForConditionalGeneration has transcribe, translate"),
        ({"max_new_tokens": 30}, "at most 20"),
    ],
)
def test_what_it_has_not_is_refused(model, options, words):
    with pytest.raises(InputError, match=words):
        model.generate(audio=SOUND, sampling_rate=RATE, **options)


def test_other_models_take_no_language():
    with pytest.raises(InputError, match="takes no language="):
        hs.load("builtin:translate").run("The cat sat.", language="ru")
    module, processor = made_media.whisper()
    with pytest.raises(InputError, match="has no lang_to_id"):
        prepare(transformers.WhisperProcessor(*processor), module, SOUND, sampling_rate=RATE, language="en")
    module.generation_config.is_multilingual = False
    with pytest.raises(InputError, match="English only"):
        prepare(transformers.WhisperProcessor(*processor), module, SOUND, sampling_rate=RATE, language="en")
