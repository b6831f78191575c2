"""The folder of a run: `manifest.json` and one Parquet file a shard, each whole or not there, and each verified."""

import contextlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, HeadscopeWarning, LoadError
from headscope.files import (
    lock,
    read_json,
    refuse_foreign,
    remove_unfinished,
    take_checksum,
    with_checksum,
    write_file,
)
from headscope.runs.manifest import FORMAT, FORMER_MEASURES, UNVERIFIED, VERSION, differences, digest_of, measure_names
from headscope.runs.shard import REMEDY, Shard

_REMEDY = "Run it again with the same folder and settings to repair it, or choose another folder."


class Folder:
    """Where a run keeps its shards."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.file = self.path / "manifest.json"

    def shards(self, manifest: dict[str, Any]) -> list[Shard]:
        """All shards of a run, in order, those that are not there yet too."""
        n_shards = -(-manifest["corpus"]["n_examples"] // manifest["plan"]["shard_size"])
        digest, needs_checksum = digest_of(manifest), manifest["version"] != UNVERIFIED
        return [
            Shard(self.shard(index), digest=digest, index=index, needs_checksum=needs_checksum)
            for index in range(n_shards)
        ]

    def shard(self, index: int) -> Path:
        """Where a shard goes."""
        return self.path / f"shard-{index:06d}.parquet"

    def manifest(self) -> dict[str, Any]:
        """The manifest that is there, verified; one of 0.1.0, which has no checksum, is read with a warning."""
        if not self.file.is_file():
            raise LoadError(f"{self.path} is not a run: it has no manifest.json.")
        manifest = read_json(self.file, _REMEDY)
        has_checksum = take_checksum(manifest, self.file, _REMEDY)
        name, version = manifest.get("format"), manifest.get("version")
        if name != FORMAT or version not in (UNVERIFIED, FORMER_MEASURES, VERSION):
            raise LoadError(
                f"{self.file} is of another kind or version: {name} {version}, and this Headscope reads {FORMAT} "
                f"{UNVERIFIED} to {VERSION}. {_REMEDY}"
            )
        if has_checksum != (version != UNVERIFIED):
            raise LoadError(f"{self.file} is damaged: its version and its checksum do not fit together. {_REMEDY}")
        if not has_checksum:
            self._check_unverified(manifest)
            warnings.warn(
                f"{self.path} was written by Headscope 0.1.0, without checksums: damage to it may go unnoticed. "
                "Measure again in another folder to have them.",
                HeadscopeWarning,
                stacklevel=3,
            )
        return manifest

    def check(self) -> None:
        """Refuse a folder that holds something else than a run, before anything is computed."""
        if any(self.path.glob("shard-*.parquet")):
            return  # `begin` sees whose they are
        try:
            is_ours = self.file.exists() and read_json(self.file, _REMEDY).get("format") == FORMAT
        except LoadError:
            is_ours = False
        refuse_foreign(self.path, "a run", ours=[self.file.name] if is_ours else [])

    def begin(self, manifest: dict[str, Any], *, resume: bool) -> dict[str, Any]:
        """Claim the folder for a manifest; refuse it if it belongs to another run, or to something else.

        Gives the manifest to go on with: a run that 0.1.0 began stays one without checksums.
        """
        try:
            before = self.manifest() if self.file.exists() else None
        except LoadError as error:
            if not self._is_of(manifest):
                raise
            warnings.warn(f"{error} It is written again.", HeadscopeWarning, stacklevel=3)
            before = None
        if before is None:
            if not self._is_of(manifest):
                refuse_foreign(self.path, "a run")
            elif not resume:
                raise HeadscopeError(f"{self.path} holds this run already: resume it, or choose another folder.")
            text = json.dumps(with_checksum(manifest), indent=1, ensure_ascii=False)
            write_file(self.file, text.encode())
            return manifest
        renamed = [name for name, stored in measure_names(before).items() if name != stored]
        if renamed:
            raise HeadscopeError(
                f"{self.path} holds a run of an earlier version, in which {' and '.join(renamed)} had other names. "
                "It can be read, but not resumed: choose another folder."
            )
        differ = differences(before, manifest | {"version": before["version"]})
        if differ:
            listed = "; ".join(differ[:6]) + (f"; and {len(differ) - 6} more" if len(differ) > 6 else "")
            raise HeadscopeError(f"{self.path} holds another run: {listed}. Choose another folder.")
        if not resume:
            raise HeadscopeError(f"{self.path} holds this run already: resume it, or choose another folder.")
        return before

    def done_shards(self, manifest: dict[str, Any]) -> set[int]:
        """The numbers of the shards that are done; one that is damaged is taken away, to be computed again."""
        done = set()
        remove_unfinished(self.path, is_locked=True)
        for index, shard in enumerate(self.shards(manifest)):
            if not shard.is_there:
                continue
            try:
                shard.check()
                done.add(index)
            except LoadError as error:
                problem = str(error).removesuffix(REMEDY)
                warnings.warn(f"{problem}Shard {index} is computed again.", HeadscopeWarning, stacklevel=2)
                shard.path.unlink()
        return done

    def write(self, index: int, data: bytes) -> None:
        """Keep a shard: under a temporary name first, then renamed."""
        write_file(self.shard(index), data)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out; one that dies lets go by itself."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LoadError(f"cannot write a run to {self.path}: {error.strerror or error}.") from error
        with lock(self.path, wait=False):
            yield

    def _check_unverified(self, manifest: dict[str, Any]) -> None:
        """Refuse a manifest without a checksum that is not the one its shards were computed with."""
        try:
            shards = self.shards(manifest)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise LoadError(f"{self.file} is damaged: {type(error).__name__}: {error}. {_REMEDY}") from error
        if not shards:
            raise LoadError(f"{self.file} is damaged: it names no examples. {_REMEDY}")
        for shard in shards:
            if shard.is_there:
                return shard.check()

    def _is_of(self, manifest: dict[str, Any]) -> bool:
        """Whether the shards that are there are of this very run, which needs no manifest to be known."""
        for shard in self.shards(manifest):
            if shard.is_there:
                with contextlib.suppress(LoadError):
                    shard.check()
                    return True
        return False
