"""Answers that are spans of the text (extractive question answering), each with an id of its own.

A span of at most `LONGEST` tokens from `first` on has the id 1 + first · LONGEST + length − 1; id 0 stands for all
pairs of a start and an end that are no answer.
"""

from headscope.traces.tokens import Tokens

LONGEST = 30
NO_SPAN = 0


def span_id(first: int, last: int) -> int:
    """The id of the span of tokens `first` to `last`."""
    return 1 + first * LONGEST + last - first


def span_of(answer_id: int) -> tuple[int, int] | None:
    """The first and last token of a span by its id; None for what is no answer."""
    if answer_id == NO_SPAN:
        return None
    first, more = divmod(answer_id - 1, LONGEST)
    return first, first + more


def span_text(tokens: Tokens, answer_id: int) -> str:
    """The words of a span as they stand in the text."""
    span = span_of(answer_id)
    if span is None:
        return "(no answer)"
    first, last = span
    if first == last == 0 and tokens[0].special:
        return "(no answer: the first token)"
    text, end = "", None
    for token in tokens[first : last + 1]:
        text += (" " if end is not None and token.start != end else "") + token.text.strip()
        end = token.end
    return text


def answer_places(tokens: Tokens) -> list[int]:
    """The tokens that an answer may hold: those of the context, or of the one text there is."""
    segment = "B" if any(token.segment == "B" and not token.special for token in tokens) else "A"
    return [place for place, token in enumerate(tokens) if token.segment == segment and not token.special]
