"""Running a model for the page, and caching what it left."""

import asyncio
import hashlib
import json
import secrets
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import psutil
import torch

from headscope.corpora import Example
from headscope.errors import HeadscopeWarning, InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.batch import Batch
from headscope.models.memory_budget import SHARE, record_bytes
from headscope.progress import Progress
from headscope.server import edits
from headscope.server.catalogue import Catalogue
from headscope.server.errors import Refused
from headscope.server.jobs import Job, Jobs
from headscope.server.log import logger
from headscope.server.media import Media, MediaStore, media_inputs
from headscope.server.memory import Cache, Memory
from headscope.server.messages import ChatMessage, Remembered, RunEvent, RunRequest
from headscope.server.options import Limits
from headscope.server.treebank_input import gold_of
from headscope.traces import Inputs, Trace

# As `MOST_WRITTEN` of the page (`web/src/app/link.ts`).
MOST_WRITTEN = 200

_WRITTEN_BEFORE = (
    "what the model writes is that of the run without edits, which the edited model reads again: give the number of "
    "tokens to write, and it is written with the edits."
)

# Python objects of a trace, beside its tensors: as measured with the built-in models, and rounded up.
_BYTES_A_RUN, _BYTES_A_TOKEN, _BYTES_A_CANDIDATE = 50_000, 2_000, 150


@dataclass(frozen=True)
class ServerRun:
    """A trace, what was asked, and when."""

    id: str
    request: RunRequest
    trace: Trace
    when: float
    interventions: tuple[Intervention, ...] = ()
    gold: Example | None = None
    """The sentence with its words and its tree, where the input was given with one."""

    @property
    def n_tokens(self) -> int:
        """Tokens of all stacks."""
        return sum(len(tokens) for tokens in self.trace.tokens.values())

    def summary(self) -> Remembered:
        """As the page's history shows it."""
        return Remembered(self.id, self.request, self.when, self.n_tokens)

    def nbytes(self) -> int:
        """What it takes of the server's memory."""
        answers = self.trace.answers
        n_candidates = 0 if answers is None else answers.ids.numel()
        values = [value for edit in self.interventions for value in vars(edit.edit).values()]
        payloads = sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
        characters = len(json.dumps(asdict(self.request), ensure_ascii=False))
        objects = _BYTES_A_RUN + _BYTES_A_TOKEN * self.n_tokens + _BYTES_A_CANDIDATE * n_candidates + 4 * characters
        return self.trace.nbytes() + payloads + objects


@dataclass(frozen=True)
class RunPlan:
    """A request that may be run, and what is cached of what it builds on."""

    id: str
    request: RunRequest
    media: Media | None = None
    base: ServerRun | None = None
    """The same without edits: its input is read already."""
    others: dict[str, Trace] = field(default_factory=dict)
    """The traces of the runs that edits take something from, by how those print."""


