"""Two runs: two edits, two checkpoints, two texts or two models; what differs, in which heads, and what it did."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from headscope.attention.divergence import jensen_shannon, total_variation, with_missing_weight
from headscope.errors import InputError, UnknownTokenError
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces.difference import Difference, DifferenceLayer, Half, difference_layer
from headscope.traces.layer import LayerRecord
from headscope.traces.pattern_reading import Reading
from headscope.traces.predictions import Prediction
from headscope.traces.rectangles import Rows, Where
from headscope.traces.relations import Relation, ranking
from headscope.traces.token_alignment import Align, Alignment, align
from headscope.traces.tokens import Tokens
from headscope.traces.trace import Trace

By = Literal["tokens", "words"]
Distance = Literal["total_variation", "jensen_shannon"]
_BAND_CELLS = 2**22


def compare(a: Trace, b: Trace, *, by: By | None = None, align: Align = "text") -> "Comparison":
    """Two runs beside each other: `a` minus `b` on the tokens they share, or the same relation in two models.

    Tokens are aligned by their texts: the longest common subsequence, and between its parts stretches of equal length
    one for one ("She" with "He"). `by="words"` aligns whole words, which two tokenizers find alike in the same text; it
    is chosen by itself where two models read the same text as different tokens. `align="position"` aligns the first
    token with the first, and so on, whatever they read.

    >>> import headscope as hs
    >>> model = hs.load("builtin:gpt")
    >>> hs.compare(model.run("She sat."), model.run("He sat.")).change().top(1)[0][0]
    Head('L4H7')
    """
    for name, trace in (("a", a), ("b", b)):
        if isinstance(trace, Difference):
            raise InputError("a difference cannot be compared again: compare the runs themselves.")
        if not isinstance(trace, Trace):
            raise InputError(f"{name} must be a trace, as model.run() returns it, not {type(trace).__name__}.")
    if by not in (None, *get_args(By)):
        raise InputError(f"by={by!r} is not known: choose 'tokens' or 'words'.")
    if align not in get_args(Align):
        raise InputError(f"align={align!r} is not known: choose 'text' or 'position'.")
    return Comparison.of(a, b, by or _default_by(a, b), align)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs and which of their tokens (or words) stand for the same, stack by stack."""

    a: Trace
    b: Trace
    by: By
    alignment: dict[str, Alignment]

    @classmethod
    def of(cls, a: Trace, b: Trace, by: By = "tokens", how: Align = "text") -> "Comparison":
        """Compare two traces, if anything in them corresponds."""
        return cls(a, b, by, align(a, b, by, how))

    def __repr__(self) -> str:
        return f"Comparison({self.a.model!r}, {self.b.model!r}: {self.line})"

    @property
    def line(self) -> str:
        """How far the two correspond, in words."""
        many = len(self.alignment) > 1
        return "; ".join(
            f"{stack}: {alignment.line}" if many else alignment.line for stack, alignment in self.alignment.items()
        )

    @property
    def is_identical(self) -> bool:
        """Whether all tokens of both runs correspond, position by position."""
        return all(alignment.is_plain for alignment in self.alignment.values())

    @property
    def no_difference(self) -> str:
        """Why one cannot be subtracted from the other, head by head; empty if it can."""
        if self.a.heads != self.b.heads:
            shapes = [_shape(trace) for trace in (self.a, self.b)]
            return (
                f"the two runs have different heads ({shapes[0]} and {shapes[1]}), so they cannot be subtracted "
                "head by head: look at them side by side, or at one relation in both"
            )
        if self.a.model != self.b.model and _tokenizers_differ(self.a, self.b):
            return (
                f"{self.a.model} and {self.b.model} read text as different tokens, so their heads have nothing "
                "to do with each other: look at them side by side, or at one relation in both"
            )
        missing = [stack for stack in self.a.tokens if stack not in self.alignment]
        missing += [name for stack, alignment in self.alignment.items() if (name := alignment.other_stack) != stack]
        if missing:
            return f"the stacks {', '.join(missing)} have no partner in the other run"
        for site in self.a.layers:
            first, second = self._half(0, site, None), self._half(1, site, None)
            if first.shape != second.shape:
                return f"{site} sees {first.shape} places in one run and {second.shape} in the other"
        return ""

    # The difference

    def difference(
        self,
        *,
        by: Literal["tokens", "words", "sentences"] = "tokens",
        hide: Sequence[tuple[str | None, int]] = (),
    ) -> Difference:
        """The first run minus the second, as a trace of the aligned tokens: `hs.head_view` and the like take it too.

        `by` reads the aligned tokens together; `hide` leaves some out, as (stack, place among the aligned), and brings
        the rows of both runs back to one before they are subtracted.
        """
        if reason := self.no_difference:
            raise InputError(f"{reason}.")
        read = {stack: self._read(alignment, by, hide) for stack, alignment in self.alignment.items()}
        layers: dict[Site, LayerRecord] = {}
        for site, layer in self.a.layers.items():
            halves = [self._half(side, site, read) for side in (0, 1)]
            layers[site] = difference_layer(halves[0], halves[1], layer.key_stack)
        model = self.a.model
        return Difference(
            model if model == self.b.model else f"{model} − {self.b.model}",
            "heads",
            layers,
            {stack: tokens for stack, (_, _, tokens) in read.items()},
            inputs=self.a.inputs,
            edits=self.a.edits,
            answers=self.a.answers,
            steps=None,
            warnings=tuple(dict.fromkeys([*self.a.warnings, *self.b.warnings])),
            comparison=self,
            other_layers=self.a.other_layers,
        )

    def pattern(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Attention of the first run minus attention of the second, over the aligned tokens [query, key]."""
        return self.difference().pattern(place, rows=rows, columns=columns)

    def change(self, distance: Distance = "total_variation", *, over: Literal["mean", "max"] = "mean") -> Scores:
        """How far each head moved: the distance of the two patterns, query by query, their mean or the largest. Total
        variation goes from 0 to 1, Jensen-Shannon divergence from 0 to ln 2 = 0.693 nats. What goes to tokens without a
        partner counts as one more key.
        """
        return self.changes([distance], over=over)[distance]

    def changes(
        self, distances: Sequence[Distance] = get_args(Distance), *, over: Literal["mean", "max"] = "mean"
    ) -> dict[Distance, Scores]:
        """Several distances at once, for the price of one: patterns are computed once."""
        for distance in distances:
            if distance not in get_args(Distance):
                raise InputError(f"there is no distance {distance!r}: choose one of {', '.join(get_args(Distance))}.")
        if over not in ("mean", "max"):
            raise InputError(f"over={over!r} is not known: choose 'mean' or 'max'.")
        values: dict[Distance, dict[Head, float]] = {distance: {} for distance in distances}
        n_queries = 0
        for layer in self.difference().layers.values():
            assert isinstance(layer, DifferenceLayer)
            n_queries = max(n_queries, layer.n_queries)
            for distance, moved in _distances(layer, distances).items():
                change_by_head = moved.mean(1) if over == "mean" else moved.amax(1)
                values[distance] |= dict(zip(layer.heads(), change_by_head.tolist(), strict=True))
        options = {"over": over, "aligned": self.line}
        return {
            distance: Scores(distance, change_by_head, options, n_queries)
            for distance, change_by_head in values.items()
        }

    def predictions(self, k: int = 5) -> list[tuple[Prediction, float]]:
        """The likely answers of both runs, each with its log-probability in the first minus that in the second (NaN if
        one side lacks it)."""
        was = {candidate.id: candidate for candidate in self.b.predictions(50)}
        now = {candidate.id: candidate for candidate in self.a.predictions(50)}
        candidates = dict.fromkeys([*list(now)[:k], *list(was)[:k]])
        return [
            (
                now.get(key) or was[key],
                now[key].logprob - was[key].logprob if key in now and key in was else float("nan"),
            )
            for key in candidates
        ]

    # The same relation in both

    def relation(self, source: str | int, target: str | int) -> Relation:
        """The heads of each model by how much the source word looks at the target word, against what each head gives
        any word at that distance; with relative depth, so that models of different shape compare.

        Words are named by their text (all of that text, upper and lower case alike) or by their place among
        `comparison.words`.
        """
        places, alignment = {}, self._words()
        for name, word in (("source", source), ("target", target)):
            places[name] = _word_places(alignment.tokens, word)
        sides = []
        for trace, stack, groups in (
            (self.a, alignment.stack, alignment.ones),
            (self.b, alignment.other_stack, alignment.others),
        ):
            reading = Reading.plain(trace.tokens[stack]).merge(_word_of)
            words_at = {name: [_group_of(reading, groups[place]) for place in some] for name, some in places.items()}
            sides.append(ranking(trace, stack, reading, words_at["source"], words_at["target"]))
        texts = [alignment.tokens[places[name][0]].text for name in ("source", "target")]
        return Relation(texts[0], texts[1], sides[0], sides[1])

    @property
    def words(self) -> list[str]:
        """The words that both runs have, in order."""
        return self._words().tokens.texts

    def _words(self) -> Alignment:
        if self.by == "words":
            return next(iter(self.alignment.values()))
        alignment = next(iter(align(self.a, self.b, "words", "text").values()))
        if alignment.tokens.kind != "text":
            raise InputError(f"relations are between words, and these runs read {alignment.noun}.")
        return alignment

    def read(self, stack: str, by: str = "tokens", hide: Sequence[tuple[str | None, int]] = ()) -> Reading:
        """How the aligned tokens of a stack are read: by words or sentences, without those that are hidden."""
        reading = Reading.plain(self.alignment[stack].tokens)
        gone = sorted({place for named, place in hide if named in (None, stack)})
        reading = reading.without(gone, True) if gone else reading
        return reading if by == "tokens" else reading.merge(_word_of if by == "words" else _sentence_of)

    # Inside

    def _read(
        self, alignment: Alignment, by: str, hide: Sequence[tuple[str | None, int]]
    ) -> tuple[Reading | None, Reading | None, Tokens]:
        """How both runs are read in a stack, and its tokens; None where they are as they were recorded."""
        reading = self.read(alignment.stack, by, hide)
        if by == "tokens" and not reading.renormalise and alignment.is_plain:
            return None, None, alignment.tokens
        first, second = alignment.readings(reading.groups, reading.tokens, reading.renormalise or alignment.renormalise)
        return first, second, reading.tokens

    def _half(self, side: int, site: Site, read: dict | None) -> Half:
        """One run in one layer; a layer that sees other places than its stack has tokens is read as it is."""
        trace = (self.a, self.b)[side]
        layer = trace.layers[site]
        readings = []
        for stack, length in ((layer.site.stack, layer.n_queries), (layer.key_stack, layer.n_keys)):
            alignment = self.alignment.get(stack)
            if alignment is None or len(trace.tokens[stack]) != length:
                readings.append(None)
            elif read is not None:
                readings.append(read[stack][side])
            else:
                readings.append(self._read(alignment, "tokens", ())[side])
        return Half(layer, replace(trace, readings={}), readings[0], readings[1])


def _default_by(a: Trace, b: Trace) -> By:
    """By words where two models read text as different tokens; else by tokens."""
    return "words" if a.model != b.model and _tokenizers_differ(a, b) else "tokens"


def _tokenizers_differ(a: Trace, b: Trace) -> bool:
    """Whether the same text became different tokens; of two texts, whether the special tokens around them differ."""
    if any(tokens.kind != "text" for trace in (a, b) for tokens in trace.tokens.values()):
        return False
    if set(a.tokens) != set(b.tokens):
        return True
    texts = [None if trace.inputs is None else (trace.inputs.text, trace.inputs.pair) for trace in (a, b)]
    if texts[0] is not None and texts[0] == texts[1]:
        return any(a.tokens[stack].texts != b.tokens[stack].texts for stack in a.tokens)
    special = [
        {token.text for tokens in trace.tokens.values() for token in tokens if token.special} for trace in (a, b)
    ]
    return special[0] != special[1]


def _distances(layer: DifferenceLayer, distances: Sequence[Distance]) -> dict[Distance, Tensor]:
    """The distances of the two patterns [head, query], a band of rows at a time."""
    assert layer.halves is not None
    size = max(1, _BAND_CELLS // max(1, layer.n_heads * layer.n_keys))
    measures = {"total_variation": total_variation, "jensen_shannon": jensen_shannon}
    bands_by_distance: dict[Distance, list[Tensor]] = {distance: [] for distance in distances}
    for first in range(0, layer.n_queries, size):
        rows = slice(first, min(first + size, layer.n_queries))
        a, b = (with_missing_weight(half.patterns(slice(None), rows)) for half in layer.halves)
        for distance in distances:
            bands_by_distance[distance].append(measures[distance](a, b))
    return {distance: torch.cat(bands, 1) for distance, bands in bands_by_distance.items()}


def _word_of(token) -> object:
    return None if token.special or token.word is None else (token.segment, token.word)


def _sentence_of(token) -> object:
    return None if token.special or token.sentence is None else (token.segment, token.sentence)


def _word_places(words: Tokens, word: str | int) -> list[int]:
    if isinstance(word, int):
        return words.positions(word)
    matches = [place for place, token in enumerate(words) if word.lower() in token.text.lower().split(" / ")]
    if not matches:
        raise UnknownTokenError(f"no word that both runs have reads {word!r}: they are {words.texts[:40]}.")
    return matches


def _group_of(reading: Reading, group: tuple[int, ...]) -> int:
    return next(place for place, positions in enumerate(reading.groups) if group[0] in positions)


def _shape(trace: Trace) -> str:
    heads = sorted({layer.n_heads for layer in trace.layers.values()})
    n_layers = len(trace.layers)
    return f"{n_layers} layer{'s' * (n_layers > 1)} of {' or '.join(map(str, heads))} head{'s' * (heads[-1] > 1)}"
