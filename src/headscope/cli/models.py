"""`headscope models`: lists built-in models and tested families, or reports what is captured of one model."""

import json as jsonlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.coverage_table import coverage, short_count, show_coverage
from headscope.cli.families import FAMILIES, WAYS
from headscope.cli.load_model import AllowPickle, TrustRemoteCode, load_model
from headscope.cli.shared_options import MODEL_HELP, Debug, Json

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLE = "Example: headscope models builtin:gpt"

# As headscope.models.loading has it, which would import torch.
BUILTIN = Path(__file__).parent.parent / "builtin"


def models(
    model: Annotated[str | None, typer.Argument(help=f"{MODEL_HELP} Default: list what is available.")] = None,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List built-in models and tested model families, or report what is captured of one model."""
    if model is not None:
        report = coverage(load_model(model, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code))
        print_json(report) if json else show_coverage(report)
        return
    known = builtin_models()
    if json:
        families = {way: [key for group in groups.values() for key in group] for way, groups in FAMILIES.items()}
        print_json({"builtin": known, "families": families})
        return
    _show_builtin(known)
    _show_families()


def builtin_models() -> list[dict[str, Any]]:
    """Name, description and number of parameters of every built-in model, read without loading any."""
    return [
        {
            "name": f"builtin:{config.parent.name}",
            "description": _description(config.parent / "README.md"),
            "parameters": _n_parameters(config.parent.glob("*.safetensors")),
        }
        for config in sorted(BUILTIN.glob("*/config.json"))
    ]


def _show_builtin(known: list[dict[str, Any]]) -> None:
    table = Table(title=Text("Built-in models (no network needed)"), title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("parameters", justify="right")
    table.add_column("what it is")
    for model in known:
        table.add_row(model["name"], short_count(model["parameters"]), Text(printable(model["description"])))
    print_text(table if known else "There are no built-in models in this installation.")


def _show_families() -> None:
    count = sum(len(group) for groups in FAMILIES.values() for group in groups.values())
    print_text("", Text(f"Families tested, by way in ({count})", style="bold"))
    for way, groups in FAMILIES.items():
        print_text(Text(WAYS[way]))
        for reads, group in groups.items():
            print_text(Padding(Text(f"{reads}: {', '.join(group.values())}"), (0, 0, 0, 2)))
    print_text("", "Others are probed at load: `headscope models MODEL` tells what is captured of any model.")


def _description(card: Path) -> str:
    """The `description` of a model card's front matter, or its first line that is not a heading."""
    try:
        lines = card.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    if lines and lines[0].strip() == "---" and "---" in (later := [line.strip() for line in lines[1:]]):
        end = later.index("---") + 1
        for line in lines[1:end]:
            if line.startswith("description:"):
                return line.removeprefix("description:").strip().strip("'\"")
        lines = lines[end + 1 :]
    return next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), "")


def _n_parameters(files: "Iterable[Path]") -> int | None:
    """How many numbers the weights hold: a safetensors file says so in its first bytes."""
    count = 0
    try:
        for file in files:
            with file.open("rb") as opened:
                header = jsonlib.loads(opened.read(int.from_bytes(opened.read(8), "little")))
            count += sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return count or None
