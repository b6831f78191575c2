"""Scores: numbers with labels, and with how they were come by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headscope.arguments import whole_number
from headscope.sites import Head, find_head


@dataclass(frozen=True, eq=False)
class Scores(Mapping[Head, float]):
    """One number for each head, with the method, its settings, the sample size and, where known, chance and intervals.

    `baseline` is what a head would score by chance, the mean of `baselines` where those differ from head to head;
    `intervals` are 95 % bootstrap intervals. NaN says that nothing in the sample bears on a head.

    >>> scores = Scores("previous token", {Head("main", 0, 0): 0.1, Head("main", 0, 1): 0.9})
    >>> scores["L0H1"], scores.top(1)
    (0.9, [(Head('L0H1'), 0.9)])
    """

    method: str
    values_by_head: dict[Head, float]
    settings: dict[str, Any] = field(default_factory=dict)
    n_samples: int = 1
    baseline: float | None = None
    intervals: dict[Head, tuple[float, float]] = field(default_factory=dict)
    baselines: dict[Head, float] = field(default_factory=dict)

    def __getitem__(self, head: "Head | str") -> float:
        if isinstance(head, Head) and head in self.values_by_head:
            return self.values_by_head[head]
        return self.values_by_head[find_head(head, self.values_by_head)]

    def __contains__(self, head: object) -> bool:
        return head in self.values_by_head

    def __iter__(self) -> Iterator[Head]:
        return iter(self.values_by_head)

    def __len__(self) -> int:
        return len(self.values_by_head)

    def __repr__(self) -> str:
        best = ", ".join(f"{head} {value:.3f}" for head, value in self.top(3))
        chance = "" if self.baseline is None else f", chance {self.baseline:.3f}"
        return f"Scores({self.method!r}, {len(self)} heads, {self.n_samples} samples{chance}; top: {best})"

    def top(self, k: int = 5) -> list[tuple[Head, float]]:
        """The k heads with the highest scores."""
        known = [(head, value) for head, value in self.values_by_head.items() if value == value]  # NaN is not itself
        return sorted(known, key=lambda pair: (-pair[1], pair[0]))[: whole_number(k, "k")]

    def above(self, k: int = 5) -> list[tuple[Head, float, float]]:
        """The k heads that are furthest above their own baselines, each with its score and that baseline."""
        known = [(head, value, self.baselines.get(head, self.baseline or 0.0)) for head, value in self.items()]
        known = [row for row in known if row[1] == row[1] and row[2] == row[2]]
        return sorted(known, key=lambda row: (row[2] - row[1], row[0]))[: whole_number(k, "k")]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; NaN becomes None, which JSON can hold."""

        def plain(value: float) -> float | None:
            return value if value == value else None

        return {
            "method": self.method,
            "settings": self.settings,
            "n_samples": self.n_samples,
            "baseline": self.baseline,
            "values": {str(head): plain(value) for head, value in self.values_by_head.items()},
            "baselines": {str(head): plain(value) for head, value in self.baselines.items()},
            "intervals": {str(head): list(bounds) for head, bounds in self.intervals.items()},
        }
