"""Drawings: SVG that takes its colors from the page's style, light and dark alike, no library.

First the parts, which escape the text that they are given, and `Frame`, the area between the axes; then what
reports draw of them: new costs beside what was certified, and limits by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.reporting.page import Html
from boundwatch.reporting.wording import count, limits, shortened


def svg(label: str, width: float, height: float, parts: Iterable[str]) -> Html:
    """Return a drawing of so many units, with a label for those who cannot see it."""
    box = f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}"'
    return Html(f"<svg {box}>{''.join(parts)}</svg>")


def text(
    x: float, y: float, content: str, anchor: str = "middle", *, style: str = "", upright: bool = False
) -> str:
    """Return a text that has its middle, start or end at a place; an upright one reads from the bottom up."""
    more = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if upright else ""
    more += f' style="{style}"' if style else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def path(kind: str, *steps: str | float, opacity: float = 1) -> str:
    """Return a path of letters and numbers."""
    faint = "" if opacity == 1 else f' opacity="{opacity:.2f}"'
    return f'<path class="{kind}"{faint} d="{" ".join(map(_n, steps))}"/>'


def diamond(x: float, y: float) -> str:
    """Return the mark of a mean."""
    return path("mean", "M", x, y - 6, "l6 6l-6 6l-6 -6z")


def circle(kind: str, x: float, y: float, radius: float) -> str:
    """Return a dot."""
    return f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'


def rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return an area."""
    return f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"/>'


def polyline(kind: str, points: Iterable[tuple[float, float]], *, style: str = "") -> str:
    """Return a line through points."""
    styled = f' style="{style}"' if style else ""
    places = " ".join([f"{_n(x)},{_n(y)}" for x, y in points])
    return f'<polyline class="{kind}"{styled} points="{places}"/>'


