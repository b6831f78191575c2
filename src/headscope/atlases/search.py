"""Search in an atlas: the tokens that a text matches, and which heads gather them; neighbours.

A head gathers hits when they lie nearer to one another than tokens drawn at random do, in the head's full joint space
(scaled coordinates), the points of each cloud among themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.atlases.atlas_index import AtlasPlace, duckdb_package
from headscope.atlases.atlas_vectors import read_vectors
from headscope.choices import Side
from headscope.errors import InputError
from headscope.progress import Cancel, OnProgress, Steps, stop_if

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas

N_RANDOM = 199
# Distances are taken among so many hits at most, drawn at random.
MOST_HITS = 64
# Hits belong to one cluster when a chain of hits joins them, each step at most this share of the chance distance; a
# cluster has at least this share of the hits.
_LINK, _CLUSTER_SHARE = 0.5, 0.05
_LONGEST_PATTERN = 500


@dataclass(frozen=True)
class Gathering:
    """How a head gathers the hits: `ratio` of their mean pairwise distance to that of random tokens (1 by chance).

    `low` and `high` are the 95 % jackknife interval of the ratio. `p` is corrected for all heads: the chance that any
    head gathers as many random tokens as closely. `n_clusters` counts the clusters that the hits form.
    """

    head: str
    ratio: float
    low: float
    high: float
    p: float
    n_clusters: int


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found: rows of the token table by stack, and the heads, the one that gathers them most first."""

    text: str
    is_regex: bool
    hits: dict[str, np.ndarray]
    heads: tuple[Gathering, ...]
    note: str = ""

    @property
    def n_hits(self) -> int:
        """How many tokens match."""
        return sum(map(len, self.hits.values()))

    def __repr__(self) -> str:
        best = ", ".join(f"{head.head} {head.ratio:.2f}" for head in self.heads[:3])
        return f"Search({self.text!r}: {self.n_hits} tokens; {best or self.note})"


@dataclass(frozen=True)
class NearPoint:
    """A point near another: a token of a stack, as query or as key, and how far away it is."""

    role: str
    stack: str
    row: int
    text: str
    example: int
    position: int
    distance: float


