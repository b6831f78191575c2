"""Loads the model of a command, with a spinner."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.console import print_note, working

if TYPE_CHECKING:
    from headscope.models import Model

Device = Annotated[
    str | None,
    typer.Option(help="Device to run on: auto, cpu, cuda, cuda:1 or mps. Default: auto (the GPU if there is one)."),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="Precision: float32, float16, bfloat16 or float64. Default: the checkpoint's dtype, except that "
        "half-precision checkpoints run in float32 on a CPU."
    ),
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickle checkpoints. They can run code: use only files you trust.")
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run Python code from the model's repository. Use only models you trust."),
]


@dataclass(frozen=True)
class Loading:
    """How to load models. Each model is loaded once."""

    device: Device = None
    dtype: Dtype = None
    allow_pickle: AllowPickle = False
    trust_remote_code: TrustRemoteCode = False
    loaded: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def options(self) -> dict[str, Any]:
        """The options as keyword arguments of `load_model`."""
        names = ("device", "dtype", "allow_pickle", "trust_remote_code")
        return {name: getattr(self, name) for name in names}

    def model(self, name: str) -> "Model":
        """The model with this name."""
        if name not in self.loaded:
            self.loaded[name] = load_model(name, **self.options())
        return self.loaded[name]


def load_model(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> "Model":
    """Load a built-in model, a folder or a hub id."""
    with working(f"Loading {name}"):
        from headscope.models import load

        options: dict[str, Any] = {"dtype": dtype, "allow_pickle": allow_pickle, "trust_remote_code": trust_remote_code}
        model = load(name, device=device, **options)
    if device in (None, "auto") and model.device.type != "cpu":
        print_note(f"{name} runs on {model.device}. --device cpu overrides.")
    return model


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run on one thread: on a busy machine, small models spend most of their time waiting for other threads."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
