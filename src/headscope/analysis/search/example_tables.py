"""Tables of the strongest examples: for every coordinate of a model the few highest and lowest of each shard."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from headscope.errors import BudgetError, HeadscopeError
from headscope.files import write_file
from headscope.models import Model
from headscope.models.memory_budget import size_text
from headscope.runs.batch import CorpusBatch, Layer
from headscope.runs.corpus_run import Run
from headscope.runs.measure import Measure, Tallies
from headscope.sites import Site

KEPT = 20
"""Examples that are kept of each coordinate, at either end."""
MOST_BYTES = 2 * 10**9


class Occurrence(NamedTuple):
    """Where a coordinate is strong: the number of the example in the corpus, the token, and how strong."""

    number: int
    token: int
    value: float


class TopExamples(Measure):
    """Keeps the examples where every head, query, key and value coordinate and MLP neuron is highest and lowest.

    Of each example its strongest token counts, special tokens and padding apart. What is kept lies beside the run's
    shards, a file each; it is written before its shard is, so that a shard that is done has its tables.
    """

    name = "top_examples"

    def __init__(self, folder: str):
        self.folder = folder
        self.settings: dict[str, Any] = {"kept": KEPT}
        self._tables: dict[str, list[Tensor]] = {}
        self._shard = 0
        self._files: dict[str, str] = {}

    def start(self, model: Model) -> None:
        """See that the tables of all coordinates fit into memory."""
        layout = model.layout
        rows = sum(layout.widths.get(site, 0) for site in layout.neurons)
        for layer in layout.layers:
            rows += layer.n_heads * (1 + layer.head_dim + layer.value_dim) + layer.n_groups * layer.head_dim
        size = rows * KEPT * 2 * 12
        if size > MOST_BYTES:
            raise BudgetError(
                f"the tables of {rows:,} coordinates would take {size_text(size)} of memory, "
                f"{size_text(MOST_BYTES)} at most."
            )
        self._tables = {}

    def watch(self, layer: Layer) -> Tallies:
        """Attention between plain tokens, and the vectors that it is made from."""
        self._shard = layer.batch.seed[1]
        site, places = layer.site, layer.batch.places[layer.rows]
        weights = layer.pattern * layer.plain_keys[:, None, None]
        if site.kind == "self":
            weights[..., 0] = 0.0
        self._add(f"head/{site}", weights.amax(-1), layer.plain_queries, places, layer.first_head)
        for name, vectors, there in (
            ("query", layer.query, layer.plain_queries),
            ("key", layer.key, layer.plain_keys),
            ("value", layer.value, layer.plain_keys),
        ):
            if vectors is not None:
                first = layer.first_head * vectors.shape[-1]
                self._add(f"{name}/{site}", vectors.transpose(-1, -2).flatten(1, 2), there, places, first)
        return ()

    def watch_neurons(self, site: Site, activations: Tensor, batch: CorpusBatch) -> None:
        """MLP neurons."""
        plain = batch.plain(site.stack)
        if plain.shape[1] == activations.shape[1]:
            layer_site = Site(site.stack, site.layer)
            self._add(f"neurons/{layer_site}", activations.transpose(-1, -2), plain, batch.places, 0)

    def end(self) -> Tallies:
        """Write what this shard holds, and forget it."""
        self._files = {}
        if self._tables:
            flat: dict[str, Tensor] = {}
            for name, (values, places, tokens) in self._tables.items():
                flat |= {f"{name}/value": values, f"{name}/example": places, f"{name}/token": tokens}
            file, data = table_file(Path(self.folder), self._shard), save(flat)
            write_file(file, data)
            self._files = {file.name: hashlib.sha256(data).hexdigest()}
        self._tables = {}
        return ()

    def files(self) -> dict[str, str]:
        """The tables that were written last."""
        return self._files

    def _add(self, name: str, values: Tensor, there: Tensor, places: Any, first: int) -> None:
        """Take in numbers [example, coordinate, token], of coordinates from `first` on."""
        values = values.float()
        hidden = ~there[:, None].to(values.device)
        for end, signed in enumerate((values, -values)):
            best = signed.masked_fill(hidden, float("-inf")).nan_to_num(nan=float("-inf"), neginf=float("-inf")).max(-1)
            self._merge(name, end, first, best.values.T.cpu(), best.indices.T.cpu(), torch.tensor(list(places)))

    def _merge(self, name: str, end: int, first: int, values: Tensor, tokens: Tensor, places: Tensor) -> None:
        """Into the table [end, coordinate, rank]: the KEPT strongest of what was there and what has come."""
        n_rows = first + values.shape[0]
        table = self._tables.get(name)
        if table is None or table[0].shape[1] < n_rows:
            table = self._tables[name] = _enlarge(table, n_rows)
        rows = slice(first, n_rows)
        previous = [column[end, rows] for column in table]
        new = (values, places[None].expand_as(values).int(), tokens.int())
        joined = [torch.cat(both, dim=-1) for both in zip(previous, new, strict=True)]
        order = joined[0].sort(dim=-1, descending=True, stable=True).indices[:, :KEPT]
        for into, whole in zip(table, joined, strict=True):
            into[end, rows] = whole.gather(-1, order)


def _enlarge(table: list[Tensor] | None, n_rows: int) -> list[Tensor]:
    shape = (2, n_rows, KEPT)
    larger = [
        torch.full(shape, float("-inf")),
        torch.full(shape, -1, dtype=torch.int32),
        torch.full(shape, -1, dtype=torch.int32),
    ]
    for old, new in zip(table or (), larger, strict=False):
        new[:, : old.shape[1]] = old
    return larger


def table_file(folder: Path, shard: int) -> Path:
    """Where the tables of a shard are."""
    return folder / f"top-{shard:06d}.safetensors"


def read_row(run: Run, table: str, row: int, *, lowest: bool = False) -> list[Occurrence]:
    """The strongest examples of one coordinate over all shards, at one end; one row of each table is read."""
    size, end = run.manifest["plan"]["shard_size"], int(lowest)
    occurrences: list[Occurrence] = []
    for shard in range(run.n_shards):
        file = run.file(shard, table_file(run.folder, shard).name)
        if file is None:
            continue  # none of its examples could be read
        try:
            with safe_open(os.fspath(file), "np") as opened:
                if f"{table}/value" not in list(opened.keys()):
                    continue
                parts = [opened.get_slice(f"{table}/{name}")[end, row] for name in ("value", "example", "token")]
        except Exception as error:  # safetensors raises its own kinds at a damaged file
            raise HeadscopeError(f"{file} cannot be read ({error}): delete {run.folder} and ask again.") from error
        for value, place, token in zip(*(np.asarray(column).ravel() for column in parts), strict=True):
            if place >= 0 and np.isfinite(value):
                occurrences.append(
                    Occurrence(shard * size + int(place), int(token), float(-value if lowest else value))
                )
    return sorted(occurrences, key=lambda top: (top.value if lowest else -top.value, top.number))[:KEPT]
