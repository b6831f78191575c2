import math

import pytest
import torch
from sklearn.manifold import trustworthiness as reference
from sklearn.neighbors import NearestNeighbors

from headscope.atlases.nearest_neighbours import nearest_neighbours, trustworthiness
from headscope.errors import InputError


def test_neighbours_on_paper() -> None:
    neighbours = nearest_neighbours(torch.tensor([[0.0], [1.0], [3.0], [7.0]]), 2)
    assert neighbours.places.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert neighbours.distances.tolist() == [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0], [4.0, 6.0]]


def test_equal_points_are_at_no_distance() -> None:
    points = torch.full((4, 3), 1e3) + torch.tensor([[0.0], [0.0], [0.1], [0.3]])
    assert nearest_neighbours(points, 1).distances[:2].tolist() == [[0.0], [0.0]]


def test_neighbours_are_those_of_scikit_learn() -> None:
    points = torch.randn(300, 7)
    distances, places = NearestNeighbors(n_neighbors=6).fit(points.numpy()).kneighbors(points.numpy())
    neighbours = nearest_neighbours(points, 5)
    assert (neighbours.places.numpy() == places[:, 1:]).all()
    assert torch.allclose(neighbours.distances.double(), torch.from_numpy(distances[:, 1:]).double(), atol=1e-5)


@pytest.mark.parametrize("k", [5, 10])
def test_trustworthiness_is_that_of_scikit_learn(k: int) -> None:
    points = torch.randn(150, 9)
    drawn = points[:, :2] + 0.3 * torch.randn(150, 2)
    expected = reference(points.numpy(), drawn.numpy(), n_neighbors=k)
    assert trustworthiness(points, drawn, k=k) == pytest.approx(expected, abs=1e-9)


def test_a_faithful_map_is_trusted_and_a_random_map_is_not() -> None:
    points = torch.randn(400, 2)
    assert trustworthiness(points, 3 * points) == 1.0
    assert trustworthiness(points, torch.randn(400, 2)) == pytest.approx(0.5, abs=0.05)
    assert trustworthiness(points, torch.randn(400, 2), most_rows=100) == pytest.approx(0.5, abs=0.1)


def test_too_few_points_have_no_neighbourhoods() -> None:
    assert math.isnan(trustworthiness(torch.randn(20, 3), torch.randn(20, 2)))
    with pytest.raises(InputError, match="3 neighbours cannot be found among 3 points"):
        nearest_neighbours(torch.randn(3, 2), 3)
