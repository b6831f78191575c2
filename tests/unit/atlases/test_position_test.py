import numpy as np
import pytest

from headscope.atlases.position_test import position_layout

POSITIONS = np.tile(np.arange(20), 15)


def spiral(noise: float) -> np.ndarray:
    """Positions along a spiral of 1.5 turns."""
    angles = POSITIONS / 19 * 3 * np.pi
    points = (1 + POSITIONS / 10)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    return points + np.random.default_rng(0).normal(0, noise, points.shape)


def test_a_spiral_is_found_with_its_turns() -> None:
    layout = position_layout(spiral(0.05), POSITIONS)
    assert layout.is_spiral
    assert layout.explained > 0.95 > 0.2 > layout.chance
    assert layout.turns == pytest.approx(1.5, abs=0.15)
    assert layout.angle == pytest.approx(1.0)
    assert layout.n_positions == 20


def test_shuffled_positions_make_no_spiral() -> None:
    layout = position_layout(spiral(0.05), np.random.default_rng(1).permutation(POSITIONS))
    assert not layout.is_spiral
    assert layout.explained == pytest.approx(layout.chance, abs=0.08)


def test_rare_positions_are_not_counted() -> None:
    positions = np.concatenate([POSITIONS, [40] * 9])
    points = np.concatenate([spiral(0.05), np.zeros((9, 2))])
    assert position_layout(points, positions).n_positions == 20


def test_too_few_positions_say_nothing() -> None:
    assert np.isnan(position_layout(np.zeros((30, 2)), np.arange(30) % 3).explained)
