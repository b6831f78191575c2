"""Reports over a corpus that the workbench shows beside the input: those given at the start, and the built-in ones."""

from pathlib import Path

from headscope.errors import LoadError
from headscope.models import Model
from headscope.models.loading import BUILTIN
from headscope.reports import HeadsReport
from headscope.reports.report_part import no_report, report_part
from headscope.runs.manifest import identity
from headscope.server.catalogue import Catalogue
from headscope.views.wire import Part


class Reports:
    """One report a model: the last that was given at the start, else the one that comes with a built-in model."""

    def __init__(self, folders: tuple[Path, ...], catalogue: Catalogue):
        self.catalogue = catalogue
        self.startup_reports: dict[str, HeadsReport] = {}
        for folder in folders:
            report = HeadsReport.load(folder)
            self.startup_reports[self._model_of(report)] = report

    def check(self) -> None:
        """Refuse reports of other heads or other weights than those of the model that they name; loads the models."""
        for name, report in self.startup_reports.items():
            check(report, self.catalogue.load(name))

    def part(self, model: str) -> Part:
        """What is known of a model's heads, for the page; an empty report where nothing is."""
        report = self._of(model)
        return no_report() if report is None else report_part(report)

    def has(self, model: str) -> bool:
        """Whether anything is known of a model's heads."""
        return model in self.startup_reports or self._builtin_report(model).is_file()

    def _of(self, model: str) -> HeadsReport | None:
        if model in self.startup_reports:
            return self.startup_reports[model]
        return HeadsReport.load(self._builtin_report(model).parent) if self.has(model) else None

    def _builtin_report(self, model: str) -> Path:
        name = model.removeprefix("builtin:") if model in self.catalogue.builtin else ""
        return BUILTIN / name / "heads.json"

    def _model_of(self, report: HeadsReport) -> str:
        """The name under which this server offers the model of a report: a folder is known by its last part."""
        offered = [*self.catalogue.startup_models, *self.catalogue.builtin]
        wanted = report.about["model"]
        name = next((name for name in offered if wanted in (name, Path(name).name)), None)
        if name is None:
            raise LoadError(
                f"the report in {report.folder} is of {wanted}, and this workbench offers {', '.join(offered)}: start "
                "it with that model too, headscope serve MODEL --report DIR."
            )
        return name


def check(report: HeadsReport, model: Model) -> None:
    """Refuse a report of another model: one with other heads, or other weights."""
    strange = [str(head) for head in report.roles if head not in set(model.heads)]
    if strange:
        raise LoadError(
            f"the report in {report.folder} is of another {model.name}: it has {strange[0]}, which this one has not."
        )
    known, own = report.about["weights"], identity(model)
    if known and known["dtype"] == own["dtype"] and known["sha256"] != own["weights"]:
        raise LoadError(
            f"the report in {report.folder} is of another {model.name}, with other weights: make it again with "
            f"headscope heads {model.name} CORPUS -o DIR."
        )
