"""Image tokens within a text lie on the picture where the model took them from, whichever way a family cuts it up."""

import numpy as np
import pytest
import tiny_vision_language as vision_language
import torch
from PIL import Image

import headscope as hs
from headscope.models import Model
from headscope.models.inputs.picture_tiles import CHECKED_FAMILIES
from headscope.traces.tokens import Tokens

# Transformers gives numpy tensors in a way that it will not take later.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
FAMILIES = {family.name: family for family in vision_language.FAMILIES}
MODELS: dict[str, Model] = {}


def model_of(name: str) -> Model:
    if name not in MODELS:
        MODELS[name] = Model(*FAMILIES[name].build())
    return MODELS[name]


def without_mixing(model: Model) -> Model:
    """The same model, patches of whose image tower know nothing of each other."""
    module, processor = FAMILIES[model.name].build()
    with torch.no_grad():
        for layer in model.layout.layers:
            if layer.site.stack == "vision":
                for parameter in module.get_submodule(layer.out_projection or "").parameters():
                    parameter.zero_()
    return Model(module, processor, verify=False)


@pytest.fixture(params=FAMILIES)
def family(request) -> vision_language.VisionLanguage:
    return FAMILIES[request.param]


def features(model: Model, family: vision_language.VisionLanguage, image: Image.Image) -> tuple[Tokens, torch.Tensor]:
    """The image tokens, and what the language model is given of each."""
    trace = model.run(family.text, image=image, record="full")
    if "image" in trace.tokens:
        return trace.tokens["image"], trace.layer("cross.L1").value.transpose(0, 1).flatten(1)
    return trace.tokens["main"], trace.residuals["main"][0]


def test_each_family_is_exact_with_a_picture_in_the_text(family):
    """Bidirectional image tokens (Gemma 3), prompts (PaliGemma) and cross-attention (Mllama) included."""
    model = model_of(family.name)
    verification = model.verification
    assert model.verified and verification.difference == 0.0
    assert verification.compared[0] == "a picture within a text" and verification.n_patterns >= 2
    assert not model.layout.missed
    assert model.stacks == ("main", "vision")


