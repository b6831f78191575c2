"""`headscope find`: ranks heads by an example, by a pattern, or by the effect of ablating them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.arguments import parsed_number
from headscope.choices import Ablation
from headscope.cli.console import print_json, print_note, print_text, printable, read_text, working
from headscope.cli.load_model import Loading
from headscope.cli.progress import progress_bars
from headscope.cli.shared_options import InputOptions, InputText, ModelName, PrintOptions
from headscope.errors import AbsentPatternError, InputError
from headscope.glossary import MEASURE_TERMS, label
from headscope.progress import Steps

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.scores import Scores
    from headscope.traces import Trace

EXAMPLE = "Example: headscope find builtin:gpt 'The doctor asked the nurse a question. She' --from She --to nurse"
MOST_TEXTS = 2000


@dataclass(frozen=True)
class HeadQuestion:
    """What to rank heads by: an example with both ends, a pattern or an effect."""

    source: Annotated[str | None, typer.Option("--from", help="By example: the query, a word or a position.")] = None
    to: Annotated[str | None, typer.Option("--to", help="By example: the key, a word or a position.")] = None
    pattern: Annotated[
        str | None,
        typer.Option(help="By pattern: a measure, as previous_token, induction or names (docs/glossary.md)."),
    ] = None
    effect: Annotated[
        str | None,
        typer.Option(help="By effect: the token whose log-probability ablating a head changes, as ' nurse'."),
    ] = None
    at: Annotated[
        int | None, typer.Option(help="With --effect: position of the prediction. Default: where the model predicts.")
    ] = None
    by: Annotated[
        Ablation, typer.Option(help="With --effect: replace the output of a head by zero or by its mean.")
    ] = "zero"

    def check(self) -> None:
        """Refuse none, half a question, and more than one."""
        is_example = self.source is not None or self.to is not None
        if is_example + (self.pattern is not None) + (self.effect is not None) != 1:
            raise InputError("say what to find, one of: --from she --to nurse, --pattern induction, --effect ' nurse'.")
        if is_example and (self.source is None or self.to is None):
            raise InputError("an example has two ends: give both --from and --to.")
        if self.at is not None and self.effect is None:
            raise InputError("--at says where a prediction is made: it goes with --effect.")

    def example(self) -> tuple[int | str, int | str] | None:
        """Query and key of an example, each a word or a position."""
        return None if self.source is None or self.to is None else (_end(self.source), _end(self.to))


def find(
    model: ModelName,
    text: InputText = None,
    *,
    question: HeadQuestion,
    texts: Annotated[
        Path | None, typer.Option(help=f"File of further input texts, one per line (at most {MOST_TEXTS:,}).")
    ] = None,
    repeated: Annotated[
        bool, typer.Option("--repeated", help="Also use repeated random tokens, where induction heads stand out.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Number of heads to show.")] = 10,
    input_options: InputOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Rank all heads by attention between two words, by a pattern or by their effect on a prediction."""
    question.check()
    has_media = input_options.image is not None or input_options.audio is not None
    if text is None and texts is None and not repeated and not has_media:
        raise InputError("there is nothing to look in: give a text, --texts FILE or --repeated.")
    sources: list[str | None] = [*([read_text(text)] if text is not None or has_media else []), *_lines(texts)]
    loaded = loading.model(model)
    with working(f"Reading for {model}"):
        inputs = [loaded.read(source, truncate=input_options.truncate, **input_options.inputs()) for source in sources]
    if question.effect is not None:
        scores = _by_effect(loaded, inputs, question.effect, question.at, question.by)
        rows = sorted(scores.items(), key=lambda score: -abs(score[1]))
    else:
        scores = _by_looks(loaded, inputs, repeated, question.example(), question.pattern)
        rows = [(head, value) for head, value, _ in scores.above(len(scores))]
    if print_options.json:
        ranked = [str(head) for head, _ in rows]
        print_json({"model": model, **scores.to_json(), "ranked": ranked})
    else:
        _show(scores, rows[:top], question.effect)


