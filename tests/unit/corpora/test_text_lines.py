import bz2
import gzip
import lzma
import sys

import pytest

from headscope.corpora.example import CorpusProblem
from headscope.corpora.text_lines import Line, bare_suffix, lines, sentences
from headscope.errors import LoadError, MissingExtraError

TEXT = "один\r\nzwei\n\nvier"


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(data)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), (".zst", zstd)],
)
def test_files_are_read_whatever_they_are_compressed_with(tmp_path, suffix, compress):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(TEXT.encode()))
    assert list(lines(path)) == [Line(1, "один"), Line(2, "zwei"), Line(3, ""), Line(4, "vier")]
    assert bare_suffix(path) == ".txt"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\n")
    assert list(lines(path)) == [Line(1, "one")]


def test_a_line_that_is_not_utf8_is_named_with_its_byte_and_reading_goes_on(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\nca\xe9\nthree\n")
    assert list(lines(path)) == [
        Line(1, "one"),
        CorpusProblem("a.txt", 2, "not UTF-8: byte 0xe9 at byte 3 of the line"),
        Line(3, "three"),
    ]


def test_a_line_that_is_too_long_is_passed_without_being_held(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"12345\n" + b"x" * 1000 + b"\n1234\r\nend")
    read_lines = list(lines(path, max_line=5))
    assert read_lines == [
        Line(1, "12345"),
        CorpusProblem("a.txt", 2, "the line is longer than 5 bytes"),
        Line(3, "1234"),
        Line(4, "end"),
    ]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd)])
def test_a_file_that_was_cut_short_says_where(tmp_path, suffix, compress):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(b"\n".join(b"line %d" % number for number in range(9999)))[:-20])
    if suffix == ".zst":  # a frame that ends early reads as its end
        path.write_bytes(b"no zstd at all")
    with pytest.raises(LoadError, match="cannot be read after line"):
        list(lines(path))


def test_zstd_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "a.txt.zst"
    path.write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"headscope\[runs\]"):
        list(lines(path))


def test_blocks_end_at_blank_lines_and_one_bad_line_spoils_its_own_block_only(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\na\nb\n\n\nc\n\xff\nd\n\ne")
    first, second, third = sentences(path)
    assert first == [Line(2, "a"), Line(3, "b")]
    assert isinstance(second, CorpusProblem) and second.line == 7
    assert third == [Line(10, "e")]


def test_a_block_without_end_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("word\n" * 50)
    (problem,) = sentences(path, max_words=20)
    assert isinstance(problem, CorpusProblem) and problem.line == 21
