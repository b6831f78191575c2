"""`headscope doctor`: checks the installation, or that observing a model changes and misreads nothing."""

import importlib
import itertools
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from headscope import __version__
from headscope.cli.console import print_json, print_text, printable, working
from headscope.cli.load_model import AllowPickle, TrustRemoteCode, load_model
from headscope.cli.models import builtin_models
from headscope.cli.shared_options import MODEL_HELP, Debug, Json
from headscope.cli.verification_table import show_verification, verification_report
from headscope.errors import HeadscopeError
from headscope.files import unfinished

EXAMPLE = "Example: headscope doctor builtin:gpt"
SIGNS = {"ok": ("✓", "green"), "broken": ("✗", "red"), "note": ("–", "yellow")}
# Each brings the packages of its name; the others are for those who work on Headscope itself.
EXTRAS = ("serve", "notebook", "atlas", "tasks", "ray", "gpu", "offload")
LITTLE_MEMORY, LITTLE_DISK = 2e9, 2e9
# Folders of the current one that are looked into.
MOST_FOLDERS = 1000


@dataclass(frozen=True)
class HealthCheck:
    """One line: what was looked at, how it is, and what to do about it."""

    name: str
    state: Literal["ok", "broken", "note"]
    detail: str
    advice: str = ""


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(help=f"{MODEL_HELP} Compares it with its own attention. Default: check the installation."),
    ] = None,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Check the installation, or compare one model, observed, with its own attention."""
    if model is None:
        is_fine = _check_installation(json)
    else:
        loaded = load_model(model, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        with working(f"Verifying {model}"):
            report = verification_report(loaded)
        print_json(report) if json else show_verification(report)
        is_fine = report["is_equal"] is not False
    if not is_fine:
        raise typer.Exit(1)


def _check_installation(json: bool) -> bool:
    """Print every check; whether none failed."""
    checks: list[HealthCheck] = []
    for what, look in (
        ("Looking at Python and packages", _versions),
        ("Looking at the machine", _machine),
        ("Looking at the hub's settings", _hub),
        ("Running models", _models),
        ("Looking at extras", _extras),
        ("Looking for unfinished files", _unfinished_files),
    ):
        with working(what):
            checks += _run_checks(what, look)
    is_fine = all(check.state != "broken" for check in checks)
    if json:
        print_json({"fine": is_fine, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            sign, style = SIGNS[check.state]
            advice = f" → {check.advice}" if check.advice else ""
            print_text(
                Text.assemble((f"{sign} ", style), (f"{check.name}: ", "bold"), f"{printable(check.detail)}{advice}")
            )
        print_text("", "Everything works." if is_fine else "Something is broken: see the lines with ✗.")
    return is_fine


def _run_checks(what: str, look: Callable[[], list[HealthCheck]]) -> list[HealthCheck]:
    """Checks that cannot even start are a line of the report too: our own metadata, or what reads it, is missing."""
    try:
        return look()
    except (ImportError, metadata.PackageNotFoundError) as error:
        message = f"{type(error).__name__}: {error}"
        return [HealthCheck(what, "broken", message, "reinstall: pip install --force-reinstall headscope")]


def _versions() -> list[HealthCheck]:
    """Python, this package, and what it needs, against the ranges that it was tested with."""
    from packaging.specifiers import SpecifierSet

    needed = metadata.metadata("headscope")["Requires-Python"]
    python = platform.python_version()
    is_right = SpecifierSet(needed).contains(python, prereleases=True)
    checks = [
        HealthCheck(
            "Python",
            "ok" if is_right else "broken",
            f"{python} ({sys.executable})",
            "" if is_right else f"needs {needed}",
        ),
        HealthCheck("platform", "ok", platform.platform()),
        HealthCheck("headscope", "ok", __version__),
    ]
    ranges = _requirements("headscope")
    ranges["tokenizers"] = _requirements("transformers").get("tokenizers", "")
    return checks + [_package(name, allowed) for name, allowed in ranges.items()]


def _requirements(package: str) -> dict[str, str]:
    """The packages that a package always needs, with the versions that will do."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(line) for line in metadata.requires(package) or []]
    except metadata.PackageNotFoundError:
        return {}
    return {
        requirement.name: str(requirement.specifier)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }


def _package(name: str, allowed: str) -> HealthCheck:
    from packaging.specifiers import SpecifierSet

    range_told = f" (supported: {allowed})" if allowed else ""
    try:
        version = metadata.version(name)
        importlib.import_module({"pillow": "PIL"}.get(name, name))
    except metadata.PackageNotFoundError:
        return HealthCheck(name, "broken", "not installed", f"pip install '{name}{allowed}'")
    except Exception as error:  # a half-installed package raises anything, from ImportError to OSError
        return HealthCheck(
            name,
            "broken",
            f"cannot be imported: {type(error).__name__}: {error}",
            f"pip install --force-reinstall '{name}{allowed}'",
        )
    if not SpecifierSet(allowed).contains(version, prereleases=True):
        return HealthCheck(name, "broken", f"{version}{range_told}", f"pip install '{name}{allowed}'")
    return HealthCheck(name, "ok", f"{version}{range_told}")


