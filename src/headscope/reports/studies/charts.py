"""Charts of studies as SVG that takes its colours from the page: points with lines between them, and histograms."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Mark = Literal["dot", "triangle", "square", "plus", "ring"]
WIDTH, HEIGHT = 560, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 16, 44
_N_TICKS = 5
# A plot has this much room beyond its last point.
_MARGIN = 0.06
_SHAPES: dict[str, str] = {
    "dot": '<circle r="4"/>',
    "ring": '<circle r="4.5" class="hollow"/>',
    "triangle": '<path d="M0-5.2 5 3.8H-5Z"/>',
    "square": '<path d="M-4.2-4.2H4.2V4.2H-4.2Z"/>',
    "plus": '<path d="M-5.5 0H5.5M0-5.5V5.5" class="stroke"/>',
}


@dataclass(frozen=True)
class PointSeries:
    """Points (x, y) with a mark in a colour of the page (1 to 6). `is_line` joins them in their order; `notes` has a
    text for each point, shown on hover.
    """

    name: str
    points: Sequence[tuple[float, float]]
    mark: Mark = "dot"
    color: int = 1
    is_line: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ReferenceLine:
    """A line across the plot, at a value of x or of y."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Chart:
    """A chart with its title, a sentence on what it shows, and its drawing; `key` has a mark and a name per series."""

    title: str
    caption: str
    svg: str
    key: Sequence[tuple[str, str]] = field(default_factory=tuple)

    def html(self) -> str:
        """As a figure of the page."""
        frame = '<svg class="chart mark" viewBox="-7 -7 14 14" aria-hidden="true">'
        names = "".join(f"<span>{frame}{mark}</svg>{html.escape(name)}</span>" for mark, name in self.key)
        about = f"<b>{html.escape(self.title)}.</b> {html.escape(self.caption)}"
        return f'<figure>{self.svg}<div class="key">{names}</div><figcaption>{about}</figcaption></figure>'


def points_chart(
    title: str,
    caption: str,
    series: Sequence[PointSeries],
    *,
    x: str,
    y: str,
    lines: Sequence[ReferenceLine] = (),
    y_range: tuple[float, float] | None = None,
) -> Chart:
    """Points over two axes that begin at 0 (or at the least value below). Series without points are left out."""
    drawn = [group for group in series if group.points]
    xs = [point[0] for group in drawn for point in group.points] + [line.x for line in lines if line.x is not None]
    ys = [point[1] for group in drawn for point in group.points] + [line.y for line in lines if line.y is not None]
    axes = _Axes(_range(xs), y_range or _range(ys))
    marks = "".join(_reference(axes, line) for line in lines) + "".join(_series(axes, group) for group in drawn)
    key = [(f'<g class="c{group.color}">{_SHAPES[group.mark]}</g>', group.name) for group in drawn]
    return Chart(title, caption, axes.frame(x, y, title, marks), key if len(key) > 1 else ())


def histogram(
    title: str,
    caption: str,
    values: Mapping[str, Sequence[float]],
    *,
    bins: int,
    limits: tuple[float, float],
    x: str,
    y: str,
) -> Chart:
    """How many values of each group fall into each bin; the groups stand on each other."""
    low, high = limits
    counts = {name: [0] * bins for name in values}
    for name, group in values.items():
        for value in group:
            place = min(bins - 1, max(0, int((value - low) / (high - low) * bins)))
            counts[name][place] += 1
    tallest = max((sum(column) for column in zip(*counts.values(), strict=True)), default=0)
    axes = _Axes(limits, (0.0, max(1.0, tallest * (1 + _MARGIN))), has_counts=True)
    bars, below = [], [0] * bins
    for color, (name, column) in enumerate(counts.items(), 1):
        for place, count in enumerate(column):
            if count:
                left, right = (axes.x(low + (high - low) * edge / bins) for edge in (place, place + 1))
                top, bottom = axes.y(below[place] + count), axes.y(below[place])
                size = f'width="{right - left - 1:.1f}" height="{bottom - top:.1f}"'
                note = f"<title>{html.escape(name)}: {count}</title>"
                bars.append(f'<rect class="c{color}" x="{left:.1f}" y="{top:.1f}" {size}>{note}</rect>')
                below[place] += count
    key = [(f'<g class="c{color}">{_SHAPES["square"]}</g>', name) for color, name in enumerate(values, 1)]
    return Chart(title, caption, axes.frame(x, y, title, "".join(bars)), key if len(key) > 1 else ())


class _Axes:
    """Where values lie in the drawing; `has_counts`: y has whole numbers only."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float], *, has_counts: bool = False):
        self.x_range, self.y_range, self.has_counts = x_range, y_range, has_counts

    def x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _BOTTOM - _TOP)

    def frame(self, x_label: str, y_label: str, title: str, marks: str) -> str:
        """The drawing: axes with their ticks and names, and the marks on them."""
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>']
        for tick in _ticks(*self.x_range):
            place = f'x="{self.x(tick):.1f}" y="{bottom + 17}"'
            parts.append(f'<text {place} text-anchor="middle">{_number(tick)}</text>')
        y_ticks = [tick for tick in _ticks(*self.y_range) if not self.has_counts or tick == int(tick)]
        for tick in y_ticks:
            height = self.y(tick)
            parts.append(f'<path class="grid" d="M{_LEFT} {height:.1f}H{right}"/>')
            parts.append(f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
        middle = (_TOP + bottom) / 2
        parts.append(
            f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(x_label)}</text>'
        )
        turned = f'transform="translate(14 {middle}) rotate(-90)" text-anchor="middle"'
        parts.append(f"<text {turned}>{html.escape(y_label)}</text>")
        name = html.escape(title, quote=True)
        inner = "".join(parts) + marks
        return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{inner}</svg>'


def _series(axes: _Axes, series: PointSeries) -> str:
    places = [(axes.x(x), axes.y(y)) for x, y in series.points]
    line = ""
    if series.is_line and len(places) > 1:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        line = f'<path class="line c{series.color}" d="M{path}"/>'
    notes = series.notes or [series.name] * len(places)
    marks = "".join(
        f'<g class="c{series.color}" transform="translate({x:.1f} {y:.1f})">{_SHAPES[series.mark]}'
        f"<title>{html.escape(note)}</title></g>"
        for (x, y), note in zip(places, notes, strict=True)
    )
    return line + marks


def _reference(axes: _Axes, line: ReferenceLine) -> str:
    label = html.escape(line.label)
    if line.x is not None:
        place = axes.x(line.x)
        path = f"M{place:.1f} {_TOP}V{HEIGHT - _BOTTOM}"
        return f'<path class="reference" d="{path}"/><text x="{place + 4:.1f}" y="{_TOP + 10}">{label}</text>'
    assert line.y is not None
    height = axes.y(line.y)
    path = f"M{_LEFT} {height:.1f}H{WIDTH - _RIGHT}"
    place = f'x="{_LEFT + 6}" y="{height - 4:.1f}"'
    return f'<path class="reference" d="{path}"/><text {place}>{label}</text>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(0.0, *values), max(0.0, *values)
    return low, high + ((high - low) * _MARGIN or 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high."""
    raw = (high - low) / _N_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round((first + place) * step, 10) for place in range(int(high / step + 1e-9) - first + 1)]


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")
