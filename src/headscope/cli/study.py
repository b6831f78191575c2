"""`headscope study`: repeats a published study on any model and compares the numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import StudyName
from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusFormat, CorpusOptions, ReportFolder
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import MODEL_HELP, PrintOptions

if TYPE_CHECKING:
    from headscope.reports.studies.checks import Study

EXAMPLE = "Example: headscope study voita --model builtin:translate --corpus en_ewt-ud-dev.conllu -o study --limit 300"


def study(
    name: Annotated[StudyName, typer.Argument(help="Paper: Vig (2019), Voita (2019) or Raganato (2018).")],
    model: Annotated[str, typer.Option(help=MODEL_HELP)],
    corpus: Annotated[Path, typer.Option(help="Treebank in CoNLL-U.")],
    output: ReportFolder,
    *,
    corpus_options: CorpusOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Repeat a published study on your model and treebank, and compare the numbers.

    Writes HTML, Markdown and JSON.
    """
    run_options, examples = corpus_options.run_options(), corpus_options.corpus(corpus, CorpusFormat())
    from headscope.reports.studies import study as study_of
    from headscope.reports.studies.checks import check_folder

    check_folder(output)
    loaded = corpus_options.model(model, loading)
    with note_what_is_kept(output), progress_bars() as progress:
        report = study_of(name, loaded, examples, output, progress=progress, **run_options)
    if print_options.json:
        print_json(report.to_json() | {"folder": str(output)})
    else:
        _show(report, output)


def _show(report: "Study", output: Path) -> None:
    print_text(Text(printable(report.title), "bold"))
    print_text(
        f"{printable(report.model)} on {report.n_examples:,} examples of {printable(report.corpus)}. "
        f"Published: {report.published_for}."
    )
    for part, checks in report.parts().items():
        table = Table(title=Text(part), title_justify="left", title_style="bold")
        for column in ("", "published", "here"):
            table.add_column(column)
        for check in checks:
            table.add_row(Text(check.what), Text(check.published), Text(printable(check.ours)))
        print_text(table)
    for note in report.notes:
        print_text(f"- {printable(note)}")
    print_text(Text.assemble(("page: ", "bold"), str(output / "index.html")))
