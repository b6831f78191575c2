"""Layer probes: what a linear classifier reads from the residual stream at each depth (Raganato & Tiedemann, 2018).

Beside each accuracy stand what knowing the word alone gives, and two controls: labels shuffled among the training
words, and the control task of Hewitt & Liang (2019), where each word form has a tag drawn at random.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.corpus_in_memory import count_corpus
from headscope.analysis.statistics import interval
from headscope.analysis.structure.linear_classifier import select
from headscope.choices import Record
from headscope.errors import InputError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps, stop_if
from headscope.runs import CorpusBatch, Measure
from headscope.runs.measure import Sample, Tallies

PENALTIES = (1e-4, 1e-3, 1e-2)
_PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class Depth:
    """One depth of the residual stream: what enters layer `depth`, or leaves the last. Shares of words that are right.

    `macro_f1` counts every tag alike. `shuffled` is on the true tags, of a classifier that learnt shuffled ones;
    `control` is on the control task's own tags.
    """

    depth: int
    dev: float
    accuracy: float
    interval: tuple[float, float]
    macro_f1: float
    shuffled: float
    control: float

    @property
    def selectivity(self) -> float:
        """Accuracy beyond what the same classifier gets on the control task."""
        return self.accuracy - self.control


@dataclass(frozen=True, eq=False)
class Probes:
    """What each depth knows of a tag, the depth that knows most (chosen on the dev part), and what words alone give."""

    tag: str
    stack: str
    depths: tuple[Depth, ...]
    majority: float
    by_word: float
    n_words: dict[str, int]
    n_tags: int

    @property
    def best(self) -> Depth:
        """The depth with the highest accuracy on the dev part; the first of equals."""
        return max(self.depths, key=lambda depth: depth.dev)

    @property
    def best_layer(self) -> str:
        """Its name: the layer whose output it is, or the embeddings."""
        return self.name(self.best.depth)

    def name(self, depth: int) -> str:
        """The layer that a depth is the output of."""
        prefix = "" if self.stack == "main" else f"{self.stack}."
        return f"{prefix}L{depth - 1}" if depth else f"{prefix}embeddings"

    def __str__(self) -> str:
        counts = ", ".join(f"{part} {n}" for part, n in self.n_words.items())
        lines = [
            f"{self.tag}: {self.n_tags} tags; words: {counts}; always the commonest tag {100 * self.majority:.1f}, "
            f"each word's commonest tag {100 * self.by_word:.1f}",
            f"{'output of':<20}{'accuracy':>9}{'95 %':>14}{'macro F1':>10}{'shuffled':>10}{'control':>9}"
            f"{'selective':>10}",
        ]
        for depth in self.depths:
            low, high = depth.interval
            bounds = f"{100 * low:.1f}–{100 * high:.1f}"
            lines.append(
                f"{self.name(depth.depth):<20}{100 * depth.accuracy:9.1f}{bounds:>14}{100 * depth.macro_f1:10.1f}"
                f"{100 * depth.shuffled:10.1f}{100 * depth.control:9.1f}{100 * depth.selectivity:10.1f}"
            )
        return "\n".join([*lines, f"best on the dev part: {self.best_layer}"])


class Words(NamedTuple):
    """Words of some sentences: vectors [depth, word, dimension], forms, tags, and the number of each one's sentence."""

    vectors: Tensor
    forms: list[str]
    tags: list[str]
    sentences: np.ndarray


