"""Induced trees: how well the best tree over a head's attention agrees with a treebank (Raganato & Tiedemann, 2018).

Attention between words, as logarithms, weighs the edges; the gold root is given; the maximum spanning arborescence is
scored by UAS, the share of words that have their head. Words from pieces by the rule of Clark et al. (2019).
"""

import unicodedata
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headscope.analysis.corpus_in_memory import count_corpus
from headscope.analysis.structure.arborescence import max_arborescence
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.progress import Cancel, OnProgress
from headscope.runs import CorpusBatch, Layer, Measure, MeasureTable, Refusal, Tally
from headscope.runs.measure import Tallies
from headscope.scores import Scores
from headscope.sites import Head, Site

if TYPE_CHECKING:
    from headscope.models import Model

# What the weight of an edge from a dependent to its head is, of the attention A [from, to].
ORIENTATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "A": lambda weights: weights,  # the dependent attends to its head
    "AT": lambda weights: weights.T,  # the head attends to its dependents
    "A+AT": lambda weights: weights + weights.T,
}
# Which words count: all, all but punctuation, those whose gold head is to the left, to the right.
GROUPS: tuple[str, ...] = ("all", "words", "left", "right")
BASELINES = ("next", "previous", "root")
# Where there is no attention at all; below the smallest weight that fp32 holds well.
_FLOOR = 1e-35
_N_RANDOM = 4

CONVENTIONS = (
    "The gold root is given, and counts as a word that has its head.",
    "Sentences of one word are left out; so are words without a token of their own, and their dependents.",
    "Attention to a word is the sum over its pieces, from it the mean; special tokens are left out.",
    "Edges weigh log attention, so the tree has the largest product; between equals the root is preferred.",
    "'next' attaches each word to the one after it (right-branching) and the last to the root; 'previous' to the one "
    "before it (left-branching) and the first to the root; 'root' all to the root; 'random' is the tree of random "
    "weights.",
    "'words' leaves punctuation out of the count, not out of the tree.",
)
CAUSAL = (
    "The model sees only what came before: under A a head can only lie to the left, under AT only to the right, and "
    "what cannot be attached so goes to the root."
)


class Sentence(NamedTuple):
    """A gold tree over the words that have tokens: `kept` are their numbers; the rest is [kept word]."""

    words: np.ndarray
    heads: np.ndarray
    counts: dict[str, np.ndarray]

    @property
    def root(self) -> int:
        """The root's place among the kept words."""
        return int(np.flatnonzero(self.heads == -1)[0])

    def hits(self, tree: np.ndarray) -> list[int]:
        """How many words of each group have their head."""
        right = tree == self.heads
        return [int((right & self.counts[group]).sum()) for group in GROUPS]


@dataclass(frozen=True, eq=False)
class Trees:
    """How well the trees of every head agree with the gold ones: UAS by orientation and by group of words.

    `scores["A"]["all"]` are `Scores`, with random trees as their baseline; `baselines["next"]["words"]` is one number.
    """

    scores: dict[str, dict[str, Scores]]
    baselines: dict[str, dict[str, float]]
    n_sentences: int
    n_words: dict[str, int]
    conventions: tuple[str, ...]

    def best(self, group: str = "all") -> tuple[str, Head, float]:
        """The orientation and the head with the highest UAS."""
        tops = [(orientation, *by_group[group].top(1)[0]) for orientation, by_group in self.scores.items()]
        return max(tops, key=lambda top: top[2])

    def layers(self, orientation: str = "A", group: str = "all") -> list[tuple[Site, float, Head, float]]:
        """Layer by layer the mean over heads, the best head and its UAS."""
        scores, rows = self.scores[orientation][group], []
        for site in dict.fromkeys(head.site for head in scores):
            heads = [head for head in scores if head.site == site and scores[head] == scores[head]]
            top = max(heads, key=lambda head: scores[head])
            rows.append((site, float(np.mean([scores[head] for head in heads])), top, scores[top]))
        return rows

    def __str__(self) -> str:
        lines = [f"{self.n_sentences} sentences, {self.n_words['all']} words ({self.n_words['words']} without marks)"]
        lines += [f"- {convention}" for convention in self.conventions]
        lines.append(f"{'UAS, %':<28}" + "".join(f"{group:>8}" for group in GROUPS))
        for name, values in self.baselines.items():
            lines.append(f"{name:<28}" + "".join(f"{100 * values[group]:8.1f}" for group in GROUPS))
        for orientation, by_group in self.scores.items():
            means = [float(np.nanmean(list(by_group[group].values()))) for group in GROUPS]
            lines.append(f"{orientation + ', mean over heads':<28}" + "".join(f"{100 * mean:8.1f}" for mean in means))
            tops = [by_group[group].top(1)[0] for group in GROUPS]
            lines.append(f"{orientation + ', best head':<28}" + "".join(f"{100 * value:8.1f}" for _, value in tops))
            lines.append(f"{'':<28}" + "".join(f"{head!s:>8}" for head, _ in tops))
        return "\n".join(lines)


