"""Atlases that the workbench offers: folders it was started with, those of built-in models, those made from texts."""

import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.atlases import Atlas
from headscope.atlases.atlas_index import MAPS
from headscope.atlases.packed_atlas import packed_index, unpack_atlas
from headscope.errors import LoadError
from headscope.models.loading import BUILTIN
from headscope.server.catalogue import Catalogue
from headscope.server.errors import Refused
from headscope.server.log import logger, type_and_place
from headscope.server.messages import AtlasOffer
from headscope.views.atlas_parts import AtlasNames

PACKED = "atlas.zip"
MOST_MADE = 4
"""Atlases made from texts that are kept: the oldest makes room."""
# What a part works with, rounded up from what was measured with a million points: for each row of the table of tokens,
# each point on a map, and each number of a vector.
_BYTES_A_TOKEN, _BYTES_A_POINT, _BYTES_A_NUMBER = 800, 32, 40
_OF_VECTORS = ("lines", "distances", "aggregate", "pattern", "neighbours", "search", "columns", "page")
"""Parts that read the vectors of a head, where the atlas has some."""


@dataclass(eq=False)
class OfferedAtlas:
    """An atlas under its name. Its parts change when maps or scores are made: `version` counts that."""

    key: str
    name: str
    title: str
    model: str
    open: Callable[[], Atlas]
    index: dict[str, Any]
    version: int = 0
    _atlas: Atlas | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def id(self) -> str:
        """What its parts are addressed by: another after every change, so that browsers may keep them."""
        return f"{self.key}-{self.version}"

    @property
    def names(self) -> AtlasNames:
        """As its part `atlas` says them."""
        return AtlasNames(self.id, self.name, self.title, self.model)

    def atlas(self) -> Atlas:
        """The atlas itself, opened when it is first asked for."""
        with self._lock:
            if self._atlas is None:
                self._atlas = self.open()
            return self._atlas

    @contextlib.contextmanager
    def changing(self) -> Iterator[Atlas]:
        """Whatever was made of maps or scores by the end of the block, browsers ask for again."""
        try:
            yield self.atlas()
        finally:
            self.version += 1

    def working_bytes(self, kind: str, points: int = 0) -> int:
        """The most memory that a part of this kind takes while it is computed.

        That is the table of tokens, one map, the sample of `points` points of every map, and a head's vectors.
        """
        atlas = self.atlas()
        n_points = 2 * max(atlas.n_tokens.values())
        n_drawn = n_points + len(atlas) * min(points, n_points)
        n_numbers = n_points * self._dim if kind in _OF_VECTORS and atlas.index["has_vectors"] else 0
        n_tokens = sum(atlas.n_tokens.values())
        return n_tokens * _BYTES_A_TOKEN + n_drawn * _BYTES_A_POINT + n_numbers * _BYTES_A_NUMBER

    @cached_property
    def _dim(self) -> int:
        """How many numbers the longest vectors have."""
        return max(shape[2] for shape in self.atlas().vector_files().shapes().values())


