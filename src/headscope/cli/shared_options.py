"""Arguments and options that several commands share, declared once; some of them in groups."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and all warnings of libraries.")]


@dataclass(frozen=True)
class InputOptions:
    """What a model is given beside a text, or instead of one."""

    pair: Pair = None
    target: Target = None
    image: Image = None
    audio: Audio = None
    truncate: Truncate = False

    def inputs(self) -> dict[str, Any]:
        """What was named, as `Model.run` takes it."""
        named = {"pair": self.pair, "target": self.target, "image": self.image, "audio": self.audio}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class PrintOptions:
    """How a command tells what it found. What `--debug` says is looked for before any command is (`console.py`)."""

    json: Json = False
    debug: Debug = False


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer takes it: parameters that are groups of options (dataclasses) become one option a field.

    >>> def command(model: ModelName, *, print_options: PrintOptions) -> None: ...
    >>> list(inspect.signature(spread(command)).parameters)
    ['model', 'json', 'debug']
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation for parameter in parameters if is_dataclass(parameter.annotation)
    }

    def flat_parameters() -> Iterator[inspect.Parameter]:
        for parameter in parameters:
            if parameter.name not in groups:
                yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                continue
            kinds = get_type_hints(groups[parameter.name], include_extras=True)
            for field in _options(groups[parameter.name]):
                kind = inspect.Parameter.KEYWORD_ONLY
                yield inspect.Parameter(field.name, kind, default=field.default, annotation=kinds[field.name])

    @functools.wraps(command)
    def run_command(**values: Any) -> None:
        values_by_group = {
            name: group(**{field.name: values.pop(field.name) for field in _options(group)})
            for name, group in groups.items()
        }
        command(**values, **values_by_group)

    options = list(flat_parameters())
    run_command.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    run_command.__annotations__ = {option.name: option.annotation for option in options}
    return run_command


def _options(group: Any) -> list[Any]:
    return [field for field in fields(group) if field.init]
