"""Heads that look less the further away a token is, and the neurons that make them so (Vig, 2019, section 4.3).

A score is a sum over neurons, q_i · k_j = Σ_n q_in k_jn, and a least-squares slope is linear: so the slope of a head's
scores over distance is the sum of the slopes of its neurons' products, and each neuron's part in the decay is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.analysis.attribution.likelihood import perplexity, predicts_tokens
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.pronoun_sentences import PEOPLE, schemas
from headscope.errors import InputError
from headscope.interventions import Intervention, scale_neuron
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Trace

FARTHEST = 24
N_ROUNDS = 30
# Of fewer, the means of queries and distances are about as many as the scores they are of.
LEAST_TOKENS = 16


@dataclass(frozen=True)
class Neuron:
    """One coordinate of a head's queries and keys: its part of the head's slope (the parts sum to the whole), and how
    much of the query's square does not depend on the token (1: the same for every token).
    """

    index: int
    slope: float
    constancy: float


@dataclass(frozen=True)
class Scaled:
    """What scaling some neurons of the head did: its decay rate, perplexity, and what the model writes."""

    what: str
    neurons: tuple[int, ...]
    rate: float
    perplexity: float
    continuation: str


@dataclass(frozen=True, eq=False)
class Decay:
    """The head whose scores depend most on distance, how fast they fall, its neurons, and what scaling them does.

    `shares` is, per head, the part of the variance of its scores (within a query) that distance alone explains, where
    they fall with distance; `rates` how much a score falls a token (attention then falls as exp(−rate · distance)).
    """

    shares: Scores
    rates: dict[Head, float]
    head: Head
    constancy: float
    neurons: list[Neuron]
    effects: list[Scaled]


def decay(
    model: Model,
    texts: Sequence[str] | None = None,
    *,
    head: str | Head | None = None,
    k: int = 4,
    factor: float = 0.0,
    n_random: int = 5,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Decay:
    """Find the head that decays with distance, rank its neurons, and scale the top k of them beside k random others.

    Another head can be given. Built-in texts are used unless others are given; each should have 30 tokens or more.
    """
    check_fits("decay", model)
    chosen = list(texts) if texts is not None else built_in_texts()
    if not chosen:
        raise InputError("decay needs texts: give some, or none at all for the built-in ones.")
    steps = Steps("distance decay", len(chosen) + n_random + 3, progress, cancel)
    traces = []
    for text in chosen:
        steps.next()
        traces.append(model.run(text, record="heads", cancel=cancel))
    steps.next()
    _check_length(traces)
    heads = [head for head in traces[0].heads if head.kind == "self" and head.stack == "main"]
    fits = {head: _fit(traces, head) for head in heads}
    falling = {head: share if rate > 0 else 0.0 for head, (share, rate) in fits.items()}
    shares = Scores("distance", falling, settings={"farthest": FARTHEST}, n_samples=len(traces))
    place = shares.top(1)[0][0] if head is None else traces[0].find(head)[0]
    neurons = _neurons(traces, place)
    queries = np.concatenate([_plain(trace, place)[0] for trace in traces])
    constancy = float((queries.mean(0) ** 2).sum() / (queries**2).sum(1).mean())
    rates = {head: rate for head, (_, rate) in fits.items()}
    effects = _effects(model, chosen, place, neurons, k, factor, n_random, seed, steps)
    return Decay(shares, rates, place, constancy, neurons, effects)


def _check_length(traces: list[Trace]) -> None:
    longest = max(sum(not token.special for token in trace.tokens["main"]) for trace in traces)
    if longest < LEAST_TOKENS:
        raise InputError(
            f"the texts are too short to tell how scores fall with distance: the longest has {longest} tokens, and "
            f"{LEAST_TOKENS} is the least; 30 or more are better."
        )


def built_in_texts() -> list[str]:
    """Twelve paragraphs of built-in sentences, some fifty to ninety tokens each."""
    sentences = [schema.text("she" if place % 2 else "he") for place, schema in enumerate(schemas())]
    size = len(sentences) // len(PEOPLE)
    return [" ".join(sentences[first : first + size]) for first in range(0, 12 * size, size)]


def _fit(traces: Iterable[Trace], head: Head) -> tuple[float, float]:
    """The share of the variance of scores within a query that distance explains, and the rate at which they fall."""
    queries, distances, values = [], [], []
    for number, trace in enumerate(traces):
        plain = _plain_places(trace, head)
        scores = trace.scores(head)[np.ix_(plain, plain)]
        far = plain[:, None] - plain[None, :]
        seen = (far >= 1) & (far <= FARTHEST) & np.isfinite(scores)
        values.append(scores[seen])
        distances.append(far[seen])
        queries.append(np.broadcast_to(plain[:, None], far.shape)[seen] + number * 1_000_000)
    value, distance = np.concatenate(values).astype(np.float64), np.concatenate(distances)
    if not len(value):
        raise InputError(f"no two tokens of these texts attend to each other in {head}: give longer texts.")
    _, query = np.unique(np.concatenate(queries), return_inverse=True)
    within = _less_means(value, query)  # a softmax does not see what all keys of a query share
    left = within
    for _ in range(N_ROUNDS):  # queries see different distances, so both means are taken out in turn
        left = _less_means(_less_means(left, distance), query)
    total = (within**2).sum()
    share = 1 - float((left**2).sum() / total) if total > 0 else 0.0
    return share, -_slope(distance, value)


def _less_means(value: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each value less the mean of its group."""
    counts = np.bincount(group)
    return value - (np.bincount(group, value) / np.maximum(counts, 1))[group]


