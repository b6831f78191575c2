"""Measures over a corpus: what they see as a batch passes, and what they count.

The common currency is the sample: of one head on one example, the sum of a quantity over queries, over how many
queries, and the sum that chance would give. Sums add up over examples, so a corpus of any size needs no more memory
than a small one, and a mean with its interval follows from them at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from headscope.choices import Record
from headscope.errors import InputError
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces import Trace

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.runs.batch import CorpusBatch, Layer
    from headscope.runs.table import MeasureTable


class Sample(NamedTuple):
    """Of one head on one input: the sum of a weight over queries, over how many, and the sum that chance would give."""

    total: float
    n_queries: float
    chance: float


@dataclass(frozen=True, eq=False)
class Tally:
    """The samples of some heads on some examples: arrays [example, head], or [example, 1] where all heads agree.

    `places` are the numbers of the examples within the shard. `key` tells quantities of one measure apart: a relation,
    an offset, a tag. `chance` is None where there is no such thing. A measure with many keys may sum over neighbouring
    examples by itself, and give the sums to the first of them: `n_examples` says of how many.
    """

    heads: Sequence[Head]
    places: Sequence[int]
    total: Any
    n_queries: Any
    chance: Any = None
    key: str = ""
    n_examples: Any = 1.0


@dataclass(frozen=True)
class Refusal:
    """An example that a measure has nothing to say about, and why."""

    reason: str


Tallies = Iterable[Tally | Refusal]


class Measure:
    """Something to find out about every head of a model from a corpus. Write one by overriding what it needs.

    It must be picklable; `settings` go into the manifest and must be JSON. `watch` sees each layer of each batch while
    the model runs, `update` sees the batch afterwards, with traces if `record` says how much of them; `end` comes after
    the last batch of a shard, and whatever a measure remembers it must forget there: shards are done in any order, by
    several processes.
    """

    name: str
    settings: dict[str, Any]
    record: Record | None = None

    def start(self, model: "Model") -> None:
        """Look at the model once, before the first batch."""

    def watch(self, layer: "Layer") -> Tallies:
        """Count what one layer did with a batch: all its heads, all the examples at once."""
        return ()

    def watch_neurons(self, site: Site, activations: Tensor, batch: "CorpusBatch") -> None:
        """See the MLP activations of one layer [example, token, neuron], padding included, as a batch passes."""

    def update(self, batch: "CorpusBatch") -> Tallies:
        """Count what a batch shows once the pass is over."""
        return ()

    def end(self) -> Tallies:
        """Count what only a whole shard shows, and forget it."""
        return ()

    def files(self) -> dict[str, str]:
        """The files that `end` wrote beside the shard, and their SHA-256: verified whenever they are read."""
        return {}

    def finish(self, table: "MeasureTable") -> Scores | dict[str, Scores]:
        """Scores from what was counted over the corpus; by key where there are several."""
        return table.means()


@dataclass
class OfLayers(Measure):
    """A measure from a function that counts what a layer did: `function(layer, **settings)` yields tallies."""

    name: str
    function: Callable[..., Tallies]
    settings: dict[str, Any] = field(default_factory=dict)

    def watch(self, layer: "Layer") -> Tallies:
        """What the function counts."""
        return self.function(layer, **self.settings)


@dataclass
class OfTraces(Measure):
    """A measure from a function of one trace: `samples(trace, **settings)` yields a head and its sample.

    An `InputError` says that the example has nothing to measure; it is counted and passed over.
    """

    name: str
    samples: Callable[..., Iterator[tuple[Head, tuple[float, float, float]]]]
    settings: dict[str, Any] = field(default_factory=dict)
    record: Record | None = "heads"

    def update(self, batch: "CorpusBatch") -> Tallies:
        """The samples of every trace."""
        for place, trace in zip(batch.places, batch.traces, strict=True):
            yield self._of(trace, place)

    def _of(self, trace: Trace, place: int) -> Tally | Refusal:
        try:
            samples = list(self.samples(trace, **self.settings))
        except InputError as problem:
            return Refusal(str(problem))
        total, n_queries, chance = ([[sample[part] for _, sample in samples]] for part in range(3))
        return Tally([head for head, _ in samples], [place], total, n_queries, chance)


def numbers(values: Any) -> Any:
    """A tensor as something numpy reads, wherever it lies."""
    return values.detach().double().cpu().numpy() if isinstance(values, Tensor) else values
