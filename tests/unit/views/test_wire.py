"""Messages: what is written is read back, aligned, and bytes are within half a step."""

import json
import struct

import numpy as np
import pytest

from headscope.errors import InputError
from headscope.views.contract import RowProps
from headscope.views.wire import Coded, Part, decode


def test_a_message_is_read_back():
    arrays = {
        "bytes": np.arange(7, dtype=np.uint8),
        "keys": np.arange(6, dtype=np.int32).reshape(2, 3),
        "half": np.float16([[0.5, np.nan]]),
        "whole": np.float32([1 / 3]),
        "coded": Coded.of(np.float32([[0.0, 0.25, 1.0]])),
    }
    message = decode(Part("row", RowProps("L0", "query", 3), arrays).encode())
    assert (message.kind, message.props) == ("row", {"site": "L0", "side": "query", "index": 3})
    assert list(message.arrays) == list(arrays)
    for name, array in arrays.items():
        read = message.arrays[name]
        assert isinstance(read, Coded) == isinstance(array, Coded)
        first, other = (each.bytes if isinstance(each, Coded) else each for each in (read, array))
        assert first.dtype == other.dtype
        np.testing.assert_array_equal(first, other)


def test_buffers_begin_at_multiples_of_eight():
    message = Part("x", {"text": "é" * 3}, {"a": np.zeros(3, np.uint8), "b": np.zeros(1, np.float32)}).encode()
    (length,) = struct.unpack_from("<I", message, 4)
    assert (8 + length) % 8 == 0
    header = json.loads(message[8 : 8 + length])
    assert [array["offset"] for array in header["arrays"]] == [0, 8]
    assert len(message) % 8 == 0


def test_bytes_are_within_half_a_step_of_the_root():
    weights = np.random.default_rng(0).random((50, 50), np.float32) ** 4
    back = Coded.of(weights).weights()
    assert np.abs(np.sqrt(back) - np.sqrt(weights)).max() <= 0.5 / 255 + 1e-6
    assert Coded.of(np.float32([np.nan, 1.0000001])).bytes.tolist() == [0, 255]


def test_what_the_page_cannot_read_is_refused():
    with pytest.raises(InputError, match="float64"):
        Part("x", {}, {"a": np.zeros(2)}).encode()
    with pytest.raises(InputError, match="no Headscope message"):
        decode(b"<html>")
    with pytest.raises(ValueError, match="JSON"):
        Part("x", {"a": float("nan")}).encode()