def _machine() -> list[HealthCheck]:
    """Devices, threads, memory and disk."""
    return [_guard("devices", _devices), _guard("memory", _memory), _guard("disk", _disk)]


def _devices() -> HealthCheck:
    import torch

    from headscope.models.loading import devices

    names = [
        f"{device} ({torch.cuda.get_device_name(device)})" if device.startswith("cuda") else device
        for device in devices()
    ]
    threads = f"threads: {torch.get_num_threads()} on {os.cpu_count()} processors"
    return HealthCheck("devices", "ok", f"{', '.join(names)}; {threads}")


def _memory() -> HealthCheck:
    import psutil

    memory = psutil.virtual_memory()
    amount = f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB"
    if memory.available < LITTLE_MEMORY:
        return HealthCheck("memory", "note", amount, "little: close other programs, or record less (--record summary)")
    return HealthCheck("memory", "ok", amount)


def _disk() -> HealthCheck:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    if free < LITTLE_DISK:
        return HealthCheck("disk", "note", f"{free / 1e9:.1f} GB free at {here}", "little: traces may not fit")
    return HealthCheck("disk", "ok", f"{free / 1e9:.1f} GB free at {here}")


def _unfinished_files() -> list[HealthCheck]:
    """What stopped runs left behind in this folder and in the folders of it: a model may be some gigabytes."""
    here = Path.cwd()
    folders = [here, *(path for path in itertools.islice(here.iterdir(), MOST_FOLDERS) if path.is_dir())]
    left = [partial for folder in folders for partial in unfinished(folder)]
    if not left:
        return [HealthCheck("unfinished files", "ok", f"none in {here} and its folders")]
    advice = "of commands that were killed: delete them, or repeat the command, which does"
    return [
        HealthCheck("unfinished files", "note", f"{partial} ({_size(partial) / 1e6:.1f} MB)", advice)
        for partial in left
    ]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _hub() -> list[HealthCheck]:
    """Where downloaded models lie, and whether downloading is allowed."""
    home = os.environ.get("HF_HOME") or os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()
    count = len(list(cache.glob("models--*"))) if cache.is_dir() else 0
    location = f"{cache} ({count} models)" if cache.is_dir() else f"{cache} (not there yet)"
    is_offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    offline = HealthCheck("hub", "note", "offline: HF_HUB_OFFLINE is set", "unset it to download models")
    return [
        HealthCheck("model cache", "ok", location),
        offline if is_offline else HealthCheck("hub", "ok", "downloads are allowed"),
    ]


def _models() -> list[HealthCheck]:
    """Every built-in model, or a tiny one, loaded, traced and compared with its own eager code."""
    from headscope.cli.smoke_check import smoke

    names = [model["name"] for model in builtin_models()]
    checks = [_guard(name, lambda name=name: HealthCheck(name, "ok", smoke(name))) for name in names]
    if not names:
        checks.append(_guard("tiny model", lambda: HealthCheck("tiny model", "ok", smoke(None))))
        checks.append(HealthCheck("built-in models", "note", "none in this installation", "give a folder or a hub id"))
    return checks


def _guard(name: str, look: Callable[[], HealthCheck]) -> HealthCheck:
    """A check that fails is a line of the report, not its end."""
    try:
        return look()
    except HeadscopeError as error:
        return HealthCheck(name, "broken", str(error))
    except Exception as error:  # whatever a broken installation raises
        return HealthCheck(
            name, "broken", f"{type(error).__name__}: {error}", "reinstall: pip install --force-reinstall headscope"
        )


def _extras() -> list[HealthCheck]:
    """The optional parts, and what installs those that are missing."""
    from packaging.requirements import Requirement

    checks = []
    needed = [Requirement(line) for line in metadata.requires("headscope") or []]
    for extra in EXTRAS:
        names = [
            requirement.name
            for requirement in needed
            if requirement.marker and requirement.marker.evaluate({"extra": extra})
        ]
        missing = [name for name in names if not _is_installed(name)]
        if missing:
            command = f"pip install 'headscope[{extra}]'"
            checks.append(HealthCheck(f"extra {extra}", "note", f"without {', '.join(missing)}", command))
        else:
            checks.append(HealthCheck(f"extra {extra}", "ok", ", ".join(names) or "nothing to install here"))
    return checks


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
