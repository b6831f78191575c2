"""`headscope heads`: reports what every head of a model does over a corpus, as HTML, Parquet and JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusFormat, CorpusName, CorpusOptions, ReportFolder, note_first_example
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions

if TYPE_CHECKING:
    from headscope.reports import HeadsReport

EXAMPLE = "Example: headscope heads builtin:bert en_ewt-ud-dev.conllu -o report --limit 300"


def heads(
    model: ModelName,
    corpus: CorpusName,
    output: ReportFolder,
    no_relevance: Annotated[
        bool, typer.Option("--no-relevance", help="Skip layer-wise relevance propagation.")
    ] = False,
    no_importance: Annotated[
        bool, typer.Option("--no-importance", help="Skip gate gradients and ablation, the slowest part.")
    ] = False,
    sample: Annotated[int, typer.Option(help="Number of examples used for relevance and importance.", min=2)] = 16,
    trust: Annotated[
        Path | None, typer.Option(help="Folder written by `headscope trust`, whose verdicts to show beside the roles.")
    ] = None,
    *,
    corpus_format: CorpusFormat,
    corpus_options: CorpusOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Report what every head does over a corpus, with confidence intervals and importance: HTML, Parquet and JSON."""
    run_options, examples = corpus_options.run_options(), corpus_options.corpus(corpus, corpus_format)
    from headscope.reports import heads as report_of
    from headscope.reports.heads_report import check_folder

    check_folder(output)
    loaded = corpus_options.model(model, loading)
    note_first_example(examples)
    with note_what_is_kept(output), progress_bars() as progress:
        report = report_of(
            loaded,
            examples,
            output,
            relevance=not no_relevance,
            importance=not no_importance,
            sample=sample,
            trust=trust,
            progress=progress,
            **run_options,
        )
    if print_options.json:
        print_json({**report.about, "folder": str(output), "page": str(report.page), **_findings(report)})
    else:
        _show(report)


def _findings(report: "HeadsReport") -> dict[str, Any]:
    roles = {str(head): verdict.to_json() for head, verdict in report.roles.items()}
    outcome = [{"question": finding.question, "answer": finding.answer} for finding in report.outcome]
    return {"roles": roles, "outcome": outcome}


def _show(report: "HeadsReport") -> None:
    table = Table(
        title=Text(f"Heads of {printable(report.about['model'])} with a role"), title_justify="left", title_style="bold"
    )
    for name in ("head", "role", "score", "baseline", "95 % interval", "also"):
        table.add_column(name, justify="right" if name in ("score", "baseline") else "left")
    for head, verdict in report.roles.items():
        if verdict.findings:
            best, *others = verdict.findings
            interval = "" if best.low is None or best.high is None else f"{best.low:.2f} to {best.high:.2f}"
            also = ", ".join(f"{role.role} {role.score:.2f}" for role in others[:2]) + (" …" if len(others) > 2 else "")
            base = "" if best.baseline is None else f"{best.baseline:.2f}"
            table.add_row(str(head), Text(best.role), f"{best.score:.2f}", base, interval, Text(also))
    n_without = sum(not verdict.findings for verdict in report.roles.values())
    if n_without < len(report.roles):
        print_text(table)
    print_text(f"{n_without} of {len(report.roles)} heads have no clear role.")
    for finding in report.outcome:
        stop = " " if finding.question.endswith("?") else ": "
        print_text(Text.assemble((finding.question + stop, "bold"), printable(finding.answer)))
    for name in ("relevance", "gate_importance", "ablation"):
        if name in report.about["absent"]:
            print_text(f"No {name.replace('_', ' ')}: {printable(report.about['absent'][name])}")
    print_text(Text.assemble(("page: ", "bold"), str(report.page)))
