"""Running a model for the page, and remembering what it left."""

import hashlib
import json
import secrets
import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import psutil

from headscope.corpora import Example
from headscope.errors import HeadscopeWarning, InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.budget import SHARE
from headscope.models.intake import Intake
from headscope.server import edits
from headscope.server.catalogue import Catalogue
from headscope.server.gold import gold_of
from headscope.server.jobs import Job, Jobs
from headscope.server.kept import Kept
from headscope.server.log import logger
from headscope.server.media import Media, MediaStore, given_media
from headscope.server.messages import ChatMessage, Remembered, RunEvent, RunRequest
from headscope.server.options import Limits
from headscope.server.problems import Refused
from headscope.traces import Trace

# As `MOST_WRITTEN` of the page (`web/src/app/link.ts`).
MOST_WRITTEN = 200


@dataclass(frozen=True)
class Run:
    """A trace, what was asked, and when."""

    id: str
    request: RunRequest
    trace: Trace
    when: float
    interventions: tuple[Intervention, ...] = ()
    gold: Example | None = None
    """The sentence with its words and its tree, where the input was given with one."""

    def told(self) -> Remembered:
        """As the page's history shows it."""
        n_tokens = sum(len(tokens) for tokens in self.trace.tokens.values())
        return Remembered(self.id, self.request, self.when, n_tokens)


