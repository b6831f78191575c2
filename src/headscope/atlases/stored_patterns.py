"""Attention from the stored queries and keys of an atlas: of one example, the strongest keys, the mean by position."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.atlases.atlas_index import AtlasPlace
from headscope.atlases.atlas_vectors import HeadVectors, read_vectors
from headscope.atlases.distance_correlation import chosen_pairs
from headscope.atlases.head_scores import pairs_of
from headscope.atlases.point_capture import weights_of
from headscope.choices import Coordinates
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas

# Cells of one example's pattern; positions of the mean by position.
MOST_CELLS = 2**20
MOST_POSITIONS = 128
_PARTIAL = "from queries and keys alone: this layer adds more to its logits (a bias, a window or a sink)"


@dataclass(frozen=True, eq=False)
class ExamplePattern:
    """The weights of one example [query, key], where its tokens begin, and how long its values are [key] if known."""

    weights: Tensor
    first_query: int
    first_key: int
    value_norm: Tensor | None


@dataclass(frozen=True, eq=False)
class PairSample:
    """Pairs of a query and a key of its example [pair]: rows, distance in the joint space, and logit."""

    queries: np.ndarray
    keys: np.ndarray
    distances: np.ndarray
    logits: np.ndarray
    n_pairs: int

    def pearson(self) -> float:
        """The correlation of distance with logit over these pairs; NaN where either does not vary."""
        return _correlation(self.distances, self.logits)

    def spearman(self) -> float:
        """The same by rank."""
        return _correlation(*(_ranks(values) for values in (self.distances, self.logits)))


def note_of(atlas: "Atlas", place: AtlasPlace) -> str:
    """What the weights leave out, where they do."""
    return "" if atlas.index["sites"][place.site]["is_whole"] else _PARTIAL


def example_pattern(atlas: "Atlas", place: AtlasPlace, example: int) -> ExamplePattern:
    """The pattern of one example."""
    vectors = _joint(atlas, place)
    n_examples = atlas.index["corpus"]["n_sampled"]
    if not 0 <= example < n_examples:
        raise InputError(f"this atlas has examples 0 to {n_examples - 1}, not {example}.")
    stacks = [cloud.stack for cloud in place.clouds]
    (first_query, last_query), (first_key, last_key) = (atlas.starts(stack)[example : example + 2] for stack in stacks)
    n_cells = int(last_query - first_query) * int(last_key - first_key)
    if n_cells > MOST_CELLS:
        raise InputError(f"example {example} has {n_cells:,} pairs of tokens, more than the {MOST_CELLS:,} shown here.")
    query, key = vectors.vectors
    weights = _weights(atlas, place, query[first_query:last_query], key[first_key:last_key])
    norms = _value_norms(atlas, place)
    norm = None if norms is None else norms[first_key:last_key]
    return ExamplePattern(weights, int(first_query), int(first_key), norm)


def strongest_keys(atlas: "Atlas", place: AtlasPlace, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the `top` strongest keys of every query [query, top], −1 for none, and their weights."""
    n_queries = atlas.n_tokens[place.clouds[0].stack]
    keys = np.full((n_queries, top), -1, np.int32)
    weights = np.zeros((n_queries, top), np.float32)
    for first_query, first_key, part in _examples(atlas, place):
        best = part.topk(min(top, part.shape[1]), dim=1)
        rows = slice(first_query, first_query + len(part))
        count = best.values.shape[1]
        seen = best.values.numpy() > 0
        keys[rows, :count] = np.where(seen, best.indices.numpy() + first_key, -1)
        weights[rows, :count] = best.values.numpy()
    return keys, weights


def mean_by_position(atlas: "Atlas", place: AtlasPlace) -> tuple[np.ndarray, np.ndarray]:
    """The mean weight from position i to position j over the examples that have both, rows renormalised; and counts.

    Of the first positions only, where examples are longer.
    """
    longest = [int(np.diff(atlas.starts(cloud.stack)).max(initial=0)) for cloud in place.clouds]
    n_queries, n_keys = (min(length, MOST_POSITIONS) for length in longest)
    total, counts = torch.zeros(n_queries, n_keys), torch.zeros(n_queries, n_keys)
    for _, _, part in _examples(atlas, place):
        rows, columns = min(len(part), n_queries), min(part.shape[1], n_keys)
        total[:rows, :columns] += part[:rows, :columns]
        counts[:rows, :columns] += 1
    means = total / counts.clamp_min(1)
    means = means / means.sum(-1, keepdim=True).clamp_min(1e-12)
    return means.numpy(), counts.numpy().astype(np.int32)


def pair_sample(atlas: "Atlas", place: AtlasPlace, coordinates: Coordinates, most: int) -> PairSample:
    """A sample of the pairs that heads compare, with the distance of their points in the full space and their logit."""
    vectors = _joint(atlas, place)
    pairs = pairs_of(atlas, place)
    n_pairs = pairs.count()
    queries, keys = pairs.rows_of(chosen_pairs(n_pairs, most))
    query_points, key_points = vectors.parts(coordinates)
    query, key = (part.double() for part in vectors.vectors)
    distances = (query_points[queries] - key_points[keys]).norm(dim=-1)
    scaling = atlas.index["sites"][place.site]["scaling"]
    logits = (query[queries] * key[keys]).sum(-1) * scaling
    return PairSample(queries, keys, distances.numpy(), logits.numpy(), n_pairs)


def _examples(atlas: "Atlas", place: AtlasPlace) -> Iterator[tuple[int, int, Tensor]]:
    """The pattern of every example, with the first row of its queries and of its keys."""
    vectors = _joint(atlas, place)
    query_starts, key_starts = (atlas.starts(cloud.stack) for cloud in place.clouds)
    query, key = vectors.vectors
    for example in range(len(query_starts) - 1):
        queries = slice(query_starts[example], query_starts[example + 1])
        keys = slice(key_starts[example], key_starts[example + 1])
        if (queries.stop - queries.start) and (keys.stop - keys.start):
            yield int(queries.start), int(keys.start), _weights(atlas, place, query[queries], key[keys])


def _weights(atlas: "Atlas", place: AtlasPlace, query: Tensor, key: Tensor) -> Tensor:
    scaling = atlas.index["sites"][place.site]["scaling"]
    return weights_of(query, key, scaling, is_causal=place.is_causal)


def _joint(atlas: "Atlas", place: AtlasPlace) -> HeadVectors:
    vectors = read_vectors(atlas, place)
    if len(vectors.vectors) != 2:
        space = atlas.index["options"]["space"]
        raise InputError(f"attention is between queries and keys, and this atlas holds one cloud a head ({space}).")
    return vectors


def _value_norms(atlas: "Atlas", place: AtlasPlace) -> Tensor | None:
    """How long each token's value is after the output projection [key], if that was in sight."""
    table = f"{place.site}/value_norm"
    files = atlas.vector_files()
    return files.read(table, int(place.address.rpartition("H")[2]))[:, 0] if table in files.shapes() else None


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < 3 or not np.ptp(x) > 0 or not np.ptp(y) > 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values sharing theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
