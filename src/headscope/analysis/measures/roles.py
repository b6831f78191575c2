"""Roles: what each head does, as a verdict with its evidence, by criteria of the papers.

A head has a role when its score meets the criterion and the lower end of its interval is above the baseline. Where
several are met, the first is that which is the most points over its baseline. "No clear role" is an answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headscope.analysis.measures.rare_words import MANY_TIED, n_tied
from headscope.glossary import NO_ROLE
from headscope.scores import Scores
from headscope.sites import Head

# Of fewer cases a share says little: one relation in a small corpus, one pair of brackets.
LEAST_QUERIES = 20

VOITA = "Voita et al. (2019)"
VIG = "Vig & Belinkov (2019)"
REPLICATIONS = "GPT-2's second tier of induction heads scores from 0.43"
OURS = "ours: most of the weight"


@dataclass(frozen=True)
class Criterion:
    """When a score is a role: at least `least`, and at least `above` over the baseline."""

    role: str
    measure: str
    least: float = 0.0
    above: float = 0.0
    source: str = OURS

    def __str__(self) -> str:
        parts = [f"≥ {self.least:g}"] if self.least else []
        parts += [f"≥ baseline + {self.above:g}"] if self.above else []
        return " and ".join(parts)

    def is_met(self, score: float, baseline: float | None) -> bool:
        """Whether a score is enough."""
        return score >= self.least and score >= (baseline or 0.0) + self.above


# Every criterion. The measure is a name of `streaming`, or the part of it before a slash.
CRITERIA = (
    Criterion("positional", "positional", least=0.9, source=f"{VOITA}: the most frequent offset, 90 % of the time"),
    Criterion("syntactic", "syntactic", above=0.1, source=f"{VOITA}: 10 points over the most frequent offset"),
    Criterion("rare words", "rare_word", least=0.5, above=0.1, source=f"{VOITA}: 66 % and more than 50 %"),
    Criterion(
        "rare words", "two_rare_words", least=0.5, above=0.1, source=f"{VOITA}: one of the two rarest, more than 50 %"
    ),
    Criterion("induction", "induction", least=0.4, above=0.1, source=REPLICATIONS),
    Criterion("induction", "repeated_induction", least=0.4, above=0.1, source=REPLICATIONS),
    Criterion(
        "duplicate token", "repeated_duplicate", least=0.4, above=0.1, source=f"as for induction: {REPLICATIONS}"
    ),
    Criterion("duplicate token", "duplicate_token", least=0.4, above=0.1, source=f"as for induction: {REPLICATIONS}"),
    Criterion("same token", "same_token", least=0.4, above=0.1, source=f"as for induction: {REPLICATIONS}"),
    Criterion("same word across", "same_word_across", least=0.5, above=0.1, source="ours: most of what crosses"),
    Criterion(
        "alignment", "alignment", above=0.05, source="ours: F1 with a statistical aligner, 5 points over the diagonal"
    ),
    Criterion("rests on the first token", "first_token", least=0.9, source=f"{VIG} pass over such queries"),
    Criterion("rests on the last token", "last_token", least=0.9, source=f"{VIG}, of the first token"),
    Criterion("rests on special tokens", "special_tokens", least=0.9, source=f"{VIG}, of the first token"),
    Criterion("punctuation", "punctuation", least=0.5, above=0.1),
    Criterion("paired marks", "paired_marks", least=0.5, above=0.1),
    Criterion("names", "names", least=0.5, above=0.1),
    Criterion("from A to B", "a_to_b", least=0.5, above=0.2),
    Criterion("from B to A", "b_to_a", least=0.5, above=0.2),
    Criterion("the patch itself", "patch_self", least=0.5, above=0.1),
    Criterion("local patches", "patch_neighbour", least=0.5, above=0.1),
    Criterion("the row", "patch_row", least=0.5, above=0.1),
    Criterion("the column", "patch_column", least=0.5, above=0.1),
)


@dataclass(frozen=True)
class Finding:
    """One role that a head has, or comes nearest to: its score on a measure against the baseline, with an interval.

    `kind` is the role without its detail: "syntactic" of "syntactic: nsubj→head".
    """

    role: str
    kind: str
    measure: str
    score: float
    baseline: float | None
    low: float | None
    high: float | None
    n_samples: int
    criterion: str
    source: str

    @property
    def gain(self) -> float:
        """How far the score is above its baseline."""
        return self.score - (self.baseline or 0.0)


@dataclass(frozen=True)
class Verdict:
    """What a head does: its role, all roles that it has, strongest first, and without one what comes nearest."""

    head: Head
    findings: tuple[Finding, ...]
    nearest: Finding | None = None

    @property
    def role(self) -> str:
        """The first role, or that there is none."""
        return self.findings[0].role if self.findings else NO_ROLE

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.head}: {NO_ROLE}"
        finding = self.findings[0]
        chance = "" if finding.baseline is None else f", baseline {finding.baseline:.2f}"
        return f"{self.head}: {finding.role} ({finding.measure} {finding.score:.2f}{chance})"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "role": self.role,
            "findings": [asdict(finding) for finding in self.findings],
            "nearest": None if self.nearest is None else asdict(self.nearest),
        }

    @classmethod
    def from_json(cls, head: Head, data: dict[str, Any]) -> "Verdict":
        """Read what `to_json` wrote."""
        nearest = Finding(**data["nearest"]) if data["nearest"] else None
        return cls(head, tuple(Finding(**finding) for finding in data["findings"]), nearest)


def roles(scores: Mapping[str, Scores]) -> dict[Head, Verdict]:
    """A verdict for every head, from the scores of `streaming` measures by their names.

    >>> heads = [Head("main", 0, 0), Head("main", 0, 1)]
    >>> verdicts = roles({"induction": Scores("induction", dict(zip(heads, (0.9, 0.1))), baseline=0.05)})
    >>> [str(verdict) for verdict in verdicts.values()]
    ['L0H0: induction (induction 0.90, baseline 0.05)', 'L0H1: no clear role']
    """
    heads = sorted({head for measured in scores.values() for head in measured}, key=reading_order)
    candidates: dict[Head, list[tuple[Finding, bool]]] = {head: [] for head in heads}
    for criterion in CRITERIA:
        for name, measured in _of(criterion.measure, scores):
            for head, score in measured.items():
                if score == score:  # NaN is not itself
                    finding = _finding(criterion, name, measured, head)
                    is_met = criterion.is_met(score, finding.baseline) and _is_sure(finding)
                    candidates[head].append((finding, is_met))
    verdicts = {}
    for head, known in candidates.items():
        # A stable sort: equals stay in the order of the criteria.
        ordered = sorted(known, key=lambda candidate: -candidate[0].gain)
        met = _distinct(finding for finding, is_met in ordered if is_met)
        nearest = next((finding for finding, _ in ordered if finding.gain > 0), None) if not met else None
        verdicts[head] = Verdict(head, met, nearest)
    return verdicts


def reading_order(head: Head) -> tuple[bool, bool, str, int, int]:
    """Heads as they are read: what is within the encoder, within the decoder, and then what joins them."""
    return head.kind == "cross", head.stack == "decoder", head.stack, head.layer, head.index


def _of(measure: str, scores: Mapping[str, Scores]) -> Iterator[tuple[str, Scores]]:
    """The scores of a measure, or of each of its keys; those of too few cases are passed over."""
    for name, measured in scores.items():
        if name.partition("/")[0] == measure and measured.settings.get("queries", LEAST_QUERIES) >= LEAST_QUERIES:
            yield name, measured


def _finding(criterion: Criterion, name: str, scores: Scores, head: Head) -> Finding:
    low, high = scores.intervals.get(head, (None, None))
    known = low is not None and low == low
    return Finding(
        role=_detailed_role(criterion.role, name, scores, head),
        kind=criterion.role,
        measure=name,
        score=scores[head],
        baseline=_optional_float(scores.baselines.get(head, scores.baseline)),
        low=low if known else None,
        high=high if known else None,
        n_samples=scores.n_samples,
        criterion=str(criterion),
        source=criterion.source,
    )


def _detailed_role(role: str, name: str, scores: Scores, head: Head) -> str:
    """The role with its detail: the offset, the relation."""
    key = name.partition("/")[2]
    if role == "positional":
        offset = scores.settings.get("offsets", {}).get(str(head))
        role_by_offset = {-1: "previous token", 0: "the token itself", 1: "next token"}
        if offset is None:
            return role
        return role_by_offset.get(offset, f"{abs(offset)} tokens {'back' if offset < 0 else 'ahead'}")
    if role == "rare words" and n_tied(scores) > MANY_TIED:
        return f"{role} (many tied)"
    if role == "alignment":
        return f"alignment: the word it {key}"
    return f"{role}: {key}" if key else role


def _is_sure(finding: Finding) -> bool:
    return finding.low is None or finding.low > (finding.baseline or 0.0)


def _distinct(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    """Each role once, by its strongest evidence."""
    findings_by_role: dict[str, Finding] = {}
    for finding in findings:
        findings_by_role.setdefault(finding.role, finding)
    return tuple(findings_by_role.values())


def _optional_float(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)
