"""Finding heads: which of them does *this*, shown by an example or by a pattern, against what it does anyway."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.measure import MEASURES, samples_on, scores_of
from headscope.analysis.measures.targets import PatternTokens, Target, TargetOf
from headscope.analysis.search.pattern_needs import needs_of, why_absent
from headscope.arguments import instances
from headscope.errors import AbsentPatternError, HeadscopeError, InputError, UnknownTokenError
from headscope.runs.measure import Sample
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
    example for each trace, or one for all). A word in several pieces is all of them, and a word that occurs several
    times is all of its occurrences: the weight is the mean over the queries and the sum over the keys, and
    `settings["occurrences"]` says how many of each there are. Its baseline is the head's own:
    what other queries put at the same distance (on tokens that are not special, unless one is asked about), or, across
    to the source of a translation, on the same keys.
    `pattern` is a measure by its name ("previous_token"), or cells painted on the matrix: an array [query, key] that is
    true (or not zero) where the head should look. Its baseline is chance: an even share of what a query can see. A
    pattern that cannot occur in these inputs, such as induction in a text without repeats, is an `AbsentPatternError`.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.find_heads(trace, example=("She", "nurse")).above(1)[0][0]
    Head('L5H2')
    """
    runs = instances(traces, Trace, "traces", "model.run gives them")
    if not runs:
        raise HeadscopeError("there is nothing to look at: no traces were given.")
    if (example is None) == (pattern is None):
        raise InputError("say what to find, by example=(query, key) or by pattern=name or array: one of the two.")
    if example is not None:
        return _by_example(runs, _one_each(example, len(runs)))
    if isinstance(pattern, str):
        return _by_name(runs, pattern)
    return _by_array(runs, pattern)


def _by_example(traces: list[Trace], examples: list[Example]) -> Scores:
    samples_by_head: dict[Head, list[Sample]] = {}
    most = (1, 1)
    for trace, (source, target) in zip(traces, examples, strict=True):
        has_tokens, problem = False, None
        for site in trace.layers:
            try:
                queries = named_positions(trace.query_tokens(site), source)
                keys = named_positions(trace.key_tokens(site), target)
            except UnknownTokenError as unknown:  # these tokens stand in another stack, perhaps
                problem = unknown
                continue
            has_tokens = True
            counts = (
                n_occurrences(trace.query_tokens(site), queries, source),
                n_occurrences(trace.key_tokens(site), keys, target),
            )
            most = tuple(map(max, most, counts))
            for index, sample in enumerate(_example_samples(trace, site, queries, keys)):
                samples_by_head.setdefault(site.head(index), []).append(sample)
        if not has_tokens and problem is not None:
            raise problem
    settings: dict[str, Any] = (
        {"examples": len(examples)} if len(examples) > 1 else {"from": examples[0][0], "to": examples[0][1]}
    )
    if max(most) > 1:
        settings["occurrences"] = {"from": most[0], "to": most[1]}
    return scores_of("example", samples_by_head, len(traces), settings)


def example_problem(trace: Trace, example: Example) -> UnknownTokenError | None:
    """Why an example cannot be looked for in a trace, in words; None when it can."""
    problem = None
    for site in trace.layers:
        try:
            named_positions(trace.query_tokens(site), example[0])
            named_positions(trace.key_tokens(site), example[1])
            return None
        except UnknownTokenError as unknown:
            problem = problem or unknown
    return problem


def n_occurrences(tokens: Tokens, positions: Sequence[int], choice: TokenChoice) -> int:
    """How many times a word that is named by its text stands in the input; 1 for positions."""
    if not isinstance(choice, str) or choice.startswith("segment:"):
        return 1
    chosen = [(place, tokens[place]) for place in positions]
    # The pieces of a word are one occurrence; a token that is no word (a special one) is one by itself.
    return len({(token.segment, place if token.word is None else f"word {token.word}") for place, token in chosen})


def named_positions(tokens: Tokens, choice: TokenChoice) -> list[int]:
    """The positions that a choice names: tokens as they are written, else in another case, else whole words.

    `trace.tokens` names tokens alone; people who ask for a head think in words, and the tokenizer may have cut them.
    """
    if not isinstance(choice, str) or choice.startswith("segment:"):
        return tokens.positions(choice)
    wanted = choice.strip()
    if not wanted:
        raise UnknownTokenError("no word was given: name a token or a word of the text.")
    words = _words(tokens)
    for same in (str.__eq__, lambda text, other: text.casefold() == other.casefold()):
        positions = [place for place, token in enumerate(tokens) if same(token.text.strip(), wanted)]
        positions = positions or [place for places, word in words.items() if same(word, wanted) for place in places]
        if positions:
            return positions
    known = list(dict.fromkeys(words.values() if words else tokens.texts))
    more = f" and {len(known) - WORDS_TOLD} more" if len(known) > WORDS_TOLD else ""
    raise UnknownTokenError(
        f"{wanted!r} is not a word of this text: its words are {', '.join(known[:WORDS_TOLD])}{more}."
    )


