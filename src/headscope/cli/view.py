"""`headscope view head|model|neuron|activations`: a model on one input, saved as page, picture or numbers."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.cli.console import working
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import InputOptions, PrintOptions, TextGiven, spread
from headscope.cli.view_output import Appearance, Comparison, finish, is_saved, trace_of
from headscope.errors import InputError

HEAD_EXAMPLE = "Example: headscope view head builtin:gpt 'The doctor asked the nurse. She' --head L3H2 -o head.html"
MODEL_EXAMPLE = "Example: headscope view model builtin:bert 'I like cats' --pair 'I like dogs' -o model.png"
ACTIVATIONS_EXAMPLE = "Example: headscope view activations builtin:gpt 'The doctor asked the nurse. She' -o lens.html"
NEURON_EXAMPLE = "Example: headscope view neuron builtin:gpt 'The doctor asked the nurse. She' --head L3H2 -o x.html"

app = typer.Typer(
    help="Save what a model's heads did on one input: as a page, a picture or numbers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Form(StrEnum):
    """Lines between tokens, a matrix, over the picture or along the sound; auto: what fits the input."""

    auto = "auto"
    lines = "lines"
    matrix = "matrix"
    image = "image"
    time = "time"


class Direction(StrEnum):
    """What a token looks at, or who looks at it."""

    from_ = "from"
    to = "to"


class Axis(StrEnum):
    """Tokens from top to bottom, or from left to right."""

    vertical = "vertical"
    horizontal = "horizontal"


class What(StrEnum):
    """What the lines stand for."""

    pattern = "pattern"
    contribution = "contribution"
    scores = "scores"


class By(StrEnum):
    """What is read as one."""

    tokens = "tokens"
    words = "words"
    sentences = "sentences"


class Hide(StrEnum):
    """Groups of tokens to leave out."""

    special = "special"
    first = "first"


class Between(StrEnum):
    """From which sentence of a pair to which."""

    all = "all"
    aa = "AA"
    ab = "AB"
    ba = "BA"
    bb = "BB"


class Thumbnails(StrEnum):
    """How each head is pictured."""

    heat = "heat"
    lines = "lines"


class Stream(StrEnum):
    """What is shown of the residual stream."""

    lens = "lens"
    norm = "norm"
    attention = "attention"
    cross = "cross"
    mlp = "mlp"
    cosine = "cosine"


class Whose(StrEnum):
    """Whose prediction a difference follows through the layers."""

    either = "either"
    a = "A"
    b = "B"


ModelName = Annotated[str, typer.Argument(help="builtin:gpt, a folder, a hub id, or a folder that `trace -o` wrote.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The file to write: .html, .png, .svg, .pdf, .csv, .json or .parquet."),
]


@app.command("head", epilog=HEAD_EXAMPLE)
@spread
def head_view(
    model: ModelName,
    text: TextGiven = None,
    output: Output = None,
    head: Annotated[list[str] | None, typer.Option(help="A head, as L3H2; may be repeated, within one layer.")] = None,
    layer: Annotated[str | None, typer.Option(help="All heads of a layer, as L3; the first layer unless said.")] = None,
    average: Annotated[bool, typer.Option("--average", help="Draw the mean of the heads.")] = False,
    form: Annotated[
        Form, typer.Option(help="Lines between tokens, a matrix, over the picture, along the sound.")
    ] = Form.auto,
    axis: Annotated[Axis, typer.Option(help="Tokens from top to bottom, or from left to right.")] = Axis.vertical,
    what: Annotated[
        What, typer.Option(help="Weights, weights times the size of values, or scores before the softmax.")
    ] = What.pattern,
    by: Annotated[By, typer.Option(help="Read tokens one by one, or whole words or sentences.")] = By.tokens,
    hide: Annotated[list[Hide] | None, typer.Option(help="Leave out special or first tokens; may be repeated.")] = None,
    off: Annotated[
        list[str] | None, typer.Option(help="Leave out one token, by position (or stack:position); may be repeated.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Only weights from this on.")] = None,
    mass: Annotated[float | None, typer.Option(help="The strongest that make up this share of each query.")] = None,
    top: Annotated[int | None, typer.Option(help="The strongest few of each query.")] = None,
    between: Annotated[Between, typer.Option(help="Of a pair: from which sentence to which.")] = Between.all,
    token: Annotated[
        str | None, typer.Option(help="One token alone: 5 (or query:5) looks, key:5 is looked at; -1 is the last.")
    ] = None,
    direction: Annotated[
        Direction, typer.Option(help="CorpusOptions a picture: what patches appearance at, or who at them.")
    ] = (Direction.from_),
    arrows: Annotated[
        bool, typer.Option("--arrows", help="CorpusOptions a picture: from each patch to its strongest.")
    ] = False,
    rollout: Annotated[
        bool, typer.Option("--rollout", help="CorpusOptions a picture: attention through all layers up to this one.")
    ] = False,
    *,
    input_options: InputOptions,
    comparison: Comparison,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Heads of one layer: lines between tokens, a matrix, over a picture or along a sound; without -o, a table."""
    if head and layer:
        raise InputError("--head and --layer both say what to show: give one of them.")
    spot = _token_spot(token)
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import head_view as view_of

    view = view_of(
        trace,
        head or layer,
        average=average,
        form=form.value,
        axis=axis.value,
        what=what.value,
        by=by.value,
        hide=[group.value for group in hide or []],
        off=off or [],
        threshold=threshold,
        mass=mass,
        top=top,
        pair=between.value,
        token=spot,
        direction=direction.value,
        arrows=arrows,
        rollout=rollout,
        theme=appearance.theme.value,
    )  # type: ignore[arg-type]
    finish(view, output, appearance, print_options)


