"""`headscope study`: the checks that papers published, on any model, with their numbers beside."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusOptions, ReportFolder
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import PrintOptions

EXAMPLE = "Example: headscope study voita --model builtin:translate --corpus en_ewt-ud-dev.conllu -o study --limit 300"


class StudyName(StrEnum):
    """A paper."""

    vig = "vig"
    voita = "voita"
    raganato = "raganato"


def study(
    name: Annotated[StudyName, typer.Argument(help="The paper: vig (2019), voita (2019) or raganato (2018).")],
    model: Annotated[str, typer.Option(help="builtin:gpt, a folder, or a hub id.")],
    corpus: Annotated[Path, typer.Option(help="A treebank in CoNLL-U.")],
    output: ReportFolder,
    *,
    corpus_options: CorpusOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """The checks of a paper on a model and a treebank, published numbers beside ours: a table, Markdown, HTML, JSON."""
    works_at, examples = corpus_options.works_at(), corpus_options.corpus(corpus)
    from headscope.reports.studies import study as study_of
    from headscope.reports.studies.checks import check_folder

    check_folder(output)
    loaded = corpus_options.model(model, loading)

    with note_what_is_kept(output), progress_bars() as progress:
        options: dict[str, Any] = {"limit": corpus_options.limit, "every": corpus_options.every, "engine": works_at}
        report = study_of(name.value, loaded, examples, output, progress=progress, **options)
    if print_options.json:
        print_json(report.to_json() | {"folder": str(output)})
        return
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
