"""CoNLL-U: Universal Dependencies trees, ten columns a word (universaldependencies.org/format.html).

Words are the syntactic ones. A multi-word token (`3-4 don't`) is what the text has; its words take their characters
from it where they can be found in it, and share it where they cannot (French `du` = `de` + `le`). Empty nodes (`8.1`)
have no place in the text and are left out.
"""

from collections.abc import Iterator
from pathlib import Path

from headscope.arguments import parsed_number
from headscope.corpora.example import CorpusProblem, Example, Span
from headscope.corpora.text_lines import Line, sentences
from headscope.errors import InputError

_ID, _FORM, _UPOS, _XPOS, _HEAD, _RELATION, _MISC = 0, 1, 3, 4, 6, 7, 9


class _Malformed(Exception):
    """What is wrong with a sentence, and on which line."""

    def __init__(self, line: Line, reason: str):
        self.number, self.reason = line.number, reason


def read_conllu(path: Path, *, max_line: int) -> Iterator[Example | CorpusProblem]:
    """An example a sentence, with tags `upos` and `xpos` where they are given, heads and relations."""
    for block in sentences(path, max_line=max_line):
        if isinstance(block, CorpusProblem):
            yield block
            continue
        rows = [line for line in block if not line.text.startswith("#")]
        if not rows:
            continue
        try:
            yield _example(f"{path.name}:{block[0].number}", rows)
        except _Malformed as problem:
            yield CorpusProblem(path.name, problem.number, problem.reason)


def looks_like_conllu(text: str) -> bool:
    """Whether a text is CoNLL-U: every line that is neither empty nor a comment has ten columns."""
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(rows) and all(line.count("\t") == 9 for line in rows)


def parse_conllu(text: str) -> list[Example]:
    """The sentences of a text in CoNLL-U, as it may be pasted; what is malformed is refused, with its line."""
    examples, block = [], []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            block.append(Line(number, line))
            continue
        rows = [row for row in block if not row.text.startswith("#")]
        if rows:
            try:
                examples.append(_example(f"line {block[0].number}", rows))
            except _Malformed as problem:
                raise InputError(f"this CoNLL-U cannot be read: line {problem.number}: {problem.reason}.") from problem
        block = []
    return examples


def to_conllu(example: Example) -> str:
    """An example with a tree as CoNLL-U of the words, their tags, heads and relations, and what is between them.

    >>> example = Example("mine:1", "Go!", words=("Go", "!"), spans=((0, 2), (2, 3)), heads=(-1, 0))
    >>> for line in to_conllu(example).splitlines():
    ...     print(*line.split())
    1 Go _ _ _ _ 0 _ _ SpaceAfter=No
    2 ! _ _ _ _ 1 _ _ _
    """
    rows = []
    for place, (word, head) in enumerate(zip(example.words, example.heads, strict=True)):
        cells = [str(place + 1), word, *["_"] * 8]
        for column, tag in ((_UPOS, "upos"), (_XPOS, "xpos")):
            if tag in example.tags:
                cells[column] = example.tags[tag][place]
        cells[_HEAD] = str(head + 1)
        if example.relations:
            cells[_RELATION] = example.relations[place]
        if place + 1 < len(example.words) and example.spans[place][1] == example.spans[place + 1][0]:
            cells[_MISC] = "SpaceAfter=No"
        rows.append("\t".join(cells))
    return "\n".join(rows)


def _example(name: str, block: list[Line]) -> Example:
    words: list[tuple[Line, list[str]]] = []
    surfaces: list[tuple[int, int, str, bool]] = []  # first word, last word, form, is a space after it
    covered = 0
    for line in block:
        cells = line.text.split("\t")
        if len(cells) != 10:
            raise _Malformed(line, f"{len(cells)} tab-separated columns where CoNLL-U has 10")
        number, has_space = cells[_ID], "SpaceAfter=No" not in cells[_MISC].split("|")
        if "." in number:
            continue
        if "-" in number:
            first, last = _range(line, number, len(words) + 1)
            if first <= covered:
                raise _Malformed(line, f"the multi-word token {number} overlaps the one before")
            surfaces.append((first, last, cells[_FORM], has_space))
            covered = last
            continue
        if number != str(len(words) + 1):
            raise _Malformed(line, f"word {number!r} where {len(words) + 1} was expected")
        if not cells[_FORM]:
            raise _Malformed(line, "the word is empty")
        words.append((line, cells))
        if len(words) > covered:
            surfaces.append((len(words), len(words), cells[_FORM], has_space))
            covered = len(words)
    if not words or covered > len(words):
        raise _Malformed(block[-1], "a multi-word token ends after the last word" if words else "there are no words")
    forms = [cells[_FORM] for _, cells in words]
    text, spans = _text_and_spans(surfaces, forms)
    tags = {tag: tuple(cells[column] for _, cells in words) for tag, column in (("upos", _UPOS), ("xpos", _XPOS))}
    tags = {tag: column for tag, column in tags.items() if set(column) != {"_"}}
    heads = _heads(words)
    relations = tuple(cells[_RELATION] for _, cells in words) if heads else ()
    return Example(name, text=text, words=tuple(forms), spans=spans, tags=tags, heads=heads, relations=relations)


def _range(line: Line, number: str, expected: int) -> tuple[int, int]:
    first, last = (parsed_number(part) for part in number.partition("-")[::2])
    if first is None or last is None or first != expected or last < first:
        raise _Malformed(line, f"{number!r:.40} is not a range of words that begins with word {expected}")
    return first, last


def _heads(words: list[tuple[Line, list[str]]]) -> tuple[int, ...]:
    """The head of each word, −1 for the root; nothing if no word has one."""
    if all(cells[_HEAD] == "_" for _, cells in words):
        return ()
    heads = []
    for place, (line, cells) in enumerate(words):
        head = parsed_number(cells[_HEAD])
        if head is None or head > len(words):
            raise _Malformed(line, f"the head is {cells[_HEAD]!r:.40}, not a number from 0 to {len(words)}")
        if head == place + 1:
            raise _Malformed(line, "the word is its own head")
        heads.append(head - 1)
    reaches_root = {-1}
    for start, (line, _) in enumerate(words):
        at, path = start, set[int]()
        while at not in reaches_root:
            if at in path:
                raise _Malformed(line, "following heads from this word goes round in a circle")
            path.add(at)
            at = heads[at]
        reaches_root |= path
    return tuple(heads)


def _text_and_spans(surfaces: list[tuple[int, int, str, bool]], forms: list[str]) -> tuple[str, tuple[Span, ...]]:
    """The text, and where each word lies in it."""
    text, spans = "", []
    for place, (first, last, form, has_space) in enumerate(surfaces):
        spans += _parts(form, forms[first - 1 : last], len(text))
        text += form + (" " if has_space and place + 1 < len(surfaces) else "")
    return text, tuple(spans)


def _parts(form: str, words: list[str], offset: int) -> list[Span]:
    spans, at = [], 0
    for word in words:
        start = form.find(word, at)
        if start < 0:
            return [(offset, offset + len(form))] * len(words)
        spans.append((offset + start, offset + start + len(word)))
        at = start + len(word)
    return spans
