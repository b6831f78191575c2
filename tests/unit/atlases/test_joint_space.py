import math

import pytest
import torch

from headscope.atlases.joint_space import JointSpace, key_bias_share, near_correlation, weighted_correlation
from headscope.errors import InputError


def clouds(n: int = 60, dim: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys with different means and lengths."""
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(n, dim, generator=generator) + 2.0
    key = 3 * torch.randn(n, dim, generator=generator) - 1.0
    return query.double(), key.double()


def sink(n: int = 200, dim: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries around a mean, and keys of which the first lies far along that mean: every query attends to it."""
    generator = torch.Generator().manual_seed(2)
    mean = torch.zeros(dim)
    mean[0] = 4.0
    query = torch.randn(n, dim, generator=generator) + mean
    key = torch.randn(n, dim, generator=generator)
    key[0] = mean * 2
    return query.double(), key.double()


@pytest.mark.parametrize("coordinates", ["translated", "scaled"])
def test_attention_is_that_of_the_points(coordinates) -> None:
    query, key = clouds()
    space = JointSpace.fit(query, key)
    before = (query @ key.T / 8**0.5).softmax(-1)
    points = space.queries(query, coordinates) @ space.keys(key, coordinates).T
    after = (points / 8**0.5).softmax(-1)
    assert (after - before).abs().max() < 1e-5


def test_moving_queries_changes_attention() -> None:
    query, key = clouds()
    before = (query @ key.T).softmax(-1)
    after = ((query - query.mean(0)) @ key.T).softmax(-1)
    assert (after - before).abs().max() > 0.1


def test_centroids_meet_and_median_norms_are_equal() -> None:
    query, key = clouds()
    space = JointSpace.fit(query, key)
    assert (space.queries(query, "translated").mean(0) - space.keys(key, "translated").mean(0)).norm() < 1e-12
    medians = [
        float(points.norm(dim=-1).median()) for points in (space.queries(query, "scaled"), space.keys(key, "scaled"))
    ]
    assert medians[0] == pytest.approx(medians[1])


def test_a_scale_on_paper() -> None:
    # Norms 1 and 4 after translation (means are zero): c = √(4 / 1).
    query, key = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[4.0, 0.0], [-4.0, 0.0]])
    space = JointSpace.fit(query, key)
    assert space.scale == pytest.approx(2.0)
    assert space.keys(key)[0].tolist() == [2.0, 0.0]
    assert space.radius == pytest.approx(2.0)


def test_lifted_distances_are_dot_products() -> None:
    query, key = clouds()
    space = JointSpace.fit(query, key)
    queries, keys = space.queries(query, "lifted"), space.keys(key, "lifted")
    squares = torch.cdist(queries, keys).square()
    moved = key + space.shift
    expected = (space.scale * query).square().sum(-1)[:, None] + space.radius**2 - 2 * query @ moved.T
    assert (squares - expected).abs().max() < 1e-9 * expected.abs().max()
    # So for every query the order of its keys is that of the logits, reversed.
    assert (squares.argsort(-1) == (query @ key.T).argsort(-1, descending=True)).all()


def test_a_sink_is_nearest_in_lifted_coordinates_and_furthest_without() -> None:
    query, key = sink()
    space = JointSpace.fit(query, key)
    assert ((query @ key.T).argmax(-1) == 0).float().mean() > 0.95  # nearly all attend to it
    lifted = torch.cdist(space.queries(query, "lifted"), space.keys(key, "lifted"))
    assert (lifted.argmin(-1) == 0).float().mean() > 0.95
    plain = torch.cdist(space.queries(query, "scaled"), space.keys(key, "scaled"))
    assert ((plain < plain[:, :1]).float().mean(-1) > 0.9).float().mean() > 0.9  # most keys are nearer


def test_key_bias_names_the_sink() -> None:
    query, key = sink()
    bias = JointSpace.fit(query, key).key_bias(key)
    assert bias.argmax() == 0
    assert bias[0] > 5 * bias[1:].abs().max() / 3
    assert key_bias_share(query, key) > 0.5


def test_the_share_of_key_bias_on_paper() -> None:
    # Queries 1 ± 1 and keys ±1 in one dimension: Var = q̄² Var(k) + Var(q) Var(k) = 1 + 1.
    query, key = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [-1.0]])
    assert key_bias_share(query, key) == pytest.approx(0.5)
    assert key_bias_share(query - 1, key) == 0.0


def test_the_searched_scale_is_a_candidate_that_fits_best() -> None:
    query, key = clouds(300)
    space = JointSpace.fit(query, key, scale="correlation")
    dots = (query @ (key + space.shift).T).flatten()

    def fit(c: float) -> float:
        return near_correlation(dots, torch.cdist(c * query, (key + space.shift) / c).flatten())

    assert all(fit(space.scale) <= fit(c) for c in (0.2, 0.4, 0.8, 1.0, 1.25, 2.5, 5.0))


def test_equal_weights_give_plain_correlation() -> None:
    x, y = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2.0, 1.0, 5.0])
    assert weighted_correlation(x, y, torch.ones(3)) == pytest.approx(float(torch.corrcoef(torch.stack([x, y]))[0, 1]))
    assert math.isnan(weighted_correlation(x, torch.ones(3), torch.ones(3)))  # no variance


def test_a_head_whose_queries_are_all_zero_keeps_its_scale() -> None:
    space = JointSpace.fit(torch.zeros(5, 3), torch.randn(5, 3))
    assert space.scale == 1.0
    assert torch.isfinite(space.points(torch.zeros(5, 3), torch.randn(5, 3), "lifted")).all()


def test_unknown_words_are_refused() -> None:
    query, key = clouds(5)
    with pytest.raises(InputError, match="there is no scale 'best': choose one of norms, correlation"):
        JointSpace.fit(query, key, scale="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no coordinates 'curved'"):
        JointSpace.fit(query, key).queries(query, "curved")  # type: ignore[arg-type]
