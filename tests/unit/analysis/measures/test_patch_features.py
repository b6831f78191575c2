"""How patches look."""

import numpy as np
import pytest

from headscope.analysis.measures.grating_images import colours, gratings
from headscope.analysis.measures.patch_features import HUES, hue_names, looks


def test_pure_colours_have_their_names_and_grey_has_none():
    pure = [(255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255), (0, 0, 255), (255, 0, 255), (99, 99, 99)]
    image = np.array(pure, np.uint8)[None].repeat(16, 0).repeat(16, 1)
    features = looks(image, (1, 7))
    assert hue_names(features.hue).tolist() == [*range(6), -1] and HUES[0] == "red"
    assert np.isnan(features.frequency).all() and features.brightness[6] == pytest.approx(99 / 255)


def test_generated_colours_have_every_hue_and_no_stripes():
    features = [looks(example.image, (4, 4)) for example in colours(6, grid=(4, 4))]
    assert {int(name) for patches in features for name in hue_names(patches.hue)} >= set(range(6))
    assert all(np.isnan(patches.frequency).all() for patches in features)
    assert colours(2)[1].image.tobytes() == colours(2)[1].image.tobytes()


def test_generated_stripes_have_one_to_four_cycles_and_no_hue():
    features = [looks(example.image, (4, 4)) for example in gratings(6, grid=(4, 4))]
    frequency = np.concatenate([patches.frequency for patches in features])
    assert set(np.round(frequency).astype(int)) == {1, 2, 3, 4} and np.abs(frequency - np.round(frequency)).max() < 0.1
    assert all(np.isnan(patches.hue).all() for patches in features)
