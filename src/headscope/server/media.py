"""Pictures and sounds that the page gives: read with care, kept for a while, handed to a run.

What a file is, its content says, never its name. Nothing is opened by a path from the page: an input is named by the
hash of its bytes, or as a preset, which is one of a fixed list.
"""

import asyncio
import hashlib
import io
import wave
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from headscope.errors import InputError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.sounds import read_channels, read_wave
from headscope.models.loading import BUILTIN
from headscope.pictures import DamagedPictureError, opened_picture
from headscope.server.digit_pictures import DIGITS
from headscope.server.errors import Refused
from headscope.server.memory import Cache, Memory
from headscope.server.messages import MediaProps
from headscope.server.options import Limits

PRESET = "preset:"
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
THUMBNAIL = 160
SHARE = 1 / 8
"""Of the server's memory for uploads."""
# Bytes that reading a file and running it take at most, per pixel and per byte of a wav file: measured, rounded up.
_PIXEL, _SOUND = 24, 32
# Sounds that people have but that cannot be read here, by how they begin.
_OTHER_SOUNDS = ((b"ID3", "MP3"), (b"OggS", "Ogg"), (b"fLaC", "FLAC"), (b"#!AMR", "AMR"))
_RATE = 16_000
_MODES = {
    "1": "black and white",
    "LA": "greyscale with transparent parts",
    "P": "a palette",
    "PA": "a palette with transparent parts",
    "RGBA": "with transparent parts",
    "CMYK": "in print colours (CMYK)",
    "YCbCr": "YCbCr",
    "LAB": "Lab",
    "HSV": "HSV",
    "I": "of 32 bits",
    "F": "of floating-point numbers",
}


@dataclass(frozen=True)
class Media:
    """One picture or sound: its bytes, what it is, and what there is to say about it."""

    id: str
    kind: Literal["image", "audio"]
    data: bytes
    about: str
    notes: tuple[str, ...] = ()
    thumbnail: bytes = b""
    """A small PNG of a picture, drawn anew: what was uploaded is never sent back as it came."""
    working_bytes: int = 0
    """The most memory that opening it for a model takes."""

    def props(self) -> MediaProps:
        """As the page shows it."""
        return MediaProps(self.id, self.kind, self.about, list(self.notes))

    def picture(self) -> Image.Image:
        """The image, upright."""
        with Image.open(io.BytesIO(self.data), formats=FORMATS) as opened:
            opened.load()
            ImageOps.exif_transpose(opened, in_place=True)
            return opened

    def sound(self) -> tuple[np.ndarray, int]:
        """Samples, and how many there are in a second."""
        return read_wave(io.BytesIO(self.data))


class MediaStore:
    """Uploads, the last ones cached, and the presets. Uploads are read one after another, in a thread."""

    def __init__(self, memory: Memory, limits: Limits):
        self.memory, self.limits = memory, limits
        self.cache = Cache[Media](memory, "media", SHARE)
        self._pool = ThreadPoolExecutor(1, "headscope-media")

    async def add(self, data: bytes) -> Media:
        """Read an upload in the thread, and cache it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.read, data)

    def read(self, data: bytes) -> Media:
        """Find out what an upload is; refused where it cannot be used."""
        if not data:
            raise Refused(422, "InputError", "the file is empty.", "Choose another one.")
        if len(data) > self.limits.media_bytes:
            most = self.limits.media_bytes // 10**6
            raise Refused(413, "TooLarge", f"the file is larger than {most} MB, the most this server takes.")
        id = hashlib.sha256(data).hexdigest()[:24]
        if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
            with self.memory.reserve(_SOUND * len(data), "this sound"):
                media = _sound(id, data, self.limits.media_seconds)
        else:
            _refuse_other_sounds(data)
            with self.memory.reserve(_picture_bytes(data, self.limits.media_pixels), "this picture"):
                media = _picture(id, data)
        self.cache.put(id, media, len(data) + len(media.thumbnail))
        return media

    def find(self, id: str) -> Media:
        """What an id or the name of a preset stands for."""
        if id.startswith(PRESET):
            return preset(id.removeprefix(PRESET))
        media = self.cache.get(id)
        if media is None:
            raise Refused(
                404,
                "UnknownMedia",
                "this picture or sound is not on the server (any more): it keeps those used last, until it is stopped.",
                "Choose the file again.",
            )
        return media

    def close(self) -> None:
        """Take no more uploads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def media_inputs(media: Media, takes: Intake, model: str) -> tuple[dict[str, Any], list[str]]:
    """What `Model.run` is given, and what is done to it on the way, in words; refused where the model takes no such."""
    if media.kind not in takes.kinds:
        what = {"image": "a picture", "audio": "a sound"}[media.kind]
        raise InputError(f"{model} takes {takes.takes}, not {what}: choose a model that does.")
    if media.kind == "image":
        picture = media.picture()
        return {"image": picture}, [*media.notes, *_greys(picture, takes)]
    samples, rate = media.sound()
    wanted = int(getattr(takes.feature_extractor, "sampling_rate", _RATE))
    notes = list(media.notes)
    if rate != wanted:
        notes.append(f"the sound has {rate:,} samples a second: resampled to the model's {wanted:,}")
    return {"audio": samples, "sampling_rate": rate}, notes


