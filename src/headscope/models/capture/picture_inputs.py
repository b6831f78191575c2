"""A small picture within a text, for models that read both in one sequence: made by their own processor."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.batch import collate
from headscope.models.inputs.reading_warnings import collected_warnings
from headscope.models.inputs.texts import text_with_image
from headscope.traces.inputs import Inputs

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

_QUESTION = "What is in the picture?"
# Wider than high, so that a family that cuts pictures into tiles makes several of it.
_SIZE = (96, 64)


def picture_inputs(model: "ProbedModule") -> dict[str, Any] | None:
    """Ready inputs of a picture and a question; None where the model reads no pictures, or cannot make any."""
    if model.config is None:
        return None
    intake = Intake.of(model.processor, model.module)
    if intake.image_token is None or "pixel_values" not in intake.arguments or intake.tokenizer is None:
        return None
    try:
        with collected_warnings(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a run of the user's own input raises them
            own, tokens, _ = text_with_image(intake, f"{intake.image_token} {_QUESTION}", _gradient())["text"]
            return collate([Inputs("multimodal", own, {"main": tokens})], model.module, model.processor).model_inputs
    except Exception:  # a processor raises what it likes on a picture that it does not take; the first run will say
        return None


def _gradient() -> Image.Image:
    """Colours that differ from patch to patch."""
    width, height = _SIZE
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x * 7 + y * 5) % 256], -1)
    return Image.fromarray(pixels.astype(np.uint8))
