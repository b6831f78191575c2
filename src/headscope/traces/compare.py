"""Two runs of the same tokens, side by side: what changed, in which heads, and what it did to the answer."""

from dataclasses import dataclass

import numpy as np

from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces.predictions import Prediction
from headscope.traces.trace import Trace, Where


@dataclass(frozen=True)
class Change:
    """How far one head moved between two runs: half the L1 distance (0 to 1), the largest and the mean over queries."""

    head: Head
    largest: float
    mean: float


@dataclass(frozen=True, eq=False)
class Difference:
    """The second run minus the first."""

    before: Trace
    after: Trace

    @classmethod
    def of(cls, before: Trace, after: Trace) -> "Difference":
        """Compare two traces, if their tokens and heads correspond."""
        if before.heads != after.heads:
            raise InputError("the two traces have different heads, so they cannot be subtracted head by head.")
        for stack in before.tokens:
            tokens = before.reading(stack).tokens
            other = after.reading(stack).tokens if stack in after.tokens else None
            if other is None or len(other) != len(tokens):
                length = "none" if other is None else str(len(other))
                raise InputError(
                    f"the two traces have {len(tokens)} and {length} tokens in {stack}: only equal lengths subtract."
                )
        return cls(before, after)

    def pattern(self, place: Where) -> np.ndarray:
        """Attention after minus attention before [query, key]."""
        return self.after.pattern(place) - self.before.pattern(place)

    def heads(self) -> list[Change]:
        """Every head with how far its pattern moved, the most changed first."""
        changes = []
        for head in self.before.heads:
            moved = self._moved(head)
            changes.append(Change(head, float(moved.max()), float(moved.mean())))
        return sorted(changes, key=lambda change: -change.mean)

    def _moved(self, head: Head) -> np.ndarray:
        """Half the L1 distance between the two patterns, query by query; a band of rows at a time."""
        n_rows = len(self.before.query_tokens(head))
        size = n_rows if self.before.readings or self.after.readings else 512
        moved = []
        for rows in (slice(first, first + size) for first in range(0, n_rows, size)):
            change = self.after.pattern(head, rows=rows) - self.before.pattern(head, rows=rows)
            moved.append(np.abs(change).sum(-1) / 2)
        return np.concatenate(moved)

    def predictions(self, k: int = 5) -> list[tuple[Prediction, float]]:
        """The likely answers before and after, each with the change in log-probability (NaN if one side lacks it)."""
        was = {one.id: one for one in self.before.predictions(50)}
        now = {one.id: one for one in self.after.predictions(50)}
        shown = dict.fromkeys([*list(now)[:k], *list(was)[:k]])
        return [
            (
                now.get(key) or was[key],
                now[key].logprob - was[key].logprob if key in now and key in was else float("nan"),
            )
            for key in shown
        ]
