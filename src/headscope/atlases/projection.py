"""From points of many dimensions to a map of two or three: PCA, t-SNE or UMAP; the same for the same seed."""

from typing import get_args

import torch
from torch import Tensor

from headscope.choices import MapMethod
from headscope.errors import InputError, MissingExtraError

PERPLEXITY = 30.0
N_ITERATIONS = 500
_EARLY = 250
# Below this many points there are no neighbourhoods to draw.
_FEWEST = 20


def project(points: Tensor, method: MapMethod = "pca", *, dims: int = 2, seed: int = 0) -> Tensor:
    """A map [point, dimension] of points [point, dim], in fp32 on the processor.

    t-SNE and UMAP begin with PCA. On a GPU, PCA and t-SNE are computed there.
    """
    if method not in get_args(MapMethod):
        raise InputError(f"there is no map {method!r}: choose one of {', '.join(get_args(MapMethod))}.")
    if dims not in (2, 3):
        raise InputError(f"a map has 2 or 3 dimensions, got {dims}.")
    if not torch.isfinite(points).all():
        raise InputError("points hold NaN or infinity, so they cannot be drawn.")
    start = principal_components(points, dims)
    if method == "pca":
        return start.float().cpu()
    if len(points) < _FEWEST:
        raise InputError(f"{method} needs at least {_FEWEST} points, and there are {len(points)}: use map='pca'.")
    if method == "umap":
        from headscope.atlases.umap_layout import umap_layout  # compiles; a GPU machine may lack what it needs

        return umap_layout(points, start, seed=seed)
    if points.device.type == "cuda":
        from headscope.atlases.exact_tsne import exact_tsne

        return exact_tsne(points, start, perplexity=_perplexity(points)).cpu()
    return _tsne(points, start, seed)


def principal_components(points: Tensor, dims: int) -> Tensor:
    """The first principal components [point, dims]; the largest loading of each is positive, so signs are fixed.

    Dimensions that the points do not have are zero.
    """
    centred = (points - points.mean(0)).double()
    spread = centred.T @ centred
    directions = torch.linalg.eigh(spread).eigenvectors.flip(1)[:, :dims]
    largest = directions.abs().argmax(0)
    directions = directions * directions.gather(0, largest[None]).sign()
    drawn = centred @ directions
    return torch.nn.functional.pad(drawn, (0, dims - drawn.shape[1]))


def _perplexity(points: Tensor) -> float:
    return min(PERPLEXITY, (len(points) - 1) / 3)


def _tsne(points: Tensor, start: Tensor, seed: int) -> Tensor:
    """openTSNE's, with exact neighbours."""
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise MissingExtraError("t-SNE needs the package openTSNE: pip install 'headscope[atlas]'.") from error
    layout = start.double().cpu().numpy()
    layout = layout * (1e-4 / max(float(layout[:, 0].std()), 1e-300))
    solver = TSNE(
        n_components=start.shape[1],
        perplexity=_perplexity(points),  # type: ignore[arg-type]  # its hint says int, its text a number
        initialization=layout,  # type: ignore[arg-type]  # an array, as its text says
        neighbors="exact",
        # Interpolation on a grid is made for two dimensions.
        negative_gradient_method="auto" if start.shape[1] == 2 else "bh",
        early_exaggeration_iter=_EARLY,
        n_iter=N_ITERATIONS,
        random_state=seed,
        n_jobs=1,
    )
    embedding = solver.fit(points.double().cpu().numpy())
    return torch.tensor(embedding.__array__(), dtype=torch.float32)
