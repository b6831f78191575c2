"""The report of a sweep: figures, tables and their conclusions, written into its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, corpus
from headscope.errors import InputError
from headscope.files import write_file
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.pruning import PrunePoint, Sweep
from headscope.pruning.smaller_model import FILE, SmallerModels
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.pruning.curves import Panel, is_gated, is_tuned, panels_of
from headscope.reports.pruning.survivor_roles import N_EXAMPLES, SurvivorRoles, points_to_measure, survivor_roles
from headscope.reports.pruning.sweep_page import page, script_and_style
from headscope.reports.pruning.sweep_tables import as_parquet, head_rows, point_rows

PAGE, POINTS, HEADS = "report.html", "points.parquet", "heads.parquet"


@dataclass(frozen=True, eq=False)
class PruneReport:
    """A sweep as it was when the report was written; `about` is its `prune.json`, `roles` are by point.

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
        """The point whose model is in `baked/` and `slim/`."""
        return self.about["chosen"]

    def gated(self) -> list[PrunePoint]:
        """L0's points: those that were fine-tuned with their mask, where there are any."""
        points = [point for point in self.points if is_gated(point)]
        return [point for point in points if is_tuned(point)] or points


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
    measures only new points.
    """
    script_and_style()  # what is missing for the page is said before roles are measured, not after
    sweep = sweep if isinstance(sweep, Sweep) else Sweep.open(sweep)
    if (model is None) != (source is None):
        raise InputError("roles need both the original model and a corpus: give both, or neither.")
    about, points, baseline = sweep.read(), sweep.points, sweep.baseline
    if Path(about["model"]).is_dir():  # who reads the page has no use for the folder that the model lies in
        about["model"] = Path(about["model"]).name
    roles: dict[str, SurvivorRoles] = {}
    roles_about = "Roles were not measured: give the report a corpus."
    if model is not None:
        examples = corpus_subset(source if isinstance(source, Corpus) else corpus(source), limit)
        roles_about = f"Roles on {examples.survey().n_examples:,} examples of {examples.name}."
        for point in points_to_measure(points):
            roles[point.id] = survivor_roles(sweep, model, point, examples, progress=progress, cancel=cancel)
    panels, smaller = tuple(panels_of(points)), _smaller_models(sweep.folder)
    report = PruneReport(sweep.folder, about, tuple(points), baseline, panels, roles, roles_about, smaller)
    _write(report)
    return report


def _smaller_models(folder: Path) -> SmallerModels | None:
    return SmallerModels.open(folder) if (folder / FILE).exists() else None


def _write(report: PruneReport) -> None:
    files: Sequence[tuple[str, bytes]] = (
        (POINTS, as_parquet(point_rows(report.points))),
        (HEADS, as_parquet(head_rows(report.points, report.roles))),
        (PAGE, page(report).encode()),
    )
    for name, data in files:
        write_file(report.folder / name, data)