class Runs:
    """Runs by the hash of what was asked: the same request finds the same trace, running or kept."""

    def __init__(self, catalogue: Catalogue, jobs: Jobs, limits: Limits, media: MediaStore):
        self.catalogue, self.jobs, self.limits, self.media = catalogue, jobs, limits, media
        self.kept: Kept[Run] = Kept(limits.trace_bytes)
        # Browsers keep parts by their address: another server, which may hold other weights, has other addresses.
        self._salt = secrets.token_hex(8)

    def start(self, request: RunRequest, *, only_kept: bool = False) -> str | Job | None:
        """The id of a kept trace, or the job that computes it; with `only_kept` None in place of the job."""
        self._check(request)
        # A field of the page that was left empty is one that was not filled in.
        pair, target = request.pair or None, request.target or None
        calls = edits.checked(request.edits, self.limits.edits)
        model = self.catalogue.permitted(request.model)
        request = replace(request, model=model, pair=pair, target=target, edits=calls)
        id = self.id_of(request)
        if self.kept.get(id) is not None:
            return id
        if only_kept:
            return None
        base = self.kept.get(self.id_of(replace(request, edits=[]))) if calls else None
        others = self._others(request)
        # Looked up now: while the run waits, it may be forgotten.
        media = None if request.media is None else self.media.find(request.media)
        return self.jobs.submit(id, lambda job: self._run(job, id, request, media, base, others))

    def _others(self, request: RunRequest) -> dict[str, Trace]:
        """The traces, as far as they are remembered, of the runs that edits take something from."""
        found = {}
        for one in edits.other_runs(request.edits):
            text, chat = (one.source, None) if isinstance(one.source, str) else (None, one.source)
            turns = None if chat is None else [ChatMessage(**turn) for turn in chat]
            asked = RunRequest(request.model, text, chat=turns, record=request.record, **one.options)
            run = self.kept.get(self.id_of(asked))
            if run is not None:
                found[repr(one)] = run.trace
        return found

    def find(self, id: str) -> Run:
        """A run that is remembered."""
        run = self.kept.get(id)
        if run is None:
            raise Refused(
                404,
                "UnknownTrace",
                f"there is no trace {id[:40]!r} (any more): the server keeps as many as fit into its memory.",
                "Run the input again.",
            )
        return run

    def id_of(self, request: RunRequest) -> str:
        """The hash of model, input and record."""
        told = json.dumps([self._salt, asdict(request)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def _check(self, request: RunRequest) -> None:
        """Refuse what is too much, or nothing, before it waits."""
        if request.text is not None and request.chat is not None:
            raise Refused(422, "InputError", "give a text or a chat, one of the two.")
        if not 0 <= request.generate <= MOST_WRITTEN:
            told = f"generate={request.generate} tokens; this server has a model write up to {MOST_WRITTEN}."
            raise Refused(422, "InputError", told)
        if request.generate and (request.pair or request.target):
            told = "a pair is not continued, and a target that is given is not written: leave out one of the two."
            raise Refused(422, "InputError", told)
        if request.text is None and request.chat is None and request.media is None:
            raise Refused(422, "InputError", "there is nothing to run: give a text, a chat, a picture or a sound.")
        turns = request.chat or []
        if len(turns) > self.limits.turns:
            told = f"the chat has {len(turns)} turns; this server takes up to {self.limits.turns}."
            raise Refused(413, "TooLarge", told, "Leave out the oldest turns.")
        texts = [request.text, request.pair, request.target, *(one.content for one in turns), *request.edits]
        count = sum(len(one) for one in texts if one is not None)
        if count > self.limits.characters:
            told = f"the input is {count:,} characters long; this server takes up to {self.limits.characters:,}."
            raise Refused(413, "TooLarge", told, "Send a shorter text.")

    def _run(
        self,
        job: Job,
        id: str,
        request: RunRequest,
        media: Media | None = None,
        base: Run | None = None,
        others: dict[str, Trace] | None = None,
    ) -> RunEvent:
        """In the thread of runs. `base` is the same without edits, if it is remembered: its input is read already."""
        if not self.catalogue.is_loaded(request.model):
            job.tell_from_thread(RunEvent("loading"))
        model = self.catalogue.load(request.model)
        n_layers = len(model.layout.layers) if model.has_layout else 0
        job.tell_from_thread(RunEvent("running", n_layers=n_layers))
        begun = time.monotonic()
        gold = gold_of(request)
        text = request.text if gold is None else gold.text
        source = text if request.chat is None else [asdict(one) for one in request.chat]
        takes = Intake.of(model.processor, model.module)
        if source is not None and "text" not in takes.kinds:
            # A string would be read as the path of a file, and which files to open is not the page's to choose.
            raise InputError(f"{request.model} takes {takes.takes}, not text: choose a model that reads text.")
        given, notes = ({}, []) if media is None else given_media(media, takes, request.model)
        free = int(psutil.virtual_memory().available * SHARE)
        # Only this thread changes how warnings are shown, so what is recorded is this run's.
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", HeadscopeWarning)
            keeping = {"budget": min(self.limits.trace_bytes, free), "cancel": job.cancel}
            interventions = edits.made(request.edits, model, others or {}, **keeping)
            keeping["record"] = request.record
            trace = _trace_of(model, source, given, request, interventions, base, keeping, job)
        said = [] if base is None else list(base.trace.warnings)
        said += [str(one.message) for one in told if issubclass(one.category, HeadscopeWarning)]
        trace = replace(trace, warnings=tuple(dict.fromkeys([*notes, *trace.warnings, *said])))
        run = Run(id, request, trace, time.time(), tuple(interventions), gold)
        job.in_loop(lambda: self.kept.put(id, run, trace.nbytes()))
        n_tokens = run.told().n_tokens
        logger.info("ran %s on %d tokens in %.2f s", request.model, n_tokens, time.monotonic() - begun)
        return RunEvent("done", layer=n_layers, n_layers=n_layers, trace=id)


def _trace_of(
    model: Model,
    source: Any,
    media: dict[str, Any],
    request: RunRequest,
    interventions: list[Intervention],
    base: Run | None,
    keeping: dict[str, Any],
    job: Job,
) -> Trace:
    """Run the input, or have the model go on writing it."""
    if request.generate:

        def written(done: int, of: int) -> None:
            job.tell_from_thread(RunEvent("running", done=done, of=of))

        options = {"max_new_tokens": request.generate, "truncate": request.truncate, "progress": written}
        return model.generate(source, interventions=interventions, **media, **options, **keeping).trace

    def passed(done: int, of: int) -> None:
        job.tell_from_thread(RunEvent("running", layer=done, n_layers=of))

    if base is not None and base.trace.inputs is not None:
        # With a target that was written without the edits, if it was.
        trace = model.run(base.trace.inputs, interventions, progress=passed, **keeping)
        return replace(trace, steps=base.trace.steps)
    given = {"pair": request.pair, "target": request.target, "truncate": request.truncate}
    return model.run(source, interventions, progress=passed, **media, **given, **keeping)
