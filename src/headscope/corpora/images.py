"""Folders of images: the name of a subfolder is the class of what lies in it."""

from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from headscope.corpora.example import CorpusProblem, Example
from headscope.pictures import DamagedPictureError, opened_picture

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def image_files(folder: Path) -> Iterator[Path]:
    """The images of a folder and its subfolders, in the order of their names."""
    return iter(sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()))


def read_images(folder: Path) -> Iterator[Example | CorpusProblem]:
    """An example an image; its label is the subfolder that it lies in, if it lies in one."""
    for path in image_files(folder):
        inside = path.relative_to(folder)
        try:
            with opened_picture(path):
                pass
        except (DamagedPictureError, Image.DecompressionBombError) as error:
            yield CorpusProblem(inside.as_posix(), None, f"not an image that can be read ({error})")
            continue
        yield Example(inside.as_posix(), image=path, label=inside.parts[0] if len(inside.parts) > 1 else None)