@dataclass
class InducedTrees(Measure):
    """UAS of induced trees as a measure of a run; keys are an orientation (or a baseline) and a group of words."""

    name: str = "trees"
    settings: dict[str, Any] = field(default_factory=lambda: {"orientations": list(ORIENTATIONS), "seed": 0})

    def start(self, model: "Model") -> None:
        """Choose a head under which to count what is the same for all."""
        self._any = model.heads[0]

    def watch(self, layer: Layer) -> Tallies:
        """The trees of every head of a layer."""
        if layer.site.stack != layer.batch.text_stack or layer.site.kind != "self":
            return
        sentences = self._sentences(layer.batch)[layer.rows]
        rows = {row: sentence for row, sentence in enumerate(sentences) if isinstance(sentence, Sentence)}
        if not rows:
            return
        patterns = layer.by_words().double().cpu().numpy()
        places = [layer.batch.places[layer.rows][row] for row in rows]
        chance = np.array([self._chance(layer.batch, layer.rows.start + row) for row in rows])
        counts = np.array([[int(sentence.counts[group].sum()) for group in GROUPS] for sentence in rows.values()])
        for orientation in self.settings["orientations"]:
            hits = np.zeros((len(rows), len(layer.heads), len(GROUPS)))
            for at, (row, sentence) in enumerate(rows.items()):
                for index in range(len(layer.heads)):
                    weights = patterns[row, index][np.ix_(sentence.words, sentence.words)]
                    hits[at, index] = sentence.hits(tree_of(weights, sentence.root, orientation))
            for which, group in enumerate(GROUPS):
                sums = (hits[:, :, which], counts[:, which, None], chance[:, which, None])
                yield Tally(layer.heads, places, *sums, key=f"{orientation} {group}")

    def update(self, batch: CorpusBatch) -> Tallies:
        """What the baselines get, which is the same for all heads."""
        for row, sentence in enumerate(self._sentences(batch)):
            if not isinstance(sentence, Sentence):
                yield sentence
                continue
            for name in BASELINES:
                hits = sentence.hits(branching(len(sentence.heads), sentence.root, name))
                for group, n_hits in zip(GROUPS, hits, strict=True):
                    n = int(sentence.counts[group].sum())
                    yield Tally([self._any], [batch.places[row]], [[n_hits]], [[n]], key=f"{name} {group}")

    def finish(self, table: MeasureTable) -> dict[str, Scores]:
        """UAS by orientation and group; the settings hold the baselines."""
        return {
            f"{orientation} {group}": self._scores(table, orientation, group)
            for orientation in self.settings["orientations"]
            for group in GROUPS
            if f"{orientation} {group}" in table.keys()  # noqa: SIM118  a table is no mapping
        }

    def _scores(self, table: MeasureTable, orientation: str, group: str) -> Scores:
        scores = table.mean(f"{orientation} {group}", method=f"UAS of induced trees, {orientation}, {group}")
        scores.settings.pop("orientations", None)
        scores.settings.update({"orientation": orientation, "count": group})
        scores.settings.update({name: baseline(table, name, group) for name in BASELINES})
        return scores

    def _sentences(self, batch: CorpusBatch) -> list[Sentence | Refusal]:
        return batch.once(
            "gold trees",
            lambda: [sentence_of(example, words) for example, words in zip(batch.examples, batch.words(), strict=True)],
        )

    def _chance(self, batch: CorpusBatch, row: int) -> np.ndarray:
        """What trees of random weights get, on the mean; drawn anew for each sentence, the same in every batch."""
        sentence = self._sentences(batch)[row]
        assert isinstance(sentence, Sentence)

        def random_hits() -> np.ndarray:
            rng = np.random.default_rng([self.settings["seed"], zlib.crc32(batch.examples[row].content())])
            n = len(sentence.heads)
            trees = [max_arborescence(rng.random((n, n)), sentence.root) for _ in range(_N_RANDOM)]
            return np.mean([sentence.hits(tree) for tree in trees], axis=0)

        return batch.once(("random trees", row), random_hits)


