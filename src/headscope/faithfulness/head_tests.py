"""Every test of some heads on one answer of a model: one figure per head, NaN with a reason where there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from headscope.analysis.attribution.logit_target import Question
from headscope.choices import QueryRows, Removal
from headscope.errors import InputError
from headscope.faithfulness.adversary import (
    AdversaryOptions,
    adversaries,
    epsilon_max,
    reachable_divergence,
    row_divergence,
)
from headscope.faithfulness.answer_tokens import AnswerTokens
from headscope.faithfulness.attention_rows import AttentionRows
from headscope.faithfulness.kendall_tau import rank_agreement
from headscope.faithfulness.model_attention import CELLS, ModelAttention, check_query_rows, untestable
from headscope.faithfulness.output_changes import median_change, output_change, permutations
from headscope.faithfulness.replacements import REPLACEMENTS
from headscope.faithfulness.token_erasure import N_RANDOM, SHARE, erasure
from headscope.faithfulness.token_selection import stand_in
from headscope.faithfulness.verdict_rule import FAR
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.sites import Head

_FIXED_ROW = "the head sees fewer than two tokens that are not special: there is nothing to permute"


@dataclass(frozen=True)
class HeadTests:
    """How heads are tested.

    `query_rows` says whose rows are replaced: those that the answer is read from ("answer"), or all ("all").
    `removal` is how leave-one-out takes a token out: "delete", "mask" or "unknown". `adversary` is None for no search;
    `always_search` searches also where uniform or permuted rows have shown already that the attention is not exclusive.
    `erasure_share` of the tokens count as the most attended, against `n_random` random sets.
    """

    query_rows: QueryRows = "answer"
    removal: Removal = "delete"
    n_permutations: int = 20
    adversary: AdversaryOptions | None = field(default_factory=AdversaryOptions)
    always_search: bool = False
    erasure_share: float | None = SHARE
    n_random: int = N_RANDOM
    seed: int = 0

    def __post_init__(self):
        check_query_rows(self.query_rows)
        if self.n_permutations < 1:
            raise InputError(f"n_permutations is at least 1, got {self.n_permutations}.")

    def check(self, model: Model) -> None:
        """Refuse what the model's tokenizer lacks."""
        if self.removal != "delete":
            stand_in(model, self.removal)

    @property
    def n_copies(self) -> int:
        """Of the rows of a head, how many are held at once: replaced, permuted and adversarial ones."""
        return len(REPLACEMENTS) + self.n_permutations + (0 if self.adversary is None else self.adversary.patterns)

    @property
    def epsilon(self) -> float:
        """A change of the output up to here counts as none."""
        return (self.adversary or AdversaryOptions()).epsilon


@dataclass(frozen=True, eq=False)
class FiguresByHead:
    """Figures by name [head], the heads, and why some have none. `yardstick` is the τ-b of the two references."""

    heads: tuple[Head, ...]
    by_name: dict[str, Tensor]
    yardstick: float
    reasons: dict[Head, str]


@dataclass(frozen=True, eq=False)
class References:
    """What an answer depends on, which is the same for all heads: gradient × input and leave-one-out [token], and the
    positions that the answer is read from.
    """

    tokens: AnswerTokens
    gradient: Tensor
    left_out: Tensor
    reads: list[int]

    @classmethod
    def of(
        cls,
        model: Model,
        question: Question,
        removal: Removal = "delete",
        *,
        interventions: Sequence[Intervention] = (),
        cancel: Cancel | None = None,
    ) -> "References":
        """Those of a question."""
        if removal == "delete" and (bound := next((edit for edit in interventions if _names_tokens(edit)), None)):
            raise InputError(
                f"{bound!r} names tokens by their place, which moves where leave-one-out deletes a token: choose "
                "removal='mask' or removal='unknown'."
            )
        tokens = AnswerTokens(model, question, removal=removal, interventions=interventions, cancel=cancel)
        gradient, reads = tokens.gradient()
        return cls(tokens, gradient, tokens.left_out(), reads)

    @property
    def yardstick(self) -> float:
        """The τ-b of the two with each other, NaN where there is none."""
        return float(rank_agreement(self.gradient[None], self.left_out[None], self.tokens.countable[None]).tau)


