"""`headscope examples`: where in a corpus a head, a coordinate or an MLP neuron is strongest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusName
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions

if TYPE_CHECKING:
    from headscope.runs import Progress

EXAMPLE = "Example: headscope examples builtin:gpt wiki.txt 'L3.neurons[17]' -k 5"


def examples(
    model: ModelName,
    corpus: CorpusName,
    place: Annotated[str, typer.Argument(help="A head 'L3H2', a coordinate 'L3H2.query[5]', or 'L3.neurons[17]'.")],
    k: Annotated[int, typer.Option("-k", min=1, max=20, help="How many.")] = 10,
    lowest: Annotated[bool, typer.Option("--lowest", help="Where it is most negative.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where the pass over the corpus is kept; in the user's cache unless said.")
    ] = None,
    *,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Where in a corpus a head, a coordinate or an MLP neuron is strongest. The corpus is gone through once for all."""
    from headscope.analysis.search.examples import Place, cache_folder, stream_of
    from headscope.analysis.search.examples import examples as found_in

    Place.parse(place)
    stream = stream_of(corpus)
    loaded = loading.model(model)
    kept = folder if folder is not None else cache_folder(loaded, stream)
    with note_what_is_kept(kept), progress_bars() as bar:

        def progress(at: "Progress") -> None:
            bar("examples", at.n_done, at.n_examples)

        matches = found_in(loaded, stream, place, k=k, lowest=lowest, folder=kept, progress=progress)
    if print_options.json:
        items = [
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
        print_json(about | {"n_examples": matches.n_examples, "folder": str(kept), "examples": items})
        return
    end = "lowest" if lowest else "strongest"
    corpus_name = f"{matches.n_examples:,} examples of {printable(matches.corpus)}"
    print_text(Text(f"{matches.place} of {printable(matches.model)}: {end} in {corpus_name}", style="bold"))
    for match in matches:
        print_text(Text(printable(str(match))))
