"""Every measure by its name: what it is about, what it needs, and how it is counted over a corpus."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headscope.analysis.measures import dependency_alignment, long_inputs, norms, patches, row_statistics, targets
from headscope.analysis.measures.corpus_contents import Inventory
from headscope.analysis.measures.long_inputs import Sink
from headscope.analysis.measures.positional import Positional
from headscope.analysis.measures.rare_words import N_FREQUENT, RareWord
from headscope.analysis.measures.syntactic import Syntactic
from headscope.analysis.measures.tags import TagShares
from headscope.analysis.measures.targets import Target, TargetOf, places_of
from headscope.analysis.measures.variability import Variability
from headscope.glossary import MEASURE_TERMS, MeasureTerm
from headscope.runs import Measure, OfCells, OfLayers
from headscope.runs.measure import Sample, Tallies
from headscope.traces import LayerRecord, Tokens

_REPEATS = "a text with token ids in which one occurs more than once"
_PAIR = "a pair of sentences: run the model on a pair"
_PATCHES = "an image: a grid of patches"
_PICTURES = "the pictures: give them as examples, to a model that does not crop them"
_TREES = "a treebank: examples with words, heads and relations, in CoNLL-U"


@dataclass(frozen=True)
class Quantity:
    """A quantity of every head: the weight on a target, what a function counts of a layer, or more than that (`build`).

    `figure` gives the same from a layer's summary, without its pattern. `needs` says in words which inputs it is about,
    `asks` which parts of an example it cannot do without. Label, meaning and unit are in the glossary.
    """

    name: str
    target: TargetOf | None = None
    figure: Callable[[LayerRecord], list[Sample]] | None = None
    function: Callable[..., Tallies] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    build: Callable[[Inventory], Measure] | None = None
    needs: str = "a text"
    asks: tuple[str, ...] = ()

    @property
    def term(self) -> MeasureTerm:
        """Its label, meaning, unit and chance."""
        return MEASURE_TERMS[self.name]

    def over(self, inventory: Inventory) -> Measure:
        """The measure for a run, or for traces."""
        if self.target is not None:
            return OfCells(self.name, partial(_cells, self.name))
        if self.function is not None:
            return OfLayers(self.name, self.function, dict(self.settings))
        assert self.build is not None
        return self.build(inventory)

    def applies(self, inventory: Inventory) -> bool:
        """Whether a corpus has what it asks for."""
        have = {part for part, count in inventory.has.items() if count}
        if len(inventory.tokens) > N_FREQUENT:
            have.add("rare tokens")
        if inventory.tag_column is not None:
            have.add("tags")
        if "image" in have and not inventory.crops:
            have.add("pictures")
        if have & {"pair", "target"}:
            have.add("two sentences")
        return have.issuperset(self.asks)


def _cells(name: str, queries: Tokens, keys: Tokens, *, is_cross: bool) -> Target | None:
    target = MEASURES[name].target
    assert target is not None
    return target(places_of(queries, keys, is_cross))


def _rare(inventory: Inventory, name: str, among: int) -> Measure:
    return RareWord(name, inventory.tokens, among)


def _tags(inventory: Inventory) -> Measure:
    column = inventory.tag_column or "upos"
    return TagShares("tags", column, sorted(inventory.tags.get(column, ())))


_TEXT: dict[str, Any] = {"asks": ("text",)}
_IMAGE: dict[str, Any] = {"asks": ("image",), "needs": _PATCHES}
_LOOKS: dict[str, Any] = {"asks": ("pictures",), "needs": _PICTURES}

# Adding a measure is adding a small file, or a function to one that is there, and a line here.
MEASURES: dict[str, Quantity] = {
    measure.name: measure
    for measure in (
        # How a row is shaped
        Quantity(
            "confidence",
            function=row_statistics.confidence,
        ),
        Quantity(
            "peak_weight",
            figure=row_statistics.summary_peak_weight,
            function=row_statistics.peak_weight,
        ),
        Quantity(
            "entropy",
            figure=row_statistics.summary_entropy,
            function=row_statistics.entropy,
        ),
        Quantity(
            "distance",
            function=row_statistics.distance,
            **_TEXT,
        ),
        Quantity(
            "distance_all_keys",
            figure=row_statistics.summary_distance_all_keys,
            function=row_statistics.distance_all_keys,
        ),
        Quantity(
            "variability",
            build=lambda _: Variability(),
            needs="two texts or more, of at least ten tokens",
            **_TEXT,
        ),
        # On long inputs
        Quantity(
            "sink",
            build=lambda _: Sink(),
            **_TEXT,
        ),
        Quantity(
            "recency",
            function=long_inputs.recency,
            needs=f"a causal model, and a text of more than {long_inputs.WINDOW + 1} tokens",
            **_TEXT,
        ),
        Quantity(
            "effective_span",
            function=long_inputs.effective_span,
            **_TEXT,
        ),
        # By where a token stands
        Quantity("self_token", targets.self_token),
        Quantity("previous_token", targets.previous_token),
        Quantity("next_token", targets.next_token),
        Quantity("first_token", targets.first_token),
        Quantity("last_token", targets.last_token),
        Quantity(
            "positional",
            build=lambda _: Positional(),
            **_TEXT,
        ),
        Quantity(
            "special_tokens",
            targets.special_tokens,
            needs="an input with special tokens, such as [CLS]",
        ),
        # By what a token is
        Quantity(
            "duplicate_token",
            targets.duplicate_token,
            needs=_REPEATS,
            **_TEXT,
        ),
        Quantity("same_token", targets.same_token, needs=_REPEATS, **_TEXT),
        Quantity("induction", targets.induction, needs=_REPEATS, **_TEXT),
        Quantity("punctuation", targets.punctuation, needs="a text with punctuation marks", **_TEXT),
        Quantity(
            "paired_marks",
            targets.paired_marks,
            needs="a text with quotes or brackets that open and close",
            **_TEXT,
        ),
        Quantity(
            "names",
            targets.names,
            needs="a text with capital letters inside sentences",
            **_TEXT,
        ),
        *(
            Quantity(
                name,
                build=partial(_rare, name=name, among=among),
                needs=f"texts with more than {N_FREQUENT} different tokens between them",
                asks=("text", "rare tokens"),
            )
            for name, among in (("rare_word", 1), ("two_rare_words", 2))
        ),
        # Across two sentences
        Quantity(
            "same_word_across",
            targets.same_word_across,
            needs="a pair of sentences that share words: run the model on a pair",
            asks=("two sentences",),
        ),
        *(
            Quantity(
                f"{source.lower()}_to_{other.lower()}",
                targets.between(source, other),
                needs=_PAIR,
                asks=("pair",),
            )
            for source in "AB"
            for other in "AB"
        ),
        # By grammar
        Quantity(
            "tags",
            build=_tags,
            needs="examples with words and tags, such as those of CoNLL-U or CoNLL-2000",
            asks=("words", "tags"),
        ),
        Quantity(
            "dependency_alignment",
            function=dependency_alignment.dependency_alignment,
            needs=_TREES,
            asks=("trees",),
        ),
        Quantity(
            "syntactic",
            build=lambda inventory: Syntactic("syntactic", inventory.modal_offsets),
            needs=_TREES,
            asks=("trees",),
        ),
        # By what it adds
        Quantity(
            "norm",
            function=norms.norm,
            needs="values and the output projection: a trace with record='heads'",
        ),
        *(
            Quantity(
                f"norm_{keys}",
                function=norms.norm_share,
                settings={"keys": keys},
                needs=f"values and the output projection, and {what}",
                asks=asks,
            )
            for keys, what, asks in (
                ("first", "the first token", ()),
                ("special", "special tokens", ()),
                ("punctuation", "marks", ("text",)),
            )
        ),
        # On images
        Quantity("patch_self", targets.patch_self, **_IMAGE),
        Quantity("patch_neighbour", targets.patch_neighbour, **_IMAGE),
        Quantity("patch_row", targets.patch_row, **_IMAGE),
        Quantity("patch_column", targets.patch_column, **_IMAGE),
        Quantity(
            "patch_distance",
            function=patches.patch_distance,
            **_IMAGE,
        ),
        Quantity(
            "brightness",
            function=patches.preference,
            settings={"of": "brightness"},
            **_LOOKS,
        ),
        Quantity(
            "frequency",
            function=patches.preference,
            settings={"of": "frequency"},
            **_LOOKS,
        ),
        Quantity("hue", function=patches.hue, **_LOOKS),
        *(
            Quantity(
                f"like_{of}",
                function=patches.likeness,
                settings={"of": of},
                **_LOOKS,
            )
            for of in ("hue", "brightness", "frequency")
        ),
    )
}
