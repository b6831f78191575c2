"""A shard on disk: one Parquet file that carries its own SHA-256, and says which shard of which run it is.

The checksum stands in the footer, among the file's other remarks. It is that of the whole file with zeros in the
checksum's place, so one flipped bit anywhere is noticed, and the file stays plain Parquet.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, LoadError, MissingExtraError
from headscope.files import file_state, has_checksum, is_verified, remember_verified

_FIELD = "headscope.checksum"
_LABEL = b"headscope-sha256:"
_ZEROS = b"0" * 64
# What is remembered of a file that was read.
_RIGHT, _WITHOUT = "its own checksum is right", "it has no checksum"
REMEDY = "Run it again with the same folder: what is damaged is computed again."


class Shard:
    """One shard of a run: opened only once it is known to be whole.

    `digest` is that of the run's manifest and `index` the number of the shard; None where whoever reads it does not
    know. Without `needs_checksum` a file that has none, as Headscope 0.1.0 wrote them, is read unverified.
    """

    def __init__(self, path: Path, *, digest: str | None = None, index: int | None = None, needs_checksum: bool = True):
        self.path, self.digest, self.index, self.needs_checksum = path, digest, index, needs_checksum

    def __repr__(self) -> str:
        return f"Shard({str(self.path)!r})"

    @property
    def is_there(self) -> bool:
        """Whether the file exists, whole or not."""
        return self.path.is_file()

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """The verified `pyarrow.parquet.ParquetFile`."""
        pa, pq = arrow()
        try:
            state = file_state(self.path)
            known = next((kind for kind in (_RIGHT, _WITHOUT) if is_verified(self.path, state, kind)), None)
            data = self.path.read_bytes() if known is None else b""
        except FileNotFoundError as error:
            raise LoadError(f"{self.path} is missing. {REMEDY}") from error
        except OSError as error:
            raise LoadError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        kind = known or self._verify(data)
        if kind == _WITHOUT and self.needs_checksum:
            raise LoadError(f"{self.path} is damaged: it has no checksum. {REMEDY}")
        if known is None:
            remember_verified(self.path, state, kind)
        try:
            with pq.ParquetFile(self.path if known else pa.BufferReader(data)) as parquet:
                self._check_place(parquet.metadata.metadata or {})
                yield parquet
        except HeadscopeError:
            raise
        except Exception as error:  # whatever Arrow raises at bytes that nothing vouches for
            if kind == _RIGHT:
                raise
            raise LoadError(f"{self.path} is damaged: {error}. {REMEDY}") from error

    def about(self, what: str) -> Any:
        """What the shard says of itself: "passed_over", "refusals", "notes" or "files"; None where it does not."""
        with self.open() as parquet:
            text = (parquet.metadata.metadata or {}).get(f"headscope.{what}".encode())
            return None if text is None else json.loads(text)

    def file(self, name: str) -> Path | None:
        """A file that a measure wrote beside the shard, verified; None where it wrote none of this name."""
        path, files = self.path.with_name(name), self.about("files")
        if files is None:  # before files were listed
            return path if path.is_file() else None
        if name not in files:
            return None
        if not path.is_file():
            raise LoadError(f"{path} is missing. {REMEDY}")
        if not has_checksum(path, files[name]):
            raise LoadError(f"{path} is damaged: it does not match its checksum. {REMEDY}")
        return path

    def check(self) -> None:
        """Raise an error that says what is wrong with the shard or with a file that belongs to it, if anything is."""
        for name in self.about("files") or {}:
            self.file(name)

    def _verify(self, data: bytes) -> str:
        """Whether the data have a checksum; one that is not right is refused."""
        if not data:
            raise LoadError(f"{self.path} is empty. {REMEDY}")
        place = _place(data)
        if place is not None and data[place : place + len(_ZEROS)] != _digest(data, place):
            raise LoadError(f"{self.path} is damaged: it does not match its checksum. {REMEDY}")
        return _WITHOUT if place is None else _RIGHT

    def _check_place(self, remarks: Mapping[bytes, bytes]) -> None:
        """Refuse a whole shard that belongs elsewhere."""
        if self.digest is not None and remarks.get(b"headscope.manifest") != self.digest.encode():
            raise LoadError(f"{self.path} belongs to another run, or manifest.json was changed. {REMEDY}")
        stated = remarks.get(b"headscope.shard")  # not in files of 0.1.0
        if self.index is not None and stated is not None and stated != str(self.index).encode():
            raise LoadError(f"{self.path} is shard {stated.decode()} of this run under another name. {REMEDY}")


def add_checksum(writer: Any) -> None:
    """Leave room for the checksum in a Parquet file that is being written."""
    writer.add_key_value_metadata({_FIELD: (_LABEL + _ZEROS).decode()})


def seal(data: bytes) -> bytes:
    """A Parquet file with room for its checksum, filled in."""
    place = _place(data)
    if place is None or data[place : place + len(_ZEROS)] != _ZEROS:
        raise HeadscopeError(f"a measure cannot have {_LABEL.decode()!r} in its name.")
    return data[:place] + _digest(data, place) + data[place + len(_ZEROS) :]


def arrow():
    """The packages that write and read Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("runs are kept as Parquet: pip install 'headscope[runs]'.") from error
    return pyarrow, pyarrow.parquet


def _place(data: bytes) -> int | None:
    """Where the checksum stands: in the footer, whose length is told in the last eight bytes."""
    first = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    label = data.find(_LABEL, max(first, 0))
    return None if label < 0 else label + len(_LABEL)


def _digest(data: bytes, place: int) -> bytes:
    digest, view = hashlib.sha256(), memoryview(data)
    for part in (view[:place], _ZEROS, view[place + len(_ZEROS) :]):
        digest.update(part)
    return digest.hexdigest().encode()
