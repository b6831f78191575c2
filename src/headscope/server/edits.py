"""Edits that the page asks for: read, never run; checked before the run waits; taken away as files and as models."""

import io
import re
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.errors import InputError
from headscope.interventions import Intervention, calls_in, canonical, parse, save_interventions
from headscope.interventions.calls import OtherRun, read
from headscope.models import Model, bake
from headscope.models.inputs.accepted import Intake
from headscope.server.errors import Refused
from headscope.traces import Trace

# Letters and digits first: no hidden folder, no way up, nothing that a system keeps for itself.
FOLDER_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)


# Twice the characters that a run takes: the file says each edit as Python, and once more as its arguments.
LONGEST_FILE = 400_000


@dataclass(frozen=True)
class EditsFile:
    """A file of interventions as `hs.save_interventions` writes it: the text that lies in it."""

    text: str


@dataclass(frozen=True)
class EditsRead:
    """The edits that a file holds, each as the Python that makes it."""

    edits: list[str]


@dataclass(frozen=True)
class SaveModelRequest:
    """Write the model with a run's edits into a new folder of this name."""

    name: str


@dataclass(frozen=True)
class SavedModel:
    """Where it was written to."""

    folder: str


def canonical_edits(edits: Sequence[str], most: int) -> list[str]:
    """Each edit in the one way to write it; refused, with the reason, if it is none."""
    if len(edits) > most:
        message = f"there are {len(edits)} edits; this server takes up to {most} at a time."
        raise Refused(413, "TooLarge", message, "Take some of them out.")
    return [canonical(edit) for edit in edits]


def edits_in(text: str, most: int) -> list[str]:
    """The edits that lie in a file; refused where they are longer, or more, than what a run may be given."""
    if len(text) > LONGEST_FILE:
        message = f"the file has {len(text):,} characters; this server reads up to {LONGEST_FILE:,}."
        raise Refused(413, "TooLarge", message, "Load it in Python: hs.load_interventions(path).")
    return calls_in(text, most)


def other_runs(edits: Sequence[str]) -> list[OtherRun]:
    """The other runs that edits take something from."""
    return [run for edit in edits for run in read(edit).runs]


def interventions_of(edits: Sequence[str], model: Model, known: dict[str, Trace], **keeping: Any) -> list[Intervention]:
    """The interventions themselves; other runs are taken from those known (by how they print), or run.

    `keeping` bounds such a run as it does the run that is edited: its `budget`, and the `cancel` that stops it.
    """

    def run(other: OtherRun) -> Trace:
        trace = known.get(repr(other))
        if trace is not None:
            return trace
        if "text" not in Intake.of(model.processor, model.module).kinds:
            # A string would be read as the path of a file, and which files to open is not the page's to choose.
            raise InputError(f"{model.name} reads no text, so {other!r} cannot be run here.")
        return other.of(model, **keeping)

    return [parse(edit, run) for edit in edits]


def edits_file(interventions: Sequence[Intervention]) -> tuple[bytes, str]:
    """What `hs.load_interventions` reads, and its name: a JSON file, or a ZIP of it and the tensors beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_interventions(interventions, Path(folder) / "edits.json")
        files = sorted(Path(folder).iterdir())
        if len(files) == 1:
            return path.read_bytes(), "edits.json"
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in files:
                archive.write(file, file.name)
        return packed.getvalue(), "edits.zip"


def place_for(name: str, save_to: Path | None) -> Path:
    """The folder that a model may be written to; refused where the server was not started for it."""
    if save_to is None:
        raise Refused(
            403,
            "SavingNotAllowed",
            "this server was not started to write models.",
            "Start it with --save-to DIR, or use the Python: hs.bake(model, edits, folder).",
        )
    if not FOLDER_NAME.fullmatch(name) or name.endswith("."):
        message = f"{name[:80]!r} cannot be the name of a folder here: use letters, digits, '.', '-' and '_'."
        raise Refused(422, "InputError", message)
    folder = save_to.expanduser().resolve() / name
    if folder.exists():
        raise Refused(409, "InputError", f"there is a {name!r} in {folder.parent} already.", "Choose another name.")
    return folder


def write_model(model: Model, interventions: Sequence[Intervention], folder: Path) -> Path:
    """The model with its edits in its weights; raises where weights cannot express them."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return bake(model, interventions, folder)
