"""The report of a sweep: figures, tables and their conclusions, written into its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, corpus
from headscope.errors import InputError, InterventionError
from headscope.files import write_file
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.pruning import PrunePoint, Sweep
from headscope.pruning.smaller_model import SmallerModels, smaller_models_of
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.pruning.curves import Panel, is_gated, panels_of, tuned_where_there_are
from headscope.reports.pruning.survivor_roles import N_EXAMPLES, SurvivorRoles, points_to_measure, survivor_roles
from headscope.reports.pruning.sweep_page import page, script_and_style
from headscope.reports.pruning.sweep_tables import as_parquet, head_rows, point_rows

PAGE, POINTS, HEADS = "report.html", "points.parquet", "heads.parquet"


@dataclass(frozen=True, eq=False)
class PruneReport:
    """A sweep as it was when the report was written; `about` is its `prune.json`, `roles` are by point. `smaller` is of
    the chosen point, and None where its smaller model was not written.

    `report.html` in `folder` is the page, `points.parquet` has a row for each point, `heads.parquet` one for each head
    of each point.
    """

    folder: Path
    about: dict[str, Any]
    points: tuple[PrunePoint, ...]
    baseline: PrunePoint | None
    panels: tuple[Panel, ...]
    roles: Mapping[str, SurvivorRoles] = field(default_factory=dict)
    roles_about: str = ""
    smaller: SmallerModels | None = None

    def __repr__(self) -> str:
        return f"PruneReport({self.about['model']!r}, {self.about['task']}: {len(self.points)} points; {self.page})"

    @property
    def page(self) -> Path:
        """The page that shows it."""
        return self.folder / PAGE

    @property
    def chosen(self) -> str | None:
        """The chosen point."""
        return self.about["chosen"]

    def gated(self) -> list[PrunePoint]:
        """L0's points: for each the one that was fine-tuned with its mask, where there is one."""
        return tuned_where_there_are([point for point in self.points if is_gated(point)])


def prune_report(
    sweep: Sweep | str | Path,
    model: Model | None = None,
    source: Any = None,
    *,
    limit: int = N_EXAMPLES,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> PruneReport:
    """Write `report.html`, `points.parquet` and `heads.parquet` into the folder of a sweep, finished or not.

    With the original `model` and a corpus (`source`, its first `limit` examples) the roles of the surviving heads are
    measured again on the pruned models, beside those of random survivors. They are kept in the folder: the next report
    measures only new points. Before roles are measured the report is written without them.
    """
    script_and_style()  # what is missing for the page is said before roles are measured, not after
    sweep = sweep if isinstance(sweep, Sweep) else Sweep.open(sweep)
    if (model is None) != (source is None):
        raise InputError("roles need both the original model and a corpus: give both, or neither.")
    about, points, baseline = sweep.read(), sweep.points, sweep.baseline
    if Path(about["model"]).is_dir():  # who reads the page has no use for the folder that the model lies in
        about["model"] = Path(about["model"]).name
    panels = tuple(panels_of(points))
    report = PruneReport(sweep.folder, about, tuple(points), baseline, panels, smaller=_smaller_models(sweep))
    if model is None:
        report = replace(report, roles_about="Roles were not measured: give the report a corpus.")
        write_files(report)
        return report
    sweep.check_weights(model)
    write_files(replace(report, roles_about="Measuring roles was cut short: write the report again."))
    examples = corpus_subset(source if isinstance(source, Corpus) else corpus(source), limit)
    roles, refused = _measure_roles(sweep, model, points, examples, progress, cancel)
    roles_about = f"Roles on {examples.survey().n_examples:,} examples of {examples.name}.{refused}"
    report = replace(report, roles=roles, roles_about=roles_about)
    write_files(report)
    return report


def _measure_roles(
    sweep: Sweep,
    model: Model,
    points: Sequence[PrunePoint],
    examples: Corpus,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> tuple[dict[str, SurvivorRoles], str]:
    """Roles by point, and a sentence on points whose heads weights cannot leave out, as in models that share them."""
    roles: dict[str, SurvivorRoles] = {}
    refused: list[str] = []
    chosen = points_to_measure(points)
    for point in chosen:
        try:
            roles[point.id] = survivor_roles(sweep, model, point, examples, progress=progress, cancel=cancel)
        except InterventionError as error:
            refused.append(str(error))
    if not refused:
        return roles, ""
    return roles, f" Not measured at {len(refused)} of {len(chosen)} points: {refused[0]}"


def _smaller_models(sweep: Sweep) -> SmallerModels | None:
    chosen = sweep.chosen
    return None if chosen is None else smaller_models_of(sweep.folder, chosen.id, chosen.mask)


def write_files(report: PruneReport) -> None:
    """Write the page and the tables of a report into its folder."""
    files: Sequence[tuple[str, bytes]] = (
        (POINTS, as_parquet(point_rows(report.points))),
        (HEADS, as_parquet(head_rows(report.points, report.roles))),
        (PAGE, page(report).encode()),
    )
    for name, data in files:
        write_file(report.folder / name, data)
