"""Writing files: whole or not at all, through links, with the mode that is due; and folders of others left alone."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from made_traces import random_layer, trace_of_layers
from tiny_models import FAMILIES

import headscope as hs
from headscope import files
from headscope.attention import Formula
from headscope.errors import HeadscopeError, LoadError
from headscope.models import Model
from headscope.reports.studies import Check, Study
from headscope.traces import Trace

VIEW = hs.head_view(Trace.from_patterns([torch.eye(3)[None]], ["a", "b", "c"]))
STUDY = Study("x", "A", "them", "m", "c", 3, (Check("part", "a", "1", "2"),), ("n",))
EDITS = [hs.silence("L0H0"), hs.replace_pattern("L0H1", torch.eye(3)[None])]

# Single files that a user names.
FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a page": ("view.html", VIEW.save),
    "a figure": ("view.png", VIEW.save),
    "a table": ("view.csv", VIEW.save),
    "two views": ("two.html", lambda path: hs.side_by_side(VIEW, VIEW).save(path)),
    "edits": ("edits.json", lambda path: hs.save_interventions(EDITS, path)),
}


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: void(os.umask(mask))
    os.umask(before)


def void(_: object) -> None:
    pass


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# Single files


@pytest.mark.parametrize("kind", FILES)
def test_an_existing_file_keeps_its_mode(kind, tmp_path):
    name, save = FILES[kind]
    (tmp_path / name).write_text("old")
    (tmp_path / name).chmod(0o604)
    save(tmp_path / name)
    assert mode(tmp_path / name) == 0o604 and (tmp_path / name).read_bytes() != b"old"


@pytest.mark.parametrize("kind", FILES)
def test_a_new_file_has_the_mode_that_the_umask_gives(kind, tmp_path, umask):
    name, save = FILES[kind]
    for mask, expected in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        umask(mask)
        folder = tmp_path / oct(mask)
        folder.mkdir()
        save(folder / name)
        assert {mode(file) for file in folder.iterdir()} == {expected}


@pytest.mark.parametrize("kind", FILES)
def test_a_link_stays_and_its_target_is_written(kind, tmp_path):
    name, save = FILES[kind]
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    target, link = tmp_path / "there" / name, tmp_path / "here" / name
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(Path("..") / "there" / name)
    save(link)
    assert link.is_symlink() and target.read_bytes() != b"old" and mode(target) == 0o640
    assert [file.name for file in (tmp_path / "here").iterdir()] == [name]


@pytest.mark.parametrize("kind", FILES)
def test_a_link_to_a_file_that_is_not_there_yet_makes_it(kind, tmp_path):
    name, save = FILES[kind]
    (tmp_path / "there").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "there" / name)
    save(tmp_path / name)
    assert (tmp_path / name).is_symlink() and (tmp_path / "there" / name).is_file()


def test_edits_saved_through_a_link_are_read_from_either_side(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "edits.json").symlink_to(tmp_path / "there" / "real.json")
    hs.save_interventions(EDITS, tmp_path / "edits.json")
    for path in (tmp_path / "edits.json", tmp_path / "there" / "real.json"):
        assert [repr(intervention) for intervention in hs.load_interventions(path)] == [
            repr(intervention) for intervention in EDITS
        ]


def test_another_file_under_the_name_of_a_tensor_is_left_alone(tmp_path):
    hs.save_interventions(EDITS, tmp_path / "first.json")
    (file,) = tmp_path.glob("*.safetensors")
    file.write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(LoadError, match=rf"{file.name} is damaged or not a tensor that Headscope wrote"):
        hs.save_interventions(EDITS, tmp_path / "second.json")
    assert contents(tmp_path) == before


def test_a_tensor_that_is_there_already_is_not_written_again(tmp_path):
    hs.save_interventions(EDITS, tmp_path / "first.json")
    (file,) = tmp_path.glob("*.safetensors")
    before = file.stat()
    hs.save_interventions(EDITS, tmp_path / "second.json")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_not_a_regular_file_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "view.html")
    with pytest.raises(LoadError, match=r"could not write .*view\.html: it is there and is not a regular file"):
        VIEW.save(tmp_path / "view.html")
    assert stat.S_ISFIFO((tmp_path / "view.html").stat().st_mode) and len(list(tmp_path.iterdir())) == 1


def test_a_read_only_file_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "view.csv").write_text("final figures")
    # (The superuser may write to any file, so the file's mode alone would not show it in every place.)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "view.csv")
    with pytest.raises(LoadError, match="read-only"):
        VIEW.save(tmp_path / "view.csv")
    assert contents(tmp_path) == {"view.csv": b"final figures"}


def test_a_circle_of_links_is_refused(tmp_path):
    (tmp_path / "a.html").symlink_to(tmp_path / "b.html")
    (tmp_path / "b.html").symlink_to(tmp_path / "a.html")
    with pytest.raises(LoadError, match="could not write"):
        VIEW.save(tmp_path / "a.html")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "b.html"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_a_file_stays(tmp_path):
    (tmp_path / "view.csv").write_text("old")
    os.chown(tmp_path / "view.csv", 4321, 1234)
    VIEW.save(tmp_path / "view.csv")
    about = (tmp_path / "view.csv").stat()
    assert (about.st_uid, about.st_gid) == (4321, 1234)


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(failing, tmp_path, monkeypatch):
    files.write_file(tmp_path / "x", b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    place = {"write": (Path, "open"), "fsync": (os, "fsync"), "replace": (Path, "replace")}[failing]
    with monkeypatch.context() as patched:
        patched.setattr(*place, full)
        with pytest.raises(LoadError, match=r"could not write .*x: No space left on device\. What was there before is"):
            files.write_file(tmp_path / "x", b"new")
    assert contents(tmp_path) == {"x": b"old"}


def test_threads_that_write_one_file_leave_one_of_their_texts(tmp_path):
    texts = [bytes([number]) * 10_000 for number in range(8)]
    threads = [threading.Thread(target=files.write_file, args=(tmp_path / "x", text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "x").read_bytes() in texts and len(list(tmp_path.iterdir())) == 1


# Folders


def bake(folder: Path) -> object:
    return hs.bake(Model(FAMILIES["gpt2"].build()), [hs.silence("L0H0")], folder)


def measure(folder: Path) -> object:
    model = hs.load("builtin:gpt")
    return hs.runs.run(model, ["It rained."], [hs.runs.OfLayers("ones", ones)], folder)


def ones(layer):
    yield layer.tally(layer.queries.sum(-1).float(), layer.queries.sum(-1))


def report(folder: Path) -> object:
    return hs.heads("builtin:gpt", ["It rained, and it rained."], folder, relevance=False, importance=False)


FOLDERS: dict[str, Callable[[Path], object]] = {
    "trace": trace_of_layers(random_layer(Formula(0.5))).save,
    "run": measure,
    "heads": report,
    "study": STUDY.save,
    "bake": bake,
}
OTHERS = ("index.html", "heads.json", "scores.parquet", "study.json", "manifest.json", "trace.json", "config.json")


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("names", [("thesis.tex",), OTHERS], ids=["another name", "our names"])
def test_a_folder_of_others_is_refused_and_nothing_is_written(kind, names, tmp_path):
    for name in names:
        (tmp_path / name).write_text('{"format": "theirs"}' if name.endswith(".json") else "mine")
    before = contents(tmp_path)
    with pytest.raises(HeadscopeError) as refused:
        FOLDERS[kind](tmp_path)
    assert any(name in str(refused.value) for name in names) and "hoose" in str(refused.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_file_where_the_folder_should_be_is_refused(kind, tmp_path):
    (tmp_path / "here").write_text("mine")
    with pytest.raises(LoadError, match="a file is there"):
        FOLDERS[kind](tmp_path / "here")
    assert contents(tmp_path) == {"here": b"mine"}


@pytest.mark.parametrize("kind", [kind for kind in FOLDERS if kind != "bake"])
def test_our_own_result_is_replaced_and_what_lies_beside_it_stays(kind, tmp_path):
    FOLDERS[kind](tmp_path)
    first = contents(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".hidden").write_text("mine")
    FOLDERS[kind](tmp_path)
    assert contents(tmp_path) == first | {"notes.txt": b"mine", ".hidden": b"mine"}


@pytest.mark.parametrize("kind", FOLDERS)
def test_files_in_our_folders_can_be_read_by_whom_the_umask_lets(kind, tmp_path, umask):
    umask(0o022)
    FOLDERS[kind](tmp_path / "new")
    assert {mode(file) for file in (tmp_path / "new").rglob("*") if file.is_file()} == {0o644}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_link_to_an_empty_folder_is_written_through(kind, tmp_path):
    (tmp_path / "there").mkdir(mode=0o750)
    (tmp_path / "here").symlink_to(tmp_path / "there")
    FOLDERS[kind](tmp_path / "here")
    assert (tmp_path / "here").is_symlink() and any((tmp_path / "there").iterdir())
    assert mode(tmp_path / "there") == 0o750
    assert sorted(file.name for file in tmp_path.iterdir()) == ["here", "there"]


def test_a_page_that_a_user_put_beside_a_stopped_report_is_left_alone(tmp_path):
    measure(tmp_path / "run")
    (tmp_path / "index.html").write_text("mine")
    before = contents(tmp_path)
    for write in (report, STUDY.save):
        with pytest.raises(LoadError, match=r"did not write and would have to replace: index\.html"):
            write(tmp_path)
    assert contents(tmp_path) == before


def test_a_model_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(LoadError, match="No space left on device"):
        bake(tmp_path / "baked")
    assert not list(tmp_path.iterdir())


# What killed processes leave, and power cuts


KILLED = """
import sys
from pathlib import Path
from headscope.files import new_folder
with new_folder(Path(sys.argv[1])) as partial:
    (partial / "weights").write_bytes(bytes(1000))
    print("begun", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen]:
    """A process that has begun a folder and waits; killed at the end."""
    command = [sys.executable, "-c", KILLED, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"begun\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def make_older(folder: Path, seconds: float) -> None:
    for path in folder.iterdir():
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_the_next_folder_clears_what_a_killed_process_began_beside_it(tmp_path):
    with writer(tmp_path / "model"):
        pass
    make_older(tmp_path, 3)
    assert len(files.unfinished(tmp_path)) == 1
    with files.new_folder(tmp_path / "model") as partial:
        (partial / "weights").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_a_living_process_fills_is_left_alone(tmp_path):
    with writer(tmp_path / "model"):
        make_older(tmp_path, 24 * 3600)
        assert files.unfinished(tmp_path) == []
        with files.new_folder(tmp_path / "other"):
            pass
        assert len(list(tmp_path.glob(".headscope-*.partial/weights"))) == 1


def test_a_file_that_somebody_may_still_be_writing_is_left_alone(tmp_path):
    (tmp_path / ".headscope-0123456789abcdef.partial").touch()
    assert files.unfinished(tmp_path) == []
    make_older(tmp_path, 61)
    files.remove_unfinished(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files from /proc")
def test_names_are_on_disk_before_a_write_is_over(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    files.write_file(tmp_path / "a", b"1")
    assert synced[-1] == str(tmp_path) and ".partial" in synced[-2]
    synced.clear()
    with files.new_folder(tmp_path / "folder") as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "weights").touch()
    assert {"weights", "inner", partial.name} <= {Path(name).name for name in synced[:-1]}
    assert synced[-1] == str(tmp_path)


# Checksums


def test_a_file_is_not_read_again_to_verify_it(tmp_path, monkeypatch):
    file = tmp_path / "x"
    file.write_bytes(b"data")
    digest = files.checksum(file)
    old = time.time() - 3600
    os.utime(file, (old, old))
    monkeypatch.setattr(files, "_RECENT", -1)  # as an hour later: the time of a change of mode cannot be set back
    assert files.has_checksum(file, digest)
    with monkeypatch.context() as patched:
        patched.setattr(files, "checksum", lambda _: pytest.fail("read again"))
        assert files.has_checksum(file, digest)
    assert not files.has_checksum(file, "0" * 64)
    file.write_bytes(b"fake")
    assert not files.has_checksum(file, digest)


def test_a_file_that_has_just_been_written_is_always_verified(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"data")
    digest = files.checksum(file)
    assert files.has_checksum(file, digest)
    before = file.stat()
    file.write_bytes(b"fake")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # too fast for the clock of the file system
    assert not files.has_checksum(file, digest)


def test_a_checksum_of_json_notices_every_change(tmp_path):
    data = files.with_checksum({"a": [1, 0.1, None], "b": {"c": "é"}})
    assert list(data)[-1] == "checksum"
    assert files.take_checksum(dict(data), tmp_path / "x.json", "")
    assert not files.take_checksum({"a": 1}, tmp_path / "x.json", "")
    for change in ({"a": [1, 0.2, None]}, {"b": {}}, {"d": 1}, {"checksum": "0" * 64}):
        with pytest.raises(LoadError, match=r"x\.json is damaged: it does not match its checksum\. Do this"):
            files.take_checksum(data | change, tmp_path / "x.json", "Do this.")
