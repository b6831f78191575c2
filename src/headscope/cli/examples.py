"""`headscope examples`: the corpus examples where a head, a dimension or an MLP neuron is strongest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusFormat, CorpusName, note_first_example
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions, Truncate

if TYPE_CHECKING:
    from headscope.analysis.search.examples import Examples

EXAMPLE = "Example: headscope examples builtin:gpt wiki.txt 'L3.neurons[17]' -k 5"


def examples(
    model: ModelName,
    corpus: CorpusName,
    place: Annotated[
        str, typer.Argument(help="Head 'L3H2', dimension 'L3H2.query[5]' or MLP neuron 'L3.neurons[17]'.")
    ],
    k: Annotated[int, typer.Option("-k", min=1, max=20, help="Number of examples.")] = 10,
    lowest: Annotated[
        bool, typer.Option("--lowest", help="Show the most negative values instead of the largest (not for heads).")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Cache folder. Default: a folder in the user's cache directory.")
    ] = None,
    truncate: Truncate = False,
    *,
    corpus_format: CorpusFormat,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Find the corpus examples where a head, a dimension or an MLP neuron is strongest.

    The corpus is read once and the result is cached.
    """
    from headscope.analysis.search.examples import Place, cache_folder, stream_of
    from headscope.analysis.search.examples import examples as found_in

    Place.parse(place)
    stream = stream_of(corpus if corpus_format == CorpusFormat() else corpus_format.corpus(corpus))
    loaded = loading.model(model)
    note_first_example(stream)
    run_folder = folder if folder is not None else cache_folder(loaded, stream, truncate=truncate)
    with note_what_is_kept(run_folder), progress_bars() as progress:
        options = {"k": k, "lowest": lowest, "truncate": truncate}
        matches = found_in(loaded, stream, place, folder=run_folder, progress=progress, **options)
    if print_options.json:
        print_json(_as_json(matches, lowest) | {"folder": str(run_folder)})
    else:
        _show(matches, lowest)


def _as_json(matches: "Examples", lowest: bool) -> dict[str, Any]:
    rows = [
        {
            "id": match.id,
            "tokens": match.tokens,
            "token": match.token,
            "value": match.value,
            "values": [float(value) for value in match.values],
            "key": match.key,
        }
        for match in matches
    ]
    about = {"place": str(matches.place), "model": matches.model, "corpus": matches.corpus, "lowest": lowest}
    return about | {"n_examples": matches.n_examples, "examples": rows}


def _show(matches: "Examples", lowest: bool) -> None:
    end = "lowest" if lowest else "strongest"
    corpus_name = f"{matches.n_examples:,} examples of {printable(matches.corpus)}"
    print_text(Text(f"{matches.place} of {printable(matches.model)}: {end} in {corpus_name}", style="bold"))
    for match in matches:
        print_text(Text(printable(str(match))))
