"""Gender bias in attention, with evidence (after Vig, 2019, section 4.1).

The same sentence with she and with he: which heads look at the occupation more from one than from the other, which
pronoun the model expects after which occupation, and whether silencing those heads changes that more than silencing
others does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.analysis.attribution.likelihood import logprobs, perplexity, predicts_tokens
from headscope.analysis.statistics import paired_test
from headscope.analysis.usecases.antecedents import positions, self_sites
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.coreference_files import Sentences, sentences_of
from headscope.analysis.usecases.pronoun_sentences import Schema
from headscope.errors import InputError
from headscope.interventions import Intervention, silence
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Trace
from headscope.traces.token_attention import weight_between

TEXTS_FOR_PERPLEXITY = 24


@dataclass(frozen=True)
class Occupation:
    """One occupation: attention to it from she and from he in the head that differs most, and how much likelier the
    model finds she than he there (log-odds, mean over its sentences; NaN where the model predicts no pronoun).
    """

    name: str
    from_she: float
    from_he: float
    log_odds: float


@dataclass(frozen=True)
class SilencingEffect:
    """What silencing some heads did: the spread of log-odds over occupations (the bias that depends on them), the mean
    of their sizes, and perplexity.
    """

    what: str
    heads: tuple[Head, ...]
    spread: float
    size: float
    perplexity: float


@dataclass(frozen=True, eq=False)
class BiasReport:
    """What was found: `differences` (she − he, per head), corrected `p_values`, and what follows from them."""

    differences: Scores
    p_values: dict[Head, float]
    occupations: list[Occupation]
    effects: list[SilencingEffect]
    continuations: list[tuple[str, str]]
    n_pairs: int

    def significant(self, level: float = 0.05) -> list[tuple[Head, float, float]]:
        """Heads whose difference is no accident at that level, corrected for their number: head, difference, p."""
        rows = [(head, self.differences[head], p) for head, p in self.p_values.items() if p <= level]
        return sorted(rows, key=lambda row: -abs(row[1]))


def bias(
    model: Model,
    sentences: Sentences | None = None,
    *,
    n_silenced: int = 3,
    n_random: int = 5,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> BiasReport:
    """Measure how attention to occupations depends on the pronoun, what the model expects, and what silencing does.

    `n_silenced` heads with the largest significant differences (or the largest, if none is significant) are silenced
    together, and beside them `n_random` times as many heads drawn from the others. Built-in sentences unless schemas
    are given, or Winogender's `templates.tsv`.
    """
    check_fits("bias", model)
    chosen = sentences_of(sentences)
    steps = Steps("gender bias", len(chosen) + n_random + 2, progress, cancel)
    pairs = _run_pairs(model, chosen, steps, cancel)
    heads = [site.head(index) for site in self_sites(pairs[0][1]) for index in range(pairs[0][1].layers[site].n_heads)]
    from_she = np.stack([_attention(schema, she, "she") for schema, she, _ in pairs])
    from_he = np.stack([_attention(schema, he, "he") for schema, _, he in pairs])
    test = paired_test(from_she - from_he, seed=seed)
    order = sorted(range(len(heads)), key=lambda index: (test.p[index] > 0.05, -abs(test.mean[index])))
    odds = _log_odds(model, pairs)
    effects = _effects(model, pairs, odds, [heads[index] for index in order], n_silenced, n_random, seed, steps)
    continuations = _continuations(model, pairs) if model.is_causal else []
    return BiasReport(
        test.scores("she − he, attention to the occupation", heads, len(pairs), {"sentences": len(pairs)}),
        test.p_values(heads),
        _by_occupation(pairs, from_she[:, order[0]], from_he[:, order[0]], odds),
        effects,
        continuations,
        len(pairs),
    )


def _run_pairs(
    model: Model, chosen: list[Schema], steps: Steps, cancel: Cancel | None
) -> list[tuple[Schema, Trace, Trace]]:
    """Each sentence with she and with he, where the pronoun can see the occupation."""
    pairs: list[tuple[Schema, Trace, Trace]] = []
    for schema in chosen:
        steps.next()
        she, he = (model.run(schema.text(pronoun), record="heads", cancel=cancel) for pronoun in ("she", "he"))
        if not model.is_causal or _sees(schema, she):
            pairs.append((schema, she, he))
    if not pairs:
        raise InputError("in none of the sentences does the occupation come before the pronoun, as this model reads.")
    return pairs


def _sees(schema: Schema, trace: Trace) -> bool:
    pronoun = positions(trace, schema.span("she", "pronoun"))
    return max(positions(trace, schema.span("she", "occupation"))) < min(pronoun)


def _attention(schema: Schema, trace: Trace, pronoun: str) -> np.ndarray:
    """From the pronoun to the occupation, in every head [head]."""
    queries = positions(trace, schema.span(pronoun, "pronoun"))
    keys = positions(trace, schema.span(pronoun, "occupation"))
    return np.concatenate([weight_between(trace.patterns(site), queries, keys).numpy() for site in self_sites(trace)])


def _log_odds(
    model: Model, pairs: list[tuple[Schema, Trace, Trace]], interventions: Sequence[Intervention] = ()
) -> np.ndarray:
    """log P(she) − log P(he) at the pronoun's place [pair]; NaN for a model that predicts no words."""
    mask = getattr(model.tokenizer, "mask_token", None)
    if not predicts_tokens(model):
        return np.full(len(pairs), math.nan)
    sources, places, ids = [], [], []
    for schema, she, he in pairs:
        where = {name: positions(trace, schema.span(name, "pronoun"))[0] for name, trace in (("she", she), ("he", he))}
        ids.append((she.tokens["main"][where["she"]].id, he.tokens["main"][where["he"]].id))
        if model.is_causal:
            sources.append(she.inputs)
            places.append(where["she"] - 1)
        else:
            before, after = schema.around
            sources.append(model.read(f"{before}{mask}{after}"))
            places.append([token.text for token in sources[-1].tokens["main"]].index(mask))
    rows = logprobs(model, sources, interventions)
    return np.array(
        [float(row[place, she] - row[place, he]) for row, place, (she, he) in zip(rows, places, ids, strict=True)]
    )


