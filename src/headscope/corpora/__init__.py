"""Corpora: streams of examples from files, folders and objects."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.corpora.builtin_texts import builtin_sentences as builtin_sentences
    from headscope.corpora.corpus_stream import KINDS as KINDS
    from headscope.corpora.corpus_stream import Corpus as Corpus
    from headscope.corpora.corpus_stream import Survey as Survey
    from headscope.corpora.corpus_stream import corpus as corpus
    from headscope.corpora.example import CorpusProblem as CorpusProblem
    from headscope.corpora.example import Example as Example
    from headscope.corpora.word_alignment import align as align

__getattr__, __dir__ = public_names(__name__)
