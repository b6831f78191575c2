"""Numbers of an atlas, head by head: how far distance stands for the dot product, and how far a map keeps it."""

import functools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.atlases.atlas_index import SCORES, AtlasPlace
from headscope.atlases.atlas_vectors import HeadVectors, read_vectors
from headscope.atlases.distance_correlation import DistanceCorrelation, Pairs, distance_correlation
from headscope.atlases.joint_space import key_bias_share
from headscope.atlases.nearest_neighbours import MOST_ROWS, trustworthiness
from headscope.atlases.token_table import table_bytes
from headscope.errors import LoadError
from headscope.files import write_file
from headscope.progress import Cancel, OnProgress, Steps, stop_if
from headscope.runs.shard import Shard, arrow
from headscope.sites import ByHead, Head, parse

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas


@dataclass(frozen=True)
class HeadScores:
    """What is known of a head's points; NaN where a number does not exist.

    `pearson` is AttentionViz's: per query over the keys of its own text, Euclidean distance in the scaled joint space,
    mean over queries. The names of the others say how they differ: `spearman`; `cosine` distance; `pooled` over all
    pairs rather than per query; `near` pairs, weighted; in the `lifted` space; on the `map` (PCA, 2-D, scaled;
    `map_lifted` of the lifted space). `key_bias_share` is the share of logit variance due to key bias, `norm_gap` the
    mean of |q| − |k|, `norm_ratio` median |q| / median |k|, `separation` the distance of the centroids of queries and
    keys over their spread, before translation. `trustworthiness` is that of the map, with 10 neighbours.
    """

    head: str
    scale: float
    pearson: float
    spearman: float
    cosine_pearson: float
    cosine_spearman: float
    pooled_pearson: float
    pooled_spearman: float
    pooled_cosine_pearson: float
    pooled_cosine_spearman: float
    near: float
    lifted_pearson: float
    lifted_spearman: float
    map_pearson: float
    map_spearman: float
    map_pooled_pearson: float
    map_lifted_spearman: float
    trustworthiness: float
    map_lifted_trustworthiness: float
    key_bias_share: float
    norm_gap: float
    norm_ratio: float
    separation: float
    query_spread: float
    key_spread: float


def scores_of(
    atlas: "Atlas", *, progress: OnProgress | None = None, cancel: Cancel | None = None
) -> "ByHead[HeadScores] | dict[str, HeadScores]":
    """The scores of all heads: read, or computed and kept; anew where the file is damaged. By address for depths."""
    file = atlas.folder / SCORES
    rows = _read(file)
    if rows is None:
        steps = Steps("scores", len(atlas), progress, cancel)
        rows = []
        for place in atlas.places.values():
            stop_if(cancel)
            rows.append(head_scores(atlas, place))
            steps.add()
        _write(file, rows)
    heads = [parse(row.head) for row in rows]
    if all(isinstance(head, Head) for head in heads):
        return ByHead({head: row for head, row in zip(heads, rows, strict=True) if isinstance(head, Head)})
    return {row.head: row for row in rows}


def head_scores(atlas: "Atlas", place: AtlasPlace) -> HeadScores:
    """The scores of one head. The PCA maps that they are about are made where they are not there yet."""
    vectors = read_vectors(atlas, place)
    drawn = torch.from_numpy(atlas.map(place.address, "pca"))
    if vectors.space is None:
        unknown = {field.name: float("nan") for field in fields(HeadScores) if field.name != "head"}
        kept_share = trustworthiness(vectors.points(), drawn, most_rows=MOST_ROWS)
        return HeadScores(**{"head": place.address, **unknown, "trustworthiness": kept_share})
    drawn_lifted = torch.from_numpy(atlas.map(place.address, "pca", coordinates="lifted"))
    pairs = pairs_of(atlas, place)
    query, key = (part.numpy() for part in vectors.vectors)
    correlate = functools.partial(_correlate, query, key, pairs)
    full, cosine = correlate(vectors.parts("scaled")), correlate(vectors.parts("scaled"), cosine=True)
    lifted = correlate(vectors.parts("lifted"))
    on_map = correlate(drawn.split([len(query), len(key)]))
    on_lifted_map = correlate(drawn_lifted.split([len(query), len(key)]))
    return HeadScores(
        head=place.address,
        scale=vectors.space.scale,
        pearson=full.pearson,
        spearman=full.spearman,
        cosine_pearson=cosine.pearson,
        cosine_spearman=cosine.spearman,
        pooled_pearson=full.pooled_pearson,
        pooled_spearman=full.pooled_spearman,
        pooled_cosine_pearson=cosine.pooled_pearson,
        pooled_cosine_spearman=cosine.pooled_spearman,
        near=full.near,
        lifted_pearson=lifted.pearson,
        lifted_spearman=lifted.spearman,
        map_pearson=on_map.pearson,
        map_spearman=on_map.spearman,
        map_pooled_pearson=on_map.pooled_pearson,
        map_lifted_spearman=on_lifted_map.spearman,
        trustworthiness=trustworthiness(vectors.points("scaled"), drawn, most_rows=MOST_ROWS),
        map_lifted_trustworthiness=trustworthiness(vectors.points("lifted"), drawn_lifted, most_rows=MOST_ROWS),
        **_norms(vectors),
    )


def pairs_of(atlas: "Atlas", place: AtlasPlace) -> Pairs:
    """Which keys stand in the text of each query of a head."""
    query, key = place.clouds
    return Pairs(atlas.starts(query.stack), atlas.starts(key.stack), place.is_causal)


def _correlate(
    query: np.ndarray, key: np.ndarray, pairs: Pairs, points: Iterable[torch.Tensor], *, cosine: bool = False
) -> DistanceCorrelation:
    query_points, key_points = (part.numpy() for part in points)
    return distance_correlation(query, key, query_points, key_points, pairs, cosine=cosine)


def _norms(vectors: HeadVectors) -> dict[str, float]:
    query, key = (part.double() for part in vectors.vectors)
    query_norms, key_norms = query.norm(dim=-1), key.norm(dim=-1)
    spreads = [float((part - part.mean(0)).square().sum(-1).mean().sqrt()) for part in (query, key)]
    gap = float((query.mean(0) - key.mean(0)).norm())
    spread = float(np.hypot(spreads[0], spreads[1]) / np.sqrt(2))
    median = float(key_norms.median())
    return {
        "key_bias_share": key_bias_share(query, key),
        "norm_gap": float(query_norms.mean() - key_norms.mean()),
        "norm_ratio": float(query_norms.median()) / median if median > 0 else float("nan"),
        "separation": gap / spread if spread > 0 else float("nan"),
        "query_spread": spreads[0],
        "key_spread": spreads[1],
    }


def _write(file: Path, rows: list[HeadScores]) -> None:
    pa, pq = arrow()
    write_file(file, table_bytes(pa.Table.from_pylist([asdict(row) for row in rows]), pa, pq))


def _read(file: Path) -> list[HeadScores] | None:
    """What was computed before; None where the file is missing or damaged."""
    if not file.is_file():
        return None
    try:
        with Shard(file).open() as parquet:
            table: list[dict[str, Any]] = parquet.read().to_pylist()
    except LoadError:
        return None
    return [HeadScores(**row) for row in table]