def test_changing_a_part_of_the_picture_changes_its_tokens(family):
    model = model_of(family.name)
    model.name = family.name
    plain = without_mixing(model)
    image = vision_language.noise(family.size)
    tokens, before = features(plain, family, image)
    placed = {place: token.patch for place, token in enumerate(tokens) if token.patch is not None}
    assert placed
    blur = 3.5 * max(1.0, family.size[0] / 32)  # how far resizing spreads a pixel
    for place in list(placed)[:: max(1, len(placed) // 5)]:
        left, top, right, bottom = placed[place].box
        changed = np.asarray(image).copy()
        x, y = (
            slice(round(left), max(round(left) + 1, round(right))),
            slice(round(top), max(round(top) + 1, round(bottom))),
        )
        changed[y, x] = 255 - changed[y, x]
        _, after = features(plain, family, Image.fromarray(changed))
        moved = ((after - before).abs().amax(-1) > 1e-4).tolist()
        assert moved[place]
        around = (left - blur, top - blur, right + blur, bottom + blur)
        far = [other for other, patch in placed.items() if not patch.touches(around)]
        assert not any(moved[other] for other in far)
        assert [token for token, is_moved in zip(tokens, moved, strict=True) if is_moved and token.patch is None] == []
        touched = [
            other for other, patch in placed.items() if patch.touches((left + 1, top + 1, right - 1, bottom - 1))
        ]
        assert all(moved[other] for other in touched)


def test_what_a_model_writes_is_read_as_it_was_written(family):
    """Image tokens keep their places while a text grows, and what was seen both ways stays so, and nothing else."""
    model, image = model_of(family.name), vision_language.noise(family.size)
    before = model.run(family.text, image=image)
    written = model.generate(family.text, image=image, max_new_tokens=3)
    trace = model.run(written.trace.inputs, record="full")
    n_prompt = len(before.tokens["main"])
    assert trace.tokens["main"].items[:n_prompt] == before.tokens["main"].items
    assert trace.steps is None and written.trace.steps is not None
    assert written.trace.steps[:n_prompt] == (None,) * n_prompt
    assert trace.logits is not None and trace.inputs is not None
    ids = trace.inputs.model_inputs["input_ids"][n_prompt:]
    assert len(ids) and trace.logits[n_prompt - 1 : -1].argmax(-1).tolist() == ids.tolist()


def test_ready_inputs_are_placed_too(family):
    model, image = model_of(family.name), vision_language.noise(family.size)
    ready = model.processor(text=[family.text], images=[image], return_tensors="pt")
    ready = {name: value for name, value in ready.items() if name != "labels"}
    trace, own = model.run(inputs=ready), model.run(family.text, image=image)
    assert isinstance(trace, hs.Trace)
    # How InternVL's tiles lie, and where Mllama's picture ends, the size of the picture alone says.
    if family.name not in ("internvl", "mllama"):
        assert trace.tokens["main"].texts == own.tokens["main"].texts
    for layer in own.layers.values():
        assert (trace.layer(layer.site).patterns() == layer.patterns()).all()


def test_several_rows_of_ready_inputs_have_their_own_pictures():
    model = model_of("llava")
    images = [vision_language.noise((60, 40), seed=seed) for seed in (0, 1)]
    text = FAMILIES["llava"].text
    traces = model.run([text, text], image=images)
    ready = model.processor(text=[text, text], images=images, return_tensors="pt")
    for trace, own in zip(model.run(inputs=ready), traces, strict=True):
        assert (trace.layer("L0").patterns() == own.layer("L0").patterns()).all()
        assert trace.inputs == own.inputs or (trace.inputs.seen["main"].pixels == own.inputs.seen["main"].pixels).all()


def test_two_pictures_in_tiles_run_together_as_they_do_alone():
    model, family = model_of("internvl"), FAMILIES["internvl"]
    images = [vision_language.noise(family.size, seed=seed) for seed in (0, 1)]
    for image, trace in zip(images, model.run([family.text] * 2, image=images), strict=True):
        alone = model.run(family.text, image=image)
        assert torch.allclose(trace.layer("L1").patterns(), alone.layer("L1").patterns(), atol=1e-6)


def test_patches_are_drawn_within_the_picture_and_cover_it(family):
    """What is drawn ends where the picture does; the areas of its copies are those of their tokens."""
    trace = model_of(family.name).run(family.text, image=vision_language.noise(family.size))
    stack = "image" if "image" in trace.tokens else "main"
    assert trace.inputs is not None
    picture = trace.inputs.seen[stack]
    height, width = picture.pixels.shape[:2]
    patches = [token.patch for token in trace.tokens[stack] if token.patch is not None]
    covered = torch.zeros(height, width, dtype=torch.int)
    for patch in patches:
        left, top, right, bottom = patch.drawn
        assert 0 <= left < right <= width + 1e-3 and 0 <= top < bottom <= height + 1e-3
        covered[round(top) : round(bottom), round(left) : round(right)] += 1
        box = patch.box
        assert 0 <= box[0] < box[2] <= family.size[0] and 0 <= box[1] < box[3] <= family.size[1]
    assert int(covered.max()) == 1
    for number, area in enumerate(picture.areas):
        left, top, right, bottom = (round(edge) for edge in area.box)
        assert covered[top:bottom, left:right].float().mean() > 0.98
        assert {patch.area for patch in patches} == set(range(len(picture.areas)))
        own = [patch for patch in patches if patch.area == number]
        assert len({(patch.row, patch.column) for patch in own}) == len(own)


def test_a_family_that_was_not_checked_says_so():
    module, processor = FAMILIES["llava"].build()
    module.config.model_type = "another"
    model = Model(module, processor)
    with pytest.warns(hs.HeadscopeWarning, match="was not checked for its"):
        trace = model.run(FAMILIES["llava"].text, image=vision_language.noise((60, 40)))
    assert any("was not checked" in warning for warning in trace.warnings)
    assert {family.build()[0].config.model_type for family in vision_language.FAMILIES} <= CHECKED_FAMILIES


def test_a_region_is_blocked_in_every_family(family):
    """In the tiles and in the thumbnail: no query of the word sees any token that the box touches."""
    model = model_of(family.name)
    inputs = model.read(family.text, image=vision_language.noise(family.size))
    layer, keys = ("cross.L1", "image") if "image" in inputs.tokens else ("L1", "main")
    box = f"box:0,0,{family.size[0] / 2:g},{family.size[1] / 2:g}"
    under = inputs.tokens[keys].positions(box)
    place = inputs.tokens["main"].positions("cat")
    before, after = model.run(inputs), model.run(inputs, [hs.block(layer, "cat", box)])
    assert 0 < len(under) < sum(token.patch is not None for token in inputs.tokens[keys])
    assert before.pattern(layer)[place][:, under].sum() > 0
    assert after.pattern(layer)[place][:, under].sum() == 0
    assert np.allclose(after.pattern(layer)[place].sum(-1), 1, atol=1e-6)


def test_tokens_of_learned_queries_have_no_places():
    """Idefics 2 sums a picture up in latents, of which none is a part of it."""
    family = vision_language.VisionLanguage("idefics2", vision_language.idefics2)
    model = Model(*family.build())
    with pytest.warns(hs.HeadscopeWarning, match="no places"):
        trace = model.run(family.text, image=vision_language.noise((60, 40)))
    assert model.verified and trace.tokens["text"].texts.count("<image>") == 4
    assert all(token.patch is None for tokens in trace.tokens.values() for token in tokens)
