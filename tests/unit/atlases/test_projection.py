import numpy as np
import pytest
import torch
from openTSNE import TSNE
from openTSNE.affinity import PerplexityBasedNN

from headscope.atlases import compile_kernels, distance_correlation, umap_layout
from headscope.atlases.exact_tsne import divergence, exact_tsne, joint_affinities
from headscope.atlases.nearest_neighbours import trustworthiness
from headscope.atlases.projection import principal_components, project
from headscope.atlases.umap_layout import curve_parameters, fuzzy_graph
from headscope.errors import InputError


def three_clouds(n: int = 120, dim: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around three centres, and the number of each point's centre."""
    generator = torch.Generator().manual_seed(0)
    centres = 8 * torch.randn(3, dim, generator=generator)
    labels = torch.arange(n) % 3
    return centres[labels] + torch.randn(n, dim, generator=generator), labels


def test_principal_components_on_paper() -> None:
    # Spread along (1, 1) / √2, and less across: the signs make the largest loadings positive.
    points = torch.tensor([[2.0, 2.0], [-2.0, -2.0], [1.0, -1.0], [-1.0, 1.0]])
    drawn = principal_components(points, 2)
    root = 2**0.5
    assert drawn[:2, 0].tolist() == pytest.approx([2 * root, -2 * root])
    assert drawn[2:, 0].tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert drawn[:, 1].abs().tolist() == pytest.approx([0.0, 0.0, root, root], abs=1e-12)


def test_signs_do_not_depend_on_the_order_of_points() -> None:
    points, _ = three_clouds()
    assert torch.allclose(principal_components(points, 3).flip(0), principal_components(points.flip(0), 3))


def test_dimensions_that_points_lack_are_zero() -> None:
    assert project(torch.randn(5, 2), dims=3)[:, 2].tolist() == [0.0] * 5
    assert project(torch.ones(5, 2)).abs().max() == 0.0


@pytest.mark.parametrize("method", ["pca", "tsne", "umap"])
@pytest.mark.parametrize("dims", [2, 3])
def test_clouds_stay_apart_and_maps_repeat(method, dims: int) -> None:
    points, labels = three_clouds()
    drawn = project(points, method, dims=dims, seed=4)
    assert drawn.shape == (120, dims)
    assert drawn.dtype == torch.float32
    apart = torch.cdist(drawn, drawn)
    same = labels[:, None] == labels
    assert apart[same].mean() < 0.6 * apart[~same].mean()
    if method != "tsne":  # slow enough once
        assert torch.equal(drawn, project(points, method, dims=dims, seed=4))


def naive_graph(points: np.ndarray, k: int) -> np.ndarray:
    """UMAP's weights [point, point], word for word after McInnes et al. (2018), algorithms 2 and 3."""
    n = len(points)
    apart = np.linalg.norm(points[:, None] - points, axis=-1)
    weights = np.zeros((n, n))
    for i in range(n):
        near = np.argsort(apart[i], kind="stable")[1:k]  # the point itself is among its k
        rho = apart[i, near].min()
        low, high = 0.0, 1e3
        for _ in range(200):
            sigma = (low + high) / 2
            total = np.exp(-np.maximum(apart[i, near] - rho, 0) / sigma).sum()
            low, high = (low, sigma) if total > np.log2(k) else (sigma, high)
        weights[i, near] = np.exp(-np.maximum(apart[i, near] - rho, 0) / sigma)
    return weights + weights.T - weights * weights.T


def test_the_graph_of_umap_is_that_of_its_paper() -> None:
    points, _ = three_clouds(90)
    head, tail, weight = fuzzy_graph(points, 15)
    graph = np.zeros((90, 90))
    graph[head, tail] = weight
    assert len(head) == np.count_nonzero(graph)  # every edge once
    assert np.abs(graph - naive_graph(points.numpy().astype(np.float64), 15)).max() < 1e-3


def test_the_curve_of_umap_is_that_of_its_settings() -> None:
    assert curve_parameters(0.1, 1.0) == pytest.approx((1.577, 0.895), abs=1e-3)  # as umap-learn has them


def test_umap_keeps_neighbours() -> None:
    generator = torch.Generator().manual_seed(5)
    angles = torch.rand(400, generator=generator) * 6.28
    ring = torch.stack([angles.cos(), angles.sin()], 1) @ torch.randn(2, 12, generator=generator)
    drawn = project(ring + 0.01 * torch.randn(400, 12, generator=generator), "umap")
    assert trustworthiness(ring, drawn) > 0.97


def test_exact_tsne_is_as_good_as_opentsne() -> None:
    points, _ = three_clouds(90)
    start = principal_components(points, 2)
    affinities = joint_affinities(points, 20.0)
    drawn = exact_tsne(points, start, perplexity=20.0, n_early=100, n_steps=150)
    reference = TSNE(
        perplexity=20, initialization="pca", neighbors="exact", early_exaggeration_iter=100, n_iter=150
    ).fit(points.numpy().astype("float64"))
    other = torch.tensor(reference.__array__(), dtype=torch.float32)
    assert divergence(drawn, affinities) <= 1.05 * divergence(other, affinities)


def test_affinities_are_those_of_opentsne() -> None:
    points, _ = three_clouds(90)
    theirs = PerplexityBasedNN(points.numpy().astype("float64"), perplexity=10, method="exact").P.toarray()
    (rows, columns), values = joint_affinities(points, 10.0)
    ours = torch.zeros(90, 90)
    ours[rows, columns] = values
    assert torch.allclose(ours, torch.from_numpy(theirs).float(), atol=2e-6)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="there is no map 'som': choose one of pca, tsne, umap"):
        project(torch.randn(30, 3), "som")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="2 or 3 dimensions, got 4"):
        project(torch.randn(30, 3), dims=4)
    with pytest.raises(InputError, match="NaN or infinity"):
        project(torch.full((30, 3), torch.nan))
    with pytest.raises(InputError, match="umap needs at least 20 points, and there are 4: use map='pca'"):
        project(torch.randn(4, 3), "umap")


def test_nothing_is_compiled_after_the_kernels_are() -> None:
    compile_kernels()
    compiled = [umap_layout._optimise, distance_correlation._correlate]
    before = [len(function.signatures) for function in compiled]
    assert all(before)
    points, _ = three_clouds(60)
    for dims in (2, 3):
        for kind in (torch.float32, torch.float64):
            project(points.to(kind), "umap", dims=dims, seed=7)
    for is_causal in (True, False):
        pairs = distance_correlation.Pairs(np.array([0, 20, 60]), np.array([0, 20, 60]), is_causal)
        vectors = points.numpy()
        distance_correlation.distance_correlation(vectors, vectors, vectors, vectors, pairs, cosine=is_causal)
    assert [len(function.signatures) for function in compiled] == before