def search(
    atlas: "Atlas",
    text: str,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Search:
    """Tokens whose text is `text`, or matches the regular expression (RE2's syntax, which takes linear time).

    Heads are ranked in their full space; an imported atlas has none: there the map counts, and `note` says so.
    """
    hits = matching_rows(atlas, text, regex=regex, ignore_case=ignore_case)
    if not any(len(rows) >= 3 for rows in hits.values()):
        return Search(text, regex, hits, (), "heads are ranked from three matching tokens on")
    draws = {stack: _draws(len(rows), atlas.n_tokens[stack], seed) for stack, rows in hits.items()}
    kept_hits = {stack: _thin(rows, seed) for stack, rows in hits.items()}
    steps = Steps("heads", len(atlas), progress, cancel)
    rows = []
    for place in atlas.places.values():
        stop_if(cancel)
        rows.append(_gather(atlas, place, kept_hits, draws))
        steps.add()
    return Search(text, regex, hits, _ranked(list(atlas.places), rows), _note(atlas))


def matching_rows(atlas: "Atlas", text: str, *, regex: bool, ignore_case: bool) -> dict[str, np.ndarray]:
    """The rows of matching tokens, for every stack. Spaces around a token do not count."""
    if not text.strip() or len(text) > _LONGEST_PATTERN:
        raise InputError(
            f"a search takes 1 to {_LONGEST_PATTERN} characters other than blanks, got {len(text.strip())}."
        )
    duckdb = duckdb_package()
    hits: dict[str, np.ndarray] = {}
    for stack in atlas.n_tokens:
        tokens = atlas.tokens(stack)  # DuckDB reads the Arrow table of this name
        connection = duckdb.connect()
        connection.register("tokens", tokens)
        if regex:
            condition, values = "regexp_matches(trim(text), ?, ?)", [text, "i" if ignore_case else "c"]
        elif ignore_case:
            condition, values = "lower(trim(text)) = lower(?)", [text.strip()]
        else:
            condition, values = "trim(text) = ?", [text.strip()]
        try:
            relation = connection.execute(f"select row from tokens where {condition} order by row", values)
            hits[stack] = np.asarray(relation.fetchnumpy()["row"], np.int64)
        except duckdb.InvalidInputException as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{text!r} is not a regular expression that can be searched (RE2): {reason}") from error
        finally:
            connection.close()
    return hits


def neighbours(atlas: "Atlas", place: AtlasPlace, row: int, *, role: Side = "query", k: int = 10) -> list[NearPoint]:
    """The k points nearest to a token's, among queries and keys, in the full space (scaled coordinates)."""
    clouds = {cloud.role: cloud for cloud in place.clouds}
    is_joint = len(clouds) > 1
    if role not in clouds and is_joint:
        raise InputError(f"{place.address} has {' and '.join(clouds)}, not {role!r}.")
    cloud = clouds.get(role, place.clouds[0])
    if not 0 <= row < atlas.n_tokens[cloud.stack]:
        raise InputError(f"{cloud.stack} has tokens 0 to {atlas.n_tokens[cloud.stack] - 1}, not {row}.")
    parts = read_vectors(atlas, place).parts()
    starts = np.cumsum([0, *map(len, parts)])
    points = torch.cat(parts)
    own = int(starts[place.clouds.index(cloud)]) + row
    distances = (points - points[own]).norm(dim=-1)
    distances[own] = torch.inf
    nearest = distances.topk(min(k, len(points) - 1), largest=False)
    return [
        near_point(atlas, place, int(point), float(distance))
        for distance, point in zip(nearest.values, nearest.indices, strict=True)
    ]


def near_point(atlas: "Atlas", place: AtlasPlace, point: int, distance: float) -> NearPoint:
    """What the point of a number is."""
    for cloud in place.clouds:
        n_tokens = atlas.n_tokens[cloud.stack]
        if point < n_tokens:
            token = atlas.tokens(cloud.stack).slice(point, 1).to_pylist()[0]
            where = (token["text"], token["example"], token["position"])
            return NearPoint(cloud.role, cloud.stack, point, *where, distance)
        point -= n_tokens
    raise InputError(f"{place.address} has no point {point}.")


def same_points(atlas: "Atlas", head: str, points: Sequence[int], other: str) -> np.ndarray:
    """The points of another head that are the same tokens in the same role: a selection, seen there."""
    first, second = atlas.place(head), atlas.place(other)
    marked: dict[tuple[str, str], np.ndarray] = {}
    start = 0
    chosen = np.asarray(points, np.int64)
    n_points = sum(atlas.n_tokens[cloud.stack] for cloud in first.clouds)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_points):
        raise InputError(f"{first.address} has points 0 to {n_points - 1}.")
    for cloud in first.clouds:
        n_tokens = atlas.n_tokens[cloud.stack]
        inside = (chosen >= start) & (chosen < start + n_tokens)
        marked[cloud.role, cloud.stack] = chosen[inside] - start
        start += n_tokens
    start, same = 0, [np.empty(0, np.int64)]
    for cloud in second.clouds:
        same.append(marked.get((cloud.role, cloud.stack), np.empty(0, np.int64)) + start)
        start += atlas.n_tokens[cloud.stack]
    return np.concatenate(same)


# Ranking


def _parts(atlas: "Atlas", place: AtlasPlace) -> tuple[Tensor, ...]:
    """The points of each cloud in the full space, or on the first map of an atlas that was imported."""
    if atlas.index["has_vectors"]:
        return read_vectors(atlas, place).parts()
    name = atlas.maps()[0]
    drawn = torch.from_numpy(atlas.map(place.address, name.method, dims=name.dims, coordinates=name.coordinates))
    return drawn.double().split([atlas.n_tokens[cloud.stack] for cloud in place.clouds])


def _note(atlas: "Atlas") -> str:
    if atlas.index["has_vectors"]:
        return ""
    return f"ranked on the map {atlas.maps()[0]}: this atlas holds no queries and keys"


