"""What passed through a stack of the model: the run is repeated once, and its tokens are read some at a time.

Of two runs both are repeated, for each stretch of tokens once: all MLP neurons are subtracted, and they are too many to
keep of a long input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from headscope.errors import InputError
from headscope.models import Model
from headscope.models.activations import Streams, watch
from headscope.models.activations_difference import Paired, subtract
from headscope.progress import stop_if
from headscope.server.runs import ServerRun
from headscope.server.tasks.task import Desk, Task
from headscope.traces import compare
from headscope.views.activation_differences import difference_part
from headscope.views.activations import activations_part
from headscope.views.wire import Part

MOST_TOKENS = 512
MOST_CANDIDATES = 10


@dataclass(frozen=True)
class ActivationsOptions:
    """Of which stack (empty: the one that predicts), from which token on and of how many; candidates a place.

    `minus` is the id of a run that is subtracted: then tokens count among those that both runs have.
    """

    stack: str = ""
    first: int = 0
    count: int = 128
    k: int = 5
    minus: str = ""


def _activations(desk: Desk, options: ActivationsOptions) -> Part:
    assert desk.run is not None
    if not 1 <= options.count <= MOST_TOKENS or not 1 <= options.k <= MOST_CANDIDATES:
        raise InputError(f"count is 1 to {MOST_TOKENS} tokens, k is 1 to {MOST_CANDIDATES} candidates.")
    if desk.other is not None:
        return _difference(desk, desk.run, *desk.other, options)
    activations = streams(desk, desk.model, desk.run, options.stack)
    check = partial(stop_if, desk.cancel)
    window = options.first, options.count, options.k
    return activations_part(activations.read(desk.model, *window, check=check, progress=desk.progress))


def _difference(desk: Desk, run: ServerRun, model: Model, other: ServerRun, options: ActivationsOptions) -> Part:
    comparison = compare(run.trace, other.trace)
    paired = Paired.of(desk.model, comparison, options.stack, options.first, options.count)
    first = streams(desk, desk.model, run, paired.stack, paired.rows(0))
    # The same run twice is repeated once: then the difference is nothing, to the last bit.
    second = streams(desk, model, other, paired.stack, paired.rows(1))
    check = partial(stop_if, desk.cancel)
    models = desk.model, model
    return difference_part(subtract(models, (first, second), paired, options.k, check=check, progress=desk.progress))


def streams(desk: Desk, model: Model, run: ServerRun, stack: str, rows: Sequence[int] = ()) -> Streams:
    """What the run left, kept for the next window of tokens; with all neurons of the tokens `rows`."""
    key = ("streams", run.id, stack)
    activations = desk.cache.get(key)
    if not isinstance(activations, Streams) or (rows and activations.row_places != tuple(rows)):
        activations = watch(
            model,
            run.trace,
            run.interventions,
            stack=stack or None,
            rows=rows,
            budget=desk.cache.limit // 2,  # of two runs, both are needed at once
            cancel=desk.cancel,
            progress=desk.progress,
        )
        desk.cache.put(key, activations, activations.nbytes(), desk.room)
    return activations


ACTIVATIONS = Task("activations", ActivationsOptions, _activations)
