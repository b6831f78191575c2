"""`headscope view head|model|neuron|activations`: saves a view of one input as a page, a picture or numbers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.arguments import parsed_number
from headscope.choices import (
    Axis,
    By,
    Direction,
    Fold,
    Form,
    Hide,
    Pair,
    Stream,
    Thumbnails,
    Vectors,
    What,
    Whose,
)
from headscope.cli.console import working
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import MODEL_HELP, InputOptions, InputText, PrintOptions, one_of, spread
from headscope.cli.view_output import Appearance, ComparisonOptions, finish, is_saved, trace_of
from headscope.errors import InputError

HEAD_EXAMPLE = "Example: headscope view head builtin:gpt 'The doctor asked the nurse. She' --head L3H2 -o head.html"
MODEL_EXAMPLE = "Example: headscope view model builtin:bert 'I like cats' --pair 'I like dogs' -o model.png"
ACTIVATIONS_EXAMPLE = "Example: headscope view activations builtin:gpt 'The doctor asked the nurse. She' -o lens.html"
NEURON_EXAMPLE = "Example: headscope view neuron builtin:gpt 'The doctor asked the nurse. She' --head L3H2 -o x.html"

app = typer.Typer(
    help="Save a view of one input as a page, a picture or a table.",
    epilog=HEAD_EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode="rich",
)

ModelName = Annotated[
    str, typer.Argument(help=f"{MODEL_HELP} Or a folder that `headscope trace -o` wrote, without a text.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Output file: .html, .png, .svg, .pdf, .csv, .json or .parquet. Default: print a table.",
    ),
]


@dataclass(frozen=True)
class HeadLayout:
    """How the heads of a head view are drawn."""

    average: Annotated[bool, typer.Option("--average", help="Draw the mean of the heads.")] = False
    form: Annotated[
        Form,
        typer.Option(help="Lines, a matrix, an image overlay or a timeline of the sound. auto fits the input."),
    ] = "auto"
    axis: Annotated[Axis, typer.Option(help="Tokens from top to bottom or from left to right.")] = "vertical"
    what: Annotated[
        What,
        typer.Option(help="Attention weights, weight × ‖value · W_O‖ (contribution), or scores before the softmax."),
    ] = "pattern"
    by: Annotated[By, typer.Option(help="Unit of the rows and columns.")] = "tokens"
    direction: Annotated[Direction, typer.Option(help="On an image: attention from each patch or to each patch.")] = (
        "from"
    )
    arrows: Annotated[
        bool,
        typer.Option("--arrows", help="On an image: draw arrows from each patch to its strongest keys (see --mass)."),
    ] = False
    rollout: Annotated[
        bool, typer.Option("--rollout", help="On an image: attention rollout through all layers up to this one.")
    ] = False


@dataclass(frozen=True)
class TokenFilter:
    """Which tokens and which weights of a head view are shown."""

    hide: Annotated[
        list[str] | None,
        typer.Option(
            metavar=one_of(Hide),
            help="Hide special tokens or the first token. Rows are renormalised to sum to 1. Repeatable.",
        ),
    ] = None
    off: Annotated[
        list[str] | None, typer.Option(help="Hide one token, as POSITION or STACK:POSITION. Repeatable.")
    ] = None
    threshold: Annotated[float | None, typer.Option(help="Show weights from this value on (0 to 1).")] = None
    mass: Annotated[
        float | None, typer.Option(help="Show the strongest weights that sum to this share of each query (0 to 1).")
    ] = None
    top: Annotated[int | None, typer.Option(help="Show the K strongest weights of each query (1 to 64).")] = None
    between: Annotated[Pair, typer.Option(help="For a sentence pair: AB shows queries in A and keys in B.")] = "all"
    token: Annotated[
        str | None,
        typer.Option(help="Show one token: POSITION or query:POSITION as query, key:POSITION as key; -1 is the last."),
    ] = None


@app.command("head", epilog=HEAD_EXAMPLE)
@spread
def head_view(
    model: ModelName,
    text: InputText = None,
    output: Output = None,
    head: Annotated[list[str] | None, typer.Option(help="Head, as L3H2. Repeatable within one layer.")] = None,
    layer: Annotated[str | None, typer.Option(help="All heads of a layer, as L3. Default: the first layer.")] = None,
    *,
    layout: HeadLayout,
    token_filter: TokenFilter,
    input_options: InputOptions,
    comparison: ComparisonOptions,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Show heads of one layer as lines, a matrix, an image overlay or a timeline. Without -o: a table."""
    if head and layer:
        raise InputError("--head and --layer both say what to show: give one of them.")
    options = vars(token_filter) | {
        "hide": token_filter.hide or [],
        "off": token_filter.off or [],
        "pair": token_filter.between,
        "token": _token_spot(token_filter.token),
    }
    del options["between"]
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import head_view as view_of

    view = view_of(trace, head or layer, theme=appearance.theme, **vars(layout), **options)
    finish(view, output, appearance, print_options)


