"""Tokens as people read them: text, place in words and sentences, and where they stand in the input."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

from headscope.errors import UnknownTokenError

# Left, top, right and bottom, in pixels.
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ImagePatch:
    """The part of a picture that a token of text and image stands for.

    `row` and `column` count within the picture, or within its thumbnail (`area` numbers those in the order in which
    they are drawn). `box` is in pixels of the picture as it was given, `drawn` in those of the one that is shown.
    """

    row: int
    column: int
    box: Box
    drawn: Box
    area: int = 0

    def touches(self, box: Box) -> bool:
        """Whether a box, in pixels of the picture as it was given, covers any of it."""
        left, top, right, bottom = self.box
        return left < box[2] and box[0] < right and top < box[3] and box[1] < bottom


@dataclass(frozen=True)
class Token:
    """One position of an input.

    `text` is for display: no sub-word marks, no byte codes. `word` and `sentence` count from 0 and are None for
    special tokens; `segment` is "A" or "B"; `start` and `end` are character offsets into that segment's text.
    `patch` is where a token of an image within a text lies on the picture.
    """

    text: str
    id: int | None = None
    special: bool = False
    word: int | None = None
    sentence: int | None = None
    segment: str = "A"
    start: int | None = None
    end: int | None = None
    patch: ImagePatch | None = None


@dataclass(frozen=True)
class Tokens(Sequence[Token]):
    """The positions of one stack's input, in order.

    `kind` says what a position is: a piece of text, a patch of an image (`grid` rows × columns, after the special
    tokens), or a frame of sound.
    """

    items: tuple[Token, ...]
    kind: Literal["text", "patches", "frames"] = "text"
    grid: tuple[int, int] | None = None

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Tokens":
        """Tokens from bare texts, each its own word."""
        return cls(tuple(Token(text, word=index) for index, text in enumerate(texts)))

    @classmethod
    def numbered(cls, count: int, kind: Literal["text", "patches", "frames"] = "text") -> "Tokens":
        """Positions that have no other name than their number."""
        return cls(tuple(Token(str(index)) for index in range(count)), kind)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> "Tokens": ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return Tokens(self.items[index], self.kind)
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.items)

    @property
    def texts(self) -> list[str]:
        """The display text of every token."""
        return [token.text for token in self.items]

    def positions(self, chosen: "TokenChoice") -> list[int]:
        """The positions that a choice names: an index (negative from the end), a text, a range, or several of those.

        A text names every token that shows it; "A" and "B" written as `segment:A` and `segment:B` name a segment, and
        `box:LEFT,TOP,RIGHT,BOTTOM` the image tokens that touch a box of the picture, in its own pixels.
        """
        check_choice(chosen)
        if isinstance(chosen, int):
            if not -len(self) <= chosen < len(self):
                raise UnknownTokenError(
                    f"there is no token {chosen}: the input has {len(self)} tokens, 0 to {len(self) - 1}."
                )
            return [chosen % len(self)]
        if isinstance(chosen, slice):
            return list(range(len(self))[chosen])
        if isinstance(chosen, str):
            return self._positions_of_text(chosen)
        return sorted({position for choice in chosen for position in self.positions(choice)})

    def _positions_of_text(self, text: str) -> list[int]:
        if text.startswith("box:"):
            return self._positions_in_box(text)
        if text.startswith("segment:"):
            segment = text.removeprefix("segment:")
            positions = [i for i, token in enumerate(self.items) if token.segment == segment and not token.special]
        else:
            positions = [i for i, token in enumerate(self.items) if token.text == text]
        if not positions:
            raise UnknownTokenError(f"no token reads {text!r}: the tokens are {self.texts[:40]}.")
        return positions

    def _positions_in_box(self, text: str) -> list[int]:
        patches = {place: token.patch for place, token in enumerate(self.items) if token.patch is not None}
        if not patches:
            raise UnknownTokenError(f"{text!r} names a region of a picture, and these tokens have no places in one.")
        box = _box_of(text)
        positions = [place for place, patch in patches.items() if patch.touches(box)]
        if not positions:
            right = max(patch.box[2] for patch in patches.values())
            bottom = max(patch.box[3] for patch in patches.values())
            raise UnknownTokenError(f"no image token lies in {text!r}: the picture reaches to {right:g},{bottom:g}.")
        return positions

    def to_json(self) -> dict:
        """A plain dictionary; `from_json` reads it back."""
        return {"kind": self.kind, "grid": self.grid, "items": [_token_json(token) for token in self.items]}

    @classmethod
    def from_json(cls, data: dict) -> "Tokens":
        """Read what `to_json` wrote."""
        grid = tuple(data["grid"]) if data["grid"] else None
        return cls(tuple(_token_of(token) for token in data["items"]), data["kind"], grid)


def _token_json(token: Token) -> dict:
    """A token as a dictionary, without the patch that most have not."""
    return {name: field for name, field in asdict(token).items() if name != "patch" or field is not None}


def _token_of(data: dict) -> Token:
    patch = data.get("patch")
    if patch is None:
        return Token(**data)
    boxes = {name: tuple(patch[name]) for name in ("box", "drawn")}
    fields: dict[str, Any] = data | {"patch": ImagePatch(**(patch | boxes))}
    return Token(**fields)


def _box_of(text: str) -> Box:
    """The box that `box:LEFT,TOP,RIGHT,BOTTOM` names."""
    try:
        left, top, right, bottom = (float(number) for number in text.removeprefix("box:").split(","))
    except ValueError:
        left = top = right = bottom = 0.0
    if not (left < right and top < bottom):
        raise UnknownTokenError(
            f"{text!r} is no box: write left, top, right and bottom in pixels of the picture, as in "
            "'box:40,30,200,180'."
        )
    return left, top, right, bottom


def check_choice(chosen: Any) -> None:
    """Refuse what names no tokens, whatever the input."""
    several = isinstance(chosen, list | tuple | set | frozenset)
    if several:
        for choice in chosen:
            if isinstance(choice, list | tuple | set | frozenset):
                raise UnknownTokenError(f"{chosen!r} does not name tokens: a list holds positions, texts and ranges.")
            check_choice(choice)
    elif isinstance(chosen, bool) or not isinstance(chosen, int | str | range | slice):
        raise UnknownTokenError(
            f"{chosen!r} does not name tokens: give a position, a text, a range or a list of those."
        )


TokenChoice = int | str | range | slice | Sequence["int | str | range | slice"]
