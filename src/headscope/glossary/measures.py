"""Measures of heads: how each is called, what it says, in which unit, and what chance gives."""

from dataclasses import dataclass, replace

_EVEN = "an even share of the keys that the query sees"
_NONE = "none"


@dataclass(frozen=True)
class MeasureTerm:
    """A measure: its name in code, its label, its meaning in a phrase, its unit (empty: a share, 0 to 1), and chance.

    One with keys gives a score for each: "tags/to NOUN". `group` is where menus list it, `source` whose it is.
    """

    name: str
    label: str
    meaning: str
    unit: str = ""
    chance: str = _EVEN
    group: str = ""
    source: str = ""


_VOITA, _VIG = "Voita et al. (2019)", "Vig & Belinkov (2019)"
_KOBAYASHI, _OLSSON = "Kobayashi et al. (2020)", "Olsson et al. (2022)"
_NO_PARKING = "special tokens and, in a causal model, the first token excluded as keys"

_GROUPS: dict[str, tuple[MeasureTerm, ...]] = {
    "Importance": (
        MeasureTerm(
            "relevance",
            "relevance",
            "how much of the answer's logit came through the head, as a share of its layer (CP-LRP)",
            chance=_NONE,
            source=_VOITA,
        ),
        MeasureTerm(
            "gate_importance",
            "gate gradient",
            "|∂loss / ∂gate|, input by input",
            "loss per gate",
            _NONE,
            source="Michel et al. (2019)",
        ),
        MeasureTerm("ablation", "ablation", "increase of the loss when the head's output is zero", "nats", _NONE),
    ),
    "Shape": (
        MeasureTerm(
            "confidence",
            "confidence",
            f"largest weight of each query, {_NO_PARKING}, weights not renormalised; averaged over queries",
            source=f"{_VOITA}, section 4",
        ),
        MeasureTerm(
            "peak_weight", "peak weight (all keys)", "largest weight of each query on any key; averaged over queries"
        ),
        MeasureTerm(
            "entropy",
            "entropy",
            "how spread out attention is: −Σ a log a, all keys",
            "nats",
            "log of the number of keys that the query sees",
        ),
        MeasureTerm(
            "variability",
            "variability",
            "how much the pattern changes from text to text, first ten tokens",
            chance=_NONE,
            source=_VIG,
        ),
        MeasureTerm(
            "distance",
            "distance",
            f"mean distance to the attended token, {_NO_PARKING}, weights renormalised",
            "tokens",
            "mean distance under even attention",
            source=_VIG,
        ),
        MeasureTerm(
            "distance_all_keys",
            "distance (all keys)",
            "mean distance to the attended token, all keys",
            "tokens",
            "mean distance under even attention",
        ),
    ),
    "Long inputs": (
        MeasureTerm(
            "sink",
            "attention sink",
            "mean weight on the first token, of later queries; the sink rate is the share of heads above 0.3",
            source="Gu et al. (2025)",
        ),
        MeasureTerm(
            "recency",
            "recency",
            "weight on the first token and the last 64, of queries that see more; causal models",
        ),
        MeasureTerm(
            "effective_span",
            "effective span",
            "smallest number of tokens that hold 90 % of a query's attention",
            "tokens",
            "90 % of the keys that the query sees",
        ),
    ),
    "Position": (
        MeasureTerm(
            "positional",
            "positional",
            "how often the largest weight is at the head's most frequent distance",
            chance="an even choice among the keys that the query sees",
            source=f"{_VOITA}, section 5.1",
        ),
        MeasureTerm("previous_token", "previous token", "attention to the token just before"),
        MeasureTerm("next_token", "next token", "attention to the token just after"),
        MeasureTerm("self_token", "self token", "attention to the token itself"),
        MeasureTerm("first_token", "first token", "attention to the first token of the input"),
        MeasureTerm("last_token", "last token", "attention to the last token of the input"),
        MeasureTerm("special_tokens", "special tokens", "attention to special tokens, such as [CLS] and [SEP]"),
    ),
    "Grammar": (
        MeasureTerm(
            "dependency_alignment",
            "dependency alignment",
            "share of attention between words that the tree joins",
            source=_VIG,
        ),
    ),
    "Tokens": (
        MeasureTerm(
            "repeated_induction",
            "induction (repeated tokens)",
            "on random tokens given twice, attention to what followed the same token before",
            source=_OLSSON,
        ),
        MeasureTerm(
            "repeated_duplicate",
            "duplicate token (repeated tokens)",
            "on random tokens given twice, attention to the same token before",
        ),
        MeasureTerm(
            "copying",
            "copying (weights)",
            "of the tokens in sight whose logits the head raises, the share of those that it attends to",
            chance="1 / number of tokens in sight",
            source=_OLSSON,
        ),
        MeasureTerm("induction", "induction", "attention to what followed the same token before", source=_OLSSON),
        MeasureTerm("duplicate_token", "duplicate token", "attention to earlier occurrences of the same token"),
        MeasureTerm("same_token", "same token", "attention to other occurrences of the same token"),
        MeasureTerm(
            "rare_word",
            "rare word",
            "how often the largest weight is on the rarest token",
            chance="an even choice, ties counted",
            source=f"{_VOITA}, section 5.3",
        ),
        MeasureTerm(
            "two_rare_words",
            "two rare words",
            "how often the largest weight is on one of the two rarest tokens",
            chance="an even choice, ties counted",
            source=f"{_VOITA}, section 5.3",
        ),
        MeasureTerm("punctuation", "punctuation", "attention to punctuation marks"),
        MeasureTerm("paired_marks", "paired marks", "attention to the other half of a pair of quotes or brackets"),
        MeasureTerm("names", "names", "attention to words with a capital inside a sentence"),
    ),
    "Two sentences": (
        MeasureTerm(
            "same_word_across",
            "same word across",
            "of the attention that crosses to the other sentence, the share on the same word",
        ),
        *(
            MeasureTerm(
                f"{source.lower()}_to_{target.lower()}",
                f"{source} to {target}",
                f"attention of sentence {source} to sentence {target}",
            )
            for source in "AB"
            for target in "AB"
        ),
    ),
    "What is added": (
        MeasureTerm(
            "norm",
            "output norm",
            "Σ a ‖value · W_O‖: how much attention adds to the output",
            "norm",
            "output norm under even attention",
            source=_KOBAYASHI,
        ),
        *(
            MeasureTerm(
                f"norm_{keys}",
                f"output share of {what}",
                f"of what attention adds to the output, the share of {what}",
                source=_KOBAYASHI,
            )
            for keys, what in (
                ("first", "the first token"),
                ("special", "special tokens"),
                ("punctuation", "punctuation"),
            )
        ),
    ),
    "Images": (
        MeasureTerm("patch_self", "same patch", "attention from a patch to itself"),
        MeasureTerm("patch_neighbour", "neighbouring patches", "attention from a patch to the eight around it"),
        MeasureTerm("patch_row", "same row", "attention from a patch to the rest of its row"),
        MeasureTerm("patch_column", "same column", "attention from a patch to the rest of its column"),
        MeasureTerm(
            "patch_distance",
            "patch distance",
            "mean distance to the attended patch",
            "patches",
            "mean distance under even attention",
        ),
        MeasureTerm(
            "brightness", "brightness", "mean brightness of the attended patches, 0 to 1", chance="mean of all patches"
        ),
        MeasureTerm(
            "frequency",
            "frequency",
            "mean spatial frequency of the attended patches",
            "cycles per patch",
            "mean of all patches",
        ),
        MeasureTerm(
            "like_hue",
            "similar hue",
            "similarity in hue of a patch and those it attends to: cosine of the angle",
            "cosine",
            "mean over all pairs",
        ),
        *(
            MeasureTerm(
                f"like_{what}",
                f"similar {what}",
                f"similarity in {what} of a patch and those it attends to: 1 − difference",
                chance="mean over all pairs",
            )
            for what in ("brightness", "frequency")
        ),
    ),
    "Dependencies": (
        MeasureTerm(
            "syntactic",
            "dependency relation",
            "how often the largest weight is on the other end of the dependency",
            chance="always choosing the relation's most frequent distance",
            source=f"{_VOITA}, section 5.2",
        ),
    ),
    "Alignment": (
        MeasureTerm(
            "alignment",
            "alignment",
            "F1 of each target word's strongest source word with a statistical aligner's links",
            chance="links along the diagonal",
        ),
    ),
    "Parts of speech": (
        MeasureTerm("tags", "part of speech", "share of attention to, and from, each part of speech", source=_VIG),
    ),
    "Hues": (
        MeasureTerm("hue", "hue", "share of attention to patches of each hue", chance="share of patches of that hue"),
    ),
}