def _n(number: float | str) -> str:
    return number if isinstance(number, str) else f"{number:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Frame:
    """The area between the axes of a drawing, which shares of 0 to 1 are drawn in."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def end(self) -> float:
        """Where the area ends on the right."""
        return self.width - self.right

    def x(self, share: float) -> float:
        """Return the place of a share from left to right."""
        return self.left + share * (self.end - self.left)

    def y(self, share: float) -> float:
        """Return the place of a share from the bottom up."""
        return self.top + (1 - share) * (self.height - self.top - self.bottom)

    def level(self, kind: str, share: float) -> str:
        """Return a horizontal line."""
        return path(kind, "M", self.left, self.y(share), "H", self.end)

    def band(self, low: float, high: float) -> str:
        """Return a horizontal band, the certified one, with its limits."""
        tall = max(self.y(low) - self.y(high), 1)
        area = rect("band", self.left, self.y(high), self.end - self.left, tall)
        return area + self.level("limit", low) + self.level("limit", high)

    def axis(self, ticks: Iterable[tuple[str, float]], label: str = "") -> str:
        """Return the vertical axis: a line and a name for each share, and what they are of."""
        marks = text(12, self.y(0.5), label, upright=True) if label else ""
        for name, share in reversed(list(ticks)):
            marks = self.level("grid", share) + text(self.left - 8, self.y(share) + 4, name, "end") + marks
        return marks

    def draw(self, label: str, parts: Iterable[str]) -> Html:
        """Return the whole drawing."""
        return svg(label, self.width, self.height, parts)


_FRAME = Frame(560, 270, left=58, right=14, top=14, bottom=44)
_QUARTERS = [(f"{share:g}", share) for share in (0, 0.25, 0.5, 0.75, 1)]
_FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
_MOST_DOTS = 1000
_CELLS, _ROWS = 50, 20  # of a strip: so many per row, until there are more rows than these


def draw_check(certificate: Certificate, costs: NDArray[np.float64], interval: tuple[float, float]) -> Html:
    """Draw new costs in their order and, below them, their mean, its interval and the certified one."""
    parts, top = _strip(costs) if certificate.binary else _dots(certificate, costs)
    mean, line = float(costs.mean()), top + 18
    (low, high), (lower, upper) = (
        [_FRAME.x(end) for end in ends] for ends in (interval, (certificate.lower, certificate.upper))
    )
    what, scale = f"expected cost (mean {mean:.3f} over {count(costs.size, 'episode')})", 1
    if certificate.binary:
        what, scale = f"percent of trials that fail ({int(costs.sum())} of {costs.size} failed)", 100
    parts += [path("grid", "M", _FRAME.x(tick), top, "v36") for tick in _FIFTHS]
    parts += [text(_FRAME.x(tick), top + 50, f"{scale * tick:g}") for tick in _FIFTHS]
    parts += [rect("band", lower, top, upper - lower, 36)]
    parts += [path("limit", "M", end, top, "v36") for end in (lower, upper)]
    parts += [path("new", "M", low, line, "H", high)]
    parts += [path("new", "M", end, line - 8, "v16") for end in (low, high)]
    parts += [diamond(_FRAME.x(mean), line), text(_FRAME.x(0.5), top + 70, what)]
    return svg(f"{what}; certified: {limits(certificate)}", _FRAME.width, top + 78, parts)


def _dots(certificate: Certificate, costs: NDArray[np.float64]) -> tuple[list[str], float]:
    """Return one dot per episode (evenly spaced ones beyond 1000), and where they end."""
    n, frame = costs.size, replace(_FRAME, height=178, bottom=32)
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_DOTS)).round().astype(int)).tolist()
    radius = 4 if n <= 60 else 2.5 if n <= 300 else 1.5
    parts = [
        frame.axis(_QUARTERS, "cost"),
        frame.band(certificate.lower, certificate.upper),
        *(circle("dot", frame.x((i + 0.5) / n), frame.y(costs[i]), radius) for i in shown),
        *(text(frame.x((i - 0.5) / n), frame.height - 16, str(i)) for i in _ticks(n)),
    ]
    return parts, frame.height


def draw_order(trials: Iterable[tuple[str, float]]) -> Html:
    """Draw trials in their order, each with a label."""
    labels, costs = zip(*trials, strict=True)
    parts, bottom = _strip(np.array(costs), labels)
    said = f"{len(labels)} trials in their order: {' '.join(labels)}"
    return svg(said, _FRAME.width, bottom, parts)


def _strip(costs: NDArray[np.float64], labels: Iterable[str] = ()) -> tuple[list[str], float]:
    """Return one cell per trial, the fuller the higher its cost, and where the drawing goes on below them."""
    n, columns = costs.size, 25 if labels else strip_columns(costs.size)
    rows = math.ceil(n / columns)
    width, tall = min((_FRAME.end - _FRAME.left) / columns, 32), 32 if rows == 1 else 20 if labels else 14
    gap = 1.5 if width >= 5 else 0  # without room for gaps, cells touch
    bottom = _FRAME.top + rows * tall
    size = f"h{width - gap:.2f}v{tall - gap}h-{width - gap:.2f}z"
    places = [(_FRAME.left + i % columns * width, _FRAME.top + i // columns * tall) for i in range(n)]
    parts = [text(12, (_FRAME.top + bottom) / 2, "trial", upright=True)]
    for cost in np.unique(costs).tolist():
        cells = "".join(
            f"M{x:.2f} {y}{size}" for (x, y), each in zip(places, costs, strict=True) if each == cost
        )
        faint = "" if cost in (0, 1) else f' fill-opacity="{cost:.2f}"'
        kind = "failed" if cost else "succeeded"
        parts.append(f'<path class="{kind}"{faint} stroke-width="{0.5 if gap else 0.15}" d="{cells}"/>')
    for (x, y), label, cost in zip(places, labels, costs, strict=False):
        seen = "fill: var(--paper)" if cost > 0.5 else ""
        parts.append(text(x + (width - gap) / 2, y + tall / 2 + 3, label, style=seen))
    if rows == 1:
        parts += [text(_FRAME.left + (i - 0.5) * width, bottom + 14, str(i)) for i in _ticks(n)]
        return parts, bottom + 26
    for row in range(0, rows, 1 if rows <= 10 else 5):
        parts.append(text(_FRAME.left - 8, _FRAME.top + row * tall + 11, str(row * columns + 1), "end"))
    return parts, bottom + 14


def strip_columns(n: int) -> int:
    """Return how many of n trials a row of the strip has."""
    return min(n, _CELLS) if n <= _CELLS * _ROWS else math.ceil(n / _ROWS)


def _ticks(n: int) -> list[int]:
    """Return numbers of episodes for the axis: the first, and at most six round ones."""
    power = 10 ** math.floor(math.log10(n / 6)) if n > 6 else 1
    step = next(size for size in (power, 2 * power, 5 * power, 10 * power) if 6 * size >= n)
    return sorted({1, *range(step, n + 1, step)})


def draw_limits(bars: Iterable[tuple[str, list[float]]], ends: tuple[float, float], what: str) -> Html:
    """Draw means with their limits, one named row each, on an axis between two ends."""
    rows, (low, high) = list(bars), ends
    frame = Frame(560, 26 * len(rows) + 64, left=170, right=20, top=10, bottom=44)
    parts = []
    for share in _FIFTHS if low >= 0 else (0, 0.25, 0.5, 0.75, 1):  # zero has a line of its own
        at = low + share * (high - low)
        parts.append(path("grid" if at else "axis", "M", frame.x(share), frame.top, "V", frame.y(0)))
        parts.append(text(frame.x(share), frame.height - 26, f"{at:.3g}"))
    for i, (name, values) in enumerate(rows):
        y = frame.top + 26 * i + 18
        mean, lower, upper = (frame.x((value - low) / (high - low)) for value in values)
        parts += [text(frame.left - 10, y + 4, shortened(name, 24), "end")]
        parts += [path("new", "M", lower, y, "H", upper)]
        parts += [path("new", "M", end, y - 6, "v12") for end in (lower, upper)]
        parts.append(diamond(mean, y))
    parts.append(text(frame.x(0.5), frame.height - 8, what))
    said = "; ".join(f"{name} {mean:.3g} ({lower:.3g} to {upper:.3g})" for name, (mean, lower, upper) in rows)
    return frame.draw(f"{what}: {said}", parts)
