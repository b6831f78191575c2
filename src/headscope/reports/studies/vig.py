"""Vig & Belinkov (2019) on a causal model, and what is known of GPT-2 small's previous-token and induction heads."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.reports.findings import layer_means
from headscope.reports.studies.checks import Check
from headscope.scores import Scores

if TYPE_CHECKING:
    from headscope.reports.studies.run_study import Measured

MEASURES = (
    "first_token", "tags", "dependency_alignment", "variability", "distance", "entropy", "previous_token",
    "duplicate_token", "induction",
)  # fmt: skip
NOTES = (
    "As in the paper attention to the first token is left out of tags, alignment, variability and distance; special "
    "tokens are too. Entropy is over all keys here, where the paper drops the first and queries that rest on it.",
    "Attention is between words here (Clark et al., 2019), between word pieces in the paper.",
    "Tags are those of the treebank (UPOS), spaCy's in the paper.",
    "Induction is measured on 8 rows of random tokens given twice, 50 tokens each time, after the beginning token.",
)


def checks(measured: "Measured") -> Iterator[Check]:
    """Every check that the scores allow."""
    scores = measured.scores
    yield from _null(scores)
    yield from _tags(scores)
    yield from _alignment(scores)
    yield from _distance(scores)
    yield from _corpus(measured)
    yield from _copying(scores)


def _null(scores) -> Iterator[Check]:
    first_token: Scores = scores["first_token"]
    values = np.array([value for value in first_token.values() if value == value])
    part, (head, most) = "Attention that rests on the first token", first_token.top(1)[0]
    yield Check(part, "mean over heads", "57 %", f"{100 * values.mean():.0f} %")
    yield Check(
        part,
        "heads above 97 %",
        "some",
        f"{int((values > 0.97).sum())} of {len(values)} (most: {head} {100 * most:.0f} %)",
    )


def _tags(scores) -> Iterator[Check]:
    part = "Parts of speech"
    to = {
        name.removeprefix("tags/to "): tag_scores for name, tag_scores in scores.items() if name.startswith("tags/to ")
    }
    sent = {
        name.removeprefix("tags/from "): tag_scores
        for name, tag_scores in scores.items()
        if name.startswith("tags/from ")
    }
    if not to:
        return
    if "NOUN" in to:
        head, most = to["NOUN"].top(1)[0]
        mean = float(np.nanmean(list(to["NOUN"].values())))
        yield Check(
            part,
            "share of attention to nouns, most of a head",
            "43 % (L9H0), mean 21 %",
            f"{100 * most:.0f} % ({head}), mean {100 * mean:.0f} %",
        )
    twice = [
        tag for tag, tag_scores in to.items() if tag_scores.top(1)[0][1] > 2 * np.nanmean(list(tag_scores.values()))
    ]
    yield Check(part, "tags with a head at twice the mean, looking to", "13 of 16", f"{len(twice)} of {len(to)}")
    from_twice = [
        tag for tag, tag_scores in sent.items() if tag_scores.top(1)[0][1] > 2 * np.nanmean(list(tag_scores.values()))
    ]
    yield Check(part, "the same, looking from", "7 of 16", f"{len(from_twice)} of {len(sent)}")
    n_layers = 1 + max(head.layer for tag_scores in to.values() for head in tag_scores)
    for tag, published in (("PROPN", "all in the last 3 of 12 layers"), ("DET", "all in the first 4 of 12 layers")):
        if tag in to:
            layers = sorted(head.layer for head, _ in to[tag].top(5))
            yield Check(
                part,
                f"layers of the five heads most on {tag}",
                published,
                f"{', '.join(map(str, layers))} of 0 to {n_layers - 1}",
            )


def _alignment(scores) -> Iterator[Check]:
    part, alignment = "Dependencies", scores["dependency_alignment"]
    head, most = alignment.top(1)[0]
    yield Check(part, "largest dependency alignment", "0.42, L4H11", f"{most:.2f}, {head}")
    means = layer_means(alignment)
    peak = max(means, key=lambda site: means[site])
    yield Check(
        part,
        "layer where it peaks (mean over heads)",
        "layers 2 to 4 of 0 to 11",
        f"{peak} ({' '.join(f'{value:.2f}' for value in means.values())})",
    )
    if "variability" in scores:
        known = {head: value for head, value in scores["variability"].items() if value == value}
        least = min(known, key=lambda head: known[head])
        yield Check(
            part,
            "least variable head",
            "0.004, L4H11: the one with the largest alignment",
            f"{known[least]:.3f}, {least}; of {head}: {known.get(head, float('nan')):.3f}",
        )


def _distance(scores) -> Iterator[Check]:
    part, distance, entropy = "Distance", scores["distance"], scores["entropy"]
    head, most = distance.top(1)[0]
    yield Check(
        part,
        "longest mean distance, and that head's entropy",
        "14.2 tokens, 0.41 nats, L5H1",
        f"{most:.1f} tokens, {entropy[head]:.2f} nats, {head}",
    )
    values = np.array([value for value in distance.values() if value == value])
    yield Check(part, "standard deviation over heads", "3.6", f"{values.std():.1f}")
    means = layer_means(distance)
    yield Check(
        part,
        "layer by layer",
        "longest in the deepest layers, shortest in 2 to 4",
        " ".join(f"{value:.1f}" for value in means.values()),
    )
    yield Check(part, "correlation with entropy (Pearson)", "0.61", _pearson(distance, entropy))
    yield Check(
        part,
        "correlation with dependency alignment (Pearson)",
        "−0.73",
        _pearson(distance, scores["dependency_alignment"]),
    )


def _corpus(measured: "Measured") -> Iterator[Check]:
    """What the treebank says by itself, without a model."""
    apart: Counter[int] = Counter()
    pairs: Counter[int] = Counter()
    for example in measured.examples:
        for word, head in enumerate(example.heads):
            if head >= 0:
                apart[abs(word - head)] += 1
        for distance in range(1, len(example.heads)):
            pairs[distance] += len(example.heads) - distance
    total = sum(apart.values())
    mean = sum(distance * count for distance, count in apart.items()) / total
    near = " ".join(f"{apart[distance] / pairs[distance]:.2f}" for distance in (1, 5, 10) if pairs[distance])
    within = sum(count for distance, count in apart.items() if distance <= 18) / total
    part = "The treebank alone"
    yield Check(part, "mean dependency length, words", "3.89", f"{mean:.2f}")
    yield Check(part, "P(dependency | distance 1, 5, 10)", "0.42 0.07 0.02", near)
    yield Check(part, "dependencies within 18 words", "99.8 %", f"{100 * within:.1f} %")


def _copying(scores) -> Iterator[Check]:
    part = "Previous-token, duplicate and induction heads"
    strongest = ", ".join(f"{head} {value:.2f}" for head, value in scores["previous_token"].top(2))
    yield Check(part, "previous-token head", "L4H11, near perfect; L2H2 weaker", strongest)
    if "repeated_induction" in scores:
        strongest = ", ".join(f"{head} {value:.2f}" for head, value in scores["repeated_induction"].top(5))
        yield Check(
            part, "five strongest induction heads", "L5H1 0.91, L5H5 0.93, L6H9 0.91, L7H2 0.83, L7H10 0.91", strongest
        )
        strongest = ", ".join(f"{head} {value:.2f}" for head, value in scores["repeated_duplicate"].top(3))
        yield Check(part, "duplicate-token heads", "L0H1, L3H0 (no scores published)", strongest)


def _pearson(scores: Scores, other: Scores) -> str:
    # `in` of Scores looks a head up, and a head that is not there is an error.
    heads = [
        head
        for head in scores
        if head in other.values_by_head and scores[head] == scores[head] and other[head] == other[head]
    ]
    if len(heads) < 3:
        return "too few heads"
    correlation = np.corrcoef([scores[head] for head in heads], [other[head] for head in heads])[0, 1]
    return f"{correlation:.2f}".replace("-", "−")
