"""`headscope find`: which heads do this, by an example, by a pattern, or by what taking them out does."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_note, print_text, printable, read_text, working
from headscope.cli.load_model import Loading
from headscope.cli.progress import progress_bars
from headscope.cli.shared_options import InputOptions, ModelName, PrintOptions, TextGiven
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.scores import Scores
    from headscope.traces import Trace

EXAMPLE = "Example: headscope find builtin:gpt 'The doctor asked the nurse a question. She' --from She --to nurse"
MOST_TEXTS = 2000


class Ablate(StrEnum):
    """What becomes of a head that is taken out."""

    zero = "zero"
    mean = "mean"


def find(
    model: ModelName,
    text: TextGiven = None,
    source: Annotated[str | None, typer.Option("--from", help="By example: the word or position that looks.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="By example: the word or position that is looked at.")] = None,
    pattern: Annotated[str | None, typer.Option(help="By pattern: previous_token, induction, names …")] = None,
    effect: Annotated[str | None, typer.Option(help="By effect: the prediction that counts, as ' nurse'.")] = None,
    at: Annotated[
        int | None, typer.Option(help="By effect: at this position; where the model answers, unless said.")
    ] = None,
    by: Annotated[Ablate, typer.Option(help="By effect: a head gives zero, or its mean.")] = Ablate.zero,
    texts: Annotated[Path | None, typer.Option(help="More texts to look in, one a line.")] = None,
    repeated: Annotated[
        bool, typer.Option("--repeated", help="Appearance in random tokens that repeat, where induction shows.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="How many heads to show.")] = 10,
    *,
    input_options: InputOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Rank all heads by what they do: attention from one word to another, a pattern, or an effect on a prediction."""
    wanted = [source is not None or to is not None, pattern is not None, effect is not None]
    if sum(wanted) != 1:
        raise InputError("say what to find, one of: --from she --to nurse, --pattern induction, --effect ' nurse'.")
    if wanted[0] and (source is None or to is None):
        raise InputError("an example has two ends: give both --from and --to.")
    if at is not None and effect is None:
        raise InputError("--at says where a prediction is made: it goes with --effect.")
    has_media = input_options.image is not None or input_options.audio is not None
    if text is None and texts is None and not repeated and not has_media:
        raise InputError("there is nothing to look in: give a text, --texts FILE or --repeated.")
    sources: list[str | None] = [*([read_text(text)] if text is not None or has_media else []), *_lines(texts)]
    loaded = loading.model(model)
    with working(f"Reading for {model}"):
        inputs = [loaded.read(text, truncate=input_options.truncate, **input_options.inputs()) for text in sources]
    if effect is not None:
        scores = _by_effect(loaded, inputs, effect, at, by)
        rows = sorted(scores.items(), key=lambda score: -abs(score[1]))
    else:
        scores = _by_looks(loaded, inputs, repeated, None if source is None else (_end(source), _end(to)), pattern)
        rows = [(head, value) for head, value, _ in scores.above(len(scores))]
    if print_options.json:
        ranked = [str(head) for head, _ in rows]
        print_json({"model": model, **scores.to_json(), "ranked": ranked})
    else:
        _show(scores, rows[:top], effect)


def _by_effect(model: "Model", inputs: list[Any], effect: str, at: int | None, by: Ablate) -> "Scores":
    from headscope.analysis import ablation

    if not inputs:
        raise InputError("an effect is on the prediction of a text: give one, or --texts FILE.")
    with progress_bars() as progress:
        report = lambda done, of: progress("Taking out heads", done, of)  # noqa: E731
        return ablation(model, inputs, by=by.value, target=effect, position=at, progress=report)


def _by_looks(
    model: "Model", inputs: list[Any], repeated: bool, example: tuple[Any, Any] | None, pattern: str | None
) -> "Scores":
    from headscope.analysis import find_heads, repeated_tokens
    from headscope.analysis.search.find_heads import example_problem

    ready = repeated_tokens(model) if repeated else []
    traces: list[Trace] = []
    with progress_bars() as progress:
        for model_inputs in inputs:
            progress("Running", len(traces), len(inputs) + len(ready))
            traces.append(model.run(model_inputs, record="heads"))
        for model_inputs in ready:
            progress("Running", len(traces), len(inputs) + len(ready))
            traces.append(model.run(**model_inputs, record="heads"))
    if example is not None and len(traces) > 1:
        kept = [trace for trace in traces if example_problem(trace, example) is None]
        if kept and len(kept) < len(traces):
            print_note(f"{len(traces) - len(kept)} of {len(traces)} texts lack the words and were left out.")
        traces = kept or traces
    return find_heads(traces, example=example) if example is not None else find_heads(traces, pattern=pattern)


def _end(text: str | None) -> int | str:
    """A word, or a position."""
    assert text is not None
    return int(text) if text.lstrip("-").isdecimal() else text


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read --texts {path}: {error}.") from error
    if not lines or len(lines) > MOST_TEXTS:
        raise InputError(f"--texts {path} has {len(lines):,} lines with text: from 1 to {MOST_TEXTS:,} can be taken.")
    return lines


def _show(scores: "Scores", rows: list[Any], effect: str | None) -> None:
    what = f"log p({printable(effect)}) lost" if effect is not None else "weight"
    many = f", {scores.n_samples} inputs" if scores.n_samples > 1 else ""
    print_text(Text(f"The {len(rows)} first of {len(scores)} heads: {printable(scores.method)}{many}", "bold"))
    table = Table()
    columns = [
        "head",
        what,
        *(["baseline"] if scores.baselines else []),
        *(["95 % interval"] if scores.intervals else []),
    ]
    for name in columns:
        table.add_column(name, justify="left" if name == "head" else "right")
    for head, value in rows:
        row = [str(head), f"{value:.3f}"]
        if scores.baselines:
            row.append(f"{scores.baselines[head]:.3f}")
        if scores.intervals:
            low, high = scores.intervals[head]
            row.append(f"{low:.3f} to {high:.3f}")
        table.add_row(*row)
    print_text(table)
    if effect is not None:
        print_text(f"log p({printable(effect)}) with all heads: {-scores.settings['loss']:.3f}")
    elif rows and rows[0][1] <= scores.baselines.get(rows[0][0], 0.0):
        print_text("No head does this more than its baseline.")
