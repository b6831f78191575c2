"""The command line: `headscope serve`, `view`, `trace`, `heads`, `study` and more. Heavy imports wait until needed."""

from typing import Annotated

import typer

from headscope import __version__
from headscope.cli import (
    atlas,
    doctor,
    examples,
    find,
    heads,
    models,
    prune,
    serve,
    study,
    trace,
    trust,
    usecases,
    view,
)
from headscope.cli.console import Commands, print_text
from headscope.cli.shared_options import spread

__all__ = ["app"]

app = typer.Typer(name="headscope", cls=Commands, rich_markup_mode="rich", pretty_exceptions_enable=False)


def _version(is_asked: bool) -> None:
    if is_asked:
        print_text(f"headscope {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True, epilog="Example: headscope trace builtin:gpt 'The doctor asked the nurse. She'"
)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """See, measure, test and edit the attention of any Transformer. Without a command: `serve`."""
    if context.invoked_subcommand is None:
        serve.serve_defaults()


app.command(epilog=serve.EXAMPLE)(spread(serve.serve))
app.add_typer(view.app, name="view")
app.command(epilog=trace.EXAMPLE)(spread(trace.trace))
app.command(epilog=heads.EXAMPLE)(spread(heads.heads))
app.command(epilog=trust.EXAMPLE)(spread(trust.trust))
app.command(epilog=prune.EXAMPLE)(spread(prune.prune))
app.command(epilog=atlas.EXAMPLE)(spread(atlas.atlas))
app.command(epilog=examples.EXAMPLE)(spread(examples.examples))
app.add_typer(study.app, name="study")
app.command(epilog=find.EXAMPLE)(spread(find.find))
for command in usecases.COMMANDS:
    app.command(epilog=command.example)(spread(command.run))
app.command(epilog=models.EXAMPLE)(models.models)
app.command(epilog=doctor.EXAMPLE)(doctor.doctor)
