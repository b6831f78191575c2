"""Corpora: streams of examples from files, folders and objects."""

from headscope.corpora.align import align as align
from headscope.corpora.corpus import KINDS as KINDS
from headscope.corpora.corpus import Corpus as Corpus
from headscope.corpora.corpus import Survey as Survey
from headscope.corpora.corpus import corpus as corpus
from headscope.corpora.example import Example as Example
from headscope.corpora.example import Problem as Problem
