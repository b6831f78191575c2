"""Arguments and options that several commands share, declared once."""

from pathlib import Path
from typing import Annotated

import typer

ModelName = Annotated[str, typer.Argument(help="builtin:gpt, a folder, or a hub id.")]
TextGiven = Annotated[
    str | None,
    typer.Argument(help="The text; - reads it from stdin. For a model of images or sound alone, the file."),
]
Pair = Annotated[str | None, typer.Option(help="The second sentence of a pair.")]
Target = Annotated[str | None, typer.Option(help="What an encoder-decoder is made to write.")]
Image = Annotated[Path | None, typer.Option(help="An image file.")]
Audio = Annotated[Path | None, typer.Option(help="A sound file (wav).")]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut an input that is too long.")]