class Atlases:
    """All that is offered, by names that links have and by the ids of parts."""

    def __init__(self, folders: tuple[Path, ...], catalogue: Catalogue):
        self.catalogue = catalogue
        self._salt = secrets.token_hex(8)
        self._offered: OrderedDict[str, OfferedAtlas] = OrderedDict()
        self._made: list[str] = []
        self._root: Path | None = None
        for folder in folders:
            self._offer_folder(folder)
        for model in catalogue.builtin:
            packed = BUILTIN / model.removeprefix("builtin:") / PACKED
            if packed.is_file():
                self._offer_packed(model, packed)

    def offers(self) -> list[AtlasOffer]:
        """As the page is told of them."""
        return [_offer(offered) for offered in list(self._offered.values())]

    def find(self, id: str) -> OfferedAtlas:
        """An atlas by the id of its parts, whatever its version was then."""
        key = id.partition("-")[0]
        offered = next((offered for offered in self._offered.values() if offered.key == key), None)
        if offered is None:
            raise Refused(404, "UnknownAtlas", f"there is no atlas {id[:40]!r} (any more).", "Choose another one.")
        return offered

    def new_folder(self) -> Path:
        """A folder for an atlas that is made from texts; it goes with the server."""
        try:
            return Path(tempfile.mkdtemp(dir=self._temporary()))
        except OSError as error:
            raise LoadError(f"could not make a temporary folder: {error.strerror or error}.") from error

    def take(self, folder: Path, title: str, model: str) -> OfferedAtlas:
        """Offer an atlas that was made from texts. The oldest of those makes room."""
        number = 1 + max((int(name.rpartition("-")[2]) for name in self._made), default=0)
        offered = self._add(f"texts-{number}", title, model, lambda: Atlas(folder), Atlas(folder).index)
        self._made.append(offered.name)
        while len(self._made) > MOST_MADE:
            oldest = self._offered.pop(self._made.pop(0))
            shutil.rmtree(oldest.atlas().folder, ignore_errors=True)
        return offered

    def close(self) -> None:
        """Delete what was made here."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    # Inside

    def _offer_folder(self, folder: Path) -> None:
        folder = folder.expanduser()
        atlas = Atlas(folder)  # a folder that is none is refused at the start
        name = _unused(folder.resolve().name, self._offered)
        title = atlas.index["corpus"]["name"]
        self._add(name, title, self._model_of(atlas), lambda: self._writable(folder), atlas.index)

    def _offer_packed(self, model: str, packed: Path) -> None:
        """The atlas that a built-in model brings; one that is damaged is left out."""
        try:
            index = packed_index(packed)
        except LoadError as error:
            logger.warning("the atlas of %s cannot be offered: %s", model, type_and_place(error))
            return
        self._add(model, index["corpus"]["name"], model, self._unpacking(packed), index)

    def _model_of(self, atlas: Atlas) -> str:
        """The name under which this server offers the model of an atlas: a folder is known by its last part."""
        offered = [*self.catalogue.startup_models, *self.catalogue.builtin]
        return next((name for name in offered if atlas.model in (name, Path(name).name)), "")

    def _add(
        self, name: str, title: str, model: str, open_atlas: Callable[[], Atlas], index: dict[str, Any]
    ) -> OfferedAtlas:
        key = hashlib.sha256(f"{self._salt} {name}".encode()).hexdigest()[:16]
        self._offered[name] = OfferedAtlas(key, name, title, model, open_atlas, index)
        return self._offered[name]

    def _writable(self, folder: Path) -> Atlas:
        """The atlas; where its folder cannot be written, through links in one that takes its new maps and scores."""
        if os.access(folder, os.W_OK):
            return Atlas(folder)
        copy = self.new_folder() / folder.resolve().name
        mirror(folder.resolve(), copy)
        return Atlas(copy)

    def _unpacking(self, packed: Path) -> Callable[[], Atlas]:
        def open_packed() -> Atlas:
            return unpack_atlas(packed, self.new_folder() / "atlas")

        return open_packed

    def _temporary(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="headscope-atlases-"))
        return self._root


def _offer(offered: OfferedAtlas) -> AtlasOffer:
    index = offered.index
    n_points = [sum(index["n_tokens"][cloud["stack"]] for cloud in place["clouds"]) for place in index["places"]]
    return AtlasOffer(
        id=offered.id,
        name=offered.name,
        title=offered.title,
        model=offered.model,
        model_name=index["model"]["name"],
        n_heads=len(n_points),
        n_points=max(n_points),
        space=index["options"]["space"],
        has_vectors=index["has_vectors"],
    )


def mirror(folder: Path, copy: Path) -> None:
    """A folder whose files are links to those of another; `maps` are real folders, to take new ones."""
    copy.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name == MAPS:
            for kind in path.iterdir():
                (copy / MAPS / kind.name).mkdir(parents=True)
                for file in kind.iterdir():
                    _link(file, copy / MAPS / kind.name / file.name)
        else:
            _link(path, copy / path.name)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path)
    except OSError:  # where links need rights that nobody gave
        shutil.copytree(path, link) if path.is_dir() else shutil.copyfile(path, link)


def _unused(name: str, taken: OrderedDict[str, OfferedAtlas]) -> str:
    """A name that no other atlas has: those of folders are not always different."""
    own, number = name, 1
    while own in taken:
        number += 1
        own = f"{name}-{number}"
    return own
