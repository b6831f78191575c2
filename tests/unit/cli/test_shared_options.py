"""Options that commands share: groups become one option a field, in the order they stand in."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from headscope.cli.shared_options import ModelName, PrintOptions, spread


@dataclass(frozen=True)
class Size:
    """A group of our own."""

    width: Annotated[int, typer.Option(help="How wide.")] = 3
    is_tall: Annotated[bool, typer.Option("--tall", help="Tall.")] = False


def test_a_group_is_one_option_a_field_and_comes_back_as_a_group():
    seen = []

    def command(
        model: ModelName, factor: Annotated[int, typer.Option()] = 2, *, size: Size, print_options: PrintOptions
    ) -> None:
        """What it does."""
        seen.append((model, factor, size, print_options))

    spread_command = spread(command)
    assert list(inspect.signature(spread_command).parameters) == [
        "model",
        "factor",
        "width",
        "is_tall",
        "json",
        "debug",
    ]
    app = typer.Typer()
    app.command()(spread_command)
    result = CliRunner().invoke(app, ["gpt", "--width", "5", "--tall", "--json"])
    assert result.exit_code == 0, result.output
    assert seen == [("gpt", 2, Size(5, True), PrintOptions(json=True))]
    output = CliRunner().invoke(app, ["--help"]).output
    assert "How wide." in output and "What it does." in output
