"""Finding heads: which of them does *this*, shown by an example or by a pattern, against what it does anyway."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.measure import MEASURES, samples_on, scores_of
from headscope.analysis.measures.targets import Places, Target, TargetOf
from headscope.analysis.statistics import Sample
from headscope.errors import HeadscopeError, InputError, UnknownTokenError
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces import Tokens, Trace
from headscope.traces.token_attention import usual_at_distance, weight_between
from headscope.traces.tokens import TokenChoice

Example = tuple[TokenChoice, TokenChoice]

WORDS_TOLD = 40


def find_heads(
    traces: Trace | Sequence[Trace],
    *,
    example: Example | Sequence[Example] | None = None,
    pattern: str | np.ndarray | Sequence[np.ndarray] | None = None,
) -> Scores:
    """Rank all heads by what they do in one input or many; `scores.above()` puts the most telling first.

    `example=("she", "nurse")`: attention from one token or word to another (texts, positions or lists of those; one
    example for each trace, or one for all). A word in several pieces is all of them. Its baseline is the head's own:
    what other queries put at the same distance (on tokens that are not special, unless one is asked about), or, across
    to the source of a translation, on the same keys.
    `pattern` is a measure by its name ("previous_token"), or cells painted on the matrix: an array [query, key] that is
    true (or not zero) where the head should look. Its baseline is chance: an even share of what a query can see.

    >>> import headscope as hs
    >>> hs.find_heads(trace, example=("She", "nurse")).above(3)  # doctest: +SKIP
    """
    runs = [traces] if isinstance(traces, Trace) else list(traces)
    if not runs:
        raise HeadscopeError("there is nothing to look at: no traces were given.")
    if (example is None) == (pattern is None):
        raise InputError("say what to find, by example=(query, key) or by pattern=name or array: one of the two.")
    if example is not None:
        return _by_example(runs, _one_each(example, len(runs)))
    if isinstance(pattern, str):
        return _by_name(runs, pattern)
    return _painted(runs, pattern)


def _by_example(traces: list[Trace], examples: list[Example]) -> Scores:
    held: dict[Head, list[Sample]] = {}
    for trace, (source, target) in zip(traces, examples, strict=True):
        found, problem = False, None
        for site in trace.layers:
            try:
                queries = named(trace.query_tokens(site), source)
                keys = named(trace.key_tokens(site), target)
            except UnknownTokenError as unknown:  # these tokens stand in another stack, perhaps
                problem = unknown
                continue
            found = True
            for index, sample in enumerate(_example_samples(trace, site, queries, keys)):
                held.setdefault(site.head(index), []).append(sample)
        if not found and problem is not None:
            raise problem
    shown = {"examples": len(examples)} if len(examples) > 1 else {"from": examples[0][0], "to": examples[0][1]}
    return scores_of("example", held, len(traces), shown)


def lacking(trace: Trace, example: Example) -> UnknownTokenError | None:
    """Why an example cannot be looked for in a trace, in words; None when it can."""
    problem = None
    for site in trace.layers:
        try:
            named(trace.query_tokens(site), example[0])
            named(trace.key_tokens(site), example[1])
            return None
        except UnknownTokenError as unknown:
            problem = problem or unknown
    return problem


def named(tokens: Tokens, choice: TokenChoice) -> list[int]:
    """The positions that a choice names: tokens as they are written, else in another case, else whole words.

    `trace.tokens` names tokens alone; people who ask for a head think in words, and the tokenizer may have cut them.
    """
    if not isinstance(choice, str) or choice.startswith("segment:"):
        return tokens.positions(choice)
    wanted = choice.strip()
    if not wanted:
        raise UnknownTokenError("no word was given: name a token or a word of the text.")
    whole: dict[tuple[str, int], list[int]] = {}
    for place, token in enumerate(tokens):
        if token.word is not None and not token.special:
            whole.setdefault((token.segment, token.word), []).append(place)
    words = {tuple(places): "".join(tokens[place].text.strip() for place in places) for places in whole.values()}
    for same in (str.__eq__, lambda one, other: one.casefold() == other.casefold()):
        found = [place for place, token in enumerate(tokens) if same(token.text.strip(), wanted)]
        found = found or [place for places, word in words.items() if same(word, wanted) for place in places]
        if found:
            return found
    known = list(dict.fromkeys(words.values() if words else tokens.texts))
    shown = ", ".join(known[:WORDS_TOLD]) + (f" and {len(known) - WORDS_TOLD} more" if len(known) > WORDS_TOLD else "")
    raise UnknownTokenError(f"{wanted!r} is not a word of this text: its words are {shown}.")


def _example_samples(trace: Trace, site: Site, queries: list[int], keys: list[int]) -> list[Sample]:
    """Attention to the keys (summed) from the queries (mean), and what each head puts there anyway."""
    patterns, tokens = trace.patterns(site).double(), trace.query_tokens(site)
    weight = weight_between(patterns, queries, keys)
    usual = _usual_across if site.kind == "cross" else usual_at_distance
    baseline = usual(patterns, queries, keys, tokens)
    return [Sample(float(one), 1.0, float(other)) for one, other in zip(weight, baseline, strict=True)]


def _usual_across(patterns: Tensor, queries: Sequence[int], keys: Sequence[int], tokens: Tokens) -> Tensor:
    """What other queries put on the same keys, for each head [head]; 0 where there are no others."""
    others = [place for place, token in enumerate(tokens) if not token.special and place not in queries]
    return weight_between(patterns, others, keys) if others else torch.zeros(len(patterns), dtype=torch.float64)


def _by_name(traces: list[Trace], name: str) -> Scores:
    measure = MEASURES.get(name)
    if measure is None or measure.target is None:
        known = ", ".join(one.name for one in MEASURES.values() if one.target is not None)
        raise HeadscopeError(f"there is no pattern {name!r} to find: there are {known}; or paint one as an array.")
    return _by_target(traces, [measure.target] * len(traces), name, f"{name} needs {measure.needs}.")


def _painted(traces: list[Trace], pattern: Any) -> Scores:
    arrays = [np.asarray(one) for one in _one_each(pattern, len(traces))]
    for trace, array in zip(traces, arrays, strict=True):
        if array.ndim != 2 or not (array != 0).any():
            raise InputError("a painted pattern is an array [query, key] with at least one cell that is not zero.")
        if not any((one.n_queries, one.n_keys) == array.shape for one in trace.layers.values()):
            sizes = {f"{one.n_queries} × {one.n_keys}" for one in trace.layers.values()}
            raise InputError(f"the painted pattern is {array.shape[0]} × {array.shape[1]}, the heads' are {sizes}.")
    chosen = [_cells(array != 0) for array in arrays]
    return _by_target(traces, chosen, "painted", "the painted pattern fits no head.")


def _cells(wanted: np.ndarray) -> TargetOf:
    def cells(places: Places) -> Target | None:
        fits = wanted.shape == (len(places.queries), len(places.keys))
        return Target(wanted) if fits else None

    return cells


def _by_target(traces: list[Trace], targets: Iterable[TargetOf], method: str, problem: str) -> Scores:
    held: dict[Head, list[Sample]] = {}
    for trace, target in zip(traces, targets, strict=True):
        for site in trace.layers:
            samples = samples_on(trace, site, target)
            for index, sample in enumerate(samples or []):
                held.setdefault(site.head(index), []).append(sample)
    if not held:
        raise InputError(problem)
    return scores_of(method, held, len(traces))


def _one_each(given: Any, count: int) -> list[Any]:
    """One for each trace: a list as it is, a single one for all."""
    is_many = isinstance(given, list)
    if is_many and len(given) != count:
        raise InputError(f"{len(given)} were given for {count} traces: give one for each, or one for all.")
    return given if is_many else [given] * count