def _greys(picture: Image.Image, takes: Intake) -> list[str]:
    """What becomes of colours where the picture and the model differ in them."""
    is_grey = picture.mode in ("1", "L", "LA", "I", "F") or picture.mode.startswith("I;")
    n_channels = getattr(takes.section("vision"), "num_channels", 3)
    if is_grey and n_channels == 3:
        return ["the picture is greyscale: the model sees the same grey as red, green and blue"]
    return (
        ["the model sees greys: the picture's colours are turned into those"] if n_channels == 1 and not is_grey else []
    )


def _picture_bytes(data: bytes, most_pixels: int) -> int:
    """The memory that a model's run takes to open a picture; refused if it has too many pixels.

    The size is known before a pixel is read: a small file may hold a very large picture.
    """
    with _readable(data) as opened:
        if opened.width * opened.height > most_pixels:
            raise _too_many_pixels(opened.size, most_pixels)
        return _PIXEL * opened.width * opened.height


def _picture(id: str, data: bytes) -> Media:
    with _readable(data) as opened:
        opened.load()
        size, mode, name = opened.size, opened.mode, opened.format or ""
        frames, has_gaps = int(getattr(opened, "n_frames", 1)), "transparency" in opened.info
        ImageOps.exif_transpose(opened, in_place=True)
        width, height = opened.size
        thumbnail = _thumbnail(opened)
    notes = []
    if mode in _MODES or mode.startswith("I;"):
        what = _MODES.get(mode, "of 16 bits")
        notes.append(f"the picture is {what}: it is converted to plain 8-bit colours or greys")
    if has_gaps or mode in ("RGBA", "LA", "PA"):
        notes.append("transparent parts are seen as white")
    if (width, height) != size:
        notes.append("turned upright, as the camera noted")
    if frames > 1:
        notes.append(f"the first of {frames} frames")
    about = f"{width} × {height} pixels, {name}"
    return Media(id, "image", data, about, tuple(notes), thumbnail, _PIXEL * width * height)


@contextmanager
def _readable(data: bytes) -> Iterator[Image.Image]:
    """A picture, opened but not yet read; what goes wrong inside is refused in words."""
    unreadable = f"Give one of these: {', '.join(FORMATS)}; or a .wav file for a model that takes sound."
    try:
        # (How warnings are shown is left alone: that is for the whole process, and a run may be recording its own.)
        with opened_picture(io.BytesIO(data), FORMATS) as opened:
            yield opened
    except Image.DecompressionBombError as error:
        raise Refused(413, "TooLarge", f"the picture has too many pixels: {error}") from error
    except DamagedPictureError as error:
        if isinstance(error.__cause__, UnidentifiedImageError):
            message = "this file is no picture and no sound that can be read."
            raise Refused(422, "NotAnImage", message, unreadable) from error
        message = f"the picture cannot be read to its end: {error}."
        raise Refused(
            422, "DamagedImage", message, "Save or download it again; the file seems to be cut off."
        ) from error


