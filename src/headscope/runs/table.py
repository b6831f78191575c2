"""What was counted over a corpus, and the means and intervals that follow from it."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headscope.errors import HeadscopeError
from headscope.runs.shard import Shard
from headscope.scores import Scores
from headscope.sites import Head, parse

N_RESAMPLES = 1000
_AT_A_TIME = 50
# The draws for so many blocks (16 MB) are kept from one score to the next.
_REMEMBERED_BLOCKS = 2000


class Sums(NamedTuple):
    """Sums over the corpus, one a head: of the quantity, of queries, of what chance would give, and of examples."""

    heads: list[Head]
    total: np.ndarray
    n_queries: np.ndarray
    chance: np.ndarray
    n_examples: np.ndarray


class Blocks(NamedTuple):
    """Sums over blocks of neighbouring examples [block, head]; a block is one example unless the corpus is large."""

    heads: list[Head]
    total: np.ndarray
    n_queries: np.ndarray


class MeasureTable:
    """The rows of one measure. They are read shard by shard; only sums are held."""

    def __init__(
        self,
        measure: str,
        settings: dict[str, Any],
        files: Sequence[Path | Shard],
        n_blocks: int,
        seed: int = 0,
        *,
        stored: str | None = None,
    ):
        # The name that the shards have, where an earlier version wrote them.
        self._stored = stored or measure
        self.measure, self.settings, self.n_blocks = measure, settings, n_blocks
        self.shards = [file if isinstance(file, Shard) else Shard(file) for file in files]
        self.seed = seed
        self._sums: dict[str, tuple[dict[str, int], np.ndarray]] | None = None

    def keys(self) -> list[str]:
        """The keys that were counted under; `[""]` for a measure of one quantity."""
        return sorted(self._read())

    def blocks(self, key: str = "") -> Blocks:
        """Sums by block."""
        heads, sums = self._of(key)
        return Blocks(heads, sums[0], sums[1])

    def sums(self, key: str = "") -> Sums:
        """Sums over everything."""
        heads, sums = self._of(key)
        return Sums(heads, *sums.sum(axis=1))

    def mean(self, key: str = "", *, method: str | None = None) -> Scores:
        """The mean over queries, with chance and a 95 % bootstrap interval over blocks."""
        sums, blocks = self.sums(key), self.blocks(key)
        with np.errstate(invalid="ignore", divide="ignore"):
            means, chances = sums.total / sums.n_queries, sums.chance / sums.n_queries
        means = np.where(sums.n_queries > 0, means, np.nan)
        known = chances[np.isfinite(chances)]
        return Scores(
            method=method or (f"{self.measure}/{key}" if key else self.measure),
            values_by_head=dict(zip(sums.heads, means.tolist(), strict=True)),
            settings=self.settings | {"queries": int(sums.n_queries.max())},
            n_samples=int(sums.n_examples.max()),
            baseline=float(known.mean()) if known.size else None,
            baselines=dict(zip(sums.heads, chances.tolist(), strict=True)) if known.size else {},
            intervals=self.intervals(blocks.total, blocks.n_queries, blocks.heads) if self.n_blocks > 1 else {},
        )

    def means(self) -> Scores | dict[str, Scores]:
        """The mean, or one for each key."""
        keys = self.keys()
        return self.mean() if keys == [""] else {key: self.mean(key) for key in keys}

    def intervals(
        self, total: np.ndarray, n_queries: np.ndarray, heads: Sequence[Head]
    ) -> dict[Head, tuple[float, float]]:
        """95 % bootstrap intervals of Σ total / Σ n_queries, resampling blocks [block, head]; the same resamples for
        every head.
        """
        means = []
        for counts in _resamples(self.seed, len(total)):
            with np.errstate(invalid="ignore", divide="ignore"):
                means.append((counts @ total) / (counts @ n_queries))
        resampled = np.concatenate(means)
        is_known = np.isfinite(resampled)
        bounds = np.full((2, resampled.shape[1]), np.nan)
        whole, some = is_known.all(axis=0), is_known.any(axis=0) & ~is_known.all(axis=0)
        bounds[:, whole] = np.quantile(resampled[:, whole], [0.025, 0.975], axis=0)
        if some.any():  # the same, but slow
            partly = np.where(is_known, resampled, np.nan)[:, some]
            bounds[:, some] = np.nanquantile(partly, [0.025, 0.975], axis=0)
        return {head: (float(low), float(high)) for head, low, high in zip(heads, *bounds, strict=True)}

    def _of(self, key: str) -> tuple[list[Head], np.ndarray]:
        sums_by_key = self._read()
        if key not in sums_by_key:
            reason = f"it has {', '.join(map(repr, sorted(sums_by_key)))}." if sums_by_key else self.why()
            raise HeadscopeError(f"{self.measure} counted nothing under {key!r}: {reason}")
        names, sums = sums_by_key[key]
        heads = [_head(name) for name in names]
        order = sorted(range(len(heads)), key=heads.__getitem__)
        return [heads[at] for at in order], sums[:, :, order]

    def why(self) -> str:
        """Why there is nothing, where there is nothing: the first reason that was given."""
        for shard in self.shards:
            refusals = shard.about("refusals") or {}
            if self._stored in refusals:
                return refusals[self._stored][1]
        return "nothing in the corpus bears on it."

    def _read(self) -> dict[str, tuple[dict[str, int], np.ndarray]]:
        """By key: the heads, and sums [sum, block, head]."""
        if self._sums is None:
            sums: dict[str, tuple[dict[str, int], np.ndarray]] = {}
            for shard in self.shards:
                with shard.open() as parquet:
                    for group in range(parquet.num_row_groups):
                        # A row group is one measure's, and says so: the others are not even read.
                        about = parquet.metadata.row_group(group).column(0).statistics
                        if about is None or not about.has_min_max or about.min == self._stored:
                            rows = parquet.read_row_group(group)
                            if rows.num_rows and rows.column("measure")[0].as_py() == self._stored:
                                self._take(sums, rows)
            self._sums = sums  # only now: what failed half way is read again from the start
        return self._sums

    def _take(self, sums_by_key: dict[str, tuple[dict[str, int], np.ndarray]], rows) -> None:
        rows = rows.unify_dictionaries().combine_chunks()
        columns = {name: rows.column(name).chunk(0) for name in rows.column_names}
        keys, heads = columns["key"].dictionary.to_pylist(), columns["head"].dictionary.to_pylist()
        key_codes, head_codes = (columns[name].indices.to_numpy() for name in ("key", "head"))
        block = columns["block"].to_numpy()
        sums = [columns[name].to_numpy() for name in ("total", "n_queries", "chance", "n_examples")]
        for code, key in enumerate(keys):
            chosen = key_codes == code
            if not chosen.any():
                continue
            names, sums_of_key = sums_by_key.setdefault(key, ({}, np.zeros((4, self.n_blocks, 0))))
            there = set(head_codes[chosen].tolist())
            places = np.array(
                [names.setdefault(head, len(names)) if at in there else -1 for at, head in enumerate(heads)]
            )
            sums_of_key = np.pad(sums_of_key, ((0, 0), (0, 0), (0, len(names) - sums_of_key.shape[2])))
            for which, values in enumerate(sums):
                np.add.at(sums_of_key[which], (block[chosen], places[head_codes[chosen]]), values[chosen])
            sums_by_key[key] = (names, sums_of_key)


def _resamples(seed: int, n: int) -> Iterator[np.ndarray]:
    """How often each of n blocks is drawn, for every resample, some at a time [resample, block]."""
    if n <= _REMEMBERED_BLOCKS:
        yield from _cached_draws(seed, n)
        return
    yield from _draws(seed, n)


@functools.lru_cache(maxsize=1)
def _cached_draws(seed: int, n: int) -> list[np.ndarray]:
    return list(_draws(seed, n))


def _draws(seed: int, n: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    for first in range(0, N_RESAMPLES, _AT_A_TIME):
        n_rows = min(_AT_A_TIME, N_RESAMPLES - first)
        chosen = rng.integers(0, n, (n_rows, n)) + np.arange(n_rows)[:, None] * n
        yield np.bincount(chosen.ravel(), minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


def _head(name: str) -> Head:
    head = parse(name)
    assert isinstance(head, Head)  # only heads are written
    return head
