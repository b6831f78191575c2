"""`headscope study`: repeats a published study on any model and compares the numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import StudyName, StudyPrecision
from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import Columns, CorpusFormat, CorpusOptions, ReportFolder, parse_columns
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import MODEL_HELP, PrintOptions, spread
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.reports.studies.checks import Study

EXAMPLE = "Example: headscope study voita --model builtin:translate --corpus en_ewt-ud-dev.conllu -o study --limit 300"
CHUNKING_EXAMPLE = (
    "Example: headscope study chunking --train train.txt --test test.txt --vectors bert-base-uncased -o chunking"
)
SENTIMENT_EXAMPLE = (
    "Example: headscope study sentiment --train train.tsv --dev dev.tsv --test test.tsv "
    "--vectors bert-base-uncased -o sentiment"
)
EXCLUSIVE_EXAMPLE = (
    "Example: headscope study exclusive --chunks train.txt --chunks-test test.txt --train train.tsv --dev dev.tsv "
    "--test test.tsv --vectors bert-base-uncased -o exclusive"
)
_PAPERS = {
    "vig": "Check Vig & Belinkov (2019) on a model and treebank of yours. Writes HTML, Markdown and JSON.",
    "voita": "Check Voita et al. (2019) on a model and treebank of yours. Writes HTML, Markdown and JSON.",
    "raganato": "Check Raganato & Tiedemann (2018) on a model and treebank. Writes HTML, Markdown and JSON.",
}
Device = Annotated[str | None, typer.Option(help="Device to train on: cpu, cuda or cuda:1. Default: cpu.")]


app = typer.Typer(
    help="Repeat a published study, and compare the numbers.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def _paper_command(name: StudyName) -> Callable[..., None]:
    """The command of a study that measures a model of yours."""

    def study(
        model: Annotated[str, typer.Option(help=MODEL_HELP)],
        corpus: Annotated[Path, typer.Option(help="Treebank in CoNLL-U.")],
        output: ReportFolder,
        *,
        corpus_options: CorpusOptions,
        loading: Loading,
        print_options: PrintOptions,
    ) -> None:
        run_options, examples = corpus_options.run_options(), corpus_options.corpus(corpus, CorpusFormat())
        from headscope.reports.studies import study as study_of
        from headscope.reports.studies.checks import check_folder

        check_folder(output)
        loaded = corpus_options.model(model, loading)
        with note_what_is_kept(output), progress_bars() as progress:
            report = study_of(name, loaded, examples, output, progress=progress, **run_options)
        _print(report, output, print_options)

    study.__doc__ = _PAPERS[name]
    return study


def chunking(
    train: Annotated[Path, typer.Option(help="Training sentences in CoNLL-2000's format; a tenth become dev.")],
    test: Annotated[Path, typer.Option(help="Test sentences in CoNLL-2000's format.")],
    vectors: Annotated[str, typer.Option(help="Model whose input embeddings become the frozen word vectors.")],
    output: ReportFolder,
    *,
    seeds: Annotated[int, typer.Option(help="Base taggers. More can be added later.", min=1)] = 5,
    adversary_seeds: Annotated[
        int | None, typer.Option(help="Adversaries for each λ. Default: as many as base taggers.", min=1)
    ] = None,
    lambdas: Annotated[
        str, typer.Option("--lambdas", help="Weights λ of the divergence, separated by commas.")
    ] = "0.2,0.5,1,1.5,2,2.5,3,4",
    epochs: Annotated[int, typer.Option(help="Epochs of each tagger.", min=1)] = 20,
    baseline_seeds: Annotated[int, typer.Option(help="Taggers per baseline.", min=1)] = 3,
    probe_seeds: Annotated[int, typer.Option(help="Probes per frozen attention.", min=1)] = 2,
    batch_size: Annotated[int, typer.Option(help="Sentences per batch.", min=1)] = 100,
    rate: Annotated[float, typer.Option(help="Factor of the learning rate; 0.2 peaks at 7.9e-3.")] = 0.2,
    warmup: Annotated[int, typer.Option(help="Steps until the learning rate peaks.", min=1)] = 500,
    cooldown: Annotated[float, typer.Option(help="Share of steps, the last, over which the rate falls to 0.")] = 0.0,
    precision: Annotated[StudyPrecision, typer.Option(help="Precision of training.")] = "fp32",
    limit: Annotated[int | None, typer.Option(help="Maximum number of sentences of each file.", min=2)] = None,
    device: Device = None,
    print_options: PrintOptions,
) -> None:
    """Train a one-layer tagger, adversaries with other attention, baselines and probes (after Yang's report).

    Writes HTML, Markdown, JSON, Parquet, and three taggers that any command opens.
    """
    from headscope.faithfulness.studies import ChunkingOptions, TaggerOptions
    from headscope.reports.studies.chunking import chunking_study

    tagger = TaggerOptions(batch_size, rate=rate, warmup=warmup, cooldown=cooldown, precision=precision)
    counts = {"baseline_seeds": baseline_seeds, "probe_seeds": probe_seeds, "limit": limit}
    weights = parse_numbers(lambdas, "--lambdas")
    options = ChunkingOptions(seeds, adversary_seeds, weights, epochs, **counts, tagger=tagger)
    with note_what_is_kept(output), progress_bars() as progress:
        report = chunking_study(train, test, vectors, output, options, device=device, progress=progress)
    _print(report, output, print_options)


def sentiment(
    train: Annotated[Path, typer.Option(help="Training texts: a table with a text and one of two labels.")],
    dev: Annotated[Path, typer.Option(help="Texts that choose epochs.")],
    test: Annotated[Path, typer.Option(help="Test texts.")],
    vectors: Annotated[str, typer.Option(help="Model whose input embeddings become the frozen word vectors.")],
    output: ReportFolder,
    *,
    seeds: Annotated[int, typer.Option(help="BiLSTMs, and Transformers. More can be added later.", min=1)] = 8,
    lambdas: Annotated[
        str, typer.Option("--lambdas", help="Weights λ of the divergence, separated by commas.")
    ] = "0.0001,0.0005,0.001,0.005,0.02",
    epochs: Annotated[int, typer.Option(help="Epochs of each classifier.", min=1)] = 8,
    adversary_epochs: Annotated[int, typer.Option(help="Epochs of each adversary.", min=1)] = 20,
    width: Annotated[int, typer.Option(help="Width of the BiLSTM, each way, and of the Transformer.", min=4)] = 128,
    tested: Annotated[int, typer.Option(help="Test texts that are tested one by one.", min=1)] = 500,
    limit: Annotated[int | None, typer.Option(help="Maximum number of texts of each file.", min=2)] = None,
    columns: Columns = None,
    device: Device = None,
    print_options: PrintOptions,
) -> None:
    """Train BiLSTMs and Transformers and test whether attention explains (Jain & Wallace; Wiegreffe & Pinter, 2019).

    Writes HTML, Markdown, JSON and Parquet.
    """
    from headscope.faithfulness.studies import ClassifierOptions, SentimentOptions
    from headscope.reports.studies.sentiment import sentiment_study

    counts = {"epochs": epochs, "adversary_epochs": adversary_epochs, "tested": tested, "limit": limit}
    weights = parse_numbers(lambdas, "--lambdas")
    options = SentimentOptions(seeds, lambdas=weights, **counts, classifier=ClassifierOptions(width=width))
    named: Any = parse_columns(columns)
    with note_what_is_kept(output), progress_bars() as progress:
        watch = {"columns": named, "device": device, "progress": progress}
        report = sentiment_study(train, dev, test, vectors, output, options, **watch)
    _print(report, output, print_options)


def exclusive(
    chunks: Annotated[Path, typer.Option(help="Training sentences in CoNLL-2000's format; a tenth become dev.")],
    chunks_test: Annotated[Path, typer.Option(help="Test sentences in CoNLL-2000's format.")],
    train: Annotated[Path, typer.Option(help="Training texts: a table with a text and one of two labels.")],
    dev: Annotated[Path, typer.Option(help="Texts that choose epochs.")],
    test: Annotated[Path, typer.Option(help="Test texts.")],
    vectors: Annotated[str, typer.Option(help="Model whose input embeddings become the frozen word vectors.")],
    output: ReportFolder,
    *,
    seeds: Annotated[int, typer.Option(help="Models of each task. More can be added later.", min=2)] = 5,
    adversary_seeds: Annotated[
        int | None, typer.Option(help="Models that have adversaries. Default: all of them.", min=1)
    ] = None,
    lambdas: Annotated[
        str, typer.Option("--lambdas", help="Weights λ of the divergence, separated by commas.")
    ] = "0.0003,0.001,0.003,0.01,0.03,0.1",
    epochs: Annotated[int, typer.Option(help="Epochs of each model.", min=1)] = 20,
    layers: Annotated[int, typer.Option(help="Layers of the Transformer.", min=1, max=2)] = 1,
    batch_size: Annotated[int, typer.Option(help="Texts per batch.", min=1)] = 100,
    rate: Annotated[float, typer.Option(help="Factor of the learning rate; 0.05 peaks at 2e-3.")] = 0.05,
    warmup: Annotated[int, typer.Option(help="Steps until the learning rate peaks.", min=1)] = 500,
    cooldown: Annotated[float, typer.Option(help="Share of steps, the last, over which the rate falls to 0.")] = 0.5,
    tested: Annotated[int, typer.Option(help="Test texts with an adversary of one answer.", min=1)] = 200,
    limit: Annotated[int | None, typer.Option(help="Maximum number of texts of each file.", min=2)] = None,
    columns: Columns = None,
    device: Device = None,
    print_options: PrintOptions,
) -> None:
    """Train the same Transformer to tag and to classify: where is attention more exclusive, or more stable?

    Writes HTML, Markdown, JSON and Parquet.
    """
    from headscope.faithfulness.studies import ExclusiveOptions, TaggerOptions
    from headscope.reports.studies.exclusive import exclusive_study

    tagger = TaggerOptions(batch_size, rate=rate, warmup=warmup, cooldown=cooldown)
    counts = {"epochs": epochs, "layers": layers, "tested": tested, "limit": limit, "tagger": tagger}
    options = ExclusiveOptions(seeds, adversary_seeds, parse_numbers(lambdas, "--lambdas"), **counts)
    named: Any = parse_columns(columns)
    with note_what_is_kept(output), progress_bars() as progress:
        watch = {"columns": named, "device": device, "progress": progress}
        report = exclusive_study((chunks, chunks_test), (train, dev, test), vectors, output, options, **watch)
    _print(report, output, print_options)


def parse_numbers(text: str, option: str) -> tuple[float, ...]:
    """Numbers between commas.

    >>> parse_numbers("0.2, 3", "--lambdas")
    (0.2, 3.0)
    """
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise InputError(f"{option} {text!r} are no numbers between commas, as 0.5,1,2.") from error


for paper in get_args(StudyName):
    app.command(paper, epilog=EXAMPLE)(spread(_paper_command(paper)))
app.command("chunking", epilog=CHUNKING_EXAMPLE)(spread(chunking))
app.command("sentiment", epilog=SENTIMENT_EXAMPLE)(spread(sentiment))
app.command("exclusive", epilog=EXCLUSIVE_EXAMPLE)(spread(exclusive))


def _print(report: "Study", output: Path, print_options: PrintOptions) -> None:
    if print_options.json:
        print_json(report.to_json() | {"folder": str(output)})
    else:
        _show(report, output)


def _show(report: "Study", output: Path) -> None:
    print_text(Text(printable(report.title), "bold"))
    print_text(printable(report.introduction))
    if report.conclusion:
        print_text(Text(printable(report.conclusion), "bold"))
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
