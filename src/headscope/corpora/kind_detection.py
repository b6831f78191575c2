"""What kind of corpus a file is, from its name and its first lines."""

import itertools
import re
from pathlib import Path

from headscope.corpora.conll import DOCUMENT, NAMED_TAGS, TAGS
from headscope.corpora.example import CorpusProblem
from headscope.corpora.text_lines import Line, bare_suffix, lines
from headscope.errors import InputError

FILE_KINDS = ("text", "pairs", "translation", "table", "conll2000", "conllu")
_N_LINES = 40
_CHUNK = re.compile(r"O|[BI]-[A-Za-z]+")
_ELSEWHERE = {".csv": "tab-separated columns", ".json": "a list of texts", ".jsonl": "a list of texts"}


def first_lines(path: Path, *, max_line: int) -> list[str]:
    """The first lines of a file that say something and can be read."""
    readable = (line for line in lines(path, max_line=max_line) if isinstance(line, Line) and line.text.strip())
    return [line.text for line in itertools.islice(readable, _N_LINES)]


def kind_of(path: Path, *, max_line: int) -> str:
    """The kind of a file: `conllu`, `conll2000`, `table` or `text`."""
    suffix = bare_suffix(path)
    if suffix in (".conllu", ".conll2000"):
        return suffix[1:]
    if suffix in _ELSEWHERE:
        raise InputError(
            f"{path.name} is a {suffix} file, which is not read as a corpus: turn it into {_ELSEWHERE[suffix]} first."
        )
    head = first_lines(path, max_line=max_line)
    if not head:
        _say_why_empty(path, max_line)
    if suffix in (".tsv", ".tab"):
        return "table"
    rows = [line for line in head if not line.startswith("#")]
    if rows and all(line.count("\t") == 9 for line in rows):
        return "conllu"
    if conll_tags(head) is not None:
        return "conll2000"
    n_tabs = {line.count("\t") for line in head}
    return "table" if len(n_tabs) == 1 and n_tabs != {0} else "text"


def conll_tags(head: list[str]) -> tuple[str, ...] | None:
    """The names of the tags of lines like those of CoNLL-2000, or of CoNLL-2003, which has names of things too."""
    rows = [line.split() for line in head if not line.startswith(DOCUMENT)]
    for tags in (TAGS, NAMED_TAGS):
        is_chunked = (len(row) == len(tags) + 1 and all(map(_CHUNK.fullmatch, row[2:])) for row in rows)
        if rows and all(is_chunked):
            return tags
    return None


def _say_why_empty(path: Path, max_line: int) -> None:
    first = next((line for line in lines(path, max_line=max_line) if isinstance(line, CorpusProblem)), None)
    raise InputError(f"there is nothing to read in {path.name}{'' if first is None else f'; {first}'}.")
