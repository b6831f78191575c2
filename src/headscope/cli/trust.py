"""`headscope trust`: whether the attention of each head explains the model's output, as HTML, Parquet and JSON."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import QueryRows, Removal, TrustTask
from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusFormat, CorpusName, CorpusOptions, ReportFolder, note_first_example
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.reports.trust_report import TrustReport

EXAMPLE = "Example: headscope trust builtin:gpt sentences.txt -o trust --limit 30 --adversary-steps 50"


def trust(
    model: ModelName,
    corpus: CorpusName,
    output: ReportFolder,
    task: Annotated[
        TrustTask | None, typer.Option(help="What the model is asked. Default: what it can do, classes first.")
    ] = None,
    heads: Annotated[
        list[str] | None, typer.Option(help="Heads or layers to test, as L3H2 or L3; repeatable. Default: all heads.")
    ] = None,
    query_rows: Annotated[
        QueryRows, typer.Option(help="Replace the attention of the answer's position, or of all positions.")
    ] = "answer",
    removal: Annotated[
        Removal, typer.Option(help="Leave-one-out: delete a token, or replace it by the mask or unknown token.")
    ] = "delete",
    permutations: Annotated[int, typer.Option(help="Permutations of each row. The paper: 100.", min=1)] = 20,
    adversary_steps: Annotated[
        int, typer.Option(help="Steps of the adversary, the slowest part. 0 skips it: no head can be exclusive.", min=0)
    ] = 500,
    adversary_patterns: Annotated[int, typer.Option(help="Adversarial patterns per text.", min=1)] = 5,
    adversary_rate: Annotated[float, typer.Option(help="Learning rate of the adversary.", min=0.0)] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of permutations, adversary and chosen positions.")] = 0,
    *,
    corpus_format: CorpusFormat,
    corpus_options: CorpusOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Test whether the attention of each head explains the output: agreement, need, exclusiveness, and a verdict.

    Writes HTML, Parquet and JSON.
    """
    options, examples = corpus_options.run_options(), corpus_options.corpus(corpus, corpus_format)
    if options.pop("engine") != "local":
        raise InputError("headscope trust runs on this machine: leave out --engine.")
    from headscope.faithfulness import AdversaryOptions, HeadTests
    from headscope.reports.trust_report import check_folder
    from headscope.reports.trust_report import trust as report_of

    check_folder(output)
    search = {"patterns": adversary_patterns, "steps": adversary_steps, "rate": adversary_rate}
    tests = HeadTests(
        query_rows=query_rows,
        removal=removal,
        n_permutations=permutations,
        adversary=AdversaryOptions(**search) if adversary_steps else None,
        seed=seed,
    )
    loaded = corpus_options.model(model, loading)
    note_first_example(examples)
    with note_what_is_kept(output), progress_bars() as progress:
        report = report_of(loaded, examples, task, output, heads=heads, tests=tests, progress=progress, **options)
    if print_options.json:
        print_json(report.to_json() | {"folder": str(output), "page": str(report.page)})
    else:
        _show(report)


def _show(report: "TrustReport") -> None:
    title = Text(f"Does the attention of {printable(report.about['model'])} explain its output?")
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("head", "verdict", "agrees", "needed", "exclusive"):
        table.add_column(name)
    for head_trust in report.heads.values():
        outcomes = [part.outcome for part in head_trust.parts]
        table.add_row(head_trust.name, head_trust.verdict, *outcomes)
    print_text(table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts().items() if count)
    print_text(f"{counts}, on {report.about['n_texts']} texts of {printable(report.about['corpus'])}.")
    for note in report.about["notes"]:
        print_text(f"- {printable(note)}")
    print_text(Text.assemble(("page: ", "bold"), str(report.page)))
