"""AttentionViz's own files as an atlas: its maps, its norms and its tokens; it published no queries and keys.

A folder of theirs holds `tokens.json` and a file a head, `layer2_head9.json`; or instead of those one array file with
`tsne` [layer, head, point, 2] and `norm` [layer, head, point]. Files may be compressed (`.xz`).
"""

import hashlib
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save

from headscope.atlases.atlas_folder import Atlas
from headscope.atlases.atlas_index import (
    NORMS,
    OURS,
    RUN,
    TOKENS,
    AtlasPlace,
    Cloud,
    MapName,
    map_file,
    places_json,
    refuse_another,
    write_index,
    write_map,
)
from headscope.atlases.token_table import is_punctuation, joined_rows, write_table
from headscope.errors import LoadError
from headscope.files import has_checksum, parse_json, refuse_foreign, write_file
from headscope.progress import Cancel, OnProgress, Steps

_FILE = "layer*_head*.json*"


class _Head(NamedTuple):
    """The maps of a head by method, and the norm of each point."""

    layer: int
    head: int
    maps: dict[str, np.ndarray]
    norms: np.ndarray

    @property
    def address(self) -> str:
        return f"L{self.layer}H{self.head}"


def import_attentionviz(
    source: str | Path,
    folder: str | Path,
    *,
    model: str = "bert-base-uncased (AttentionViz)",
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Atlas:
    """The atlas of a folder of AttentionViz's, written to `folder`. What needs vectors is then refused, and says so."""
    source, folder = Path(source).expanduser(), Path(folder).expanduser()
    rows = _token_rows(source)
    refuse_foreign(folder, "an atlas", ours=OURS, writes=OURS)
    if (folder / RUN).exists():
        raise LoadError(f"{folder} holds an atlas that was made from a model. Choose another folder.")
    heads = sorted(_heads(source), key=lambda head: (head.layer, head.head))
    if not heads:
        raise LoadError(f"{source} holds no heads of AttentionViz: neither {_FILE} nor an array file.")
    for head in heads:
        if len(head.norms) != 2 * len(rows):
            raise LoadError(
                f"{head.address} has {len(head.norms)} points in {source}, and there are {len(rows)} tokens."
            )
    norms = save({head.address: torch.from_numpy(head.norms.astype(np.float32)) for head in heads})
    index = _index(source.name, model, rows, heads) | {"norms_sha256": hashlib.sha256(norms).hexdigest()}
    refuse_another(folder, index)
    _write_norms(folder / NORMS, norms)  # first: what was begun is known by them
    steps = Steps("maps", len(heads), progress, cancel)
    for head in heads:
        steps.next()
        for method, points in head.maps.items():
            write_map(map_file(folder, MapName(method, 2, "scaled"), head.address), points)  # type: ignore[arg-type]
    write_file(folder / TOKENS, write_table(rows))
    write_index(folder, index)
    return Atlas(folder)


def _write_norms(file: Path, norms: bytes) -> None:
    if file.is_file() and not has_checksum(file, hashlib.sha256(norms).hexdigest()):
        raise LoadError(f"{file.parent} holds an atlas that was imported from other files. Choose another folder.")
    write_file(file, norms)


def _index(source: str, model: str, rows: list[dict[str, Any]], heads: list[_Head]) -> dict[str, Any]:
    n_texts = len({row["example"] for row in rows})
    corpus = {"name": source, "kind": "attentionviz", "about": "files of AttentionViz"}
    places = [
        AtlasPlace(
            head.address,
            f"L{head.layer}",
            (Cloud("query", "main", "", head.head), Cloud("key", "main", "", head.head)),
        )
        for head in heads
    ]
    return {
        "model": {"name": model},
        "corpus": corpus | {"n_examples": n_texts, "n_sampled": n_texts},
        "options": {
            "space": "query_key", "scale": "norms", "points": None, "heads": None, "seed": 0, "truncate": False,
        },
        "n_tokens": {"main": len(rows)},
        "places": places_json(places),
        "absent": {},
        "has_vectors": False,
    }  # fmt: skip


def _token_rows(source: Path) -> list[dict[str, Any]]:
    """Query tokens as rows of a token table; keys are the same tokens again."""
    file = next((path for name in ("tokens.json", "tokens.json.xz") if (path := source / name).is_file()), None)
    if file is None:
        raise LoadError(f"{source} is not a folder of AttentionViz: it has no tokens.json.")
    tokens = _json(file)["tokens"]
    queries = [token for token in tokens if token["type"] == "query"]
    keys = [token for token in tokens if token["type"] == "key"]
    if [token["value"] for token in queries] != [token["value"] for token in keys]:
        raise LoadError(f"{file}: its keys are not the same tokens as its queries, which is not supported.")
    rows, text = [], -1
    for token in queries:
        text += token["pos_int"] == 0
        value = token["value"]
        is_special = value.startswith("[") and value.endswith("]") and len(value) > 2
        rows.append(
            {
                "stack": "main",
                "example": text,
                "example_id": f"{file.name}:{text}",
                "position": token["pos_int"],
                "length": token["length"],
                "text": value,
                "special": is_special,
                "punctuation": not is_special and is_punctuation(value),
            }
        )
    return joined_rows([rows])


def _heads(source: Path) -> Iterator[_Head]:
    files = sorted(source.glob(_FILE))
    arrays = sorted(source.glob("*.npz"))
    if arrays:
        yield from _array_heads(arrays[0])
        return
    for file in files:
        data = _json(file)
        points = data["tokens"]
        maps = {
            method: np.array([[point[f"{method}_x"], point[f"{method}_y"]] for point in points], np.float64)
            for method in ("tsne", "umap", "pca")
            if points and f"{method}_x" in points[0]
        }
        yield _Head(int(data["layer"]), int(data["head"]), maps, np.array([point["norm"] for point in points]))


def _array_heads(file: Path) -> Iterator[_Head]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            maps = {name: arrays[name] for name in arrays.files if name in ("tsne", "umap", "pca")}
            norms = arrays["norm"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise LoadError(f"{file} cannot be read as an array file of AttentionViz: {error}.") from error
    for layer in range(norms.shape[0]):
        for head in range(norms.shape[1]):
            drawn = {name: points[layer, head].astype(np.float64) for name, points in maps.items()}
            yield _Head(layer, head, drawn, norms[layer, head])


def _json(file: Path) -> Any:
    try:
        data = file.read_bytes()
        return parse_json(lzma.decompress(data) if file.suffix == ".xz" else data)
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise LoadError(f"{file} cannot be read: {error}.") from error
