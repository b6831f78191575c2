"""Cases: for every head the examples in which it does most what its role says, with the words that it joins.

The examples in which a head scores highest are known from the run; they go through the model once more, and the cells
with the largest weights are kept.
"""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from headscope.analysis import MEASURES
from headscope.analysis.measures.counted_in_groups import GROUP, Grouped
from headscope.analysis.measures.rare_words import RareWord
from headscope.analysis.measures.roles import Verdict
from headscope.analysis.measures.targets import places_of
from headscope.corpora import Corpus, Example, align
from headscope.models import Model
from headscope.models.inputs.media import picture
from headscope.progress import Cancel, OnProgress, Steps
from headscope.reports.relevance_sample import source_of
from headscope.runs import MeasureTable, Run
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Tokens, Trace

N_CASES, N_PAIRS = 3, 3
# Cases come from so many examples at the beginning of the corpus, and from texts that can be read at a glance.
FIRST = 2000
LONGEST = 160
_AT_A_TIME = 32
# Of measures that are counted by groups of examples, so many of the best groups are looked at.
_OF_A_GROUP = 6
_WITHOUT_ROLE = "confidence"


DisplayToken = tuple[str, bool, bool, int]


@dataclass(frozen=True, eq=False)
class Case:
    """One example: its tokens as (text, space before, special, word), the strongest pairs as (query, key, weight), and
    the head's score over the example. `queries` are there where they are other tokens than the keys; an image has a
    grid, and its patches are numbered from 0.
    """

    id: str
    about: str
    score: float
    pairs: list[tuple[int, int, float]]
    tokens: list[DisplayToken] = field(default_factory=list)
    queries: list[DisplayToken] | None = None
    image: str | None = None
    grid: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Search:
    """What one head is looked at for: the measure of its role, and examples to look at."""

    measure: str
    about: str
    places: tuple[int, ...]
    offset: int | None = None


def first_examples(examples: Corpus) -> list[Example]:
    """The examples that cases are taken from."""
    return list(islice(examples, FIRST))


