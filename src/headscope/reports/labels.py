"""How measures and roles are called and grouped on a page."""

from headscope.analysis import MEASURES
from headscope.analysis.measures.roles import Finding, Verdict

# Groups of measures, in the order of the page's menus.
GROUPS: dict[str, tuple[str, ...]] = {
    "Importance": ("relevance", "gate_importance", "ablation"),
    "Shape": ("confidence_plain", "confidence", "entropy", "variability", "distance_plain", "distance"),
    "Position": (
        "positional", "previous_token", "next_token", "self_token", "first_token", "last_token", "special_tokens",
    ),
    "Grammar": ("dependency_alignment",),
    "Tokens": (
        "repeated_induction", "repeated_duplicate", "copying", "induction", "duplicate_token", "same_token",
        "rare_word", "two_rare_words", "punctuation", "paired_marks", "names",
    ),
    "Two sentences": ("same_word_across", "a_to_a", "a_to_b", "b_to_a", "b_to_b"),
    "What is added": ("norm", "norm_first", "norm_special", "norm_punctuation"),
    "Images": (
        "patch_self", "patch_neighbour", "patch_row", "patch_column", "patch_distance", "brightness", "frequency",
        "like_hue", "like_brightness", "like_frequency",
    ),
}  # fmt: skip
PARTS = {"syntactic": "Dependencies", "alignment": "Alignment", "tags": "Parts of speech", "hue": "Hues"}

_ABOUT = {
    "relevance": "how much of the answer's logit came through the head, as a share of its layer (CP-LRP)",
    "gate_importance": "|∂loss / ∂gate|, input by input (Michel et al., 2019)",
    "ablation": "what the loss gains when the head's output is zero",
    "repeated_induction": "on random tokens given twice, attention to what followed the same token before",
    "alignment": "F1 of each target word's strongest source word with a statistical aligner's links",
    "copying": "of what the head raises among the tokens in sight, the share of those that it attends to (by weights)",
    "repeated_duplicate": "on random tokens given twice, attention to the same token before",
}
_LABELS = {
    "confidence_plain": "confidence",
    "confidence": "confidence, special tokens too",
    "distance_plain": "distance",
    "distance": "distance, special tokens too",
    "repeated_induction": "induction, repeated tokens",
    "repeated_duplicate": "duplicate, repeated tokens",
    "gate_importance": "gate gradient",
    "a_to_a": "A to A",
    "a_to_b": "A to B",
    "b_to_a": "B to A",
    "b_to_b": "B to B",
}
_UNITS = {"ablation": "nats"}

# Families of roles: their key on the page, and the kinds in them.
_FAMILIES = {
    "position": ("positional",),
    "syntax": ("syntactic",),
    "copying": ("induction", "duplicate token", "same token"),
    "rare": ("rare words",),
    "across": ("same word across", "alignment", "from A to B", "from B to A"),
    "marks": ("punctuation", "paired marks", "names"),
    "image": ("the patch itself", "local patches", "the row", "the column"),
    "rest": ("rests on the first token", "rests on the last token", "rests on special tokens"),
}
_SHORT = {
    "previous token": "−1", "next token": "+1", "the token itself": "0", "induction": "ind",
    "rare words": "rare", "rare words (many tied)": "rare?",
    "duplicate token": "dup", "same token": "same", "same word across": "same", "from A to B": "A→B",
    "from B to A": "B→A", "punctuation": ".,", "paired marks": "( )", "names": "name", "the patch itself": "self",
    "alignment: the word it writes": "align", "alignment: the word it reads": "align",
    "local patches": "local", "the row": "row", "the column": "col", "rests on the first token": "1st",
    "rests on the last token": "last", "rests on special tokens": "rest",
}  # fmt: skip


def label(name: str) -> str:
    """A measure as a person reads it: "syntactic/nsubj→head" is "nsubj → head"."""
    measure, _, key = name.partition("/")
    if measure == "alignment":
        return f"alignment, the word it {key}"
    if key:
        return key.replace("→", " → ")
    return _LABELS.get(measure, measure.replace("_", " "))


def about(name: str) -> str:
    """What a measure is, in a sentence."""
    measure, _, key = name.partition("/")
    known = MEASURES.get(measure)
    description = _ABOUT.get(measure, known.about if known is not None else "")
    description = description[:1].upper() + description[1:]
    return f"{description}: {key.replace('→', ' → ')}" if key else description


def unit(name: str) -> str:
    """The unit of a measure; empty for a share."""
    known = MEASURES.get(name.partition("/")[0])
    return _UNITS.get(name, known.unit if known is not None else "")


def group(name: str) -> str:
    """The group of a measure."""
    measure, _, key = name.partition("/")
    if key:
        return PARTS.get(measure, measure)
    return next((group for group, names in GROUPS.items() if measure in names), "Others")


def in_order(names: list[str]) -> list[str]:
    """Measures by group, those with keys at the end."""
    known = {name: place for place, name in enumerate(name for names in GROUPS.values() for name in names)}
    return sorted(names, key=lambda name: ("/" in name, known.get(name, len(known)), names.index(name)))


def family(verdict: Verdict) -> str:
    """The family of a head's role."""
    if not verdict.findings:
        return "none"
    kind = verdict.findings[0].kind
    return next(name for name, kinds in _FAMILIES.items() if kind in kinds)


def short(verdict: Verdict) -> str:
    """A role in a few letters, so that colour is never all there is."""
    return _short(verdict.findings[0]) if verdict.findings else ""


def _short(finding: Finding) -> str:
    if finding.kind == "syntactic":
        return finding.role.partition(": ")[2].partition("→")[0].partition(":")[0][:5]
    if finding.role in _SHORT:
        return _SHORT[finding.role]
    n, _, way = finding.role.partition(" tokens ")  # "3 tokens back"
    return f"{'−' if way == 'back' else '+'}{n}"
