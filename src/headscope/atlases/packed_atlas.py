"""A small atlas in one file: maps, norms, scores and anomalies, without queries and keys, as built-in models bring."""

import functools
import hashlib
import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save

from headscope.atlases.atlas_index import (
    INDEX,
    MAPS,
    NORMS,
    PICTURES,
    SCORES,
    TOKENS,
    MapName,
    index_fields,
    map_file,
)
from headscope.atlases.example_pictures import merged_pictures
from headscope.errors import LoadError
from headscope.files import new_folder, parse_json, with_checksum, write_file

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas

# All files are of this time, so that the same atlas is the same file.
_WHEN = (2026, 1, 1, 0, 0, 0)


def pack_atlas(atlas: "Atlas", file: Path, name: MapName | None = None) -> None:
    """Write the maps of one kind (2-D PCA by default), norms and key biases in half precision, scores and anomalies.

    `unpack_atlas` gives it back as a folder. What needs queries and keys is then "not in this atlas".
    """
    kind = name or MapName()
    norms = _norms(atlas)
    pictures = merged_pictures(atlas.pictures())
    index: dict[str, Any] = atlas.index | {
        "has_vectors": False,
        "norms_sha256": hashlib.sha256(norms).hexdigest(),
        "anomalies": [asdict(anomaly) for anomaly in atlas.anomalies()],
    }
    if pictures:
        index["pictures_sha256"] = hashlib.sha256(pictures).hexdigest()
    contents: dict[str, bytes] = {
        INDEX: json.dumps(with_checksum(index_fields(index)), indent=1, ensure_ascii=False).encode(),
        TOKENS: (atlas.folder / TOKENS).read_bytes(),
        SCORES: (atlas.folder / SCORES).read_bytes(),
        NORMS: norms,
    }
    contents |= {PICTURES: pictures} if pictures else {}
    for address in atlas.addresses:
        path = map_file(Path(), kind, address)
        contents[path.as_posix()] = (atlas.folder / path).read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in contents.items():
            archive.writestr(zipfile.ZipInfo(path, _WHEN), data, zipfile.ZIP_DEFLATED)
    write_file(file, packed.getvalue())


def unpack_atlas(file: Path, folder: Path) -> "Atlas":
    """The atlas in a file, as a new folder; each of its files is verified when it is read."""
    from headscope.atlases.atlas_folder import Atlas

    try:
        with zipfile.ZipFile(file) as archive, new_folder(folder) as place:
            for path in archive.namelist():
                if Path(path).parts[0] not in (INDEX, TOKENS, SCORES, NORMS, PICTURES, MAPS) or ".." in path:
                    raise LoadError(f"{file} is damaged: it holds {path!r}, which no atlas has.")
                archive.extract(path, place)
    except (OSError, zipfile.BadZipFile) as error:
        raise LoadError(f"{file} cannot be unpacked: {error}.") from error
    return Atlas(folder)


@functools.lru_cache(maxsize=16)
def packed_index(file: Path) -> dict[str, Any]:
    """The index of the atlas in a file, without unpacking it; it is verified when it is unpacked and opened."""
    try:
        with zipfile.ZipFile(file) as archive:
            return parse_json(archive.read(INDEX))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise LoadError(f"{file} is damaged: {error}.") from error


def _norms(atlas: "Atlas") -> bytes:
    """Norms by address, and key biases as ADDRESS/key_bias, in half precision."""
    tensors: dict[str, torch.Tensor] = {}
    for address in atlas.addresses:
        columns: dict[str, np.ndarray[Any, Any]] = atlas.columns(address)
        tensors[address] = torch.from_numpy(columns["norm"].astype(np.float16))
        if "key_bias" in columns:
            n_queries = atlas.n_tokens[atlas.place(address).clouds[0].stack]
            tensors[f"{address}/key_bias"] = torch.from_numpy(columns["key_bias"][n_queries:].astype(np.float16))
    return save(tensors)
