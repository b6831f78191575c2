"""What is made of atlases in the queue of runs: maps, scores, and atlases of texts."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from headscope.atlases import atlas as make_atlas
from headscope.corpora import Corpus, builtin_sentences, corpus
from headscope.errors import HeadscopeError, MissingExtraError
from headscope.models import Model
from headscope.models.inputs.accepted import Intake
from headscope.models.loading import BUILTIN
from headscope.server.atlases import Atlases, OfferedAtlas
from headscope.server.catalogue import Catalogue
from headscope.server.errors import Refused
from headscope.server.jobs import Job
from headscope.server.memory import Memory
from headscope.server.messages import AtlasBuildRequest, AtlasTaskRequest, RunEvent
from headscope.server.options import Limits

SHARE = 1 / 4
"""Of the server's memory, for what is made."""
_LONGEST_TITLE = 100


@dataclass(frozen=True)
class AtlasJob:
    """What is to be made: requests with the same key share it."""

    key: str
    run: Callable[[Job], RunEvent]


def task_job(wanted: AtlasTaskRequest, offered: OfferedAtlas, memory: Memory) -> AtlasJob:
    """Make the map of all heads, or the scores. What is done stays when it is stopped."""
    if wanted.dims not in (2, 3):
        raise Refused(422, "InputError", f"a map has 2 or 3 dimensions, not {wanted.dims}.")

    def work(job: Job) -> RunEvent:
        job.tell_from_thread(RunEvent("running"))
        with memory.reserve(int(memory.limit * SHARE), "this task"), offered.changing() as atlas:
            if wanted.task == "scores":
                atlas.scores(progress=job.report, cancel=job.cancel)
            else:
                where = {"dims": wanted.dims, "coordinates": wanted.coordinates}
                atlas.draw(wanted.method, **where, progress=job.report, cancel=job.cancel)  # type: ignore[arg-type]
        return RunEvent("done", result=offered.id)

    return AtlasJob(f"atlas {offered.key} {wanted}", work)


def build_job(
    wanted: AtlasBuildRequest, atlases: Atlases, catalogue: Catalogue, memory: Memory, limits: Limits
) -> AtlasJob:
    """Make an atlas with its PCA maps and scores. It is offered until the server ends, or newer ones take its place."""
    _check(wanted, limits)
    model = catalogue.resolve(wanted.model)
    identity = hashlib.sha256(json.dumps(asdict(wanted), sort_keys=True).encode()).hexdigest()

    def work(job: Job) -> RunEvent:
        if not catalogue.is_loaded(model):
            job.tell_from_thread(RunEvent("loading"))
        loaded = catalogue.load(model)
        examples, title = _corpus(wanted, catalogue.options.corpus, reads_text="text" in _intake_kinds(loaded))
        job.tell_from_thread(RunEvent("running"))
        folder = atlases.new_folder()
        try:
            with memory.reserve(int(memory.limit * SHARE), "this atlas"):
                make_atlas(
                    loaded,
                    examples,
                    folder / "atlas",
                    points=wanted.points,
                    truncate=True,
                    progress=job.report,
                    cancel=job.cancel,
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return RunEvent("done", result=atlases.take(folder / "atlas", title, model).id)

    return AtlasJob(f"build {identity}", work)


def _check(wanted: AtlasBuildRequest, limits: Limits) -> None:
    if not 2 <= wanted.points <= limits.atlas_points:
        message = f"an atlas made here has 2 to {limits.atlas_points:,} points a head, not {wanted.points:,}."
        raise Refused(422, "InputError", message, "For more, use the command headscope atlas, then serve --atlas DIR.")
    if wanted.corpus != "texts":
        return
    n_characters = sum(map(len, wanted.texts))
    if len(wanted.texts) > limits.texts or n_characters > limits.characters:
        message = (
            f"{len(wanted.texts):,} texts of {n_characters:,} characters together; this server takes up to "
            f"{limits.texts:,} texts and {limits.characters:,} characters."
        )
        raise Refused(413, "TooLarge", message, "For more, use the command headscope atlas, then serve --atlas DIR.")
    if not any(text.strip() for text in wanted.texts):
        raise Refused(422, "InputError", "there is nothing to draw: write a text a line.")


def _intake_kinds(model: Model) -> tuple[str, ...]:
    """The kinds of input that a model takes."""
    return tuple(Intake.of(model.processor, model.module).kinds)


def _corpus(wanted: AtlasBuildRequest, source: Path | Corpus | None, *, reads_text: bool) -> tuple[Corpus, str]:
    """The examples, and what the atlas is called."""
    own = wanted.title.strip()[:_LONGEST_TITLE]
    if wanted.corpus == "builtin" and not reads_text:
        return corpus(BUILTIN / "images"), own or "built-in pictures"
    if wanted.corpus == "texts" and not reads_text:
        raise Refused(422, "InputError", "this model reads no text: choose the built-in pictures, or another model.")
    if wanted.corpus == "builtin" or (wanted.corpus == "server" and source is None):
        examples = builtin_sentences()
        return examples, own or examples.name
    if wanted.corpus == "server":
        assert source is not None
        try:
            examples = source if isinstance(source, Corpus) else corpus(source)
        except MissingExtraError:
            raise
        except HeadscopeError as error:
            raise Refused(422, type(error).__name__, f"the corpus cannot be read: {error}") from error
        return examples, own or examples.name
    texts = [text for text in wanted.texts if text.strip()]
    return corpus(texts), own or f"{len(texts):,} texts"
