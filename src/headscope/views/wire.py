"""How arrays travel to the page: a JSON header, then raw little-endian buffers; never lists of decimal numbers.

`HSV1`, the header's length (uint32), the header `{kind, props, arrays: [{name, dtype, shape, offset, code}]}` in
UTF-8, then the buffers, each starting at a multiple of 8 bytes from the start of the message.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

import numpy as np

from headscope.errors import InputError

MAGIC = b"HSV1"
# What the page can read, by the names of typed arrays there.
DTYPES = {"uint8": "<u1", "uint16": "<u2", "int32": "<i4", "float16": "<f2", "float32": "<f4"}


@dataclass(frozen=True)
class Coded:
    """Weights between 0 and 1 as bytes: `round(255 · √w)`; with a sign, `128 ± round(127 · √|w|)`.

    Linear bytes would lose what long inputs are made of: at 1,024 tokens a third of all weight is below 1/510.
    """

    bytes: np.ndarray
    is_signed: bool = False

    @classmethod
    def of(cls, weights: np.ndarray) -> "Coded":
        """Code weights, NaN as 0."""
        root = np.sqrt(np.nan_to_num(weights, copy=True), dtype=np.float32)
        np.multiply(root, 255, out=root)
        np.rint(root, out=root)
        return cls(np.clip(root, 0, 255, out=root).astype(np.uint8))

    @classmethod
    def signed(cls, values: np.ndarray) -> "Coded":
        """Code differences between −1 and 1, NaN as 0."""
        plain = np.nan_to_num(values, copy=True).astype(np.float32, copy=False)
        root = np.sqrt(np.minimum(np.abs(plain), 1.0))
        return cls((128 + np.rint(127 * root) * np.sign(plain)).astype(np.uint8), is_signed=True)

    @property
    def code(self) -> str:
        """What the page calls it."""
        return "signed" if self.is_signed else "sqrt"

    def weights(self) -> np.ndarray:
        """Back to weights, up to half a step in the root."""
        if self.is_signed:
            root = (self.bytes.astype(np.float32) - 128) / 127
            return root * np.abs(root)
        return (self.bytes.astype(np.float32) / 255) ** 2


@dataclass(frozen=True)
class Part:
    """One thing that the page asks for: what it is, its properties, and arrays by name."""

    kind: str
    props: Any = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray | Coded] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The message."""
        array_headers, buffers, offset = [], [], 0
        for name, array in self.arrays.items():
            code = array.code if isinstance(array, Coded) else "linear"
            plain = array.bytes if isinstance(array, Coded) else array
            dtype = plain.dtype.name
            if dtype not in DTYPES:
                raise InputError(f"the page cannot read {dtype} ({name}): send one of {', '.join(DTYPES)}.")
            data = np.ascontiguousarray(plain, DTYPES[dtype]).tobytes()
            array_headers.append(
                {"name": name, "dtype": dtype, "shape": list(plain.shape), "offset": offset, "code": code}
            )
            buffers.append(data + bytes(-len(data) % 8))
            offset += len(buffers[-1])
        props = asdict(self.props) if is_dataclass(self.props) and not isinstance(self.props, type) else self.props
        header = {"kind": self.kind, "props": props, "arrays": array_headers}
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(MAGIC) + 4 + len(text)) % 8)  # so that buffers are aligned; JSON ignores the blanks
        return b"".join([MAGIC, struct.pack("<I", len(text)), text, *buffers])


def decode(message: bytes) -> Part:
    """Read a message, as the page does: for tests, and for whoever gets hold of a saved page."""
    if message[: len(MAGIC)] != MAGIC:
        raise InputError(f"this is no Headscope message: it begins with {message[:4]!r}, not {MAGIC!r}.")
    (length,) = struct.unpack_from("<I", message, len(MAGIC))
    start = len(MAGIC) + 4
    header = json.loads(message[start : start + length])
    arrays: dict[str, np.ndarray | Coded] = {}
    for array_header in header["arrays"]:
        count = int(np.prod(array_header["shape"], dtype=np.int64))
        place = start + length + array_header["offset"]
        array = np.frombuffer(message, DTYPES[array_header["dtype"]], count, place).reshape(array_header["shape"])
        code = array_header["code"]
        arrays[array_header["name"]] = array if code == "linear" else Coded(array, is_signed=code == "signed")
    return Part(header["kind"], header["props"], arrays)
