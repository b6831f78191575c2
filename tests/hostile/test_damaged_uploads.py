"""Damaged pictures and sounds: the server refuses them in words, and so does the library."""

import io
from pathlib import Path

import numpy as np
import pytest
from hostile.damaged_files import damages
from hostile.trial import SEED, Section, size
from PIL import Image

from headscope.errors import InputError
from headscope.models.inputs.media import picture
from headscope.models.inputs.sounds import read_channels
from headscope.server.errors import Refused
from headscope.server.media import FORMATS, MediaStore
from headscope.server.memory import Memory
from headscope.server.options import Limits

MODES = ("RGB", "L", "P", "RGBA", "1", "I;16", "CMYK", "F")
EXIF = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
OPTIONS = ({}, {"exif": EXIF}, {"compression": "tiff_lzw"}, {"compression": "tiff_deflate"}, {"save_all": True})


def pictures() -> list[bytes]:
    """Small ones of every format and mode that the format has."""
    colours = np.random.default_rng(0).integers(0, 255, (23, 17, 3), dtype=np.uint8)
    files = []
    for mode in MODES:
        image = Image.fromarray(colours).convert(mode.replace("I;16", "I"))
        image = Image.fromarray(np.asarray(image).astype(np.uint16)) if mode == "I;16" else image
        for name in FORMATS:
            for options in OPTIONS:
                file = io.BytesIO()
                try:
                    image.save(file, name, **options)
                except (OSError, ValueError, KeyError):
                    continue  # a mode or an option that this format lacks
                files.append(file.getvalue())
    assert len(files) > 100
    return files


def sounds() -> list[bytes]:
    """Short ones of every kind of samples that is read."""
    files = []
    for kind, bits in ((1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)):
        for n_channels in (1, 2):
            data = np.random.default_rng(0).bytes(bits // 8 * n_channels * 50)
            about = [kind.to_bytes(2, "little"), n_channels.to_bytes(2, "little"), (16_000).to_bytes(4, "little")]
            about += [(0).to_bytes(6, "little"), bits.to_bytes(2, "little")]
            chunks = b"fmt " + (16).to_bytes(4, "little") + b"".join(about) + b"data" + len(data).to_bytes(4, "little")
            files.append(b"RIFF" + (len(chunks) + len(data) + 4).to_bytes(4, "little") + b"WAVE" + chunks + data)
    return files


@pytest.mark.filterwarnings("ignore")
def test_damaged_uploads(section: Section) -> None:
    store = MediaStore(Memory(500 * 10**6), Limits(media_pixels=10**6))
    for data in (*section.cases(), *damages(pictures() + sounds(), size(600, 10_000), SEED)):
        try:
            media = store.read(data)
            media.picture() if media.kind == "image" else media.sound()
        except Refused as error:
            section.outcomes[f"refused ({error.status})"] += 1
        except Exception as error:
            section.problem(f"{type(error).__name__}: {error}", data)
        else:
            section.outcomes["taken"] += 1
    store.close()


@pytest.mark.filterwarnings("ignore")
def test_damaged_media_files(section: Section, tmp_path: Path) -> None:
    file = tmp_path / "media"
    for data in (*section.cases(), *damages(pictures() + sounds(), size(300, 10_000), SEED + 1)):
        file.write_bytes(data)
        try:
            read_channels(file) if data[:4] == b"RIFF" else picture(file)
        except InputError:
            section.outcomes["refused"] += 1
        except Exception as error:
            section.problem(f"{type(error).__name__}: {error}", data)
        else:
            section.outcomes["taken"] += 1
