import json
import os
import pty
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import headscope as hs
import headscope.models
from headscope.cli import console
from headscope.cli import models as listing

# A shell that starts the tests in the background has them ignore Control-C, and their children with them.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from headscope.cli import app
app()
"""
PROGRAM = [sys.executable, "-c", SCRIPT]


def test_help_lists_every_command(call) -> None:
    result = call("--help")
    assert result.exit_code == 0
    for name in ("serve", "trace", "models", "doctor", "--version"):
        assert name in result.stdout


def test_the_version_is_that_of_the_package(call) -> None:
    assert call("--version").stdout == f"headscope {hs.__version__}\n"


@pytest.mark.parametrize("command", ["serve", "trace", "models", "doctor"])
def test_every_command_has_help_with_an_example(call, command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Example: headscope {command}" in result.stdout
    assert "--json" in result.stdout and "--debug" in result.stdout


@pytest.mark.parametrize("arguments", [["tarce"], ["--wrong"], ["models", "--wrong"], ["trace"]])
def test_a_command_line_that_cannot_be_read_is_a_user_error(refusal, arguments: list[str]) -> None:
    assert "--help" in refusal(*arguments)


def test_an_unexpected_error_says_how_to_see_more(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list:
        raise ZeroDivisionError("by [red]nothing[/red].")

    monkeypatch.setattr(listing, "builtin_models", fail)
    result = call("models", "--json")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("headscope: ZeroDivisionError: by [red]nothing[/red]. This is unexpected")
    assert "--debug" in result.stderr and "Traceback" not in result.stderr
    debugged = call("models", "--debug")
    assert debugged.exit_code == 1
    assert "Traceback" in debugged.stderr and debugged.stderr.splitlines()[-1].startswith(
        "headscope: ZeroDivisionError"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (hs.errors.Cancelled("the run was cancelled."), 130),
        (hs.errors.BudgetError("use record='summary'."), 2),
        (MemoryError(), 1),
    ],
)
def test_each_kind_of_end_has_its_exit_code(
    call, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail() -> list:
        raise error

    monkeypatch.setattr(listing, "builtin_models", fail)
    result = call("models")
    assert result.exit_code == code and result.stdout == ""
    assert result.stderr.startswith("headscope: ")
    if code == 2:
        assert "--record summary" in result.stderr


def test_warnings_are_shown_once_and_those_of_libraries_not(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn() -> list:
        for _ in range(2):
            warnings.warn("look out for [red]", hs.HeadscopeWarning, stacklevel=1)
            warnings.warn("an old function", DeprecationWarning, stacklevel=1)
        return []

    monkeypatch.setattr(listing, "builtin_models", warn)
    result = call("models", "--json")
    assert json.loads(result.stdout)["builtin"] == []
    assert result.stderr == "warning: look out for [red]\n"
    assert "DeprecationWarning: an old function" in call("models", "--debug").stderr


def test_what_libraries_print_goes_to_stderr(call, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = headscope.models.load

    def noisy(*arguments, **options):
        sys.stdout.write("Loading weights: 100%\n")
        return load(*arguments, **options)

    monkeypatch.setattr(headscope.models, "load", noisy)
    result = call("models", models / "gpt", "--json")
    assert json.loads(result.stdout)["n_heads"] == 8
    assert "Loading weights" in result.stderr


def test_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": [float("nan"), 1.5], "b": {"c": float("inf")}, "word": "слово"})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": {"c": None}, "word": "слово"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("слово", "слово"),
        ("日本", "日本"),
        ("  ", "␣␣"),
        ("a\nb", "a⏎b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("👩\u200d⚕", "👩\u200d⚕"),
        ("نمی\u200cروم", "نمی\u200cروم"),
        ("", ""),
    ],
)
def test_tokens_are_shown_on_one_line_without_commanding_the_terminal(text: str, expected: str) -> None:
    assert console.printable(text) == expected


def test_stdout_is_pure_json_and_stderr_silent_in_a_process_of_its_own(models: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "trace", str(models / "gpt"), "the cat", "--json"],
        env=_environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["tokens"]["main"]["texts"] == ["the", "c", "at"]


def test_a_process_ends_with_the_code_of_its_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "trace", "builtin:gpt", "x", "-o", __file__], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"headscope: cannot write a trace to {__file__}: a file is there. Choose a new or an empty folder.\n"
    )


def test_control_c_during_a_run_stops_it_and_leaves_nothing(long_gpt: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "trace", str(long_gpt), "the cat", "--generate", "8000", "-o", str(folder)],
        env=_environment(TERM="xterm", COLUMNS="200"),
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    output = b""
    try:
        started = time.monotonic()
        while b"Running" not in output and time.monotonic() - started < 90:
            output += os.read(screen, 4096)
        assert b"Loading" in output  # a spinner, since this is a terminal
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=30)[0]
        output += _rest(screen)
    finally:
        process.kill()
        os.close(screen)
    assert process.returncode == 130
    assert out == b"" and b"headscope: " in output and b"stopped." in output and b"Traceback" not in output
    assert not folder.exists()


def _environment(**more: str) -> dict[str, str]:
    """Without what our own tests set to keep libraries quiet: the program must do that itself."""
    quiet = {"TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TOKENIZERS_PARALLELISM"}
    return {name: value for name, value in os.environ.items() if name not in quiet} | more


def _rest(screen: int) -> bytes:
    output = b""
    while True:
        try:
            piece = os.read(screen, 4096)
        except OSError:  # how Linux says that the other end is closed
            return output
        if not piece:
            return output
        output += piece
