"""Plain text: a line a sentence; blank lines are passed over."""

from collections.abc import Iterator
from pathlib import Path

from headscope.corpora.example import CorpusProblem, Example
from headscope.corpora.text_lines import lines


def read_text(path: Path, *, max_line: int) -> Iterator[Example | CorpusProblem]:
    """An example a line."""
    for line in lines(path, max_line=max_line):
        if isinstance(line, CorpusProblem):
            yield line
        elif line.text.strip():
            yield Example(f"{path.name}:{line.number}", text=line.text.strip())
