"""One example of a corpus, and what stands where one could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Span = tuple[int, int]


@dataclass(frozen=True)
class Example:
    """What a model reads at a time: a text, a pair, a source with its target, tagged or parsed words, or an image.

    `id` says where it came from (`dev.conllu:12` is the line it begins on). `words` lie in `text` at `spans`
    (characters, start and end); `tags` hold one tag a word by column name; `heads` are indices of words, −1 for the
    root, and `relations` name the dependencies. `image` is a path or a picture.

    >>> Example("mine:1", text="She sings", words=("She", "sings"), spans=((0, 3), (4, 9)), heads=(1, -1)).heads
    (1, -1)
    """

    id: str
    text: str | None = None
    pair: str | None = None
    target: str | None = None
    image: Any = None
    label: str | None = None
    words: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    heads: tuple[int, ...] = ()
    relations: tuple[str, ...] = ()

    def content(self) -> bytes:
        """All that it says, as bytes: two examples with the same content are the same example."""
        tags = sorted(self.tags.items())
        fields = (self.id, self.text, self.pair, self.target, self.label, self.words, self.spans, tags)
        return repr((*fields, self.heads, self.relations)).encode("utf-8", "surrogatepass") + _pixels(self.image)


@dataclass(frozen=True)
class CorpusProblem:
    """Something in a corpus that could not be read, and where it stands."""

    where: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.where}{'' if self.line is None else f', line {self.line}'}: {self.reason}"


def _pixels(image: Any) -> bytes:
    if image is None:
        return b""
    if isinstance(image, str | Path):
        return Path(image).read_bytes()
    return repr((getattr(image, "mode", ""), getattr(image, "size", ""))).encode() + image.tobytes()