def _slope(distance: np.ndarray, value: np.ndarray) -> float:
    centred = distance - distance.mean()
    return float((centred * value).sum() / max((centred**2).sum(), 1e-12))


def _neurons(traces: Sequence[Trace], head: Head) -> list[Neuron]:
    """Every neuron with its part of the slope of the scores, the strongest decay first."""
    products, distances = [], []
    for trace in traces:
        query, key = _plain(trace, head)
        scaling = _scaling(trace, head)
        for far in range(1, min(FARTHEST, len(query) - 1) + 1):
            product = query[far:] * key[: len(query) - far] * scaling
            products.append(product)
            distances.append(np.full(len(product), far))
    if not products:
        raise InputError("the texts are too short: a distance needs at least two tokens.")
    product, distance = np.concatenate(products), np.concatenate(distances)
    queries = np.concatenate([_plain(trace, head)[0] for trace in traces])
    square = (queries**2).mean(0)
    constancy = np.divide(queries.mean(0) ** 2, square, out=np.zeros_like(square), where=square > 0)
    slopes = [_slope(distance, product[:, index]) for index in range(product.shape[1])]
    order = np.argsort(slopes)
    return [Neuron(int(index), float(slopes[index]), float(constancy[index])) for index in order]


def _plain_places(trace: Trace, head: Head) -> np.ndarray:
    return np.array([place for place, token in enumerate(trace.query_tokens(head)) if not token.special])


def _plain(trace: Trace, head: Head) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of tokens that are not special [token, dim]."""
    places = _plain_places(trace, head)
    return trace.query(head)[places], trace.key(head)[places]


def _scaling(trace: Trace, head: Head) -> float:
    formula = trace.layer(head).formula
    return 1.0 if formula is None else formula.scaling


def _effects(
    model: Model,
    texts: list[str],
    head: Head,
    neurons: list[Neuron],
    k: int,
    factor: float,
    n_random: int,
    seed: int,
    steps: Steps,
) -> list[Scaled]:
    if not predicts_tokens(model):
        return []
    k = min(k, len(neurons))
    top = tuple(neuron.index for neuron in neurons[:k])
    rest = [neuron.index for neuron in neurons[k:]]
    generator = np.random.default_rng(seed)
    sets: list[tuple[str, tuple[int, ...]]] = [("nothing scaled", ()), (f"the {k} neurons that decay most", top)]
    for number in range(n_random if len(rest) >= k else 0):
        drawn = tuple(int(index) for index in generator.choice(rest, k, replace=False))
        sets.append((f"{k} other neurons, drawn at random ({number + 1})", drawn))
    # A masked model is asked for every token by itself: a run each, so two texts have to do.
    scored_texts = texts if model.is_causal else texts[:2]
    effects = []
    for what, chosen in sets:
        steps.next()
        edits: list[Intervention] = [scale_neuron(head, "query", index, factor) for index in chosen]
        edited = [model.run(text, edits, record="heads") for text in texts]
        rate = -sum(neuron.slope for neuron in _neurons(edited, head))
        written = ""
        if model.is_causal:
            start = " ".join(texts[0].split()[:12])
            written = model.generate(start, max_new_tokens=16, interventions=edits).text
        effects.append(Scaled(what, chosen, float(rate), perplexity(model, scored_texts, edits), written))
    return effects