def induced_trees(
    model: "Model",
    source: Any,
    *,
    limit: int | None = None,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Trees:
    """The trees of every head that attends within the text, against those of a treebank (a CoNLL-U file, examples)."""
    measure = InducedTrees()
    measure.settings["seed"] = seed
    table = count_corpus(model, source, measure, limit=limit, seed=seed, progress=progress, cancel=cancel)
    if not table.keys():
        raise InputError(f"there are no trees to compare with: {table.why()}")
    scores = {
        orientation: {group: measure._scores(table, orientation, group) for group in GROUPS}
        for orientation in ORIENTATIONS
    }
    baselines = {name: {group: baseline(table, name, group) for group in GROUPS} for name in BASELINES}
    baselines["random"] = {group: scores["A"][group].baseline or 0.0 for group in GROUPS}
    sums = table.sums("root all")
    n_words = {group: int(table.sums(f"root {group}").n_queries[0]) for group in GROUPS}
    stack = next(iter(scores["A"]["all"])).stack
    is_causal = all(layer.is_causal for layer in model.layout.layers if layer.site == Site(stack, layer.site.layer))
    conventions = (*CONVENTIONS, CAUSAL) if is_causal else CONVENTIONS
    return Trees(scores, baselines, int(sums.n_examples[0]), n_words, conventions)


def tree_of(weights: np.ndarray, root: int, orientation: str = "A") -> np.ndarray:
    """The tree that attention between words [from, to] induces: each word's head, −1 for the root."""
    return max_arborescence(np.log(np.maximum(ORIENTATIONS[orientation](weights), _FLOOR)), root)


def baseline(table: MeasureTable, name: str, group: str) -> float:
    """The UAS of a baseline over the same sentences; NaN where no word counts."""
    sums = table.sums(f"{name} {group}")
    return float(sums.total[0] / sums.n_queries[0]) if sums.n_queries[0] else float("nan")


def sentence_of(example: Example, words: list[tuple[int, ...]]) -> Sentence | Refusal:
    """The gold tree of an example, as far as its words have tokens; or why there is none."""
    if not example.heads:
        return Refusal("the corpus has no heads; give a treebank (CoNLL-U).")
    has_tokens = np.array([bool(positions) for positions in words])
    word_numbers = np.flatnonzero(has_tokens)
    heads = np.array(example.heads)
    if len(word_numbers) < 2 or (heads[word_numbers] == -1).sum() != 1:
        return Refusal(f"{example.id} has one word, or no root that the model reads.")
    places = np.full(len(heads) + 1, -2)  # −2: a head without tokens; the last entry is what −1 points at
    places[word_numbers] = np.arange(len(word_numbers))
    places[-1] = -1
    gold = places[heads[word_numbers]]
    is_known = gold != -2
    is_mark = np.array([_is_mark(example, word) for word in word_numbers.tolist()])
    has_head, here = gold >= 0, np.arange(len(word_numbers))
    counts = {
        "all": is_known,
        "words": is_known & ~is_mark,
        "left": has_head & (gold < here),
        "right": has_head & (gold > here),
    }
    return Sentence(word_numbers, gold, counts)


def _is_mark(example: Example, word: int) -> bool:
    if "upos" in example.tags:
        return example.tags["upos"][word] == "PUNCT"
    return all(unicodedata.category(character)[0] == "P" for character in example.words[word])


def branching(n: int, root: int, name: str) -> np.ndarray:
    """Each word attached to the next, to the previous, or to the root; where there is none, to the root."""
    places = np.arange(n)
    heads = {"next": places + 1, "previous": places - 1, "root": np.full(n, root)}[name]
    heads = np.where((heads < 0) | (heads >= n), root, heads)
    heads[root] = -1
    return heads


def branching_baselines(examples: Iterator[Example] | list[Example]) -> dict[str, dict[str, float]]:
    """UAS of the same baselines when the root is not given, for comparison: the word that is left over takes it.

    'next' makes the last word the root, 'previous' the first; so the convention that is hidden in a number shows.
    """
    hits, n = {name: dict.fromkeys(GROUPS, 0) for name in ("next", "previous")}, dict.fromkeys(GROUPS, 0)
    for example in examples:
        sentence = sentence_of(example, [(place,) for place in range(len(example.words))])
        if not isinstance(sentence, Sentence):
            continue
        places = np.arange(len(sentence.heads))
        trees = {"next": np.where(places + 1 < len(places), places + 1, -1), "previous": places - 1}
        for name, tree in trees.items():
            for group, value in zip(GROUPS, sentence.hits(tree), strict=True):
                hits[name][group] += value
        for group in GROUPS:
            n[group] += int(sentence.counts[group].sum())
    used_groups = [group for group in GROUPS if n[group]]
    return {
        name: {group: hits_by_group[group] / n[group] for group in used_groups} for name, hits_by_group in hits.items()
    }
