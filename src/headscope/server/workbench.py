"""Everything a running server holds."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headscope import __version__
from headscope.corpora.builtin_texts import NAME
from headscope.server.access import Access
from headscope.server.atlases import Atlases
from headscope.server.catalogue import Catalogue
from headscope.server.corpus_sentences import samples_of
from headscope.server.jobs import Job, Jobs
from headscope.server.media import MediaStore
from headscope.server.memory import Memory
from headscope.server.messages import RunEvent, Settings, TaskRequest
from headscope.server.options import Options
from headscope.server.part_cache import Parts
from headscope.server.reports import Reports
from headscope.server.runs import Runs
from headscope.server.tasks import TASKS, Tasks
from headscope.server.tasks.find import patterns
from headscope.server.tasks.relevance import options_of
from headscope.server.tasks.trust import join_badges
from headscope.server.tasks.usecase import use_cases
from headscope.views.activations import join_windows
from headscope.views.contract import PresetProps
from headscope.views.selection import Selection
from headscope.views.wire import Part, decode


@dataclass
class Workbench:
    """Everything a running server holds."""

    options: Options
    access: Access
    catalogue: Catalogue = field(init=False)
    jobs: Jobs = field(init=False)
    memory: Memory = field(init=False)
    media: MediaStore = field(init=False)
    runs: Runs = field(init=False)
    parts: Parts = field(init=False)
    tasks: Tasks = field(init=False)
    reports: Reports = field(init=False)
    atlases: Atlases = field(init=False)
    samples: list[PresetProps] = field(init=False)
    is_warm: asyncio.Event = field(init=False)

    def __post_init__(self) -> None:
        limits = self.options.limits
        self.catalogue = Catalogue(self.options)
        self.jobs = Jobs(limits.waiting)
        self.memory = Memory(limits.memory - limits.bodies)
        self.media = MediaStore(self.memory, limits)
        self.runs = Runs(self.catalogue, self.jobs, self.memory, limits, self.media)
        self.parts = Parts(self.memory, limits)
        self.tasks = Tasks(TASKS, self.catalogue, self.jobs, self.runs, self.memory)
        self.reports = Reports(self.options.reports, self.catalogue)
        self.atlases = Atlases(self.options.atlases, self.catalogue)
        self.samples = samples_of(self.options.corpus)
        self.is_warm = asyncio.Event()

    def warm_up(self) -> None:
        """Have the built-in models loaded in the background."""

        def work(job: Job) -> RunEvent:
            self.catalogue.load_builtin()
            job.in_loop(self.is_warm.set)
            return RunEvent("done")

        self.jobs.submit("built-in models", work, is_ours=True)

    def close(self) -> bool:
        """Stop all work; whether all threads are free."""
        self.media.close()
        is_free = all([self.jobs.close(), self.parts.close()])
        self.atlases.close()
        return is_free

    def beside(self, id: str, selection: Selection, minus: str = "") -> dict[str, Callable[[], dict[str, Part]]]:
        """What a saved page of a run (less another) holds beside the trace's own parts, as far as it was shown:
        activations, a report, the relevance of an answer, heads that were found or tested, a use case that they are
        coloured by. By what tells one from another; read, as parts by key, by whoever has the time.
        """
        readers: dict[str, Callable[[], dict[str, Part]]] = {}
        model = self.runs.find(id).request.model
        activations = self.tasks.all("activations", id, minus)
        if activations:
            readers[f"activations {' '.join(activations)}"] = lambda: _activations(activations.values())
        if self.reports.has(model):
            readers["report"] = lambda: {"report": self.reports.part(model)}
        options = options_of(selection.relevance)
        relevance = (
            None if options is None else self.tasks.result_of(TaskRequest("relevance", trace=id, options=options))
        )
        if relevance is not None:
            readers[f"relevance {selection.relevance}"] = lambda: {
                f"relevance?of={selection.relevance}": decode(relevance)
            }
        heads = self.tasks.latest("find", id) if selection.find else None
        if heads is not None:
            readers[f"found {heads[0]}"] = lambda: {"found": decode(heads[1])}
        tests = {} if minus else self.tasks.all("trust", id)
        if tests:
            readers[f"trust {' '.join(tests)}"] = lambda: {"trust": join_badges(map(decode, tests.values()))}
        evidence = self.tasks.latest("use_case", model)
        if evidence is not None and {selection.sort, selection.colour} & {decode(evidence[1]).props["method"]["name"]}:
            readers[f"evidence {evidence[0]}"] = lambda: {"evidence": decode(evidence[1])}
        return readers

    def settings(self) -> Settings:
        """What the page is told first."""
        options = self.options
        return Settings(
            __version__,
            self.catalogue.all(),
            allows_hub=options.allow_hub,
            allows_folders=bool(options.allow),
            corpus=NAME if options.corpus is None else options.corpus.name,
            is_corpus_builtin=options.corpus is None,
            samples=self.samples,
            saves_models=options.save_to is not None,
            max_characters=options.limits.characters,
            max_turns=options.limits.turns,
            default_model=self.catalogue.default,
            patterns=patterns(),
            use_cases=use_cases(),
            max_media_bytes=options.limits.media_bytes,
            sweeps=self.catalogue.sweeps.offers(),
            atlases=self.atlases.offers(),
            max_atlas_points=options.limits.atlas_points,
        )


def _activations(windows: Iterable[bytes]) -> dict[str, Part]:
    """What was read of each stack, some tokens at a time, as one part."""
    by_stack: dict[str, list[Part]] = {}
    for window in map(decode, windows):
        by_stack.setdefault(window.props["stack"], []).append(window)
    return {f"activations/{stack}": join_windows(own) for stack, own in by_stack.items()}