class Runs:
    """Runs by the hash of what was asked: the same request finds the same trace, running or cached."""

    def __init__(self, catalogue: Catalogue, jobs: Jobs, memory: Memory, limits: Limits, media: MediaStore):
        self.catalogue, self.jobs, self.memory, self.limits, self.media = catalogue, jobs, memory, limits, media
        self.cache = Cache[ServerRun](memory, "runs")
        # Browsers keep parts by their address: another server, which may hold other weights, has other addresses.
        self._salt = secrets.token_hex(8)

    async def start(self, request: RunRequest, *, only_kept: bool = False) -> str | Job | None:
        """The id of a cached trace, or the job that computes it; with `only_kept` None in place of the job."""
        self._check(request)
        plan = await asyncio.to_thread(self._plan, request)
        if self.cache.get(plan.id) is not None:
            return plan.id
        return None if only_kept else self.jobs.submit(plan.id, lambda job: self._run(job, plan))

    def _plan(self, request: RunRequest) -> RunPlan:
        """Not for the event loop: edits are parsed, folders looked up, presets drawn."""
        # A field of the page that was left empty is one that was not filled in.
        pair, target = request.pair or None, request.target or None
        language, task = request.language or None, request.task or None
        calls = edits.canonical_edits(request.edits, self.limits.edits)
        model = self.catalogue.resolve(request.model)
        request = replace(request, model=model, pair=pair, target=target, language=language, task=task, edits=calls)
        id = self.id_of(request)
        if self.cache.get(id) is not None:
            return RunPlan(id, request)
        base = self.cache.get(self.id_of(replace(request, edits=[]))) if calls else None
        # Looked up now: while the run waits, it may be evicted.
        media = None if request.media is None else self.media.find(request.media)
        return RunPlan(id, request, media, base, self._others(request))

    def _others(self, request: RunRequest) -> dict[str, Trace]:
        """The cached traces of the runs that edits take something from."""
        traces = {}
        for other in edits.other_runs(request.edits):
            text, chat = (other.source, None) if isinstance(other.source, str) else (None, other.source)
            turns = None if chat is None else [ChatMessage(**turn) for turn in chat]
            other_request = RunRequest(request.model, text, chat=turns, record=request.record, **other.options)
            run = self.cache.get(self.id_of(other_request))
            if run is not None:
                traces[repr(other)] = run.trace
        return traces

    def find(self, id: str) -> ServerRun:
        """A run that is remembered."""
        run = self.cache.get(id)
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
        question = json.dumps([self._salt, asdict(request)], sort_keys=True)
        return hashlib.sha256(question.encode()).hexdigest()[:16]

    def _check(self, request: RunRequest) -> None:
        """Refuse what is too much, or nothing, before it waits."""
        if request.text is not None and request.chat is not None:
            raise Refused(422, "InputError", "give a text or a chat, one of the two.")
        if not 0 <= request.generate <= MOST_WRITTEN:
            message = f"generate={request.generate} tokens; this server has a model write up to {MOST_WRITTEN}."
            raise Refused(422, "InputError", message)
        if request.generate and (request.pair or request.target):
            message = "a pair is not continued, and a target that is given is not written: leave out one of the two."
            raise Refused(422, "InputError", message)
        if request.text is None and request.chat is None and request.media is None:
            raise Refused(422, "InputError", "there is nothing to run: give a text, a chat, a picture or a sound.")
        turns = request.chat or []
        if len(turns) > self.limits.turns:
            message = f"the chat has {len(turns)} turns; this server takes up to {self.limits.turns}."
            raise Refused(413, "TooLarge", message, "Leave out the oldest turns.")
        texts = [request.text, request.pair, request.target, request.language, request.task]
        texts += [*(turn.content for turn in turns), *request.edits]
        count = sum(len(text) for text in texts if text is not None)
        if count > self.limits.characters:
            message = f"the input is {count:,} characters long; this server takes up to {self.limits.characters:,}."
            raise Refused(413, "TooLarge", message, "Send a shorter text.")

    def _run(self, job: Job, plan: RunPlan) -> RunEvent:
        """In the thread of runs."""
        request, base = plan.request, plan.base
        if not self.catalogue.is_loaded(request.model):
            job.tell_from_thread(RunEvent("loading"))
        model = self.catalogue.load(request.model)
        n_layers = len(model.layout.layers) if model.has_layout else 0
        job.tell_from_thread(RunEvent("running", n_layers=n_layers))
        begun = time.monotonic()
        # Only this thread changes how warnings are shown, so what is recorded is this run's.
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always", HeadscopeWarning)
            gold = gold_of(request)
            inputs, notes = self._read(model, plan, gold)
            interventions = self._interventions(job, model, plan)
            budget = self._budget(2)
            size = self._working_bytes(model, inputs, request, interventions, budget)
            with self.memory.reserve(size, "this run") as room:
                trace = _trace_of(model, inputs, interventions, plan, {"budget": budget, "cancel": job.cancel}, job)
                notes += [*trace.warnings, *(base.trace.warnings if base else ())]
                if interventions and trace.steps is not None and not request.generate:
                    notes.append(_WRITTEN_BEFORE)
                notes += [str(warning.message) for warning in raised if issubclass(warning.category, HeadscopeWarning)]
                pruned = self.catalogue.sweeps.pruned_heads(request.model)
                trace = replace(trace, warnings=tuple(dict.fromkeys(notes)), pruned_heads=pruned)
                run = ServerRun(plan.id, request, trace, time.time(), interventions, gold)
                self.cache.put(plan.id, run, run.nbytes(), room)
        logger.info("ran %s on %d tokens in %.2f s", request.model, run.n_tokens, time.monotonic() - begun)
        return RunEvent("done", layer=n_layers, n_layers=n_layers, trace=plan.id)

    def _read(self, model: Model, plan: RunPlan, gold: Example | None) -> tuple[Inputs, list[str]]:
        """The model's inputs, and what was done to a picture or a sound on the way, in words."""
        request, media = plan.request, plan.media
        text = request.text if gold is None else gold.text
        source = text if request.chat is None else [asdict(turn) for turn in request.chat]
        takes = Intake.of(model.processor, model.module)
        if source is not None and "text" not in takes.kinds:
            # A string would be read as the path of a file, and which files to open is not the page's to choose.
            raise InputError(f"{request.model} takes {takes.takes}, not text: choose a model that reads text.")
        # With a target that was written without the edits, if it was.
        if plan.base is not None and plan.base.trace.inputs is not None and not request.generate:
            return plan.base.trace.inputs, []
        options = {name: getattr(request, name) for name in ("pair", "target", "language", "task", "truncate")}
        with self.memory.reserve(media.working_bytes if media else 0, "this picture or sound"):
            file, notes = ({}, []) if media is None else media_inputs(media, takes, request.model)
            return model.read(source, **file, **options), notes

    def _interventions(self, job: Job, model: Model, plan: RunPlan) -> tuple[Intervention, ...]:
        """The edits, after running the inputs that they take something from where those are not cached."""
        is_run = any(repr(other) not in plan.others for other in edits.other_runs(plan.request.edits))
        with self.memory.reserve(self.memory.limit // 4 if is_run else 0, "the other run of an edit"):
            keeping = {"budget": self._budget(8), "cancel": job.cancel}
            return tuple(edits.interventions_of(plan.request.edits, model, plan.others, **keeping))

    def _budget(self, part: int) -> int:
        """The most that a trace may keep: a part of what the server may use, and half of what is free."""
        return min(self.memory.limit // part, int(psutil.virtual_memory().available * SHARE))

    def _working_bytes(
        self, model: Model, inputs: Inputs, request: RunRequest, interventions: Sequence[Intervention], budget: int
    ) -> int:
        """The most memory that a run takes beside the model's weights: about twice what its trace keeps."""
        if not model.has_layout:
            return budget
        lengths = {stack: len(tokens) + request.generate for stack, tokens in inputs.tokens.items()}
        if inputs.needs_target:
            lengths["decoder"] = MOST_WRITTEN
        batch = Batch({}, {stack: torch.ones(1, length) for stack, length in lengths.items()}, [inputs])
        for record in (request.record,) if request.record else ("heads", "summary"):
            size = record_bytes(model, batch, record, interventions)
            if size <= budget:
                return 2 * size
        return 0  # the run itself will be refused, and say which record would fit


def _trace_of(
    model: Model,
    inputs: Inputs,
    interventions: tuple[Intervention, ...],
    plan: RunPlan,
    keeping: dict[str, Any],
    job: Job,
) -> Trace:
    """Run the input, or have the model go on writing it."""
    request, base, keeping = plan.request, plan.base, keeping | {"record": plan.request.record}
    if request.generate:
        options = {"max_new_tokens": request.generate, "progress": job.report}
        return model.generate(inputs, interventions, **options, **keeping).trace

    def report_layer(progress: Progress) -> None:
        job.tell_from_thread(RunEvent("running", layer=progress.done, n_layers=progress.total))

    trace = model.run(inputs, interventions, progress=report_layer, **keeping)
    return trace if base is None or base.trace.inputs is None else replace(trace, steps=base.trace.steps)