@app.command("model", epilog=MODEL_EXAMPLE)
@spread
def model_view(
    model: ModelName,
    text: TextGiven = None,
    output: Output = None,
    head: Annotated[str | None, typer.Option(help="The head in focus, as L3H2.")] = None,
    thumbnails: Annotated[Thumbnails, typer.Option(help="Heads as heat maps or as lines.")] = Thumbnails.heat,
    sort: Annotated[str, typer.Option(help="Order heads by a measure, as previous_token.")] = "",
    colour: Annotated[str, typer.Option(help="Colour heads by a measure.")] = "",
    least: Annotated[float, typer.Option(help="Only heads whose colour is at least this share of the range.")] = 0.0,
    *,
    input_options: InputOptions,
    comparison: Comparison,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """All heads of all layers on one page; without -o, the heads with their measures as a table."""
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import model_view as view_of

    with working("Measuring heads"):
        view = view_of(
            trace,
            head,
            thumbnails=thumbnails.value,
            sort=sort,
            colour=colour,
            least=least,
            theme=appearance.theme.value,
        )  # type: ignore[arg-type]
    finish(view, output, appearance, print_options)


@app.command("neuron", epilog=NEURON_EXAMPLE)
@spread
def neuron_view(
    model: ModelName,
    text: TextGiven = None,
    output: Output = None,
    head: Annotated[str | None, typer.Option(help="The head, as L3H2; the first unless said.")] = None,
    token: Annotated[int, typer.Option(help="The query, by its position; -1 is the last.")] = -1,
    sort: Annotated[
        str, typer.Option(help="Neurons by index, contribution, spread (with --every), or a key's position.")
    ] = "index",
    every: Annotated[
        str | None, typer.Option(help="Vectors of all tokens instead of one query: query, key, value or mixed.")
    ] = None,
    fold: Annotated[
        list[str] | None, typer.Option(help="Leave a column out: key, product, value, weighted; may be repeated.")
    ] = None,
    *,
    input_options: InputOptions,
    comparison: Comparison,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """One head, neuron by neuron: query, keys, their product, softmax, values; without -o, the keys as a table."""
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import neuron_view as view_of

    view = view_of(
        trace,
        head,
        token=token,
        sort=int(sort) if re.fullmatch(r"-?[0-9]{1,9}", sort) else sort,  # type: ignore[arg-type]
        every=every,  # type: ignore[arg-type]
        fold=fold or [],  # type: ignore[arg-type]
        theme=appearance.theme.value,
    )
    finish(view, output, appearance, print_options)


@app.command("activations", epilog=ACTIVATIONS_EXAMPLE)
@spread
def activations_view(
    model: ModelName,
    text: TextGiven = None,
    output: Output = None,
    token: Annotated[int, typer.Option(help="The token in focus, by its position; -1 is the last.")] = -1,
    stream: Annotated[
        Stream, typer.Option(help="What each layer would predict, or norms of the stream and of what is written.")
    ] = Stream.lens,
    whose: Annotated[
        Whose, typer.Option(help="Of a difference: the prediction that differs most, or the last one of A or B.")
    ] = Whose.either,
    *,
    input_options: InputOptions,
    comparison: Comparison,
    appearance: Appearance,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Layers by tokens: the logit lens, or norms of the residual stream; without -o, one token's as a table."""
    for name in (model, comparison.against_model or model):
        if is_saved(name):
            raise InputError(f"{name} holds a trace, and activations take the model: give the model and the text.")
    trace = trace_of(model, text, output, loading, input_options)
    trace = comparison.minus(trace, model, loading, input_options)
    from headscope.views import activations_view as view_of

    loaded = loading.model(model)
    source = (loaded, loading.model(comparison.against_model)) if comparison.against_model else loaded
    with working("Reading activations"):
        view = view_of(trace, source, token=token, stream=stream.value, whose=whose.value, theme=appearance.theme.value)
    finish(view, output, appearance, print_options)


def _token_spot(token: str | None) -> Any:
    if token is None:
        return None
    side, _, place = token.rpartition(":")
    if side not in ("", "query", "key") or not place.removeprefix("-").isdecimal():
        raise InputError(
            f"--token {token} is no token: write 5 or query:5 for one that looks, key:5 for one looked at."
        )
    return (side or "query", int(place))
