"""CoNLL-2000 and its kind: a word and its tags a line, a blank line between sentences (Tjong Kim Sang and Buchholz)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from headscope.corpora.example import CorpusProblem, Example, Span
from headscope.corpora.text_lines import Line, sentences

TAGS = ("pos", "chunk")
NAMED_TAGS = (*TAGS, "ner")
# Where a new document begins in CoNLL-2003: a line of its own that is no sentence.
DOCUMENT = "-DOCSTART-"


def read_conll(path: Path, *, tags: Sequence[str] = TAGS, max_line: int) -> Iterator[Example | CorpusProblem]:
    """An example a sentence; `tags` name the columns after the word. The text is the words with spaces between."""
    for block in sentences(path, max_line=max_line):
        if isinstance(block, CorpusProblem) or not block[0].text.startswith(DOCUMENT):
            yield block if isinstance(block, CorpusProblem) else _example(path.name, block, tags)


def _example(name: str, block: list[Line], tags: Sequence[str]) -> Example | CorpusProblem:
    rows = []
    for line in block:
        cells = line.text.split()
        if len(cells) != len(tags) + 1:
            reason = f"a word and {len(tags)} tags ({', '.join(tags)}) were expected, found {len(cells)} columns"
            return CorpusProblem(name, line.number, reason)
        rows.append(cells)
    words, *columns = (tuple(column) for column in zip(*rows, strict=True))
    text, spans = join_words(words)
    about = {"words": words, "spans": spans, "tags": dict(zip(tags, columns, strict=True))}
    return Example(f"{name}:{block[0].number}", text=text, **about)


def join_words(words: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """Words with a space between, and where each lies."""
    spans, at = [], 0
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(words), tuple(spans)