def _words(tokens: Tokens) -> dict[tuple[int, ...], str]:
    """The words of a text by the positions of their pieces."""
    whole: dict[tuple[str, int], list[int]] = {}
    for place, token in enumerate(tokens):
        if token.word is not None and not token.special:
            whole.setdefault((token.segment, token.word), []).append(place)
    return {tuple(places): "".join(tokens[place].text.strip() for place in places) for places in whole.values()}


def _example_samples(trace: Trace, site: Site, queries: list[int], keys: list[int]) -> list[Sample]:
    """Attention to the keys (summed) from the queries (mean), and what each head puts there anyway."""
    patterns, tokens = trace.patterns(site).double(), trace.query_tokens(site)
    weight = weight_between(patterns, queries, keys)
    usual = _usual_across if site.kind == "cross" else usual_at_distance
    baseline = usual(patterns, queries, keys, tokens)
    return [Sample(float(mean), 1.0, float(usually)) for mean, usually in zip(weight, baseline, strict=True)]


def _usual_across(patterns: Tensor, queries: Sequence[int], keys: Sequence[int], tokens: Tokens) -> Tensor:
    """What other queries put on the same keys, for each head [head]; 0 where there are no others."""
    others = [place for place, token in enumerate(tokens) if not token.special and place not in queries]
    return weight_between(patterns, others, keys) if others else torch.zeros(len(patterns), dtype=torch.float64)


def _by_name(traces: list[Trace], name: str) -> Scores:
    measure = MEASURES.get(name)
    if measure is None or measure.target is None:
        known = ", ".join(measure.name for measure in MEASURES.values() if measure.target is not None)
        raise HeadscopeError(f"there is no pattern {name!r} to find: there are {known}; or paint one as an array.")
    scores = _by_target(traces, [measure.target] * len(traces), name)
    if scores is None:
        raise AbsentPatternError(why_absent(name, traces), needs_of(name).example)
    return scores


def _by_array(traces: list[Trace], pattern: Any) -> Scores:
    arrays = [np.asarray(array) for array in _one_each(pattern, len(traces))]
    for trace, array in zip(traces, arrays, strict=True):
        if array.ndim != 2 or not (array != 0).any():
            raise InputError("a painted pattern is an array [query, key] with at least one cell that is not zero.")
        if not any((layer.n_queries, layer.n_keys) == array.shape for layer in trace.layers.values()):
            sizes = {f"{layer.n_queries} × {layer.n_keys}" for layer in trace.layers.values()}
            raise InputError(f"the painted pattern is {array.shape[0]} × {array.shape[1]}, the heads' are {sizes}.")
    chosen = [_cells(array != 0) for array in arrays]
    scores = _by_target(traces, chosen, "painted")
    if scores is None:
        raise InputError(
            "no query can see a painted cell: in a causal model keys stand before their query, or are it. Paint other "
            "cells."
        )
    return scores


def _cells(wanted: np.ndarray) -> TargetOf:
    def cells(places: PatternTokens) -> Target | None:
        fits = wanted.shape == (len(places.queries), len(places.keys))
        return Target(wanted) if fits else None

    return cells


def _by_target(traces: list[Trace], targets: Iterable[TargetOf], method: str) -> Scores | None:
    """The scores of all heads; None where no query of any trace has a cell that it could fill."""
    samples_by_head: dict[Head, list[Sample]] = {}
    for trace, target in zip(traces, targets, strict=True):
        for site in trace.layers:
            samples = samples_on(trace, site, target)
            for index, sample in enumerate(samples or []):
                samples_by_head.setdefault(site.head(index), []).append(sample)
    if not any(sample.n_queries for samples in samples_by_head.values() for sample in samples):
        return None
    return scores_of(method, samples_by_head, len(traces))


def _one_each(choice: Any, count: int) -> list[Any]:
    """One for each trace: a list as it is, a single one for all."""
    is_many = isinstance(choice, list)
    if is_many and len(choice) != count:
        raise InputError(f"{len(choice)} were given for {count} traces: give one for each, or one for all.")
    return choice if is_many else [choice] * count
