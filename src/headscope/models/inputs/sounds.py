"""Sounds: from a wav file or an array to mono samples at the rate that a model hears."""

import io
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from headscope.errors import InputError
from headscope.models.inputs.paths import existing_file

# How a wav file says what its samples are; "extensible" says it once more, further on.
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_OTHERS = {2: "ADPCM", 6: "A-law", 7: "µ-law", 17: "ADPCM", 85: "MP3"}


def read_wave(source: str | Path | BinaryIO) -> tuple[np.ndarray, int]:
    """The samples of an uncompressed wav file as floats -1..1, channels averaged, and the rate."""
    samples, rate = read_channels(source)
    return samples.mean(axis=1).astype(np.float32), rate


def read_channels(source: str | Path | BinaryIO) -> tuple[np.ndarray, int]:
    """The samples of a wav file [time, channel], and the rate: whole numbers of 8 to 32 bits, floats of 32 or 64."""
    is_path = isinstance(source, str | Path)
    name = repr(str(source)) if is_path else "the sound"
    file = io.BytesIO(existing_file(source).read_bytes()) if is_path else source  # type: ignore[arg-type]
    try:
        kind, n_channels, rate, bits, data = _chunks(file)
    except (struct.error, ValueError) as error:
        raise InputError(f"{name} cannot be read as sound ({error}): give an uncompressed PCM .wav file.") from error
    if kind not in (_PCM, _FLOAT):
        encoding = _OTHERS.get(kind, f"format {kind}")
        raise InputError(f"{name} is compressed ({encoding}): give an uncompressed PCM .wav file.")
    if bits not in ((32, 64) if kind == _FLOAT else (8, 16, 24, 32)) or not n_channels:
        raise InputError(f"{name} has samples of {bits} bits: give an uncompressed PCM .wav file of 8 to 32.")
    width = bits // 8
    data = data[: len(data) // (width * n_channels) * width * n_channels]
    return _samples(data, width, is_float=kind == _FLOAT).reshape(-1, n_channels), rate


def _chunks(file: BinaryIO) -> tuple[int, int, int, int, bytes]:
    """Format, channels, rate, bits and data of a RIFF file; what else it holds is passed over."""
    start = file.read(12)
    if start[:4] != b"RIFF" or start[8:12] != b"WAVE":
        raise ValueError("it does not begin as a wav file")
    wave_format = None
    while len(head := file.read(8)) == 8:
        name, size = head[:4], struct.unpack("<I", head[4:])[0]
        body = file.read(size + size % 2)
        if name == b"fmt ":
            kind, n_channels, rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
            wave_format = (struct.unpack("<H", body[24:26])[0] if kind == _EXTENSIBLE else kind, n_channels, rate, bits)
        elif name == b"data":
            if wave_format is None:
                raise ValueError("its samples come before their format")
            return *wave_format, body[:size]
    raise ValueError("it holds no samples" if wave_format else "it does not say what its samples are")


def _samples(data: bytes, width: int, *, is_float: bool) -> np.ndarray:
    if is_float:
        return np.frombuffer(data, f"<f{width}").astype(np.float64)
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.float64) - 128) / 128
    if width == 3:
        triples = np.frombuffer(data, np.uint8).reshape(-1, 3)
        padded = np.concatenate([np.zeros((len(triples), 1), np.uint8), triples], axis=1)
        return padded.reshape(-1).view("<i4") / 2.0**31
    return np.frombuffer(data, f"<i{width}") / 2.0 ** (8 * width - 1)


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The same sound at another rate, by cutting or filling up its spectrum (periodic, exact below both limits)."""
    if rate == wanted:
        return samples
    n = max(1, round(len(samples) * wanted / rate))
    spectrum = np.fft.rfft(samples)
    resized = np.zeros(n // 2 + 1, dtype=complex)
    shared = min(len(resized), len(spectrum))
    resized[:shared] = spectrum[:shared]
    return (np.fft.irfft(resized, n) * (n / len(samples))).astype(np.float32)


def samples_of(source: Any, sampling_rate: int | None, wanted: int) -> np.ndarray:
    """Any sound (wav path, array, tensor, samples with their rate) as mono samples at the wanted rate."""
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], int):
        source, sampling_rate = source
    if isinstance(source, str | Path):
        samples, rate = read_wave(source)
    else:
        if sampling_rate is None:
            raise InputError(
                f"an array of sound needs its rate: pass `sampling_rate=` (the model's own is {wanted} per second)."
            )
        rate = sampling_rate
        samples = np.asarray(source.detach().cpu() if isinstance(source, Tensor) else source)
        if samples.dtype.kind not in "if" or samples.ndim not in (1, 2):
            raise InputError(
                f"sound is an array [samples] or [channels, samples]; this is {samples.dtype} {list(samples.shape)}."
            )
        if samples.dtype.kind == "i":
            samples = samples / -float(np.iinfo(samples.dtype).min)
        if samples.ndim == 2:
            samples = samples.mean(axis=int(np.argmin(samples.shape)))
        samples = samples.astype(np.float32)
    if rate <= 0:
        raise InputError(f"a sampling rate is a positive number of samples a second, not {rate}.")
    if samples.size == 0:
        raise InputError("the sound is empty: it has no samples.")
    if not np.isfinite(samples).all():
        raise InputError(f"the sound has {int((~np.isfinite(samples)).sum())} samples that are NaN or infinite.")
    return resample(samples, rate, wanted)
