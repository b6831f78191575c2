"""What passed through a stack of the model: the run is repeated once, and its tokens are read some at a time."""

from dataclasses import dataclass
from functools import partial

from headscope.errors import Cancelled, InputError
from headscope.models.activations import Streams, watch
from headscope.server.tasks.task import Desk, Task
from headscope.views.activations import activations_part
from headscope.views.wire import Part

MOST_TOKENS = 512
MOST_CANDIDATES = 10


@dataclass(frozen=True)
class ActivationsOptions:
    """Of which stack (empty: the one that predicts), from which token on and of how many; candidates a place."""

    stack: str = ""
    first: int = 0
    count: int = 128
    k: int = 5


def _activations(desk: Desk, options: ActivationsOptions) -> Part:
    assert desk.run is not None
    if not 1 <= options.count <= MOST_TOKENS or not 1 <= options.k <= MOST_CANDIDATES:
        raise InputError(f"count is 1 to {MOST_TOKENS} tokens, k is 1 to {MOST_CANDIDATES} candidates.")
    found = streams(desk, options.stack)
    check = partial(_check, desk)
    window = options.first, options.count, options.k
    return activations_part(found.read(desk.model, *window, check=check, progress=desk.progress))


def streams(desk: Desk, stack: str) -> Streams:
    """What the run left, kept for the next window of tokens."""
    assert desk.run is not None
    key = ("streams", desk.run.id, stack)
    found = desk.kept.get(key)
    if not isinstance(found, Streams):
        found = watch(
            desk.model,
            desk.run.trace,
            desk.run.interventions,
            stack=stack or None,
            budget=desk.kept.limit,
            cancel=desk.cancel,
            progress=desk.progress,
        )
        desk.kept.put(key, found, found.nbytes())
    return found


def _check(desk: Desk) -> None:
    if desk.cancel.is_set():
        raise Cancelled("the work was cancelled.")


ACTIVATIONS = Task("activations", ActivationsOptions, _activations)
