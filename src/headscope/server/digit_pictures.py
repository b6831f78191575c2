"""Digits drawn by strokes, white on black, 28 × 28: what models of greyscale pictures have mostly learned from."""

import io
import math
from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFilter

_SIDE, _FINE = 28, 8
# As in MNIST, a digit lies in the middle 20 × 20 pixels.
_EDGE, _INSIDE, _WIDTH = 4, 20, 2.4
Stroke = list[tuple[float, float]]


def _arc(x: float, y: float, wide: float, tall: float, first: float, last: float) -> Stroke:
    """Part of an ellipse around (x, y), from one angle in degrees to another, clockwise from the right."""
    angles = [math.radians(first + (last - first) * step / 40) for step in range(41)]
    return [(x + wide * math.cos(angle), y + tall * math.sin(angle)) for angle in angles]


# In a square of side 1, from the top left.
_STROKES: dict[str, list[Stroke]] = {
    "digit 7": [[(0.15, 0.1), (0.85, 0.1), (0.4, 0.95)]],
    "digit 3": [
        _arc(0.47, 0.27, 0.3, 0.22, 210, 450),
        _arc(0.47, 0.71, 0.33, 0.24, 270, 515),
    ],
    "digit 4": [[(0.35, 0.05), (0.12, 0.55), (0.88, 0.55)], [(0.72, 0.15), (0.66, 0.97)]],
}


def _png_maker(name: str) -> Callable[[], bytes]:
    def make() -> bytes:
        fine = Image.new("L", (_SIDE * _FINE, _SIDE * _FINE))
        pen, radius = ImageDraw.Draw(fine), _WIDTH * _FINE / 2
        for stroke in _STROKES[name]:
            points = [((_EDGE + _INSIDE * x) * _FINE, (_EDGE + _INSIDE * y) * _FINE) for x, y in stroke]
            pen.line(points, fill=255, width=round(2 * radius), joint="curve")
            for x, y in (points[0], points[-1]):
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
        into = io.BytesIO()
        fine.filter(ImageFilter.GaussianBlur(_FINE / 3)).resize((_SIDE, _SIDE), Image.Resampling.BOX).save(into, "PNG")
        return into.getvalue()

    return make


DIGITS = {name: _png_maker(name) for name in _STROKES}
