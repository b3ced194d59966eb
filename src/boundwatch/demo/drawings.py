"""The demo's pictures, as SVG that takes its colors from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boundwatch.reporting.page import Html
from boundwatch.reporting.svg import Frame, circle, path, polyline, rect, svg, text

STYLE = Html(f"<style>\n{Path(__file__).with_name('demo.css').read_text(encoding='utf-8')}</style>")
_SCALE = 34.0  # pixels per meter in the top-down picture
_ACROSS, _AHEAD = 4.0, 9.0  # meters shown to either side and ahead
_LEVELS = 12  # shades of a depth image
_NEAREST = 0.5  # in units of the depth range: what is this near or nearer gets the strongest shade
_FRAME = Frame(640, 300, left=68, right=114, top=14, bottom=42)
_LOWEST, _HIGHEST = 1e-4, 1e8  # e-values shown
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_COLORS = ("--ink", "--adverse", "--benign", "--certified", "--muted")
_DASHES = ("none", "8 3", "2 3", "10 3 2 3", "5 5")


def draw_flight(
    obstacles: NDArray[np.float32],
    flights: NDArray[np.float32],
    chosen: int,
    radii: tuple[float, float],
    *,
    collided: bool,
) -> Html:
    """Draw one environment from above: obstacles, every primitive, the one that was flown, a collision."""
    width, height = 2 * _ACROSS * _SCALE, _AHEAD * _SCALE
    obstacle_radius, drone_radius = radii

    def at(x: float, y: float) -> tuple[float, float]:
        return (x + _ACROSS) * _SCALE, height - 12 - y * _SCALE

    def line(kind: str, flight: NDArray[np.float32]) -> str:
        return polyline(kind, (at(x, y) for x, y in flight[::8].tolist()))

    flown = flights[chosen]
    gaps = np.linalg.norm(flown[:, None] - obstacles, axis=2).min(axis=1)
    x, y = at(*flown[gaps.argmin()].tolist())
    parts = [
        rect("far", 0, 0, width, height),
        *(line("option", flight) for number, flight in enumerate(flights) if number != chosen),
        *(circle("obstacle", *at(x, y), obstacle_radius * _SCALE) for x, y in obstacles.tolist()),
        line("flown", flown),
        *([path("hit", "M", x - 9, y - 9, "l18 18m0 -18l-18 18")] if collided else []),
        path("axis", "M", 10, height - 10, "h", 2 * _SCALE),
        text(10 + _SCALE, height - 16, "2 m"),
        circle("mean", *at(0.0, 0.0), drone_radius * _SCALE),
    ]
    return svg("Flight from above", width, height, parts)


def draw_depth(image: NDArray[np.float32], depth_range: float) -> Html:
    """Draw a depth image: the nearer, the stronger the color."""
    rows, columns = image.shape
    nearness = np.minimum((1.0 - image[::-1] / depth_range) / (1.0 - _NEAREST), 1.0)  # the top row looks up
    level = np.rint(nearness * _LEVELS).astype(int)
    parts = [rect("far", 0, 0, columns, rows)]
    for shade in range(1, _LEVELS + 1):
        cells = np.argwhere(level == shade)
        if len(cells):
            squares = "".join(f"M{column} {row}h1v1h-1z" for row, column in cells.tolist())
            parts.append(path("near", squares, opacity=shade / _LEVELS))
    return svg("Depth image", columns, rows, parts)


def draw_evidence(series: Sequence[tuple[str, Sequence[float]]], threshold: float, label: str) -> Html:
    """Draw e-values over trials, one line per world, on a logarithmic scale."""
    trials = max(len(values) for _, values in series)
    span = math.log10(_HIGHEST / _LOWEST)

    def share(value: float) -> float:
        return math.log10(min(max(value, _LOWEST), _HIGHEST) / _LOWEST) / span

    ticks = [("1" if power == 0 else _power_of_ten(power), share(10.0**power)) for power in range(-4, 9, 2)]
    parts = [_FRAME.axis(ticks, "evidence (e-value)"), _FRAME.level("limit", share(threshold))]
    ends = [(_FRAME.y(share(threshold)), f"alarm at {threshold:g}", "--certified")]
    for (world, values), color, dashes in zip(series, _COLORS, _DASHES, strict=True):
        points = [(_FRAME.x(trial / trials), _FRAME.y(share(e))) for trial, e in enumerate([1.0, *values])]
        parts.append(polyline("trace", points, style=f"stroke:var({color});stroke-dasharray:{dashes}"))
        ends.append((points[-1][1], world, color))
    # Labels move down until none covers another, and up again if the last one is then too low.
    ends.sort()
    places = list(accumulate((y for y, _, _ in ends), lambda above, y: max(above + 16, y)))
    overflow = max(places[-1] - _FRAME.y(0), 0.0)
    for y, (_, name, color) in zip(places, ends, strict=True):
        parts.append(text(_FRAME.end + 6, y - overflow + 4, name, "start", style=f"fill:var({color})"))
    for trial in sorted({1, *range(10, trials + 1, 10)}):
        parts.append(text(_FRAME.x(trial / trials), _FRAME.y(0) + 18, str(trial)))
    parts.append(text(_FRAME.x(0.5), _FRAME.height - 6, "trial"))
    return _FRAME.draw(label, parts)


def _power_of_ten(power: int) -> str:
    return f"10{str(power).translate(_RAISED)}"


def clipping(series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Say what `draw_evidence` cuts off, if anything."""
    high = [world for world, values in series if max(values) > _HIGHEST]
    low = [world for world, values in series if min(values) < _LOWEST]
    ends = [(high, "above", _power_of_ten(8)), (low, "below", _power_of_ten(-4))]
    return "".join(
        f" Evidence {side} {end} is drawn at {end} ({', '.join(worlds)})."
        for worlds, side, end in ends
        if worlds
    )