@app.command("model", epilog=MODEL_EXAMPLE)
@spread
def model_view(
    model: ModelName,
    text: InputText = None,
    output: Output = None,
    head: Annotated[str | None, typer.Option(help="Head in focus, as L3H2. Default: the first head.")] = None,
    thumbnails: Annotated[Thumbnails, typer.Option(help="Draw heads as heat maps or as lines.")] = "heat",
    sort: Annotated[str, typer.Option(help="Sort heads by a measure, as previous_token. Default: by layer.")] = "",
    colour: Annotated[str, typer.Option(help="Colour heads by a measure. Default: by their attention weights.")] = "",
    least: Annotated[
        float, typer.Option(help="With --colour: hide heads below this share of the measure's range (0 to 1).")
    ] = 0.0,
    *,
    input_options: InputOptions,
    comparison: ComparisonOptions,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Show all heads of all layers on one page. Without -o: a table of the heads with their measures."""
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import model_view as view_of

    options = {"thumbnails": thumbnails, "sort": sort, "colour": colour, "least": least}
    with working("Measuring heads"):
        view = view_of(trace, head, theme=appearance.theme, **options)  # type: ignore[arg-type]
    finish(view, output, appearance, print_options)


@app.command("neuron", epilog=NEURON_EXAMPLE)
@spread
def neuron_view(
    model: ModelName,
    text: InputText = None,
    output: Output = None,
    head: Annotated[str | None, typer.Option(help="Head, as L3H2. Default: the first head.")] = None,
    token: Annotated[int, typer.Option(help="Position of the query; -1 is the last.")] = -1,
    sort: Annotated[
        str, typer.Option(help="Sort neurons by index, contribution, spread (with --every) or a key's position.")
    ] = "index",
    every: Annotated[
        Vectors | None, typer.Option(help="Show these vectors for all tokens instead of one query.")
    ] = None,
    fold: Annotated[list[str] | None, typer.Option(metavar=one_of(Fold), help="Hide a column. Repeatable.")] = None,
    *,
    input_options: InputOptions,
    comparison: ComparisonOptions,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Show one head by neuron: query, keys, products, softmax and values. Without -o: a table of the keys."""
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import neuron_view as view_of

    view = view_of(
        trace,
        head,
        token=token,
        sort=int(sort) if re.fullmatch(r"-?[0-9]{1,9}", sort) else sort,  # type: ignore[arg-type]
        every=every,
        fold=fold or [],  # type: ignore[arg-type]
        theme=appearance.theme,
    )
    finish(view, output, appearance, print_options)


@app.command("activations", epilog=ACTIVATIONS_EXAMPLE)
@spread
def activations_view(
    model: ModelName,
    text: InputText = None,
    output: Output = None,
    token: Annotated[int, typer.Option(help="Position of the token in focus; -1 is the last.")] = -1,
    stream: Annotated[
        Stream,
        typer.Option(
            help="Per layer: the logit lens, the norm of the residual stream, the norm of what attention, "
            "cross-attention or the MLP adds, or the cosine to the last layer."
        ),
    ] = "lens",
    whose: Annotated[
        Whose, typer.Option(help="Of a difference: the prediction that changes most, or the final one of A or B.")
    ] = "either",
    *,
    input_options: InputOptions,
    comparison: ComparisonOptions,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Show layers by tokens: the logit lens or norms of the residual stream. Without -o: a table for one token."""
    for name in (model, comparison.against_model or model):
        if is_saved(name):
            raise InputError(f"{name} holds a trace, and activations take the model: give the model and the text.")
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import activations_view as view_of

    loaded = loading.model(model)
    source = (loaded, loading.model(comparison.against_model)) if comparison.against_model else loaded
    with working("Reading activations"):
        view = view_of(trace, source, token=token, stream=stream, whose=whose, theme=appearance.theme)
    finish(view, output, appearance, print_options)


def _token_spot(token: str | None) -> Any:
    if token is None:
        return None
    side, _, place = token.rpartition(":")
    position = parsed_number(place, signed=True)
    if side not in ("", "query", "key") or position is None:
        raise InputError(f"--token {token} is not a token: write 5 or query:5 for a query, key:5 for a key.")
    return (side or "query", position)
