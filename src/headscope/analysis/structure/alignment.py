"""Cross-attention as word alignment, against a statistical aligner that has seen the same pairs.

Each target word is linked with the source word that it attends to most; words from pieces by the rule of Clark et al.
(2019). Agreement as F1 with the aligner's possible links, and as alignment error rate (Och & Ney, 2003).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headscope.analysis.corpus_in_memory import as_corpus, count_corpus, first
from headscope.analysis.memory_table import MemoryTable
from headscope.analysis.structure.word_aligner import Links, align_pairs
from headscope.corpora import Example, corpus
from headscope.errors import InputError
from headscope.models import Model
from headscope.models.inputs.segmentation import words_of
from headscope.progress import Cancel, OnProgress
from headscope.runs import CorpusBatch, Layer, Measure, Tally
from headscope.runs.measure import Tallies
from headscope.scores import Scores
from headscope.sites import Site
from headscope.traces import Tokens

# At which step of the decoder a target word is looked at: when it is written, or a step later, when it is read.
STEPS = ("writes", "reads")


@dataclass(frozen=True)
class Agreement:
    """F1 with the possible links, and alignment error rate."""

    f1: float
    error_rate: float


@dataclass(frozen=True, eq=False)
class CrossAlignment:
    """How well cross-attention agrees with the aligner: every head, the mean over each layer's heads, and over all.

    `f1["writes"]` and `error_rate["writes"]` are `Scores` of the step that writes a word; "reads", of the step that
    reads it. `baselines` are the diagonal, the aligner's own first direction, and no link at all.
    """

    f1: dict[str, Scores]
    error_rate: dict[str, Scores]
    layers: dict[str, dict[Site, Agreement]]
    average: dict[str, Agreement]
    baselines: dict[str, Agreement]
    n_pairs: int
    n_trained_on: int
    n_links: dict[str, int]

    def __str__(self) -> str:
        lines = [
            f"{self.n_pairs} pairs, {self.n_links['sure']} sure and {self.n_links['possible']} possible links of an "
            f"aligner trained on {self.n_trained_on} pairs",
            f"{'':<32}{'F1':>8}{'AER':>8}",
        ]
        lines += [_line(name, agreement) for name, agreement in self.baselines.items()]
        for step in STEPS:
            lines += [_line(f"{step}, mean over all heads", self.average[step])]
            lines += [_line(f"{step}, mean over {site}", agreement) for site, agreement in self.layers[step].items()]
            for head, value in self.f1[step].top(3):
                lines.append(_line(f"{step}, {head}", Agreement(value, self.error_rate[step][head])))
        return "\n".join(lines)


def cross_alignment(
    model: Model,
    source: Any,
    *,
    limit: int | None = None,
    more: Any = None,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> CrossAlignment:
    """Compare the cross-attention of a translator, fed the pairs of a corpus, with an aligner trained on them.

    `more` are further pairs for the aligner alone, which needs some thousands to be worth comparing with.
    """
    if not any(layer.site.kind == "cross" for layer in model.layout.layers):
        raise InputError(f"{model.name} has no cross-attention: it does not translate.")
    stream = as_corpus(source)
    examples = [_check_pair(example) for example in first(stream, limit)]
    further = [] if more is None else [_check_pair(example) for example in as_corpus(more)]
    links = align_pairs([_pair_words(example) for example in [*examples, *further]], cancel=cancel)
    measure = _Aligning({example.id: pair_links for example, pair_links in zip(examples, links, strict=False)})
    checked_corpus = corpus(examples, on_error="skip" if stream.on_error == "skip" else "fail")
    table = count_corpus(model, checked_corpus, measure, seed=seed, progress=progress, cancel=cancel)
    f1 = {step: table.mean(f"{step} f1", method=f"alignment F1, the step that {step} the word") for step in STEPS}
    return CrossAlignment(
        f1=f1,
        error_rate={step: _error_rates(table, step) for step in STEPS},
        layers={step: _by_site(table, f"{step} layer") for step in STEPS},
        average={step: next(iter(_by_site(table, f"{step} all").values())) for step in STEPS},
        baselines={
            "no link": Agreement(0.0, 1.0),
            "diagonal": next(iter(_by_site(table, "diagonal").values())),
            "aligner, source to target": next(iter(_by_site(table, "forward").values())),
        },
        n_pairs=table.n_examples,
        n_trained_on=len(links),
        n_links=_n_links(links[: len(examples)]),
    )


@dataclass
class _Aligning(Measure):
    """Counts links that agree. F1 = Σ 2·|A∩P| / Σ (|A| + |P|); AER = 1 − Σ (|A∩S| + |A∩P|) / Σ (|A| + |S|)."""

    links: dict[str, Links]
    name: str = "alignment"
    settings: dict[str, Any] = field(default_factory=dict)

    def start(self, model: Model) -> None:
        self._sums: dict[tuple[str, Site, int], np.ndarray] = {}
        self._any = next(head for head in model.heads if head.kind == "cross")

    def watch(self, layer: Layer) -> Tallies:
        if layer.site.kind != "cross":
            return
        patterns = layer.pattern.double().cpu().numpy()
        for at in range(len(patterns)):
            row = layer.rows.start + at
            for step in STEPS:
                links, queries, keys = self._pair(layer.batch, row, step)
                if not queries.any() or not keys.any():
                    continue
                pattern = patterns[at][:, : queries.shape[1], : keys.shape[1]]
                weights = queries @ pattern @ keys.T  # [head, word, word]
                place = (step, layer.site, row)
                self._sums[place] = self._sums.get(place, 0.0) + weights.sum(0)
                chosen = _strongest_links(weights, queries, keys)
                yield from _tallies(layer.heads, layer.batch.places[row], links, chosen, step)

    def update(self, batch: CorpusBatch) -> Tallies:
        for row, place in enumerate(batch.places):
            for step in STEPS:
                links, queries, keys = self._pair(batch, row, step)
                sums = {
                    site: weights for (at, site, which), weights in self._sums.items() if (at, which) == (step, row)
                }
                for site, weights in sums.items():
                    chosen = _strongest_links(weights[None], queries, keys)
                    yield from _tallies([site.head(0)], place, links, chosen, f"{step} layer")
                if sums:
                    chosen = _strongest_links(np.sum(list(sums.values()), axis=0)[None], queries, keys)
                    yield from _tallies([self._any], place, links, chosen, f"{step} all")
            links = self.links[batch.examples[row].id]
            yield from _tallies([self._any], place, links, _diagonal(*links.sure.shape)[None], "diagonal")
            yield from _tallies([self._any], place, links, links.forward[None], "forward")
        self._sums.clear()

    def _pair(self, batch: CorpusBatch, row: int, step: str) -> tuple[Links, np.ndarray, np.ndarray]:
        """The aligner's links, and which positions make up each word: the mean of queries, the sum of keys."""

        def pair() -> tuple[Links, np.ndarray, np.ndarray]:
            links = self.links[batch.examples[row].id]
            n_target, n_source = links.sure.shape
            tokens = batch.inputs[row].tokens
            queries = _pieces(tokens["decoder"], n_target, shift=1 if step == "writes" else 0)
            keys = _pieces(tokens["encoder"], n_source)
            return links, queries / np.maximum(queries.sum(-1, keepdims=True), 1.0), keys

        return batch.once(("aligned", row, step), pair)


