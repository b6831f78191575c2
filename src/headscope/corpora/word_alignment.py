"""Words and sub-words, laid side by side by the characters they stand for."""

import itertools
from collections.abc import Sequence

from headscope.corpora.example import Span
from headscope.traces import Tokens


def align(tokens: Tokens, words: Sequence[Span], *, segment: str = "A") -> list[tuple[int, ...]]:
    """For each word (a span of characters of the text) the positions of its tokens.

    A token belongs to one word: that with which it shares most characters, the first of equals. So a token that
    covers two words leaves the second without; words past the end of a text that was cut, or that the tokenizer
    dropped, have none either. Special tokens belong to no word.

    >>> from headscope.traces.tokens import Token
    >>> pieces = (Token("un", start=0, end=2), Token("do", start=2, end=4), Token("it", start=5, end=7))
    >>> align(Tokens(pieces), [(0, 4), (5, 7)])
    [(0, 1), (2,)]
    """
    positions_by_word: list[list[int]] = [[] for _ in words]
    order = sorted(range(len(words)), key=lambda word: (words[word], word))
    first = 0
    for position, token in enumerate(tokens):
        if token.special or token.segment != segment or token.start is None or token.end is None:
            continue
        # Tokens come in the order of the text, but for those that share a character; words never go back.
        while first < len(order) and words[order[first]][1] <= token.start:
            first += 1
        best, most = None, 0
        for word in itertools.islice(order, first, None):
            start, end = words[word]
            if start >= token.end:
                break
            shared = min(end, token.end) - max(start, token.start)
            if shared > most:
                best, most = word, shared
        if best is not None:
            positions_by_word[best].append(position)
    return [tuple(positions) for positions in positions_by_word]