def layer_probes(
    model: Model,
    source: Any,
    tag: str = "upos",
    *,
    limit: int | None = 600,
    stack: str | None = None,
    penalties: Sequence[float] = PENALTIES,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Probes:
    """Train a linear probe for a tag column on every depth of a frozen model; a word's vector is its pieces' mean.

    Sentences are split 60 / 20 / 20 into train, dev and test. The dev part chooses each probe's penalty and the best
    depth. The vectors of all words are held in memory, hence the limit. `progress` hears of sentences, then of depths.
    """
    measure = _Reading(tag, stack)
    count_corpus(model, source, measure, limit=limit, seed=seed, progress=progress, cancel=cancel)
    return probe(measure.words(), tag, measure.stack or "main", penalties, seed=seed, progress=progress, cancel=cancel)


def probe(
    words: Words,
    tag: str,
    stack: str = "main",
    penalties: Sequence[float] = PENALTIES,
    *,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Probes:
    """Probe vectors that are there already."""
    rng = np.random.default_rng(seed)
    parts = _split(words.sentences, rng)
    names = sorted({words.tags[place] for place in parts["train"]})
    if len(names) < 2:
        raise InputError(f"there is nothing to tell apart: the training words have {len(names)} tags in {tag!r}.")
    # A tag that training never saw is wrong whatever is said: it gets a number that no class has.
    labels = torch.tensor([names.index(tag) if tag in names else len(names) for tag in words.tags])
    shuffled = labels.clone()
    shuffled[parts["train"]] = labels[rng.permutation(parts["train"])]
    control = _control(words.forms, labels[parts["train"]].numpy(), seed)
    targets = {"true": labels, "shuffled": shuffled, "control": control}
    depths, steps = [], Steps("probing layers", len(words.vectors), progress)
    for depth, vectors in enumerate(words.vectors):
        guesses, dev = _guess(vectors, targets, parts, len(names), penalties, cancel)
        gold = labels[parts["test"]].numpy()
        right = guesses["true"] == gold
        depths.append(
            Depth(
                depth,
                dev,
                float(right.mean()),
                _interval(right, words.sentences[parts["test"]]),
                _macro_f1(guesses["true"], gold),
                float((guesses["shuffled"] == gold).mean()),
                float((guesses["control"] == control[parts["test"]].numpy()).mean()),
            )
        )
        steps.add()
    majority, by_word = _by_word(words, parts)
    n_words = {part: len(places) for part, places in parts.items()}
    return Probes(tag, stack, tuple(depths), majority, by_word, n_words, len(names))


def _guess(
    vectors: Tensor,
    targets: dict[str, Tensor],
    parts: dict[str, np.ndarray],
    n_classes: int,
    penalties: Sequence[float],
    cancel: Cancel | None,
) -> tuple[dict[str, np.ndarray], float]:
    """What classifiers trained on each of the targets say of the test words; accuracy on the dev words, true tags."""
    guesses, dev_accuracy = {}, 0.0
    for name, labels in targets.items():
        stop_if(cancel)
        train, dev, test = ((vectors[parts[part]], labels[parts[part]]) for part in _PARTS)
        classifier, accuracy = select(train, dev, n_classes, penalties)
        dev_accuracy = accuracy if name == "true" else dev_accuracy
        guesses[name] = classifier.predict(test[0]).cpu().numpy()
    return guesses, dev_accuracy


@dataclass
class _Reading(Measure):
    """Keeps the vectors of all words of a corpus that have a tag."""

    tag: str
    stack: str | None
    name: str = "probes"
    settings: dict[str, Any] = field(default_factory=dict)
    record: Record | None = "full"

    def start(self, model: Model) -> None:
        self._vectors: list[Tensor] = []
        self._forms: list[str] = []
        self._tags: list[str] = []
        self._sentences: list[str] = []

    def update(self, batch: CorpusBatch) -> Tallies:
        self.stack = self.stack or batch.text_stack
        for example, groups, trace in zip(batch.examples, batch.words(), batch.traces, strict=True):
            if self.tag not in example.tags:
                known = ", ".join(example.tags) or "none"
                raise InputError(f"{example.id} has no tags {self.tag!r}: its columns are {known}.")
            if self.stack not in trace.residuals:
                raise InputError(f"the residual stream of {self.stack!r} was not seen: {', '.join(trace.residuals)}.")
            stream = trace.residuals[self.stack].float()  # [depth, token, dimension]
            words_with_tokens = [word for word, positions in enumerate(groups) if positions]
            if words_with_tokens:
                self._vectors.append(
                    torch.stack([stream[:, list(groups[word])].mean(1) for word in words_with_tokens], dim=1)
                )
                self._forms += [example.words[word] for word in words_with_tokens]
                self._tags += [example.tags[self.tag][word] for word in words_with_tokens]
                self._sentences += [example.id] * len(words_with_tokens)
        return ()

    def words(self) -> Words:
        """All that was read."""
        if not self._vectors:
            raise InputError("no word of the corpus has a token: there is nothing to probe.")
        # Numbered by name: which sentences are for training must not depend on how a model's batches were made up.
        _, sentences = np.unique(self._sentences, return_inverse=True)
        return Words(torch.cat(self._vectors, dim=1), self._forms, self._tags, sentences)


def _split(sentences: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Places of words by part; whole sentences go together."""
    order = rng.permutation(np.unique(sentences))
    if len(order) < 5:
        raise InputError(f"probes need at least 5 sentences to learn from, choose by and test on, got {len(order)}.")
    cuts = [int(0.6 * len(order)), int(0.8 * len(order))]
    chosen = np.split(order, cuts)
    return {part: np.flatnonzero(np.isin(sentences, some)) for part, some in zip(_PARTS, chosen, strict=True)}


def _control(forms: Sequence[str], labels: np.ndarray, seed: int) -> Tensor:
    """A tag for each word form, drawn from the tags as they are distributed; the same form has the same one."""
    drawn = {}
    for form in dict.fromkeys(forms):
        rng = np.random.default_rng([seed, zlib.crc32(form.encode())])
        drawn[form] = int(labels[rng.integers(len(labels))])
    return torch.tensor([drawn[form] for form in forms])


def _by_word(words: Words, parts: dict[str, np.ndarray]) -> tuple[float, float]:
    """Accuracy of the commonest tag of all, and of each word's commonest tag in training (unseen words: the former)."""
    whole, by_form = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for place in parts["train"]:
        whole[words.tags[place]] += 1
        by_form[words.forms[place].lower()][words.tags[place]] += 1
    common = _commonest(whole)
    gold = [words.tags[place] for place in parts["test"]]
    known = [by_form.get(words.forms[place].lower()) for place in parts["test"]]
    guesses = [common if counts is None else _commonest(counts) for counts in known]
    right = [tag == guess for tag, guess in zip(gold, guesses, strict=True)]
    return float(np.mean([tag == common for tag in gold])), float(np.mean(right))


def _commonest(counts: Counter[str]) -> str:
    """The tag that is counted most; of equals the first by name, so that the order of words does not matter."""
    return min(counts, key=lambda tag: (-counts[tag], tag))


def _interval(right: np.ndarray, sentences: np.ndarray) -> tuple[float, float]:
    numbers = np.unique(sentences)
    return interval(
        [Sample(float(right[sentences == number].sum()), (sentences == number).sum(), 0.0) for number in numbers]
    )


def _macro_f1(guesses: np.ndarray, gold: np.ndarray) -> float:
    """The mean over tags that occur of their F1."""
    values = []
    for tag in np.unique(gold):
        hits = ((guesses == tag) & (gold == tag)).sum()
        values.append(2 * hits / ((guesses == tag).sum() + (gold == tag).sum()))
    return float(np.mean(values))
