"""What passed through one stack in two runs, on the tokens that both have: the first run minus the second."""

from dataclasses import dataclass

import numpy as np

from headscope.errors import InputError, NotRecordedError, UnknownTokenError
from headscope.sites import Site, parse
from headscope.traces.activations import Activations
from headscope.traces.tokens import Tokens


@dataclass(frozen=True, eq=False)
class LensDifference:
    """The logit lens of two runs over some tokens.

    `ids` [place, token, candidate] are what one run or the other finds likely at a place, those first whose probability
    differs most; −1 where there are no more. `a` and `b` are their log-probabilities in the two runs.

    The last two hold the **answers**: what the last place of the first run puts first, and of the second [answer,
    token]; at each place their log-probabilities, and how many candidates came before them, in both runs.
    """

    ids: np.ndarray
    a: np.ndarray
    b: np.ndarray
    answers: np.ndarray
    answer_logprobs: np.ndarray
    """[answer, run, place, token]"""
    answer_ranks: np.ndarray
    """[answer, run, place, token], counted from 0."""
    names: dict[int, str]


@dataclass(frozen=True, eq=False)
class Change:
    """A candidate of the logit lens in two runs."""

    text: str
    id: int
    a: float
    b: float

    @property
    def difference(self) -> float:
        """Its log-probability in the first run minus that in the second."""
        return self.a - self.b


@dataclass(frozen=True, eq=False)
class ActivationsDifference:
    """Two runs through one stack, both on the aligned tokens; lens, neurons and heads are of those from `first` on.

    `a` and `b` are the runs themselves, with the same neurons in both: those whose activations differ most.
    What cannot be subtracted is said: `no_lens`, `no_neurons`, `no_written`.
    """

    a: Activations
    b: Activations
    first: int
    count: int
    lens: LensDifference | None = None
    no_lens: str = ""
    no_neurons: str = ""
    no_written: str = ""

    @property
    def stack(self) -> str:
        """The stack that both are of."""
        return self.a.stack

    @property
    def layers(self) -> tuple[Site, ...]:
        """Its layers."""
        return self.a.layers

    @property
    def places(self) -> list[str]:
        """Where the stream is read."""
        return self.a.places

    @property
    def tokens(self) -> Tokens:
        """The tokens that both runs have."""
        return self.a.tokens

    @property
    def n_neurons(self) -> int:
        """How many neurons an MLP has, where both have as many."""
        return 0 if self.no_neurons else self.a.n_neurons

    @property
    def is_sum(self) -> bool:
        """Whether in both runs a layer's change is just the sum of what was written."""
        return self.a.is_sum and self.b.is_sum

    @property
    def norms(self) -> np.ndarray:
        """The difference of ‖residual stream‖ [place, token]."""
        return self.a.norms - self.b.norms

    @property
    def cosines(self) -> np.ndarray:
        """The difference of the cosines between the stream at each place and at the last [place, token]."""
        return self.a.cosines - self.b.cosines

    @property
    def written(self) -> dict[str, np.ndarray]:
        """The difference of the norms of what was written in each layer [layer, token]."""
        shared = (name for name in self.a.written if name in self.b.written)
        return {name: self.a.written[name] - self.b.written[name] for name in shared}

    @property
    def heads(self) -> dict[Site, np.ndarray]:
        """The difference of ‖what each head wrote‖ [head, token], by attention layer."""
        shared = (site for site in self.a.heads if site in self.b.heads)
        return {site: self.a.heads[site] - self.b.heads[site] for site in shared}

    def predictions(self, token: int) -> dict[str, list[Change]]:
        """At every place, what one run or the other finds likely, those first whose probability differs most."""
        if self.lens is None:
            raise NotRecordedError(f"there is no logit lens of both runs here: {self.no_lens}.")
        at, lens = self._at(token), self.lens
        return {
            place: [
                Change(lens.names[int(id)], int(id), float(a), float(b))
                for id, a, b in zip(lens.ids[row, at], lens.a[row, at], lens.b[row, at], strict=True)
                if id >= 0
            ]
            for row, place in enumerate(self.places)
        }

    def top_neurons(self, layer: str | Site, token: int) -> list[tuple[int, float, float]]:
        """The MLP neurons of a layer whose activations differ most: index, value in the first run, in the second."""
        neurons, values_a, values_b = self.a.neurons, self.a.values, self.b.values
        if neurons is None or values_a is None or values_b is None:
            raise NotRecordedError(f"there are no MLP neurons of both runs here: {self.no_neurons}.")
        named = parse(layer) if isinstance(layer, str) else layer
        row = next((row for row, site in enumerate(self.layers) if str(site) == str(named)), None)
        if row is None:
            raise InputError(f"there is no layer {layer}: there are {self.layers[0]} to {self.layers[-1]}.")
        at = self._at(token)
        columns = (neurons[row, at], values_a[row, at], values_b[row, at])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _at(self, token: int) -> int:
        position = token + len(self.tokens) if token < 0 else token
        if not self.first <= position < self.first + self.count:
            raise UnknownTokenError(
                f"token {token} was not read: those from {self.first} to {self.first + self.count - 1} were, of "
                f"{len(self.tokens)}. Ask for it with tokens=range({max(position, 0)}, {max(position, 0) + 1})."
            )
        return position - self.first
