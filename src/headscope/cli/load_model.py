"""Loading a model for a command: options checked, a spinner while it takes its time."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.console import working

if TYPE_CHECKING:
    from headscope.models import Model

Device = Annotated[str | None, typer.Option(help="Where to run: cpu, cuda, cuda:1, mps. The CPU unless said.")]
Dtype = Annotated[str | None, typer.Option(help="float32, float16, bfloat16 or float64; the checkpoint's unless said.")]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Read a pickle checkpoint, which can run code: only if you trust it.")
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model: only if you trust it.")
]


@dataclass(frozen=True)
class Loading:
    """How to load a model; one that was loaded is kept."""

    device: Device = None
    dtype: Dtype = None
    allow_pickle: AllowPickle = False
    trust_remote_code: TrustRemoteCode = False
    loaded: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def options(self) -> dict[str, Any]:
        """What `load_model` takes."""
        names = ("device", "dtype", "allow_pickle", "trust_remote_code")
        return {name: getattr(self, name) for name in names}

    def model(self, name: str) -> "Model":
        """The model of this name."""
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

        return load(name, device=device, dtype=dtype, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """For small models: threads that wait for each other at every step make them far slower on a busy machine."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
