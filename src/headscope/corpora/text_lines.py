"""Lines of text files, compressed or not: numbered, of bounded length, in UTF-8 or said not to be."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from headscope.corpora.example import CorpusProblem
from headscope.errors import LoadError, MissingExtraError

# A line beyond this many bytes is a problem: it is no sentence, and would be held in memory whole.
MAX_LINE = 2**20


class Line(NamedTuple):
    """A line without its end, and its number in the file, from 1."""

    number: int
    text: str


def lines(path: Path, *, max_line: int = MAX_LINE) -> Iterator[Line | CorpusProblem]:
    """The lines of a file; one that is too long or not UTF-8 is a `Problem`, and reading goes on after it."""
    number = 0
    try:
        with open_file(path) as file:
            while piece := file.readline(max_line + 2):
                number += 1
                if len(piece.rstrip(b"\r\n")) > max_line:
                    while piece and not piece.endswith(b"\n"):
                        piece = file.readline(max_line)
                    yield CorpusProblem(path.name, number, f"the line is longer than {max_line} bytes")
                    continue
                yield _decode(path.name, number, piece)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{path} cannot be read after line {number}: {error}.") from error


def sentences(path: Path, *, max_line: int = MAX_LINE, max_words: int = 10_000) -> Iterator[list[Line] | CorpusProblem]:
    """Blocks of lines with blank lines between them; a block with an unreadable line is one `Problem`."""
    block: list[Line] = []
    problem: CorpusProblem | None = None
    for line in _with_end(lines(path, max_line=max_line)):
        if isinstance(line, CorpusProblem):
            problem = problem or line
        elif line.text.strip():
            if len(block) == max_words:
                problem = problem or CorpusProblem(
                    path.name, line.number, f"the sentence has more than {max_words} lines"
                )
            if problem is None:
                block.append(line)
        elif problem or block:
            yield problem or block
            block, problem = [], None


def open_file(path: Path) -> BinaryIO:
    """A file open for reading, decompressed by its suffix."""
    return _OPENERS.get(path.suffix.lower(), _plain)(path)


def bare_suffix(path: Path) -> str:
    """The suffix that says what a file holds: of `dev.conllu.xz` it is `.conllu`."""
    return (Path(path.stem) if path.suffix.lower() in _OPENERS else path).suffix.lower()


def check_files(paths: Iterable[Path]) -> None:
    """Refuse files that are not there before anything is read."""
    for path in paths:
        if not path.exists():
            raise LoadError(f"there is no file {path}.")
        if path.is_dir():
            raise LoadError(f"{path} is a folder: give the file, or a folder of images.")


def _decode(name: str, number: int, piece: bytes) -> Line | CorpusProblem:
    piece = piece.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return Line(number, piece.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        bad = piece[error.start]
        return CorpusProblem(name, number, f"not UTF-8: byte 0x{bad:02x} at byte {error.start + 1} of the line")


def _with_end(numbered_lines: Iterator[Line | CorpusProblem]) -> Iterator[Line | CorpusProblem]:
    yield from numbered_lines
    yield Line(0, "")


def _plain(path: Path) -> BinaryIO:
    return path.open("rb")


def _zstd(path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(
            f"{path.name} is compressed with zstd, which needs a package: pip install 'headscope[runs]'."
        ) from error
    try:
        decompressed = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True)
        return cast(BinaryIO, _Checked(io.BufferedReader(decompressed), zstandard.ZstdError))
    except zstandard.ZstdError as error:
        raise LoadError(f"{path} is not a zstd file: {error}.") from error


class _Checked:
    """A reader whose own kind of error becomes an OSError."""

    def __init__(self, file: io.BufferedReader, error: type[Exception]):
        self.file, self.error = file, error

    def __enter__(self) -> "_Checked":
        return self

    def __exit__(self, *problem: object) -> None:
        self.file.close()

    def readline(self, size: int = -1) -> bytes:
        try:
            return self.file.readline(size)
        except self.error as error:
            raise OSError(str(error)) from error


_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": _zstd,
}
