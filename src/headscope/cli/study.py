"""`headscope study`: the checks that papers published, on any model, with their numbers beside."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, shown
from headscope.cli.corpus_options import Over, ReportFolder
from headscope.cli.load_model import Loading
from headscope.cli.progress import drawn, told_apart
from headscope.cli.shared_options import Told

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
    over: Over,
    loading: Loading,
    told: Told,
) -> None:
    """The checks of a paper on a model and a treebank, published numbers beside ours: a table, Markdown, HTML, JSON."""
    works_at, examples = over.works_at(), over.corpus(corpus)
    from headscope.reports.studies import study as study_of
    from headscope.reports.studies.checks import check_folder

    check_folder(output)
    loaded = over.model(model, loading)

    with told_apart(output), drawn() as progress:
        options: dict[str, Any] = {"limit": over.limit, "every": over.every, "engine": works_at, "progress": progress}
        made = study_of(name.value, loaded, examples, output, **options)
    if told.json:
        print_json(made.to_json() | {"folder": str(output)})
        return
    print_text(Text(shown(made.title), "bold"))
    print_text(
        f"{shown(made.model)} on {made.n_examples:,} examples of {shown(made.corpus)}. Published: {made.published_for}."
    )
    for part, checks in made.parts().items():
        table = Table(title=Text(part), title_justify="left", title_style="bold")
        for column in ("", "published", "here"):
            table.add_column(column)
        for one in checks:
            table.add_row(Text(one.what), Text(one.published), Text(shown(one.ours)))
        print_text(table)
    for note in made.notes:
        print_text(f"- {shown(note)}")
    print_text(Text.assemble(("page: ", "bold"), str(output / "index.html")))
