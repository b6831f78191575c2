"""`headscope doctor MODEL`: a model compared with its own attention, in full."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_text, printable

if TYPE_CHECKING:
    from headscope.models import Model


def verification_report(model: "Model") -> dict[str, Any]:
    """Every kind of input that the model takes, observed and by itself, as plain data."""
    result = model.verify()
    return {"name": model.name, "class": type(model.module).__name__, "coverage": model.layout.coverage} | asdict(
        result
    )


def show_verification(report: dict[str, Any]) -> None:
    """The same, for people."""
    sign, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "yellow")}[report["is_equal"]]
    print_text(Text.assemble((f"{report['name']} ", "bold"), f"({report['class']}): {report['coverage']}"))
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in (
        ("compared with", f"its own {report['reference']}" if report["reference"] else "nothing"),
        ("on", "; ".join(report["compared"]) or "no input"),
        ("attention layers", str(report["n_layers"])),
        ("patterns compared", str(report["n_patterns"])),
        ("largest difference", f"{report['difference']:.3g}" if report["is_equal"] is not None else "–"),
        ("first difference", report["first_difference"]),
        ("disagreement", report["disagreement"]),
        *(("note", note) for note in report["notes"]),
    ):
        if text:
            table.add_row(name, Text(printable(text)))
    print_text(table)
    verdicts = {
        True: "Observed, it computes what it computes by itself.",
        False: "Do not trust what is shown of this model: report its name.",
        None: "Not verified: what is shown could not be checked.",
    }
    print_text(Text.assemble((f"{sign} ", style), verdicts[report["is_equal"]]))