def _effects(
    model: Model,
    pairs: list[tuple[Schema, Trace, Trace]],
    odds: np.ndarray,
    ranked: list[Head],
    n_silenced: int,
    n_random: int,
    seed: int,
    steps: Steps,
) -> list[SilencingEffect]:
    if np.isnan(odds).all():
        return []
    texts = [schema.text("she") for schema, _, _ in pairs[:: max(1, len(pairs) // TEXTS_FOR_PERPLEXITY)]]
    top, rest = ranked[:n_silenced], ranked[n_silenced:]
    generator = np.random.default_rng(seed)
    sets = [("nothing silenced", ()), (f"the {len(top)} heads that differ most", tuple(top))]
    for number in range(n_random if len(rest) >= len(top) else 0):
        drawn = generator.choice(len(rest), len(top), replace=False)
        sets.append((f"{len(top)} other heads, drawn at random ({number + 1})", tuple(rest[index] for index in drawn)))
    effects = []
    for what, heads in sets:
        steps.next()
        edits = [silence(head) for head in heads]
        log_odds = odds if not edits else _log_odds(model, pairs, edits)
        by_name: dict[str, list[float]] = {}
        for (schema, _, _), pair_odds in zip(pairs, log_odds, strict=True):
            by_name.setdefault(schema.occupation, []).append(pair_odds)
        means = np.array([np.mean(occupation_odds) for occupation_odds in by_name.values()])
        effects.append(
            SilencingEffect(
                what, heads, float(means.std()), float(np.abs(means).mean()), perplexity(model, texts, edits)
            )
        )
    return effects


def _by_occupation(
    pairs: list[tuple[Schema, Trace, Trace]], from_she: np.ndarray, from_he: np.ndarray, odds: np.ndarray
) -> list[Occupation]:
    names = np.array([schema.occupation for schema, _, _ in pairs])
    rows = [
        Occupation(name, *(float(column[names == name].mean()) for column in (from_she, from_he, odds)))
        for name in dict.fromkeys(names.tolist())
    ]
    return sorted(rows, key=lambda row: row.from_she - row.from_he, reverse=True)


def _continuations(model: Model, pairs: list[tuple[Schema, Trace, Trace]]) -> list[tuple[str, str]]:
    """What the model writes after the first sentences of a pair, up to the pronoun and beyond."""
    continuations = []
    for schema, _, _ in pairs[:2]:
        for pronoun in ("she", "he"):
            start = schema.text(pronoun)[: schema.span(pronoun, "pronoun")[1]]
            continuations.append((start, model.generate(start, max_new_tokens=12).text))
    return continuations
