"""Heads of image models on patterns made by hand and pictures whose every patch is known."""

import numpy as np
import pytest
import torch
from PIL import Image

import headscope as hs
from headscope.corpora import Example
from headscope.traces import Token, Tokens, Trace

GRID = Tokens((Token("[CLS]", special=True), *(Token(str(patch)) for patch in range(4))), "patches", (2, 2))
RED, GREEN, DARK, GREY = (255, 0, 0), (0, 255, 0), (60, 0, 0), (128, 128, 128)


def picture(*colours):
    return Example("picture", image=Image.fromarray(np.array(colours, np.uint8).reshape(2, 2, 3)).resize((32, 32), 0))


def looking(*keys):
    """Patches look at these, half of it going to [CLS], which is left out."""
    pattern = torch.zeros(1, 5, 5)
    pattern[0, :, 0] = 0.5
    for query, key in enumerate(keys):
        pattern[0, query + 1, key + 1] += 0.5
    return Trace.from_patterns([pattern], GRID)


def of(name, trace, example=None):
    return hs.measure(name, trace, examples=None if example is None else [example])


def test_distance_is_that_of_the_picture_not_of_the_row():
    scores = of("patch_distance", looking(3, 2, 1, 0))  # each looks across the diagonal
    assert scores["L0H0"] == pytest.approx(np.sqrt(2)) and scores.baseline == pytest.approx((2 + np.sqrt(2)) / 4)
    assert of("patch_distance", looking(0, 1, 2, 3))["L0H0"] == 0


def test_a_head_that_looks_at_the_brightest_patch_is_known_by_it():
    example = picture(GREY, DARK, DARK, (255, 255, 255))
    scores = of("brightness", looking(3, 3, 3, 3), example)
    assert scores["L0H0"] == pytest.approx(1, abs=0.01)
    dark = 60 / 255 * 0.299
    assert scores.baseline == pytest.approx((128 / 255 + 2 * dark + 1) / 4, abs=0.01)


def test_a_head_that_looks_at_red_is_known_by_it_and_grey_has_no_hue():
    scores_by_name = hs.analysis.measure_all(["hue"], looking(0, 0, 0, 3), examples=[picture(RED, GREEN, GREEN, GREY)])
    assert scores_by_name["hue/red"]["L0H0"] == 1 and scores_by_name["hue/red"].baseline == pytest.approx(1 / 3)
    assert scores_by_name["hue/green"]["L0H0"] == 0


def test_a_head_that_looks_at_its_like_is_told_from_one_that_looks_at_its_opposite():
    example = picture(RED, DARK, GREEN, GREEN)
    assert of("like_hue", looking(1, 0, 3, 2), example)["L0H0"] == pytest.approx(1)
    assert of("like_hue", looking(2, 2, 0, 0), example)["L0H0"] == pytest.approx(-0.5)  # a third of the circle
    assert of("like_brightness", looking(1, 0, 3, 2), picture(GREY, GREY, RED, RED))["L0H0"] == pytest.approx(1)


def test_a_head_that_looks_at_fine_stripes_is_known_by_their_frequency():
    cycles = np.array([[1, 2], [4, 2]])
    at = np.arange(16) / 16
    waves = 0.5 + 0.5 * np.sin(2 * np.pi * cycles[..., None] * at + 0.3)
    patches = np.broadcast_to(waves[:, :, None], (2, 2, 16, 16)).transpose(0, 2, 1, 3).reshape(32, 32)
    example = Example("stripes", image=Image.fromarray((patches * 255).astype(np.uint8)))
    scores = of("frequency", looking(2, 2, 2, 2), example)
    assert scores["L0H0"] == pytest.approx(4, abs=0.05) and scores.baseline == pytest.approx(9 / 4, abs=0.05)


def test_flat_patches_have_no_frequency_to_look_for():
    with pytest.raises(hs.HeadscopeError, match="frequency needs"):
        of("frequency", looking(0, 0, 0, 0), picture(RED, GREEN, RED, GREEN))


def test_without_pictures_it_says_so():
    with pytest.raises(hs.HeadscopeError, match="pictures"):
        of("brightness", looking(0, 0, 0, 0))
    with pytest.raises(hs.HeadscopeError, match="grid of patches"):
        of("patch_distance", Trace.from_patterns([torch.eye(3)[None]], ["a", "b", "c"]))