def _pieces(tokens: Tokens, n_words: int, *, shift: int = 0) -> np.ndarray:
    """1 where a position is a piece of a word [word, position]; a token is written one step before it is read."""
    is_piece = np.zeros((n_words, len(tokens)))
    for position, token in enumerate(tokens):
        if not token.special and token.word is not None and token.word < n_words and position >= shift:
            is_piece[token.word, position - shift] = 1.0
    return is_piece


def _diagonal(n_target: int, n_source: int) -> np.ndarray:
    """Each target word linked with the source word at the same share of the way."""
    nearest = np.rint((np.arange(n_target) + 0.5) * n_source / n_target - 0.5).astype(int)
    return np.arange(n_source) == np.clip(nearest, 0, n_source - 1)[:, None]


def _strongest_links(weights: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Each target word's strongest source word, among those that have tokens [head, target word, source word]."""
    weights = np.where(keys.any(-1), weights, -1.0)
    has_tokens = np.asarray(queries.any(-1))
    return (weights.argmax(-1)[..., None] == np.arange(weights.shape[-1])) & has_tokens[:, None]


def _tallies(heads, place: int, links: Links, chosen: np.ndarray, key: str) -> Tallies:
    """What both sums of links say; chance is a source word drawn for each target word."""
    n_chosen = chosen.sum((1, 2))
    possible, sure = (chosen & links.possible).sum((1, 2)), (chosen & links.sure).sum((1, 2))
    n_possible, n_sure = links.possible.sum(), links.sure.sum()
    chance = n_chosen * links.possible.mean()
    sums = [2.0 * possible, n_chosen + n_possible, 2.0 * chance]
    yield Tally(heads, [place], *(parts[None] for parts in sums), key=f"{key} f1")
    sums = [possible + sure, n_chosen + n_sure, chance + n_chosen * links.sure.mean()]
    yield Tally(heads, [place], *(parts[None] for parts in sums), key=f"{key} agreed")


def _error_rates(table: MemoryTable, step: str) -> Scores:
    """One minus the share agreed on, with its interval turned round."""
    agreed = table.mean(f"{step} agreed")
    return Scores(
        f"alignment error rate, the step that {step} the word",
        {head: 1 - value for head, value in agreed.items()},
        agreed.settings,
        agreed.n_samples,
        None if agreed.baseline is None else 1 - agreed.baseline,
        {head: (1 - high, 1 - low) for head, (low, high) in agreed.intervals.items()},
        {head: 1 - value for head, value in agreed.baselines.items()},
    )


def _by_site(table: MemoryTable, key: str) -> dict[Site, Agreement]:
    f1, agreed = table.mean(f"{key} f1"), table.mean(f"{key} agreed")
    return {head.site: Agreement(f1[head], 1 - agreed[head]) for head in f1}


def _check_pair(example: Example) -> Example:
    if not example.text or not example.target:
        raise InputError(f"{example.id} has no target: give pairs of source and target, kind='translation'.")
    return example


def _pair_words(example: Example) -> tuple[list[str], list[str]]:
    """The words of source and target; an aligner needs at least one of each."""
    return _words(example.text or "") or ["-"], _words(example.target or "") or ["-"]


def _n_links(links: list[Links]) -> dict[str, int]:
    """How many links of each kind there are in some pairs."""
    return {name: int(sum(getattr(pair_links, name).sum() for pair_links in links)) for name in Links._fields}


def _words(text: str) -> list[str]:
    """The words of a text, as tokens number them."""
    places, n = words_of(text)
    words = [""] * n
    for place, word in sorted(places.items()):
        words[word] += text[place]
    return words


def _line(name: str, agreement: Agreement) -> str:
    return f"{name:<32}{agreement.f1:8.3f}{agreement.error_rate:8.3f}"