MEASURE_TERMS: dict[str, MeasureTerm] = {
    term.name: replace(term, group=group) for group, terms in _GROUPS.items() for term in terms
}

FORMER_NAMES = {
    "confidence": "peak_weight",
    "confidence_plain": "confidence",
    "distance": "distance_all_keys",
    "distance_plain": "distance",
}
"""Measures of runs and reports that were written before "confidence" and "distance" had one meaning each."""


def label(name: str) -> str:
    """A measure as people read it; one that is not ours by its own name.

    >>> label("peak_weight"), label("syntactic/nsubj→head"), label("my_measure")
    ('peak weight (all keys)', 'nsubj → head', 'my measure')
    """
    measure, _, key = name.partition("/")
    if measure == "alignment" and key:
        return f"alignment, the word it {key}"
    if key:
        return key.replace("→", " → ")
    return MEASURE_TERMS[name].label if name in MEASURE_TERMS else name.replace("_", " ")


def meaning(name: str) -> str:
    """What a measure says, in a phrase; empty for one that is not ours."""
    measure, _, key = name.partition("/")
    if measure not in MEASURE_TERMS:
        return ""
    return MEASURE_TERMS[measure].meaning + (f": {key.replace('→', ' → ')}" if key else "")


def unit(name: str) -> str:
    """The unit of a measure; empty for a share."""
    term = MEASURE_TERMS.get(name.partition("/")[0])
    return term.unit if term else ""


def group(name: str) -> str:
    """The group of a measure in menus."""
    term = MEASURE_TERMS.get(name.partition("/")[0])
    return term.group if term else "Others"


def in_order(names: list[str]) -> list[str]:
    """Measures by group, those with keys at the end."""
    places = {name: place for place, name in enumerate(MEASURE_TERMS)}
    return sorted(names, key=lambda name: ("/" in name, places.get(name, len(places)), names.index(name)))


def current_name(former: str) -> str:
    """The name that a measure of an earlier version has now.

    >>> current_name("confidence"), current_name("entropy")
    ('peak_weight', 'entropy')
    """
    return FORMER_NAMES.get(former, former)
