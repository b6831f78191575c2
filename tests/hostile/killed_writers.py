"""Processes that are killed (SIGKILL) at random moments while they write, or whose disk is full: what is left of it.

    python tests/hostile/killed_writers.py FOLDER SEED WRITER KILLS FULL_DISKS

Prints one JSON object. A process of its own that never starts a thread, so that it can fork: each child has the model
ready, and is killed within the time that a whole write takes.
"""

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import headscope as hs
from headscope import files, runs

DONE, REFUSED, RAW, KILLED = 0, 1, 2, 3
TEXTS = ["the cat sat on the mat.", "the dog sat on the mat.", "a bird sang in the tree.", "it was late."]


@dataclass(frozen=True)
class Writer:
    """Something that writes: what it writes first, what then takes its place (or resumes), and how it is read.

    One that `resumes` must end with the bytes of a writer that nobody killed. Any other leaves the old or the new.
    """

    old: Callable[[Path], object] | None
    new: Callable[[Path], object]
    resumes: bool = False


def writers() -> dict[str, Writer]:
    """By name; the model is loaded once, before any process is forked."""
    model = hs.load("builtin:gpt", device="cpu")
    old, new = (model.run(text, record="full") for text in TEXTS[:2])
    old_view, new_view = hs.head_view(old), hs.head_view(new)
    weights = torch.full((4, 4), 0.25)
    old_edits, new_edits = [hs.silence("L0H0")], [hs.silence("L0H1"), hs.replace_pattern("L1H0", weights.tril())]
    measure = runs.OfLayers("previous", previous)

    def run(folder: Path) -> None:
        runs.run(model, TEXTS, [measure], folder, shard_size=1, threads=1)

    return {
        "trace": Writer(lambda path: old.save(path / "t"), lambda path: new.save(path / "t")),
        "page": Writer(lambda path: old_view.save(path / "v.html"), lambda path: new_view.save(path / "v.html")),
        "edits": Writer(
            lambda path: hs.save_interventions(old_edits, path / "e.json"),
            lambda path: hs.save_interventions(new_edits, path / "e.json"),
        ),
        "bake": Writer(None, lambda path: hs.bake(model, [hs.silence("L0H0")], path / "b")),
        "run": Writer(None, lambda path: run(path / "r"), resumes=True),
        "report": Writer(None, lambda path: hs.reports.heads(model, TEXTS, path / "h"), resumes=True),
        "atlas": Writer(None, lambda path: hs.atlas(model, TEXTS, path / "a"), resumes=True),
    }


def previous(layer: runs.Layer) -> Iterator[object]:
    """Weight on the token before."""
    plain = layer.plain_queries[:, 1:].float()
    yield layer.tally((layer.pattern.diagonal(-1, 2, 3) * plain[:, None]).sum(-1), plain.sum(-1))


def in_a_process(
    write: Callable[[Path], object], folder: Path, *, seconds: float | None = None, most_bytes: int | None = None
) -> int:
    """Write in a child: `DONE`, `REFUSED` by an error of ours, `RAW` by another, or `KILLED` after so many seconds.

    A file that would be longer than `most_bytes` cannot be written, as on a full disk.
    """
    child = os.fork()
    if child == 0:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
        try:
            write(folder)
        except hs.HeadscopeError:
            os._exit(REFUSED)
        except BaseException:
            if most_bytes is not None:
                traceback.print_exc()
            os._exit(RAW)
        os._exit(DONE)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else KILLED


def contents(folder: Path) -> dict[str, bytes]:
    """What is there, by path; what was begun and not finished is nothing."""
    paths = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if files.UNFINISHED not in name}


class Trial:
    """A writer that is interrupted again and again; what came of it, and what is wrong."""

    def __init__(self, name: str, writer: Writer, place: Path):
        self.name, self.writer, self.again = name, writer, place / "again"
        self.outcomes, self.problems = Counter[str](), list[str]()
        self.before = self.start()
        started = time.monotonic()
        if in_a_process(writer.new, self.again) != DONE:
            self.problems.append(f"{name}: it cannot write at all")
        self.seconds, self.after = time.monotonic() - started, contents(self.again)

    def start(self) -> dict[str, bytes]:
        """The folder as it is before."""
        shutil.rmtree(self.again, ignore_errors=True)
        self.again.mkdir(parents=True)
        if self.writer.old:
            self.writer.old(self.again)
        return contents(self.again)

    def interrupt(self, what: str, **how: float) -> None:
        """Write, interrupted; look; write again."""
        self.start()
        ended = in_a_process(self.writer.new, self.again, **how)
        now = contents(self.again)
        problem = "a raw error" if ended == RAW else self.unreadable()
        if now == self.after:
            self.outcomes[f"written before {what}"] += 1
        elif ended == DONE:
            problem = problem or "it says that it is done, and it is not"
        elif self.writer.resumes:
            self.outcomes["resumed"] += 1
        else:
            self.outcomes["the old one stayed" if self.before else "nothing was there"] += 1
            # Files under new names may lie beside the old ones, as long as nothing points to them.
            is_old = {name: now.get(name) for name in self.before} == self.before
            problem = problem or ("" if is_old else "a mixture is left")
        if now != self.after and in_a_process(self.writer.new, self.again) != DONE:
            problem = problem or "it cannot be written again"
        problem = problem or self.difference()
        if problem:
            self.problems.append(f"{self.name}, {what} ({how}): {problem}")

    def unreadable(self) -> str:
        """What is wrong with what can be read there, if anything is."""
        readers = {"t": hs.load_trace, "e.json": hs.load_interventions, "b": lambda path: hs.load(path, verify=False)}
        for name, read in readers.items():
            try:
                if (self.again / name).exists():
                    read(self.again / name)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        return ""

    def difference(self) -> str:
        """How what was written again differs from what nobody interrupted."""
        now = contents(self.again)
        if now == self.after:
            return ""
        differing = sorted(name for name in self.after if now.get(name) != self.after[name])
        return f"written again, it differs in {differing[:4]}, beside {sorted(set(now) - set(self.after))[:4]}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    name, chance = sys.argv[3], random.Random(f"{sys.argv[2]} {sys.argv[3]}")
    trial = Trial(name, writers()[name], Path(sys.argv[1]))
    longest = max(map(len, trial.after.values()), default=0)
    for _ in range(int(sys.argv[4])):
        trial.interrupt("a kill", seconds=chance.random() * trial.seconds)
    for _ in range(int(sys.argv[5])):
        trial.interrupt("a full disk", most_bytes=chance.randrange(longest))
    sys.stdout.write(json.dumps({"outcomes": trial.outcomes, "problems": trial.problems}) + "\n")
