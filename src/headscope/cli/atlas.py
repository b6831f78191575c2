"""`headscope atlas`: draws the queries and keys of a corpus as clouds of points, for every head, into a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import AtlasSpace, Coordinates, MapMethod, OnError
from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import CorpusFormat, CorpusName, note_first_example
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions, Truncate

if TYPE_CHECKING:
    from headscope.atlases import Atlas

EXAMPLE = "Example: headscope atlas builtin:bert sentences.txt -o atlas --map umap --figure atlas.png"
_SHOWN = 10


def atlas(
    model: ModelName,
    corpus: CorpusName,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder. Rerun with the same folder to resume.")
    ],
    map_method: Annotated[
        MapMethod, typer.Option("--map", help="Projection; umap and tsne show neighbourhoods, pca is instant.")
    ] = "pca",
    dims: Annotated[int, typer.Option(help="Dimensions of the map.", min=2, max=3)] = 2,
    coordinates: Annotated[
        Coordinates,
        typer.Option(help="Joint space to draw; in lifted, a nearer key always has the larger logit."),
    ] = "scaled",
    points: Annotated[
        int, typer.Option(help="Maximum number of points per head, queries and keys together. 0 takes all.", min=0)
    ] = 4000,
    space: Annotated[AtlasSpace, typer.Option(help="Vectors to draw.")] = "query_key",
    seed: Annotated[int, typer.Option(help="Seed of the sample of examples and of the maps.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw all heads into this file (.png, .svg or .pdf).")
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="Find tokens by a regular expression, and the heads that gather them.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="Stop at unreadable lines and inputs that the model cannot take, or skip them.")
    ] = "fail",
    truncate: Truncate = False,
    *,
    corpus_format: CorpusFormat,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Draw the queries and keys of a corpus as clouds of points, one picture per head, with scores and anomalies."""
    from headscope.atlases import atlas as atlas_of

    examples = corpus_format.corpus(corpus, on_error)
    loaded = loading.model(model)
    note_first_example(examples)
    with note_what_is_kept(output), progress_bars() as progress:
        finished = atlas_of(
            loaded,
            examples,
            output,
            map=map_method,
            dims=dims,
            coordinates=coordinates,
            points=points or None,
            space=space,
            seed=seed,
            truncate=truncate,
            progress=progress,
        )
        if figure is not None:
            drawn = finished.figure(map_method, coordinates=coordinates)
            drawn.savefig(figure)
    report = _report(finished, search)
    if print_options.json:
        print_json(report)
    else:
        _show(finished, report)


def _report(atlas: "Atlas", search: str | None) -> dict[str, Any]:
    """What the command found, as plain data."""
    is_joint = atlas.index["options"]["space"] == "query_key"
    report: dict[str, Any] = {
        "folder": str(atlas.folder),
        "model": atlas.model,
        "corpus": atlas.index["corpus"],
        "n_tokens": atlas.n_tokens,
        "space": atlas.index["options"]["space"],
        "absent": atlas.index["absent"],
        "scores": {str(head): vars(scores) for head, scores in atlas.scores().items()},
        "anomalies": [vars(anomaly) for anomaly in atlas.anomalies()] if is_joint else [],
    }
    if search is not None:
        gathered = atlas.search(search, regex=True)
        heads = [vars(head) for head in gathered.heads]
        report["search"] = {"text": search, "n_hits": gathered.n_hits, "heads": heads, "note": gathered.note}
    return report


def _show(atlas: "Atlas", report: dict[str, Any]) -> None:
    print_text(printable(repr(atlas)))
    if report["space"] == "query_key":
        pearson = [scores["pearson"] for scores in report["scores"].values()]
        known = [value for value in pearson if value == value]
        if known:
            mean = sum(known) / len(known)
            print_text(
                f"Correlation of distance with dot product (Pearson per query, scaled joint space; −1 is exact): mean "
                f"{mean:.3f} over {len(known)} heads, {min(known):.3f} to {max(known):.3f}."
            )
    for site, reason in report["absent"].items():
        print_text(printable(f"{site} is not in the atlas: {reason}."))
    if report["anomalies"]:
        print_text(_anomaly_table(atlas))
    if "search" in report:
        print_text(_search_table(report["search"]))
    print_text(Text.assemble(("folder: ", "bold"), str(atlas.folder)))


def _anomaly_table(atlas: "Atlas") -> Table:
    table = Table(title="Heads that stand out", title_justify="left", title_style="bold")
    for name in ("kind", "heads", "most", "from"):
        table.add_column(name, justify="right" if name in ("most", "from") else "left")
    by_kind: dict[str, list[Any]] = {}
    for anomaly in atlas.anomalies():
        by_kind.setdefault(anomaly.label, []).append(anomaly)
    for label, listed in by_kind.items():
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        heads = ", ".join(anomaly.head for anomaly in listed[:_SHOWN]) + more
        table.add_row(label, heads, f"{listed[0].value:.2f}", f"{listed[0].threshold:.2f}")
    return table


def _search_table(search: dict[str, Any]) -> Table:
    title = Text(f"Heads that gather the {search['n_hits']} tokens matching {printable(search['text'])}")
    table = Table(title=title, title_justify="left", title_style="bold", caption=search["note"] or None)
    for name in ("head", "distance / chance", "95 % interval", "p (all heads)", "clusters"):
        table.add_column(name, justify="left" if name == "head" else "right")
    for head in search["heads"][:_SHOWN]:
        bounds = f"{head['low']:.2f} to {head['high']:.2f}"
        table.add_row(head["head"], f"{head['ratio']:.2f}", bounds, f"{head['p']:.3f}", str(head["n_clusters"]))
    return table
