"""Sentences that come with their tree: pasted as CoNLL-U in place of a text."""

from headscope.corpora import Example
from headscope.corpora.conllu import looks_like_conllu, parse_conllu
from headscope.errors import InputError
from headscope.server.messages import RunRequest


def gold_of(request: RunRequest) -> Example | None:
    """The sentence of a request whose text is CoNLL-U; None for any other text."""
    if request.text is None or not looks_like_conllu(request.text):
        return None
    if request.pair is not None:
        raise InputError("a sentence with its tree, in CoNLL-U, is read by itself: leave the second text out.")
    sentences = parse_conllu(request.text)
    if len(sentences) != 1:
        raise InputError(f"this is CoNLL-U of {len(sentences)} sentences: give one sentence, with its lines alone.")
    return sentences[0]