def _by_effect(model: "Model", inputs: list[Any], effect: str, at: int | None, by: Ablation) -> "Scores":
    from headscope.analysis import ablation

    if not inputs:
        raise InputError("an effect is on the prediction of a text: give one, or --texts FILE.")
    with progress_bars() as progress:
        return ablation(model, inputs, by=by, target=effect, position=at, progress=progress)


def _by_looks(
    model: "Model", inputs: list[Any], repeated: bool, example: tuple[Any, Any] | None, pattern: str | None
) -> "Scores":
    from headscope.analysis import find_heads, repeated_tokens
    from headscope.analysis.search.find_heads import example_problem

    inputs = [*inputs, *(repeated_tokens(model) if repeated else [])]
    traces: list[Trace] = []
    with progress_bars() as progress:
        steps = Steps("inputs", len(inputs), progress)
        for model_inputs in inputs:
            steps.next()
            traces.append(model.run(model_inputs, record="heads"))
    if example is not None and len(traces) > 1:
        traces_with_words = [trace for trace in traces if example_problem(trace, example) is None]
        if traces_with_words and len(traces_with_words) < len(traces):
            print_note(
                f"{len(traces) - len(traces_with_words)} of {len(traces)} texts lack the words and were left out."
            )
        traces = traces_with_words or traces
    try:
        return find_heads(traces, example=example) if example is not None else find_heads(traces, pattern=pattern)
    except AbsentPatternError as absent:
        raise InputError(_where_it_can(model, str(pattern), absent)) from absent


def _where_it_can(model: "Model", pattern: str, absent: AbsentPatternError) -> str:
    """Why a pattern cannot be seen in the inputs, and which input of this command has it."""
    from headscope.analysis.search.pattern_needs import needs_of

    needs = needs_of(pattern)
    ways = ["add --repeated"] if pattern in ("induction", "duplicate_token", "same_token") and model.is_causal else []
    if needs.text and not (needs.pair and model.is_causal):
        pair = f" --pair {shlex.quote(needs.pair)}" if needs.pair else ""
        name = shlex.quote(model.name)
        command = f"headscope find {name} {shlex.quote(needs.text)}{pair} --pattern {pattern}"
        ways.append(f"search a text that has it: {command}")
    return f"{absent.reason} To see it, {', or '.join(ways)}" if ways else absent.reason


def _end(text: str) -> int | str:
    """A word, or a position."""
    position = parsed_number(text, signed=True)
    return text if position is None else position


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


def _repeated_words(scores: "Scores") -> list[str]:
    """What counts where a word of the example stands several times in the text."""
    counts = scores.settings.get("occurrences")
    if not counts:
        return []
    source, target = scores.settings.get("from"), scores.settings.get("to")
    lines = [
        f"--{end} {printable(str(word))} occurs {counts[end]} times: all occurrences count."
        for end, word in (("from", source), ("to", target))
        if counts[end] > 1 and word is not None
    ]
    lines = lines or [f"Up to {counts['from']} occurrences of --from and {counts['to']} of --to count in an input."]
    if source is not None and source == target:
        lines.append("Attention of an occurrence to itself counts too.")
    return [*lines, "To choose one, give positions: --from 9 --to 3."]


def _show(scores: "Scores", rows: list[Any], effect: str | None) -> None:
    what = f"log p({printable(effect)}) lost" if effect is not None else "weight"
    many = f", {scores.n_samples} inputs" if scores.n_samples > 1 else ""
    name = label(scores.method) if scores.method in MEASURE_TERMS else scores.method
    print_text(Text(f"The {len(rows)} first of {len(scores)} heads: {printable(name)}{many}", "bold"))
    if term := MEASURE_TERMS.get(scores.method) if effect is None else None:
        print_text(f"{term.label}: {term.meaning}. Baseline: {term.chance}.")
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
    for line in _repeated_words(scores):
        print_text(line)
    if effect is not None:
        print_text(f"log p({printable(effect)}) with all heads: {-scores.settings['loss']:.3f}")
    elif rows and rows[0][1] <= scores.baselines.get(rows[0][0], 0.0):
        print_text("No head does this more than its baseline.")
