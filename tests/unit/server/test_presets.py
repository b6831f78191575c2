"""Inputs to start from, for models that come from elsewhere."""

import io
from pathlib import Path

import planted_vision_language
import pytest
import tiny_models
from PIL import Image

import headscope as hs
from headscope.models.inputs.accepted import Intake
from headscope.server.catalogue import kinds_of
from headscope.server.digit_pictures import DIGITS
from headscope.server.media import preset
from headscope.server.presets import builtin_presets, presets_of
from headscope.tasks.language_tasks import MaskedLanguageModelling


def presets_for(model: hs.Model, *, can_write: bool = True) -> list:
    intake = Intake.of(model.processor, model.module, model.stacks)
    return presets_of(intake, kinds_of(intake), can_write=can_write)


@pytest.mark.parametrize("name", ["gpt", "bert", "translate"])
def test_a_model_that_knows_the_words_gets_the_texts_of_its_like(name: str) -> None:
    model = hs.load(f"builtin:{name}")
    presets = presets_for(model)
    assert [preset.text for preset in presets] == [preset.text for preset in builtin_presets(name)]
    assert [preset.pair for preset in presets] == [preset.pair for preset in builtin_presets(name)]
    assert not any(preset.look_for for preset in presets)  # that was found in another model


def test_a_model_that_answers_questions_starts_with_one() -> None:
    bert = hs.load("builtin:bert")
    intake = Intake.of(bert.processor, bert.module, bert.stacks)
    presets = presets_of(intake, kinds_of(intake), can_write=False, has_spans=True)
    assert presets[0].text == "Where did the farmer find the key?" and "old cart" in (presets[0].pair or "")
    assert presets[1:] == presets_for(bert)


def test_a_model_that_says_nothing_of_masks_gets_no_text_with_one() -> None:
    bert = hs.load("builtin:bert")
    encoder = hs.Model(bert.module.base_model, bert.processor)
    assert MaskedLanguageModelling.fits(bert) and not MaskedLanguageModelling.fits(encoder)
    intake = Intake.of(encoder.processor, encoder.module, encoder.stacks)
    texts = [preset.text for preset in presets_of(intake, kinds_of(intake), can_write=False, fills_masks=False)]
    assert texts and not any("[MASK]" in text for text in texts)


def test_what_cannot_write_its_target_is_given_one() -> None:
    presets = presets_for(hs.load("builtin:translate"), can_write=False)
    assert all(preset.target == preset.text for preset in presets)


@pytest.mark.parametrize(
    ("family", "tokenizer"), [("gpt2", tiny_models.tiny_tokenizer), ("bert", tiny_models.tiny_bert_tokenizer)]
)
def test_of_other_words_it_gets_its_own(family: str, tokenizer) -> None:
    model = hs.Model(tiny_models.FAMILIES[family].build(), tokenizer())
    (first, *_) = presets_for(model)
    ids = model.processor(first.text, add_special_tokens=False)["input_ids"]
    assert len(ids) > 2 and 4 * ids.count(model.processor.unk_token_id) <= len(ids)
    assert len(model.run(first.text, pair=first.pair).tokens["main"]) >= len(ids)


def test_greyscale_models_are_offered_digits() -> None:
    intake = Intake.of(None, tiny_models.FAMILIES["vit"].build())
    assert presets_of(intake, ["image"], can_write=False)[0].media == "preset:sailing boat"
    intake.module.config.num_channels = 1  # type: ignore[union-attr]
    assert [preset.name for preset in presets_of(intake, ["image"], can_write=False)][: len(DIGITS)] == list(DIGITS)
    for name in DIGITS:
        picture = Image.open(io.BytesIO(preset(name).data))
        assert (picture.mode, picture.size) == ("L", (28, 28))
        assert picture.getpixel((0, 0)) == 0 and picture.getextrema()[1] > 200


def test_a_model_of_digits_reads_them(shared_weights: Path) -> None:
    model = hs.load(str(shared_weights / "vit-mnist"))
    for name in DIGITS:
        (answer,) = model.run(image=preset(name).picture()).predictions(1)
        assert answer.id == int(name.split()[-1])


def test_a_question_about_a_picture_is_put_as_the_chat_template_has_it():
    module, processor = planted_vision_language.planted()
    plain = presets_of(Intake.of(processor, module), ["text-image", "text"], can_write=True)
    assert {preset.text for preset in plain} == {"<image>\nWhat is in the picture?"}
    processor.chat_template = (
        "{% for message in messages %}USER: {% for part in message.content %}"
        "{{ '<image>' if part.type == 'image' else part.text }} {% endfor %}{% endfor %}ASSISTANT:"
    )
    chat = presets_of(Intake.of(processor, module), ["text-image", "text"], can_write=True)
    assert {preset.text for preset in chat} == {"USER: <image> What is in the picture? ASSISTANT:"}
    processor.chat_template = "{{ raise_exception('no pictures') }}"
    refused = presets_of(Intake.of(processor, module), ["text-image", "text"], can_write=True)
    assert [preset.text for preset in refused] == [preset.text for preset in plain]
