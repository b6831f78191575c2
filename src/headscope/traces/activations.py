"""What passed through one stack of a model: the residual stream, what wrote into it, what it would have predicted."""

from dataclasses import dataclass, field

import numpy as np

from headscope.errors import InputError, NotRecordedError, UnknownTokenError
from headscope.sites import Site, parse
from headscope.traces.predictions import Prediction
from headscope.traces.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Lens:
    """The logit lens over some tokens: candidates [place, token, k], and what became of the last place's first one.

    `ranks` counts from 0: how many candidates each place put before the one that the last place put first.
    """

    ids: np.ndarray
    logprobs: np.ndarray
    ranks: np.ndarray
    answers: np.ndarray
    """The log-probability at each place of what the last place put first [place, token]."""
    names: dict[int, str]


@dataclass(frozen=True, eq=False)
class Activations:
    """One stack over one input. A **place** is where the residual stream is read: before the first layer, and after
    each: `places` names them ("input", "L0", …).

    Norms are of all tokens. What belongs to single tokens (lens, neurons, heads) is of those from `first` on.
    Where something cannot be had, the reason is said: `no_lens`, `no_neurons`, `no_written`.
    """

    stack: str
    layers: tuple[Site, ...]
    tokens: Tokens
    norms: np.ndarray
    """‖residual stream‖ [place, token]."""
    cosines: np.ndarray
    """Cosine between the stream at each place and at the last [place, token]."""
    written: dict[str, np.ndarray] = field(default_factory=dict)
    """Norm of what "attention" (and "cross", "mlp") wrote in each layer [layer, token]."""
    is_sum: bool = False
    """Whether a layer's change is just the sum of those, with no normalisation between."""
    first: int = 0
    lens: Lens | None = None
    neurons: np.ndarray | None = None
    """The MLP neurons furthest from 0 [layer, token, k], with their `values` and their `shares` of all squares."""
    values: np.ndarray | None = None
    shares: np.ndarray | None = None
    n_neurons: int = 0
    heads: dict[Site, np.ndarray] = field(default_factory=dict)
    """‖what each head wrote‖ [head, token], by attention layer."""
    no_lens: str = ""
    no_neurons: str = ""
    no_written: str = ""

    @property
    def places(self) -> list[str]:
        """Where the stream is read."""
        return ["input", *map(str, self.layers)]

    @property
    def count(self) -> int:
        """How many tokens are known one by one, from `first` on."""
        for known in (self.lens and self.lens.ranks, self.neurons, *self.heads.values()):
            if known is not None:
                return known.shape[1]
        return 0

    def predictions(self, token: int, k: int = 5) -> dict[str, list[Prediction]]:
        """The k likeliest candidates at every place for one token: the logit lens."""
        if self.lens is None:
            raise NotRecordedError(f"there is no logit lens here: {self.no_lens}.")
        at, lens = self._at(token), self.lens
        return {
            place: [
                Prediction(lens.names[int(candidate)], int(candidate), float(logprob))
                for candidate, logprob in zip(ids[at, :k], logprobs[at, :k], strict=True)
            ]
            for place, ids, logprobs in zip(self.places, lens.ids, lens.logprobs, strict=True)
        }

    def ranks(self, token: int) -> dict[str, int]:
        """At every place, how many candidates came before the one that is first in the end; 0 is first."""
        if self.lens is None:
            raise NotRecordedError(f"there is no logit lens here: {self.no_lens}.")
        return dict(zip(self.places, self.lens.ranks[:, self._at(token)].tolist(), strict=True))

    def top_neurons(self, layer: str | Site, token: int) -> list[tuple[int, float, float]]:
        """The MLP neurons of a layer furthest from 0 at a token: index, value, share of the sum of squares."""
        if self.neurons is None or self.values is None or self.shares is None:
            raise NotRecordedError(f"there are no MLP neurons here: {self.no_neurons}.")
        named = parse(layer) if isinstance(layer, str) else layer
        row = next((row for row, site in enumerate(self.layers) if str(site) == str(named)), None)
        if row is None:
            raise InputError(f"there is no layer {layer}: there are {self.layers[0]} to {self.layers[-1]}.")
        at = self._at(token)
        strongest = zip(self.neurons[row, at], self.values[row, at], self.shares[row, at], strict=True)
        return [(int(index), float(value), float(share)) for index, value, share in strongest if index >= 0]

    def _at(self, token: int) -> int:
        position = token + len(self.tokens) if token < 0 else token
        if not self.first <= position < self.first + self.count:
            raise UnknownTokenError(
                f"token {token} was not read: those from {self.first} to {self.first + self.count - 1} were, of "
                f"{len(self.tokens)}. Ask for it with tokens=range({max(position, 0)}, {max(position, 0) + 1})."
            )
        return position - self.first
