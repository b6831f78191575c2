"""What every command shares: output for people and for machines, progress, warnings, and errors said plainly."""

import contextlib
import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from headscope.errors import Cancelled, HeadscopeError, HeadscopeWarning, InputError

OK, UNEXPECTED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
PIPE_WIDTH = 120

# One for stderr, so that warnings print above a running spinner.
_err = Console(stderr=True, highlight=False)

# What Python's messages call an argument is an option here.
_OPTIONS = (
    (r"`?\btruncate=True`?", "--truncate"),
    (r"`?\ballow_pickle=True`?", "--allow-pickle"),
    (r"`?\btrust_remote_code=True`?", "--trust-remote-code"),
    (r"`?\brecord=['\"](\w+)['\"]`?", r"--record \1"),
    (r"`?\bon_error=['\"](\w+)['\"]`?", r"--on-error \1"),
    (r"`?\bdtype=['\"](\w+)['\"]`?", r"--dtype \1"),
    (r"`?\bprecision=['\"](\w+)['\"]`?", r"--precision \1"),
)
_JOINERS = "\u200c\u200d"  # not printable by themselves, but parts of Persian words and of emoji


class Commands(TyperGroup):
    """The commands, with one way to end: a message on stderr and an exit code that says what kind of end it was."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> Any:
        """Run a command and leave the process with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        is_debug = "--debug" in arguments
        _prepare_streams()
        _quieten_libraries()
        with _show_warnings_once(everything=is_debug):
            code = self._code(arguments, others, options | {"standalone_mode": False}, is_debug)
        sys.exit(code)

    def _code(self, args: list[str], others: tuple, options: dict[str, Any], is_debug: bool) -> int:
        try:
            code = super().main(args, *others, **options)
        except (KeyboardInterrupt, Cancelled):
            code = INTERRUPTED
        except HeadscopeError as error:
            return _report(_as_options(str(error)), USER_ERROR, error if is_debug else None)
        except typer.Abort:
            return _report("stopped.", UNEXPECTED)
        except MemoryError as error:
            message = "the memory ran out: record less (--record summary), or shorten the input."
            return _report(message, UNEXPECTED, error if is_debug else None)
        except BrokenPipeError:
            # Whoever read our output has left; Python must not try to flush it again on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return UNEXPECTED
        except Exception as error:
            if hasattr(error, "format_message"):  # a usage error of click, which typer has a copy of in newer versions
                return _usage_error(error)
            hint = "" if is_debug else " This is unexpected: run again with --debug to see where, and please report it."
            message = f"{type(error).__name__}: {error}".rstrip(". ")
            return _report(f"{message}.{hint}", UNEXPECTED, error if is_debug else None)
        if code == INTERRUPTED:
            return _report("stopped.", INTERRUPTED)
        return code if isinstance(code, int) else OK


def print_text(*parts: Any) -> None:
    """Print for people: strings as they are, without markup; tables and other Rich objects rendered."""
    is_wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(highlight=False, width=PIPE_WIDTH if is_wide else None)
    for part in parts:
        is_line = isinstance(part, str | Text)  # wrapped by the terminal alone, so that a path can be copied whole
        console.print(Text(part) if isinstance(part, str) else part, soft_wrap=is_line)


def print_note(line: str) -> None:
    """Tell people something beside the output: a line on stderr."""
    _err.print(Text(line), soft_wrap=True)


def print_json(data: dict[str, Any]) -> None:
    """Print for machines: one document; what is not a number (NaN) becomes null."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(_plain(data), indent=1, ensure_ascii=not is_utf8, allow_nan=False) + "\n")
    sys.stdout.flush()


def read_text(text: str | None) -> str | None:
    """The text as given, or from stdin without the newline at its end."""
    if text is None:
        return None
    try:
        if text == "-":
            return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
        text.encode()
    except UnicodeError as error:
        raise InputError(f"the text is not valid UTF-8: {error}.") from error
    return text


def printable(text: str) -> str:
    """A user's text on one line: control characters, which could command a terminal, are spelled out."""
    if text and not text.strip(" "):
        return "␣" * len(text)
    return "".join(
        "⏎" if sign == "\n" else sign if sign.isprintable() or sign in _JOINERS else ascii(sign)[1:-1] for sign in text
    )


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on a terminal while something takes its time; what libraries print meanwhile goes to stderr."""
    with contextlib.ExitStack() as stack:
        if _err.is_terminal:
            stack.enter_context(_err.status(Text(what)))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


@contextlib.contextmanager
def _show_warnings_once(*, everything: bool) -> Iterator[None]:
    """Show each warning of ours once, on one line; those of libraries only if everything is asked for."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        line = (
            _as_options(str(message)) if issubclass(category, HeadscopeWarning) else f"{category.__name__}: {message}"
        )
        if line not in printed:
            printed.add(line)
            _err.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default" if everything else "ignore")
        warnings.simplefilter("always", HeadscopeWarning)
        warnings.showwarning = show
        yield


def _usage_error(error: Any) -> int:
    """A command line that cannot be read."""
    context = getattr(error, "ctx", None)
    hint = f" Try: {context.command_path} --help" if context is not None else ""
    return _report(f"{error.format_message().strip()}{hint}", USER_ERROR)


def _report(message: str, code: int, error: BaseException | None = None) -> int:
    if error is not None:
        _err.print(Text("".join(traceback.format_exception(error))), soft_wrap=True)
    _err.print(Text.assemble(("headscope: ", "red"), message), soft_wrap=True)
    return code


def _as_options(message: str) -> str:
    for pattern, option in _OPTIONS:
        message = re.sub(pattern, option, message)
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _prepare_streams() -> None:
    """A sign that the terminal's encoding lacks is spelled out, and no reason to fail."""
    streams: tuple[TextIO, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]


def _quieten_libraries() -> None:
    """Read by transformers and huggingface_hub when they are first imported, which commands do later."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