def cases(
    model: Model,
    run: Run,
    examples: Sequence[Example],
    scores: Mapping[str, Scores],
    verdicts: Mapping[Head, Verdict],
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> dict[Head, list[Case]]:
    """Up to three cases for every head."""
    tables = {about["name"]: run.table(about["name"]) for about in run.manifest["measures"]}
    searches = {head: _search_for(head, verdict, run, tables, examples, scores) for head, verdict in verdicts.items()}
    rare = next((measure for measure in run.measures if isinstance(measure, RareWord)), None)
    by_place: dict[int, list[Head]] = {}
    for head, search in searches.items():
        for place in search.places:
            by_place.setdefault(place, []).append(head)
    cases_by_head: dict[Head, list[tuple[float, int, Case]]] = {head: [] for head in verdicts}
    ordered, steps = sorted(by_place), Steps("cases", len(by_place), progress)
    for first in range(0, len(ordered), _AT_A_TIME):
        places = ordered[first : first + _AT_A_TIME]
        traces = model.run(
            [source_of(examples[place]) for place in places], record="heads", truncate=True, cancel=cancel
        )
        for place, trace in zip(places, traces, strict=True):
            for head in by_place[place]:
                case = _case(trace, head, examples[place], searches[head], rare)
                if case is not None:
                    cases_by_head[head].append((sum(weight for *_, weight in case.pairs), place, case))
                    cases_by_head[head].sort(key=lambda ranked: (-ranked[0], ranked[1]))
                    del cases_by_head[head][N_CASES:]
        steps.add(len(places))
    return {head: [case for *_, case in ranked] for head, ranked in cases_by_head.items()}


# Which examples


def _search_for(
    head: Head,
    verdict: Verdict,
    run: Run,
    tables: Mapping[str, MeasureTable],
    examples: Sequence[Example],
    scores: Mapping[str, Scores],
) -> _Search:
    """The strongest role that the run has evidence of; without one, the largest weights."""
    evidence = [finding for finding in verdict.findings if finding.measure.partition("/")[0] in tables]
    name, role = (evidence[0].measure, evidence[0].role) if evidence else (_WITHOUT_ROLE, "the largest weights")
    offset = scores[name].settings["offsets"][str(head)] if name == "positional" else None
    measure, _, key = name.partition("/")
    is_grouped = any(counted.name == measure and isinstance(counted, Grouped) for counted in run.measures)
    size = run.manifest["plan"]["block"]
    step = max(size, GROUP) if is_grouped else size
    key = f"{offset:+d}" if offset is not None else key
    relation = key.partition("→")[0] if measure == "syntactic" else None
    places = _best(tables[measure], key, head, examples, size, step, relation) if measure in tables else []
    return _Search(name, role, tuple(places), offset)


def _best(
    table: MeasureTable,
    key: str,
    head: Head,
    examples: Sequence[Example],
    size: int,
    step: int,
    relation: str | None = None,
) -> list[int]:
    """Numbers of the examples in which a head scores highest; long texts are passed over, and those that lack the
    relation. Blocks are `size` examples apart and hold `step`.
    """
    if key not in set(table.keys()):
        return []
    blocks = table.blocks(key)
    if head not in blocks.heads:
        return []
    at = blocks.heads.index(head)
    # Two more queries than there were, so that one hit of one is not the best there can be.
    strength = blocks.total[:, at] / (blocks.n_queries[:, at] + 2)
    order = np.argsort(-strength, kind="stable")
    readable: list[int] = []
    most = _OF_A_GROUP if step > 1 else N_CASES
    for block in order:
        if not blocks.n_queries[block, at] or len(readable) >= most:
            break
        first = int(block) * size
        places = range(first, min(first + step, len(examples)))
        readable += [place for place in places if _is_readable(examples[place], relation)]
    return readable[:most]


def _is_readable(example: Example, relation: str | None) -> bool:
    has_it = relation is None or relation in example.relations
    return has_it and (example.text is None or len(example.text) <= LONGEST)


# Which cells


def _case(trace: Trace, head: Head, example: Example, search: _Search, rare: RareWord | None) -> Case | None:
    cells = _cells(trace, head, example, search, rare)
    if cells is None or not cells.any():
        return None
    pattern = trace.pattern(head)
    if pattern.shape != cells.shape:
        return None  # a layer that sees a coarser grid of the image
    weights = np.where(cells, pattern, -1.0)
    rows = np.flatnonzero(cells.any(1))
    best = weights[rows].argmax(1)
    order = sorted(zip(rows, best, weights[rows, best], strict=True), key=lambda cell: (-cell[2], cell[0]))
    queries, keys = trace.query_tokens(head), trace.key_tokens(head)
    pairs: dict[tuple[Any, Any], tuple[int, int, float]] = {}
    for query, key, weight in order:  # pieces of the same two words are told once
        pairs.setdefault((_word(queries, int(query)), _word(keys, int(key))), (int(query), int(key), float(weight)))
    strongest = list(pairs.values())[:N_PAIRS]
    score = float(np.where(cells, pattern, 0.0)[rows].sum() / len(rows))
    if keys.kind == "patches" and keys.grid is not None and example.image is not None:
        n_special = [len(tokens) - keys.grid[0] * keys.grid[1] for tokens in (queries, keys)]
        shifted = [(query - n_special[0], key - n_special[1], weight) for query, key, weight in strongest]
        return Case(example.id, search.about, score, shifted, image=_small(example.image), grid=keys.grid)
    display = [_display_tokens(tokens) for tokens in (queries, keys)]
    return Case(
        example.id,
        search.about,
        score,
        strongest,
        display[1],
        None if queries is keys or display[0] == display[1] else display[0],
    )


def _cells(trace: Trace, head: Head, example: Example, search: _Search, rare: RareWord | None) -> np.ndarray | None:
    """True where the role wants weight [query, key]."""
    queries, keys = trace.query_tokens(head), trace.key_tokens(head)
    places = places_of(queries, keys, head.kind == "cross")
    measure, _, key = search.measure.partition("/")
    plain = places.plain_queries[:, None] & places.plain_keys
    if measure == "syntactic":
        return _relation_cells(queries, example, key)
    if search.offset is not None:
        return np.eye(len(queries), len(keys), k=search.offset, dtype=bool) & plain
    if measure in ("rare_word", "two_rare_words") and rare is not None:
        counts = [np.inf if token.special or token.id is None else rare.counts.get(token.id, 0) for token in keys]
        return plain & (np.asarray(counts) == min(counts))
    known = MEASURES.get(measure)
    if known is not None and known.target is not None:
        target = known.target(places)
        return None if target is None else target.wanted
    first = np.arange(len(keys)) == 0
    return plain & ~first if trace.layers[head.site].is_causal else plain


def _relation_cells(tokens: Tokens, example: Example, key: str) -> np.ndarray:
    """The cells between the two ends of a relation: "nsubj→head" from the subject."""
    relation, _, way = key.partition("→")
    words = align(tokens, example.spans)
    cells = np.zeros((len(tokens), len(tokens)), dtype=bool)
    for word, (head, name) in enumerate(zip(example.heads, example.relations, strict=True)):
        if name == relation and head >= 0:
            source, target = (word, head) if way == "head" else (head, word)
            cells[np.ix_(words[source], words[target])] = True
    return cells


# How it is shown


def _word(tokens: Tokens, place: int) -> Any:
    """What a token is part of: its word, or nothing but itself."""
    token = tokens[place]
    return place if token.word is None else (token.segment, token.word)


def _display_tokens(tokens: Tokens) -> list[DisplayToken]:
    """Text, whether white space stands before it, whether it is special, and the number of its word, −1 for none."""
    display: list[DisplayToken] = []
    words: dict[tuple[str, int | None], int] = {}
    last = None
    for token in tokens:
        joins = (
            last is not None and token.start is not None and last.end == token.start and last.segment == token.segment
        )
        word = -1 if token.word is None else words.setdefault((token.segment, token.word), len(words))
        display.append((token.text.strip() or token.text, not joins, token.special, word))
        last = token
    return display


def _small(image: Any) -> str:
    """A picture as a data address, no larger than the page draws it."""
    small = picture(image)
    small.thumbnail((96, 96))
    buffer = io.BytesIO()
    small.save(buffer, format="WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def thumbnails(model: Model, examples: Sequence[Example], *, n: int = 3, size: int = 33) -> list[dict[str, Any]]:
    """Patterns of all heads on the same few examples, as bytes on a square-root scale, max-pooled."""
    examples_with_maps = []
    for example in _middling(examples, n):
        trace = model.run(source_of(example), record="heads", truncate=True)
        sites = {}
        for site in trace.layers:
            maps = np.stack([trace.thumbnail(head, size) for head in trace.heads if head.site == site])
            scaled = np.sqrt(np.clip(maps, 0.0, 1.0)) * 255
            packed = base64.b64encode(np.round(scaled).astype(np.uint8).tobytes()).decode()
            sites[str(site)] = {"rows": maps.shape[1], "columns": maps.shape[2], "maps": packed}
        examples_with_maps.append({"id": example.id, "text": example.text or example.id, "sites": sites})
    return examples_with_maps


def _middling(examples: Sequence[Example], n: int) -> Iterator[Example]:
    """Examples of a length that shows in a thumbnail."""
    known = [example for example in examples if example.text is None or 35 <= len(example.text) <= 90] or list(examples)
    return iter([known[place * len(known) // n] for place in range(min(n, len(known)))])