def _thumbnail(picture: Image.Image) -> bytes:
    """A small PNG; the picture itself is made small."""
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    into = io.BytesIO()
    (picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")).save(into, "PNG")
    return into.getvalue()


def _too_many_pixels(size: tuple[int, int], most: int) -> Refused:
    message = f"the picture has {size[0]:,} × {size[1]:,} pixels; this server takes up to {most // 10**6} million."
    return Refused(413, "TooLarge", message, "Make it smaller: models look at a few hundred pixels a side.")


def _sound(id: str, data: bytes, most_seconds: int) -> Media:
    try:
        samples, rate = read_channels(io.BytesIO(data))
    except InputError as error:
        message = str(error)
        raise Refused(
            422, "DamagedSound", message, "Write it as 16-bit PCM: ffmpeg -i SOUND -c:a pcm_s16le OUT.wav"
        ) from error
    if not len(samples) or rate <= 0:
        raise Refused(422, "DamagedSound", "the sound has no samples.", "Choose another file.")
    if len(samples) / rate > most_seconds:
        message = f"the sound is {len(samples) / rate:,.0f} s long; this server takes up to {most_seconds} s."
        raise Refused(413, "TooLarge", message, "Cut it: ffmpeg -i SOUND -t 30 OUT.wav")
    n_channels = samples.shape[1]
    notes = [f"{n_channels} channels are mixed down to one"] if n_channels > 1 else []
    about = f"{len(samples) / rate:.2f} s at {rate:,} samples a second"
    return Media(id, "audio", data, about, tuple(notes), working_bytes=_SOUND * len(data))


def _refuse_other_sounds(data: bytes) -> None:
    kind = next((name for start, name in _OTHER_SOUNDS if data.startswith(start)), "")
    is_mpeg = data[0] == 0xFF and len(data) > 1 and (data[1] & 0xE6) in (0xE2, 0xE4, 0xE6)
    kind = kind or ("MP3" if is_mpeg else "MPEG-4" if data[4:8] == b"ftyp" and b"avif" not in data[8:32] else "")
    if kind:
        raise Refused(
            422,
            "NotWav",
            f"this is {kind}, which cannot be read here: sounds are read from uncompressed .wav files.",
            "Convert it first: ffmpeg -i SOUND -ar 16000 -ac 1 OUT.wav",
        )


# Presets


def preset(name: str) -> Media:
    """One of the pictures and sounds that come with the package."""
    if name in PICTURES:
        return _preset_picture(name, (BUILTIN / PICTURES[name]).read_bytes())
    if name in DIGITS:
        return _preset_picture(name, DIGITS[name]())
    if name in SOUNDS:
        return Media(PRESET + name, "audio", SOUNDS[name](), "")
    known = ", ".join([*PICTURES, *DIGITS, *SOUNDS])
    raise Refused(404, "UnknownMedia", f"there is no preset {name[:60]!r}: there are {known}.")


def _preset_picture(name: str, data: bytes) -> Media:
    with _readable(data) as opened:
        return Media(PRESET + name, "image", data, "", thumbnail=_thumbnail(opened))


PICTURES = {
    "sailing boat": "images/sailing_boat.png",
    "aeroplane": "images/aeroplane.png",
    "lorry": "images/lorry.png",
}


def _tones(*parts: tuple[float, float, float]) -> Callable[[], bytes]:
    """A wav file of tones one after another: seconds, and the pitch that each begins and ends with (0 for silence)."""

    def make() -> bytes:
        samples = []
        for seconds, first, last in parts:
            time = np.arange(int(seconds * _RATE)) / _RATE
            phase = 2 * np.pi * (first * time + (last - first) * time**2 / (2 * seconds))
            edge = np.clip(np.minimum(time, seconds - time) / 0.02, 0, 1)  # no clicks
            samples.append(0.5 * np.sin(phase) * edge if first else np.zeros(len(time)))
        into = io.BytesIO()
        with wave.open(into, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(_RATE)
            file.writeframes((np.concatenate(samples) * 32767).astype("<i2").tobytes())
        return into.getvalue()

    return make


SOUNDS = {
    "rising tone": _tones((2.0, 200, 3200)),
    "three tones": _tones((0.5, 440, 440), (0.25, 0, 0), (0.5, 660, 660), (0.25, 0, 0), (0.5, 880, 880)),
}
