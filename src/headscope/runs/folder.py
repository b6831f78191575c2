"""The folder of a run: `manifest.json` and one Parquet file a shard, each whole or not there."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, HeadscopeWarning, LoadError
from headscope.runs.ledger import arrow
from headscope.runs.manifest import FORMAT, VERSION, differences, digest_of
from headscope.traces.store import write_whole

try:
    import fcntl
except ImportError:  # Windows has no such locks: two runs at once in one folder are then on their own
    fcntl = None


class Folder:
    """Where a run keeps its shards."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def shards(self) -> list[Path]:
        """The shards that are done, in order."""
        return sorted(self.path.glob("shard-*.parquet"))

    def shard(self, index: int) -> Path:
        """Where a shard goes."""
        return self.path / f"shard-{index:06d}.parquet"

    def manifest(self) -> dict[str, Any]:
        """The manifest that is there."""
        file = self.path / "manifest.json"
        if not file.is_file():
            raise LoadError(f"{self.path} is not a run: it has no manifest.json.")
        try:
            found = json.loads(file.read_text())
            if found["format"] != FORMAT or found["version"] != VERSION:
                raise LoadError(f"{file} is of another kind or version: {found['format']} {found['version']}.")
        except (ValueError, KeyError, TypeError) as error:
            raise LoadError(f"{file} cannot be read: {error}.") from error
        return found

    def begin(self, manifest: dict[str, Any], *, resume: bool) -> None:
        """Claim the folder for a manifest; refuse it if it belongs to another run, or to something else."""
        if (self.path / "manifest.json").exists():
            differ = differences(self.manifest(), manifest)
            if differ:
                shown = "; ".join(differ[:6]) + (f"; and {len(differ) - 6} more" if len(differ) > 6 else "")
                raise HeadscopeError(f"{self.path} holds another run: {shown}. Choose another folder.")
            if not resume:
                raise HeadscopeError(f"{self.path} holds this run already: resume it, or choose another folder.")
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise HeadscopeError(f"{self.path} is there and is not a run: choose a new or an empty folder.")
        write_whole(self.path / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False).encode())

    def done(self, manifest: dict[str, Any]) -> set[int]:
        """The numbers of the shards that are done; one that is damaged is taken away, to be done again."""
        _, pq = arrow()
        digest, found = digest_of(manifest), set()
        for leftover in self.path.glob(".*.partial"):
            leftover.unlink(missing_ok=True)
        for file in self.shards:
            try:
                about = pq.read_metadata(file).metadata or {}
                is_whole = about.get(b"headscope.manifest") == digest.encode()
            except Exception:  # whatever Arrow raises at bytes that are no Parquet
                is_whole = False
            if is_whole:
                found.add(int(file.stem.removeprefix("shard-")))
            else:
                warnings.warn(f"{file.name} is damaged and is done again.", HeadscopeWarning, stacklevel=2)
                file.unlink()
        return found

    def write(self, index: int, data: bytes) -> None:
        """Keep a shard: under a temporary name first, then renamed."""
        write_whole(self.shard(index), data)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out; one that dies lets go by itself."""
        if fcntl is None:
            yield
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=True)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise HeadscopeError(f"another process is at work in {self.path}: wait for it, or stop it.") from error
            yield
        finally:
            os.close(handle)
