"""What an input needs so that a pattern can occur in it, and an example input for each pattern."""

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.analysis.measures.catalogue import MEASURES
from headscope.glossary import label
from headscope.traces import Trace

_TEXT_KINDS = ("text", "source-target", "pair", "text-image", "target")


@dataclass(frozen=True)
class PatternNeeds:
    """Why a pattern cannot occur in an input that lacks what it needs, and an input in which it can.

    `kinds` are the kinds of input of which a model must take one (none: any will do); `looks_ahead` patterns cannot
    occur in a causal model. `text` is empty where no text helps.
    """

    lacks: str
    text: str = ""
    pair: str | None = None
    kinds: tuple[str, ...] = ()
    looks_ahead: bool = False

    @property
    def example(self) -> str:
        """The example input in words: the text, or both texts of a pair."""
        return repr(self.text) + (f" with the pair {self.pair!r}" if self.pair else "") if self.text else ""


_REPEATS = PatternNeeds(
    "no token repeats in this text",
    "red stone, blue river, green hill, old gate. red stone, blue river, green hill, old",
    kinds=_TEXT_KINDS,
)
_PAIR = "The boy bought a new bicycle yesterday.", "Yesterday the boy bought a new bike."
_ONE_SENTENCE = PatternNeeds("this input is one text, not a pair of sentences A and B", *_PAIR, kinds=("pair",))
_IMAGE = PatternNeeds("this input is not an image", kinds=("image", "text-image"))

NEEDS: dict[str, PatternNeeds] = {
    "next_token": PatternNeeds("a causal model cannot look at the token after the query", looks_ahead=True),
    "special_tokens": PatternNeeds("this input has no special tokens"),
    "duplicate_token": _REPEATS,
    "same_token": _REPEATS,
    "induction": _REPEATS,
    "punctuation": PatternNeeds(
        "this text has no punctuation marks", "The doctor asked the nurse a question. She said yes.", kinds=_TEXT_KINDS
    ),
    "paired_marks": PatternNeeds(
        "no quotes or brackets open and close in this text",
        "The miller (a tall man) said: (come in) and opened the door.",
        kinds=_TEXT_KINDS,
    ),
    "names": PatternNeeds(
        "no word inside a sentence begins with a capital letter",
        "The teacher gave Anna a book, and Anna gave Tom the book.",
        kinds=_TEXT_KINDS,
    ),
    "same_word_across": PatternNeeds(
        "this input has no two sentences that share a word", *_PAIR, kinds=("pair", "source-target")
    ),
    **dict.fromkeys(("a_to_a", "a_to_b", "b_to_a", "b_to_b"), _ONE_SENTENCE),
    **dict.fromkeys(("patch_self", "patch_neighbour", "patch_row", "patch_column"), _IMAGE),
}


def needs_of(pattern: str) -> PatternNeeds:
    """What a pattern needs; a pattern that any input has lacks only tokens."""
    return NEEDS.get(pattern, PatternNeeds("this input has no tokens for it"))


def why_absent(pattern: str, traces: Sequence[Trace]) -> str:
    """One sentence: why the pattern cannot occur in any of these traces."""
    lacks = needs_of(pattern).lacks
    is_of_text = "text" in MEASURES[pattern].asks
    tokens = [tokens for trace in traces for tokens in trace.tokens.values()]
    if is_of_text and all(token.id is None for some in tokens for token in some):
        lacks = "this input is not text"
    many = f" (true of all {len(traces)} inputs)" if len(traces) > 1 else ""
    return f"{lacks}{many}, so {label(pattern)} cannot be seen here."
