"""The built-in sentences: a small corpus of our own, so that examples can be looked up without a file."""

from pathlib import Path

from headscope.corpora.corpus_stream import Corpus, corpus

PATH = Path(__file__).parent.parent / "builtin" / "sentences.txt"
NAME = "built-in sentences"


def builtin_sentences() -> Corpus:
    """80 English sentences written for this project (CC0 1.0): repeats, names, quotes, brackets, lists and pronouns.

    >>> import headscope as hs
    >>> next(iter(hs.corpora.builtin_sentences())).text
    'The miller had three sons, and the youngest son had a cat.'
    """

    def sentences() -> list[str]:
        return PATH.read_text(encoding="utf-8").splitlines()

    sentences.__name__ = NAME
    return corpus(sentences)
