"""`headscope examples`: where in a corpus a head, a coordinate or an MLP neuron is strongest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headscope.cli.console import print_json, print_text, shown
from headscope.cli.corpus_options import CorpusName
from headscope.cli.load_model import Loading
from headscope.cli.progress import drawn, told_apart
from headscope.cli.shared_options import ModelName, Told

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
    told: Told,
) -> None:
    """Where in a corpus a head, a coordinate or an MLP neuron is strongest. The corpus is gone through once for all."""
    from headscope.analysis.search.examples import Place, cache_folder, stream_of
    from headscope.analysis.search.examples import examples as found_in

    Place.parse(place)
    stream = stream_of(corpus)
    loaded = loading.model(model)
    kept = folder if folder is not None else cache_folder(loaded, stream)
    with told_apart(kept), drawn() as bar:

        def progress(at: "Progress") -> None:
            bar("examples", at.n_done, at.n_examples)

        found = found_in(loaded, stream, place, k=k, lowest=lowest, folder=kept, progress=progress)
    if told.json:
        items = [
            {
                "id": one.id,
                "tokens": one.tokens,
                "token": one.token,
                "value": one.value,
                "values": [float(value) for value in one.values],
                "key": one.key,
            }
            for one in found
        ]
        about = {"place": str(found.place), "model": found.model, "corpus": found.corpus, "lowest": lowest}
        print_json(about | {"n_examples": found.n_examples, "folder": str(kept), "examples": items})
        return
    end = "lowest" if lowest else "strongest"
    title = f"{found.place} of {shown(found.model)}: {end} in {found.n_examples:,} examples of {shown(found.corpus)}"
    print_text(Text(title, style="bold"))
    for one in found:
        print_text(Text(shown(str(one))))