def _thin(rows: np.ndarray, seed: int) -> np.ndarray:
    """At most so many hits as distances are taken of."""
    return rows if len(rows) <= MOST_HITS else np.random.default_rng(seed).choice(rows, MOST_HITS, replace=False)


def _draws(n_hits: int, n_tokens: int, seed: int) -> np.ndarray:
    """Random tokens, as many as hits, again and again [draw, token]; the same for every head."""
    generator = np.random.default_rng(seed)
    size = min(n_hits, MOST_HITS)
    return np.stack([generator.choice(n_tokens, size, replace=False) for _ in range(N_RANDOM)])


def _gather(
    atlas: "Atlas", place: AtlasPlace, hits: dict[str, np.ndarray], draws: dict[str, np.ndarray]
) -> tuple[np.ndarray, float, int]:
    """Mean distance of the hits and of each draw, over that of the mean draw [1 + draw]; jackknife error; clusters."""
    ratios, clusters = [], []
    without: dict[str, list[Tensor]] = {}  # by stack: a token that is left out is so as query and as key
    for cloud, points in zip(place.clouds, _parts(atlas, place), strict=True):
        rows = hits[cloud.stack]
        if len(rows) < 3:
            continue
        points = points - points.mean(0)  # far from zero, the products behind distances in fp32 lose their digits
        apart = torch.cdist(points[rows], points[rows])
        drawn = points.float()[draws[cloud.stack]]
        random = torch.cdist(drawn, drawn).mean((1, 2)).double()
        # Each point is at no distance from itself, among hits and draws alike.
        chance = max(float(random.mean()), 1e-300)
        ratios.append(np.concatenate([[float(apart.mean())], random.numpy()]) / chance)
        without.setdefault(cloud.stack, []).append(_means_without(apart / chance))
        clusters.append(_n_clusters(apart, chance * len(rows) / (len(rows) - 1)))
    if not ratios:
        return np.full(1 + N_RANDOM, np.nan), float("nan"), 0
    errors = [_jackknife(torch.stack(of_stack).sum(0) / len(ratios)) for of_stack in without.values()]
    return np.mean(ratios, axis=0), float(np.sqrt(np.square(errors).sum())), max(clusters)


def _means_without(apart: Tensor) -> Tensor:
    """The mean pairwise distance without each hit [hit]; each is at no distance from itself, as in the whole mean."""
    n = len(apart)
    return (apart.sum() - 2 * apart.sum(0)) / ((n - 1) * (n - 2)) * ((n - 1) / n)


def _jackknife(without: Tensor) -> float:
    """The standard error of a mean from its values without each hit."""
    n = len(without)
    return float(((n - 1) / n * (without - without.mean()).square().sum()).sqrt())


def _n_clusters(apart: Tensor, chance: float) -> int:
    """How many groups of hits there are in which each is near another."""
    from scipy.sparse.csgraph import connected_components

    labels = connected_components((apart <= _LINK * chance).numpy(), directed=False)[1]
    return int((np.bincount(labels) >= max(2, _CLUSTER_SHARE * len(apart))).sum())


def _ranked(addresses: list[str], rows: list[tuple[np.ndarray, float, int]]) -> tuple[Gathering, ...]:
    """Heads by ratio. p compares how far below chance a head is with the furthest of all heads in each draw."""
    ratios = np.stack([row[0] for row in rows])
    random = ratios[:, 1:]
    spread = random.std(1, ddof=1, keepdims=True)
    below = (random.mean(1, keepdims=True) - ratios) / np.where(spread > 0, spread, np.inf)
    known = ~np.isnan(ratios[:, 0])
    furthest = below[known, 1:].max(0)
    heads = [
        Gathering(
            address,
            float(ratio[0]),
            float(ratio[0] - 1.96 * error),
            float(ratio[0] + 1.96 * error),
            float((1 + (furthest >= distance[0]).sum()) / (1 + N_RANDOM)),
            n_clusters,
        )
        for address, (ratio, error, n_clusters), distance, is_known in zip(addresses, rows, below, known, strict=True)
        if is_known
    ]
    return tuple(sorted(heads, key=lambda head: (head.ratio, head.head)))
