"""An atlas: the tokens of a corpus as points, head by head, in a folder; what is missing is computed on demand."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.arguments import as_path
from headscope.atlases.atlas_index import (
    PICTURES,
    RUN,
    SCORES,
    TOKENS,
    AtlasPlace,
    MapName,
    duckdb_package,
    map_file,
    read_index,
)
from headscope.atlases.atlas_vectors import HeadVectors, VectorFiles, read_vectors
from headscope.choices import Coordinates, MapMethod, Side
from headscope.errors import InputError, LoadError, NotInAtlasError, UnknownHeadError
from headscope.files import has_checksum
from headscope.progress import Cancel, OnProgress
from headscope.runs.shard import Shard
from headscope.sites import ByHead, Head, find_head, parse

if TYPE_CHECKING:
    from headscope.atlases.anomalies import Anomaly
    from headscope.atlases.head_scores import HeadScores
    from headscope.atlases.search import NearPoint, Search

NO_VECTORS = (
    "this is not in this atlas: it holds maps and norms, not the queries and keys. Make an atlas of the model with "
    "`headscope atlas`."
)


class Atlas:
    """The points of every head over a sample of a corpus, in `folder`. `hs.atlas` makes one, `hs.open_atlas` opens it.

    A point of a head is a token as query (the first `n_tokens` of its query stack) or as key (those of its key stack).
    """

    def __init__(self, folder: str | Path):
        self.folder = as_path(folder, "the folder of an atlas")
        self.index = read_index(self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> "Atlas":
        """The atlas in a folder."""
        return cls(folder)

    def __repr__(self) -> str:
        corpus, counts = self.index["corpus"], self.n_tokens
        tokens = ", ".join(f"{count:,} {stack}" if len(counts) > 1 else f"{count:,}" for stack, count in counts.items())
        return (
            f"Atlas({self.index['model']['name']!r} on {corpus['n_sampled']} of {corpus['n_examples']} examples of "
            f"{corpus['name']}: {len(self.places)} heads, {tokens} tokens, {self.index['options']['space']})"
        )

    # What it has

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.index["model"]["name"]

    @property
    def n_tokens(self) -> dict[str, int]:
        """How many tokens there are, by stack."""
        return dict(self.index["n_tokens"])

    @functools.cached_property
    def places(self) -> dict[str, AtlasPlace]:
        """What can be drawn, by address: "L3H2"; "L3" for a depth of the residual stream."""
        places = [AtlasPlace.from_json(data) for data in self.index["places"]]
        return {place.address: place for place in places}

    @property
    def addresses(self) -> list[str]:
        """The addresses of all places, in order."""
        return list(self.places)

    def place(self, head: "str | Head") -> AtlasPlace:
        """The place of a head."""
        address = str(head)
        if address in self.places:
            return self.places[address]
        heads = [parsed for parsed in map(parse, self.places) if isinstance(parsed, Head)]
        site = address.rpartition("H")[0]
        absent = self.index["absent"].get(site)
        if absent:
            raise UnknownHeadError(f"{address} is not in this atlas: {absent}.")
        if not heads:
            raise UnknownHeadError(f"there is no {address}: this atlas has {', '.join(self.places)}.")
        known = find_head(head, heads)
        return self.places[str(known)]

    def vector_files(self) -> VectorFiles:
        """The files that hold the vectors; refused where the atlas has none."""
        if not self.index["has_vectors"]:
            raise NotInAtlasError(NO_VECTORS)
        return self._files

    @functools.cached_property
    def _files(self) -> VectorFiles:
        return VectorFiles(self.folder / RUN)

    def vectors(self, head: "str | Head") -> HeadVectors:
        """The queries and keys of a head (or the vectors of another space), with their joint space."""
        return read_vectors(self, self.place(head))

    def columns(self, head: "str | Head") -> dict[str, np.ndarray]:
        """Numbers of a head's points [point]: `norm` of the vector, and `key_bias` of keys (NaN for queries)."""
        from headscope.atlases.atlas_vectors import point_columns

        return point_columns(self, self.place(head))

    # Tokens

    def tokens(self, stack: str | None = None) -> Any:
        """The tokens of a stack as an Arrow table: text, position, example, …; by default of the first stack."""
        stacks = list(self.index["n_tokens"])
        name = stacks[0] if stack is None else stack
        if name not in stacks:
            raise InputError(f"there is no stack {name!r} in this atlas: there are {', '.join(stacks)}.")
        return self._tables[name]

    @functools.cached_property
    def _tables(self) -> dict[str, Any]:
        import pyarrow.compute as pc

        with Shard(self.folder / TOKENS).open() as parquet:
            table = parquet.read()
        return {stack: table.filter(pc.field("stack") == stack) for stack in self.index["n_tokens"]}

    def pictures(self) -> list[Path]:
        """The files with the pictures of the examples, shard by shard; none of an atlas of texts."""
        if not self.index["has_vectors"]:
            file, sha256 = self.folder / PICTURES, self.index.get("pictures_sha256")
            if sha256 is None:
                return []
            if not file.is_file() or not has_checksum(file, sha256):
                raise LoadError(f"{file} is missing or damaged.")
            return [file]
        return self._files.paths("pictures", "safetensors")

    def starts(self, stack: str) -> np.ndarray:
        """Where each example begins among the tokens of a stack, and where the last ends [example + 1]."""
        examples = self.tokens(stack).column("example").to_numpy()
        return np.searchsorted(examples, np.arange(self.index["corpus"]["n_sampled"] + 1)).astype(np.int64)

    def sql(self, query: str) -> Any:
        """Ask DuckDB: the table `tokens`, and `scores` once they were computed. Gives a DuckDB relation.

        >>> import headscope as hs
        >>> atlas = hs.atlas("builtin:gpt", ["The doctor asked the nurse.", "She did not answer."], scores=False)
        >>> atlas.sql("select count(*) from tokens where text = '.'").fetchall()
        [(2,)]
        """
        duckdb = duckdb_package()
        connection = duckdb.connect()
        for name in ("tokens", "scores"):
            path = self.folder / f"{name}.parquet"
            if path.is_file():
                with Shard(path).open():
                    pass  # verified
                quoted = str(path.resolve()).replace("'", "''")
                connection.execute(f"create view {name} as select * from read_parquet('{quoted}')")
        return connection.sql(query)

    # Maps

    def map(
        self, head: "str | Head", method: MapMethod = "pca", *, dims: int = 2, coordinates: Coordinates = "scaled"
    ) -> np.ndarray:
        """The map of a head [point, dimension]; computed where it is not there yet, and kept."""
        from headscope.atlases.map_maker import map_of

        return map_of(self, self.place(head), MapName(method, dims, coordinates))

    def draw(
        self,
        method: MapMethod = "pca",
        *,
        dims: int = 2,
        coordinates: Coordinates = "scaled",
        heads: "Sequence[str | Head] | None" = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        """Make the maps of all heads, or of some; those that are there are left as they are."""
        from headscope.atlases.map_maker import make_maps

        places = list(self.places.values()) if heads is None else [self.place(head) for head in heads]
        make_maps(self, places, MapName(method, dims, coordinates), progress=progress, cancel=cancel)

    def maps(self) -> list[MapName]:
        """The kinds of maps of which there are some."""
        folders = sorted(path.name for path in (self.folder / "maps").glob("*-*-?d") if path.is_dir())
        return [MapName.parse(name) for name in folders]

    def has_map(self, head: "str | Head", name: MapName) -> bool:
        """Whether the map of a head is made."""
        return map_file(self.folder, name, self.place(head).address).is_file()

    # Numbers

    @property
    def has_scores(self) -> bool:
        """Whether scores are computed already."""
        return (self.folder / SCORES).is_file()

    def scores(
        self, *, progress: OnProgress | None = None, cancel: Cancel | None = None
    ) -> "ByHead[HeadScores] | dict[str, HeadScores]":
        """How far each head's distances stand for dot products, and more; computed once, and kept."""
        from headscope.atlases.head_scores import scores_of

        return scores_of(self, progress=progress, cancel=cancel)

    def search(self, text: str, *, regex: bool = False, ignore_case: bool = False, **options: Any) -> "Search":
        """The tokens that a text or a regular expression matches, and the heads that gather them."""
        from headscope.atlases.search import search

        return search(self, text, regex=regex, ignore_case=ignore_case, **options)

    def neighbours(self, head: "str | Head", row: int, *, role: Side = "query", k: int = 10) -> "list[NearPoint]":
        """The points nearest to a point in the head's full space."""
        from headscope.atlases.search import neighbours

        return neighbours(self, self.place(head), row, role=role, k=k)

    def anomalies(self) -> "list[Anomaly]":
        """Heads that stand out: norm gaps, separated clouds, attention to the first token, uniform and dead heads."""
        from headscope.atlases.anomalies import anomalies

        return anomalies(self)

    def figure(self, method: MapMethod = "pca", **options: Any) -> Any:
        """All heads as small clouds, as a matplotlib figure."""
        from headscope.atlases.figure import matrix_figure

        return matrix_figure(self, method, **options)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def open_atlas(folder: str | Path) -> Atlas:
    """The atlas in a folder that `hs.atlas` or `headscope atlas` wrote."""
    return Atlas(folder)