def head_figures(
    model: Model,
    question: Question,
    groups: Sequence[Sequence[Head]] | None = None,
    tests: HeadTests | None = None,
    *,
    references: References | None = None,
    search: bool = True,
    interventions: Sequence[Intervention] = (),
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> FiguresByHead:
    """All tests of every head (or of groups of heads that are replaced together, named by their first head).

    `search=False` leaves out the adversary's search, and keeps its ε.
    """
    tests = tests or HeadTests()
    tests.check(model)
    groups = [[head] for head in model.heads] if groups is None else [list(group) for group in groups]
    going: dict[str, Any] = {"interventions": interventions, "cancel": cancel}
    references = references or References.of(model, question, tests.removal, **going)
    n_tokens = len(references.tokens.tokens)
    queries = references.reads if tests.query_rows == "answer" else range(n_tokens)
    reasons = {group[0]: reason for group in groups if (reason := _untestable(model, question, group)) is not None}
    testable = [group for group in groups if group[0] not in reasons]
    steps = Steps("heads", len(groups), progress, cancel)
    columns: dict[Head, dict[str, float]] = {}
    n_classes = len(references.tokens.before)
    for chunk in _chunks(testable, tests.n_copies * len(queries) * n_tokens, tests.n_copies * n_classes):
        attention = ModelAttention(model, question, chunk, queries, **going)
        figures = _attention_figures(attention, tests, search=search)
        figures |= _token_figures(attention.rows, references, tests)
        for place, group in enumerate(chunk):
            if bool((attention.rows.permutable[place].sum(-1) < 2).all()):
                reasons[group[0]] = _FIXED_ROW
                continue
            columns[group[0]] = {name: float(values[place]) for name, values in figures.items()}
        steps.add(len(chunk))
    steps.add(len(groups) - len(testable))
    heads = tuple(group[0] for group in groups)
    names = dict.fromkeys(name for column in columns.values() for name in column)
    by_name = {name: torch.tensor([columns.get(head, {}).get(name, torch.nan) for head in heads]) for name in names}
    return FiguresByHead(heads, by_name, references.yardstick, reasons)


def _attention_figures(attention: ModelAttention, tests: HeadTests, *, search: bool) -> dict[str, Tensor]:
    """How far the output moves under other rows [group], and how far the farthest rows with the same output are."""
    rows = attention.rows
    before = attention.before.expand(len(attention.groups), -1)
    figures, rivals, changes = {}, [], []
    for name, replacement in REPLACEMENTS.items():
        try:
            patterns = replacement(rows)
        except InputError:  # the row cannot attend there
            continue
        figures[f"change_{name}"] = change = output_change(before, attention.answer(patterns[None])[0])
        if name != "no_attention":  # which is no distribution, and so no rival of the attention
            rivals.append(patterns)
            changes.append(change)
    orders = permutations(rows, tests.n_permutations, tests.seed)
    moved = output_change(before, attention.answer(orders))
    figures["change_permuted"] = median_change(moved)
    figures["change_silenced"] = output_change(before, attention.silenced())
    reachable = reachable_divergence(rows)
    divergence = row_divergence(rows, torch.cat([torch.stack(rivals), orders]))
    farthest = epsilon_max(divergence, torch.cat([torch.stack(changes), moved]), tests.epsilon)
    if tests.adversary is not None and search:
        farthest = _search(attention, tests, tests.adversary, farthest, reachable)
    figures["farthest"] = farthest
    figures["farthest_share"] = farthest / reachable.clamp_min(torch.finfo(reachable.dtype).tiny)
    return figures


def _search(
    attention: ModelAttention, tests: HeadTests, options: AdversaryOptions, farthest: Tensor, reachable: Tensor
) -> Tensor:
    """The farthest rows with the same output, where the adversary finds farther ones."""
    is_open = torch.ones_like(farthest, dtype=torch.bool) if tests.always_search else farthest < FAR * reachable
    places = is_open.nonzero()[:, 0].tolist()
    if not places:
        return farthest
    farthest = farthest.clone()
    n_at_once = max(1, attention.most_copies_with_gradient // options.patterns)
    for first in range(0, len(places), n_at_once):  # losses of heads are apart, so they need not share a search
        chosen = places[first : first + n_at_once]
        part = attention.part(chosen)
        before = part.before.expand(len(chosen), -1)
        rivals = adversaries(part.rows, part.answer, options, seed=tests.seed, before=before, cancel=attention.cancel)
        farthest[chosen] = torch.maximum(farthest[chosen], rivals.epsilon_max_divergence)
    return farthest


def _token_figures(rows: AttentionRows, references: References, tests: HeadTests) -> dict[str, Tensor]:
    """How attention ranks the tokens against what the answer depends on [group], and what its favourites carry."""
    tokens, gradient, left_out = references.tokens, references.gradient, references.left_out
    attention = rows.weights.cpu()
    n_groups = len(attention)
    countable = tokens.countable.expand(n_groups, -1)
    shuffled = replace(rows, pattern=permutations(rows, 1, tests.seed)[0]).weights.cpu()

    def tau(weights: Tensor, reference: Tensor) -> Tensor:
        return rank_agreement(weights, reference.expand(n_groups, -1), countable).tau

    figures = {
        "tau_gradient": tau(attention, gradient),
        "tau_left_out": tau(attention, left_out),
        "tau_permuted": (tau(shuffled, gradient) + tau(shuffled, left_out)) / 2,
    }
    if tests.erasure_share is not None:
        scores = erasure(
            attention,
            countable,
            tokens.probability,
            share=tests.erasure_share,
            n_random=tests.n_random,
            seed=tests.seed,
        )
        figures |= vars(scores)
    return figures


def _names_tokens(intervention: Intervention) -> bool:
    return any(choice is not None for _, choice in intervention.token_choices()) or bool(intervention.payloads())


def _untestable(model: Model, question: Question, group: Sequence[Head]) -> str | None:
    return next((reason for head in group if (reason := untestable(model, question, head)) is not None), None)


def _chunks(groups: Sequence[Sequence[Head]], row_cells: int, output_cells: int) -> Iterator[Sequence[Sequence[Head]]]:
    """Groups of equal size that are tested at once: so many that all copies of their rows, and of the output, fit."""
    for size in sorted({len(group) for group in groups}):
        same = [group for group in groups if len(group) == size]
        step = max(1, CELLS // max(1, size * row_cells, output_cells))
        yield from (same[first : first + step] for first in range(0, len(same), step))
