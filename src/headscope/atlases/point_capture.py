"""What a run over a corpus keeps for an atlas: the vectors of every head and the tokens that they belong to.

They lie beside the run's shards, a file each: `points-000000.safetensors`, `tokens-000000.parquet` and, of images,
`pictures-000000.safetensors`. They are written before their shard is, so that a shard that is done has them.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from headscope.atlases.example_pictures import pictures_file
from headscope.atlases.token_table import TokenRows
from headscope.choices import AtlasSpace, KeyScale, Record
from headscope.errors import NotRecordedError
from headscope.files import write_file
from headscope.models import Model
from headscope.runs import CorpusBatch, Layer, Measure
from headscope.runs.measure import Refusal, Tallies
from headscope.sites import Site
from headscope.traces import Trace
from headscope.traces.media import Picture

_RECORDS: dict[AtlasSpace, Record | None] = {
    "query_key": None,
    "value": None,
    "mixed": "heads",
    "residual": "full",
}
# The largest number that half precision has, with some room.
_MOST = 6e4
# Half precision of queries and keys, or of the model, moves no weight by more than this.
_SAME_WEIGHT = 0.02
_WHAT = {"value_norm": "value"}
_COARSER = "its positions are not the tokens of the input"
# Vectors of one layer, by the name of what they are and the number of the example: [head or group, token, dim].
_Parts = dict[str, dict[int, list[Tensor]]]


class PointCapture(Measure):
    """Keeps queries and keys (or values, mixed vectors, residuals) of all tokens, in half precision.

    Queries and keys are those that enter the product: after rotary embeddings and normalisation, before scaling.
    Half precision rounds a number by at most 0.05 %; where numbers are too large for that, they are kept in full.
    """

    name = "points"

    def __init__(self, folder: str, space: AtlasSpace, heads: list[str] | None = None, *, scale: KeyScale = "norms"):
        self.folder, self.space, self.heads = folder, space, heads
        # Vectors do not depend on the scale. It is here so that a folder whose index is lost is refused with another:
        # its maps and scores are of this one.
        self.settings: dict[str, Any] = {"space": space, "heads": heads, "scale": scale, "format": 3}
        self.record = _RECORDS[space]
        self._scaling: dict[str, float] = {}
        self._forget()
        self._files: dict[str, str] = {}

    def start(self, model: Model) -> None:
        """A pass begins: with the scaling of each layer."""
        self._scaling = {str(layer.site): layer.scaling for layer in model.layout.layers}
        self._forget()

    def watch(self, layer: Layer) -> Tallies:
        """Keep the vectors of one layer; count how long values are after the output projection."""
        self._shard = layer.batch.seed[1]
        norms, reason = None, ""
        try:
            norms = layer.value_norms()
        except NotRecordedError as problem:
            reason = str(problem)
        if self.space in ("query_key", "value"):
            self._watch_vectors(layer, norms)
        if norms is None:
            return [Refusal(reason)]
        return [layer.tally((norms * layer.keys[:, None]).sum(-1), layer.keys.sum(-1), key="value_norm")]

    def update(self, batch: CorpusBatch) -> Tallies:
        """Keep the tokens, and vectors that only a trace has."""
        self._shard = batch.seed[1]
        classes = batch.classes or [None] * len(batch)
        for place, example, inputs, predicted in zip(batch.places, batch.examples, batch.inputs, classes, strict=True):
            self._tokens.add(place, example, inputs.tokens, predicted)
            pictures = [seen for seen in inputs.seen.values() if isinstance(seen, Picture)]
            if pictures:
                self._pictures[place] = pictures[0]
        for place, trace in zip(batch.places, batch.traces, strict=False):  # there are traces where a record asks so
            for name, vectors in self._of_trace(trace):
                self._add(name, place, vectors)
        return ()

    def end(self) -> Tallies:
        """Write what this shard holds, and forget it."""
        self._files = {}
        if self._tokens:
            number = f"{self._shard:06d}"
            self._write(f"points-{number}.safetensors", self._points())
            self._write(f"tokens-{number}.parquet", self._tokens.parquet())
            if self._pictures:
                self._write(f"pictures-{number}.safetensors", pictures_file(self._pictures))
        self._forget()
        return ()

    def files(self) -> dict[str, str]:
        """The files that were written last."""
        return self._files

    # Inside

    def _forget(self) -> None:
        self._shard, self._tokens = 0, TokenRows()
        self._pictures: dict[int, Picture] = {}
        self._parts: _Parts = {}
        self._sites: dict[str, dict[str, Any]] = {}
        self._is_whole: dict[str, bool] = {}
        self._absent: dict[str, str] = {}

    def _write(self, name: str, data: bytes) -> None:
        write_file(Path(self.folder) / name, data)
        self._files[name] = hashlib.sha256(data).hexdigest()

    def _wants(self, site: Site) -> bool:
        return self.heads is None or any(head.rpartition("H")[0] == str(site) for head in self.heads)

    def _watch_vectors(self, layer: Layer, norms: Tensor | None) -> None:
        site = layer.site
        if not self._wants(site):
            return
        vectors = {"query": layer.query, "key": layer.key} if self.space == "query_key" else {"value": layer.value}
        if self.space == "query_key" and not layer.first_head and str(site) not in self._sites:
            self._is_whole[str(site)] = explains(layer, self._scaling.get(str(site), 1.0))
        if layer.first_head and "key" in vectors:
            vectors.pop("key")  # groups came with the first heads
        if any(part is None for part in vectors.values()):
            self._absent[str(site)] = "its queries, keys or values are not in sight"
            return
        for row, place in enumerate(layer.batch.places[layer.rows]):
            lengths = {"query": layer.queries[row], "key": layer.keys[row], "value": layer.keys[row]}
            stacks = {"query": site.stack, "key": layer.key_stack, "value": layer.key_stack}
            if any(int(lengths[name].sum()) != self._n_tokens(layer, row, stacks[name]) for name in vectors):
                self._absent[str(site)] = _COARSER
                return
            for name, part in vectors.items():
                assert part is not None
                self._add(f"{site}/{name}", place, part[row][:, lengths[name]])
            if norms is not None and self.space == "query_key":
                self._add(f"{site}/value_norm", place, norms[row][:, lengths["key"], None])
        self._about(site, layer.key_stack, layer.is_causal)

    @staticmethod
    def _n_tokens(layer: Layer, row: int, stack: str) -> int:
        tokens = layer.batch.inputs[layer.rows.start + row].tokens.get(stack)
        return -1 if tokens is None else len(tokens)

    def _of_trace(self, trace: Trace) -> Iterator[tuple[str, Tensor]]:
        if self.space == "residual":
            for stack, stream in trace.residuals.items():
                for depth, vectors in enumerate(stream):
                    site = Site(stack, depth)
                    self._about(site, stack, False)
                    yield f"{site}/residual", vectors[None]
        elif self.space == "mixed":
            for site, layer in trace.layers.items():
                if not self._wants(site):
                    continue
                if layer.mixed is None or layer.mixed.shape[1] != len(trace.tokens[site.stack]):
                    self._absent[str(site)] = _COARSER
                    continue
                self._about(site, layer.key_stack, layer.is_causal)
                yield f"{site}/mixed", layer.mixed

    def _about(self, site: Site, key_stack: str, is_causal: bool) -> None:
        about = {"scaling": self._scaling.get(str(site), 1.0), "is_whole": self._is_whole.get(str(site), False)}
        self._sites[str(site)] = {"key_stack": key_stack, "is_causal": is_causal, **about}

    def _add(self, name: str, place: int, vectors: Tensor) -> None:
        vectors = vectors.detach().float()
        if not torch.isfinite(vectors).all():
            site, _, what = name.partition("/")
            self._absent.setdefault(site, f"a {_WHAT.get(what, what)} vector of it holds NaN or infinity")
            return
        kind = torch.float32 if float(vectors.abs().max()) > _MOST else torch.float16
        self._parts.setdefault(name, {}).setdefault(place, []).append(vectors.to("cpu", kind))

    def _points(self) -> bytes:
        """All vectors in the order of the examples [head or group, token, dim], by `L3/query`."""
        tensors: dict[str, Tensor] = {}
        for name, by_place in self._parts.items():
            if name.partition("/")[0] in self._absent:
                continue
            parts = [part for place in sorted(by_place) for part in [torch.cat(by_place[place])]]
            kind = torch.float32 if any(part.dtype == torch.float32 for part in parts) else torch.float16
            tensors[name] = torch.cat([part.to(kind) for part in parts], 1).contiguous()
        sites = {site: about for site, about in self._sites.items() if site not in self._absent}
        # One field: safetensors writes several in any order.
        return save(tensors, metadata={"about": json.dumps({"sites": sites, "absent": self._absent})})


def starts_of(lengths: Any) -> np.ndarray:
    """Where each text begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def explains(layer: Layer, scaling: float) -> bool:
    """Whether the softmax of scaled dot products is the pattern: not where a bias, a window or a sink plays in.

    Looked at for one text, whose rows should differ by rounding only.
    """
    assert layer.query is not None and layer.key is not None
    queries, keys = layer.queries[0], layer.keys[0]
    query, key = layer.query[0][:, queries].float(), layer.key[0][:, keys].float()
    key = key.repeat_interleave(len(query) // len(key), 0) if len(query) % len(key) == 0 else key
    if len(query) != len(key):
        return False
    weights = weights_of(query, key, scaling, is_causal=layer.is_causal)
    pattern = layer.pattern[0][:, queries][..., keys].float()
    return bool((weights - pattern).abs().max() < _SAME_WEIGHT)


def weights_of(query: Tensor, key: Tensor, scaling: float, *, is_causal: bool) -> Tensor:
    """The softmax of scaled dot products […, query, key]; in a causal layer a query sees the keys up to its own."""
    logits = query @ key.transpose(-1, -2) * scaling
    if is_causal:
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(1)
        logits = logits.masked_fill(hidden, float("-inf"))
    return logits.softmax(-1)
