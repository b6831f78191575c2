"""`headscope demo`: a first look in a few seconds, without network: trace a small model, then silence a head."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import Debug, Json, print_json, print_text, working
from headscope.cli.figures import answer_lines, answers, head_figures, head_table, shown_answer
from headscope.cli.loading import one_thread
from headscope.cli.models import BUILTIN
from headscope.cli.trace import token_line

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.traces import Trace

EXAMPLE = "Example: headscope demo"
TEXT = "The doctor asked the nurse a question. She"
SHOWN = 6


def demo(json: Json = False, debug: Debug = False) -> None:
    """Trace a small model, show what its heads do, then silence the one that matters most and look again."""
    with working("Loading a small model"):
        model = _model()
    with working("Running it, and again without each of its heads"), one_thread():
        trace = model.run(TEXT)
        head, quiet = _most_needed(model, trace)
    figures = head_figures(trace, model)
    changes = _changes(trace, quiet)[:SHOWN]
    if json:
        print_json(
            {
                "model": model.name,
                "text": TEXT,
                "coverage": model.coverage,
                "tokens": trace.tokens["main"].texts,
                "heads": [asdict(one) for one in figures],
                "predictions": answers(trace, SHOWN),
                "silenced": head,
                "changes": changes,
            }
        )
        return
    print_text(Text.assemble(("model ", "bold"), f"{model.name}: {model.coverage}"))
    print_text(token_line("main", trace.tokens["main"]), *answer_lines(trace, SHOWN))
    count = min(SHOWN, len(figures))
    print_text(head_table(figures[:SHOWN], f"The {count} sharpest of {len(figures)} heads (means over queries)"))
    print_text(f"Of all heads, {head} changes the answer most when it is silent, hs.silence({head!r}):")
    table = Table(title=Text(f"Next token without {head}"), title_justify="left", title_style="bold")
    for name, side in (("token", "left"), ("before", "right"), ("after", "right"), ("change", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for one in changes:
        moved = one["after"] - one["before"]
        style = "green" if moved > 0 else "red"
        table.add_row(
            Text(shown_answer(one["text"])),
            f"{one['before']:.3f}",
            f"{one['after']:.3f}",
            Text(f"{moved:+.3f}", style=style),
        )
    print_text(table, "Next: headscope trace --help")


def _model() -> "Model":
    if (BUILTIN / "gpt" / "config.json").is_file():
        from headscope.models import load

        return load("builtin:gpt")
    from headscope.cli.tiny import tiny_model

    return tiny_model()


def _most_needed(model: "Model", trace: "Trace") -> tuple[str, "Trace"]:
    """The head without which the likely answers change most, and the run without it."""
    from headscope.interventions import silence

    runs: dict[str, Any] = {str(one): model.run(trace.inputs, [silence(one)], record="rows") for one in trace.heads}
    moved = {
        head: sum(abs(one["after"] - one["before"]) for one in _changes(trace, quiet)) for head, quiet in runs.items()
    }
    head = max(moved, key=lambda one: moved[one])
    return head, runs[head]


def _changes(before: "Trace", after: "Trace") -> list[dict[str, Any]]:
    """The likely answers of both runs, the most changed first; probability 0 for one outside the top 50."""
    was, now = ({one.id: one for one in trace.predictions(50)} for trace in (before, after))
    found = [
        {
            "text": one.text,
            "before": was[key].probability if key in was else 0.0,
            "after": now[key].probability if key in now else 0.0,
        }
        for key, one in (was | now).items()
    ]
    return sorted(found, key=lambda one: -abs(one["after"] - one["before"]))
