"""Files on disk: written whole or not at all, verified when they are read, and never in the place of another's."""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, LoadError

try:
    import fcntl
except ImportError:  # Windows has no such locks: two writers at once in one folder are then on their own
    fcntl = None

# Names of what is being written begin with this; a process that is killed leaves them behind.
UNFINISHED = ".headscope-"
# What was begun may be removed if nobody has it locked, and if it is this old (in seconds): a folder is locked at once,
# a file is written in one go and has no lock.
_FOLDER_LOCKED_AFTER, _FILE_WRITTEN_AFTER = 2.0, 60.0
# A file that was changed this recently (in ns) may change again without a change of its time stamps.
_RECENT = 2 * 10**9
_MOST_VERIFIED = 2**16
_MOST_LISTED = 6

# By path: the state in which a file was found to have a checksum, and the checksum.
_verified: dict[str, tuple[tuple[int, ...], str]] = {}


# Writing


def write_file(path: Path, data: bytes) -> None:
    """Write a file in one step: whatever happens, it is the old one or all of the new one.

    A symbolic link stays a link: the file that it points to is replaced. An existing file keeps its mode and, where
    permitted, its owner; a new one has the mode that the umask gives. Folders that are missing are made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = _target(path).with_name(f"{UNFINISHED}{secrets.token_hex(8)}.partial")
        try:
            with partial.open("xb") as file:
                file.write(data)
            place_file(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise LoadError(
            f"could not write {path}: {error.strerror or error}. What was there before is untouched."
        ) from error


def place_file(partial: Path, path: Path) -> None:
    """Move a finished file of the same folder (or disk) to `path`, with the effect of `write_file`."""
    target = _target(path)
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    if before is None:
        partial.chmod(_default_mode(partial.parent))
    else:
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "it is there and is not a regular file", str(target))
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only", str(target))
        _keep_owner(partial, before)
        partial.chmod(stat.S_IMODE(before.st_mode))
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(target)
    _sync_folder(target.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those that it is in, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadError(f"could not make the folder {path}: {error.strerror or error}.") from error


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `path` when the block ends without an error.

    `path` is absent, or an empty folder or a link to one: link and mode stay. What killed processes had begun beside it
    is removed.
    """
    target = _target(path)
    partial = target.with_name(f"{UNFINISHED}{secrets.token_hex(8)}.partial")
    try:
        remove_unfinished(target.parent)
        partial.mkdir(parents=True)
        with lock(partial):
            yield partial
            _finish_files(partial)
            if target.exists():
                partial.chmod(stat.S_IMODE(target.stat().st_mode))
                target.rmdir()  # fails, and nothing is lost, if something was put there meanwhile
            partial.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, HeadscopeError):
            raise
        raise LoadError(f"could not write {path}: {error.strerror or error}. Nothing was written there.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def unfinished(folder: Path) -> list[Path]:
    """What processes that were killed had begun to write into this folder, and left behind."""
    with contextlib.suppress(OSError):
        return [partial for partial in sorted(folder.glob(f"{UNFINISHED}*.partial")) if _is_left_behind(partial)]
    return []


def remove_unfinished(folder: Path, *, is_locked: bool = False) -> None:
    """Remove that. Of a folder that the caller has locked, all that was begun: nobody else writes there."""
    for partial in sorted(folder.glob(f"{UNFINISHED}*.partial")) if is_locked else unfinished(folder):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _is_left_behind(partial: Path) -> bool:
    if fcntl is None:
        return False  # who is at work cannot be known
    try:
        age = time.time() - partial.lstat().st_mtime
        if not partial.is_dir():
            return age > _FILE_WRITTEN_AFTER
        with lock(partial, wait=False):
            return age > _FOLDER_LOCKED_AFTER
    except (OSError, HeadscopeError):  # gone, or somebody is writing it
        return False


def _finish_files(folder: Path) -> None:
    """Give files the mode of new ones (some libraries write files that only their owner may read), all on disk."""
    mode = _default_mode(folder)
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            _sync_folder(path)
        elif path.is_file():
            path.chmod(mode)
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk: without that a new file may be gone after a power cut."""
    with contextlib.suppress(OSError):  # Windows opens no folders, and some network disks sync none
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _target(path: Path) -> Path:
    """Where a path leads, links followed."""
    return Path(os.path.realpath(path))


def _default_mode(folder: Path) -> int:
    """The mode of a new file: the umask itself cannot be read without setting it for all threads."""
    probe = folder / f"{UNFINISHED}{secrets.token_hex(8)}.partial"
    try:
        probe.touch(exist_ok=False)
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink(missing_ok=True)


def _keep_owner(partial: Path, before: os.stat_result) -> None:
    own = partial.stat()
    if hasattr(os, "chown") and (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):  # only the superuser may give files away
            os.chown(partial, before.st_uid, before.st_gid)


# Folders


def refuse_foreign(
    folder: Path,
    what: str,
    *,
    ours: Collection[str] = (),
    writes: Collection[str] = (),
    is_replaced: bool = False,
) -> None:
    """Refuse to write `what` ("a trace") into a folder where it would touch files that Headscope did not write.

    `ours` names the files of an earlier result, which may be replaced. Where there are none, the folder must be new or
    empty, hidden files and empty folders apart. Beside an earlier result other files may lie, but not under a name that
    `writes` lists. A folder that `is_replaced` itself must have nothing at all in it.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise LoadError(f"cannot write {what} to {folder}: a file is there. Choose a new or an empty folder.")
    try:
        names = sorted(file.name for file in folder.iterdir() if is_replaced or not _is_nothing(file))
    except OSError as error:
        raise LoadError(f"cannot write {what} to {folder}: {error.strerror or error}.") from error
    foreign = [name for name in names if name not in ours]
    if len(foreign) == len(names):
        if foreign:
            raise LoadError(
                f"{folder} is not empty and is not {what}: it holds {_name_list(foreign)}. Nothing was written: "
                "choose a new or an empty folder."
            )
        return
    in_the_way = [name for name in foreign if name in writes]
    if in_the_way:
        raise LoadError(
            f"{folder} holds {what}, and beside it files that Headscope did not write and would have to replace: "
            f"{_name_list(in_the_way)}. Nothing was written: move them, or choose another folder."
        )


@contextlib.contextmanager
def lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other processes and threads that lock this folder out; the lock of a process that dies is released."""
    if fcntl is None:
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise LoadError(f"cannot write to {folder}: {error.strerror or error}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise HeadscopeError(f"another process is at work in {folder}: wait for it, or stop it.") from error
        yield
    finally:
        os.close(handle)


def _is_nothing(file: Path) -> bool:
    """Whether a file is hidden, or a folder with nothing in it."""
    return file.name.startswith(".") or (file.is_dir() and not any(file.iterdir()))


def _name_list(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{', '.join(names[:_MOST_LISTED])}{more}"


# Checksums


def checksum(file: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(2**22):
            digest.update(piece)
    return digest.hexdigest()


def has_checksum(file: Path, expected: str) -> bool:
    """Whether a file has this SHA-256; a file that had it and was not touched since is not read again."""
    state = file_state(file)
    if is_verified(file, state, expected):
        return True
    is_right = checksum(file) == expected
    if is_right:
        remember_verified(file, state, expected)
    return is_right


def file_state(file: Path) -> tuple[int, ...]:
    """What changes when a file is written or replaced."""
    about = file.stat()
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def is_verified(file: Path, state: tuple[int, ...], digest: str) -> bool:
    """Whether this process has found the file, in this state, to have this checksum."""
    return _verified.get(os.path.realpath(file)) == (state, digest)


def remember_verified(file: Path, state: tuple[int, ...], digest: str) -> None:
    """Note that the file, in this state, has this checksum: it need not be read again to know."""
    if time.time_ns() - max(state[-2:]) > _RECENT:
        if len(_verified) >= _MOST_VERIFIED:
            _verified.clear()
        _verified[os.path.realpath(file)] = (state, digest)


def parse_json(data: str | bytes) -> Any:
    """What JSON says; a `ValueError` where it is damaged, or nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(file: Path, remedy: str) -> dict[str, Any]:
    """A JSON object from a file; an error names the file and ends with the remedy."""
    try:
        data = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise LoadError(f"{file} is damaged: {error}. {remedy}") from error
    if not isinstance(data, dict):
        raise LoadError(f"{file} is damaged: it holds no JSON object. {remedy}")
    return data


def with_checksum(data: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with its own checksum as the last field."""
    return data | {"checksum": _json_checksum(data)}


def take_checksum(data: dict[str, Any], file: Path, remedy: str) -> bool:
    """Take the checksum off a JSON object that was read from a file; a wrong one is refused.

    False where there is none: whether there must be one, the version of the format says.
    """
    stated = data.pop("checksum", None)
    if stated is not None and stated != _json_checksum(data):
        raise LoadError(f"{file} is damaged: it does not match its checksum. {remedy}")
    return stated is not None


def _json_checksum(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()
