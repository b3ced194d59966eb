"""The demo's pictures, as SVG that takes its colors from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from boundwatch.reporting.page import Html
from boundwatch.reporting.svg import svg

STYLE = Html(
    "<style>"
    ".worlds { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1rem; }"
    ".worlds figure { margin: 0; } .worlds svg + svg { margin-top: 0.25rem; }"
    "table { width: 100%; } th, td { vertical-align: top; white-space: normal; } td small { display: block; }"
    "@media (max-width: 40rem) { table { font-size: 0.75rem; } th, td { padding-right: 0.3rem; } }"
    "td.adverse { color: var(--adverse); font-weight: 600; }"
    "td.benign { color: var(--benign); font-weight: 600; }"
    "svg .hit { stroke: var(--ink); stroke-width: 2.5; fill: none; }"
    "svg .obstacle { fill: var(--muted); } svg .option { stroke: var(--muted); opacity: 0.45; fill: none; }"
    "svg .flown { stroke: var(--new); stroke-width: 2.5; fill: none; } svg .far { fill: var(--panel); }"
    "svg .near { fill: var(--certified); } svg .trace { fill: none; stroke-width: 2; }"
    "</style>"
)
_SCALE = 34.0  # pixels per meter in the top-down picture
_ACROSS, _AHEAD = 4.0, 9.0  # meters shown to either side and ahead
_LEVELS = 12  # shades of a depth image
_NEAREST = 0.5  # in units of the depth range: what is this near or nearer gets the strongest shade
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 300, 68, 114, 14, 42
_LOWEST, _HIGHEST = 1e-4, 1e8  # e-values shown
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DASHES = {"training": "", "harder": "8 3", "easier": "2 3", "windy": "10 3 2 3", "task-irrelevant": "5 5"}
_COLORS = ("--ink", "--adverse", "--benign", "--certified", "--muted")


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

    def line(flight: NDArray[np.float32], kind: str) -> str:
        points = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in flight[::8].tolist())
        return f'<polyline class="{kind}" points="{points}"/>'

    def circle(kind: str, x: float, y: float, radius: float) -> str:
        across, down = at(x, y)
        return f'<circle class="{kind}" cx="{across:.1f}" cy="{down:.1f}" r="{radius * _SCALE:.1f}"/>'

    flown = flights[chosen]
    gaps = np.linalg.norm(flown[:, None] - obstacles, axis=2).min(axis=1)
    x, y = at(*flown[gaps.argmin()].tolist())
    cross = f'<path class="hit" d="M{x - 9:.1f} {y - 9:.1f}l18 18m0 -18l-18 18"/>'
    parts = [
        f'<rect class="far" width="{width:g}" height="{height:g}"/>',
        *(line(flight, "option") for number, flight in enumerate(flights) if number != chosen),
        *(circle("obstacle", x, y, obstacle_radius) for x, y in obstacles.tolist()),
        line(flown, "flown"),
        *([cross] if collided else []),
        f'<path class="axis" d="M10 {height - 10:g}h{2 * _SCALE:g}"/>',
        f'<text x="{10 + _SCALE:g}" y="{height - 16:g}" text-anchor="middle">2 m</text>',
        circle("mean", 0.0, 0.0, drone_radius),
    ]
    return svg("Flight from above", width, height, parts)


def draw_depth(image: NDArray[np.float32], depth_range: float) -> Html:
    """Draw a depth image: the nearer, the stronger the color."""
    rows, columns = image.shape
    nearness = np.minimum((1.0 - image[::-1] / depth_range) / (1.0 - _NEAREST), 1.0)  # the top row looks up
    level = np.rint(nearness * _LEVELS).astype(int)
    parts = [f'<rect class="far" width="{columns}" height="{rows}"/>']
    for shade in range(1, _LEVELS + 1):
        cells = np.argwhere(level == shade)
        if len(cells):
            squares = "".join(f"M{column} {row}h1v1h-1z" for row, column in cells.tolist())
            parts.append(f'<path class="near" opacity="{shade / _LEVELS:.2f}" d="{squares}"/>')
    return svg("Depth image", columns, rows, parts)


def draw_evidence(series: Sequence[tuple[str, Sequence[float]]], threshold: float, label: str) -> Html:
    """Draw e-values over trials, one line per world, on a logarithmic scale."""
    trials = max(len(values) for _, values in series)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    span = math.log10(_HIGHEST / _LOWEST)

    def at(trial: float, value: float) -> tuple[float, float]:
        share = math.log10(min(max(value, _LOWEST), _HIGHEST) / _LOWEST) / span
        return _LEFT + trial / trials * (right - _LEFT), bottom - share * (bottom - _TOP)

    parts = []
    for power in range(-4, 9, 2):
        y = at(0, 10.0**power)[1]
        name = "1" if power == 0 else power_of_ten(power)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    y = at(0, threshold)[1]
    parts.append(f'<path class="limit" d="M{_LEFT} {y:.1f}H{right}"/>')
    place = f'text-anchor="middle" transform="rotate(-90 14 {(_TOP + bottom) / 2:g})"'
    parts.append(f'<text x="14" y="{(_TOP + bottom) / 2:g}" {place}>evidence (e-value)</text>')
    ends = [(y, f"alarm at {threshold:g}", "--certified")]
    for number, (world, values) in enumerate(series):
        points = [at(0, 1.0), *(at(trial + 1, value) for trial, value in enumerate(values))]
        color = _COLORS[number % len(_COLORS)]
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f'style="stroke:var({color})" stroke-dasharray="{_DASHES.get(world, "")}"'
        parts.append(f'<polyline class="trace" {style} points="{text}"/>')
        ends.append((points[-1][1], world, color))
    for y, world, color in _apart(ends):
        place = f'x="{right + 6}" y="{y + 4:.1f}" style="fill:var({color})"'
        parts.append(f"<text {place}>{escape(world)}</text>")
    for trial in sorted({1, *range(10, trials + 1, 10)}):
        place = f'x="{at(trial, 1)[0]:.1f}" y="{bottom + 18}" text-anchor="middle"'
        parts.append(f"<text {place}>{trial}</text>")
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">trial</text>')
    return svg(label, _WIDTH, _HEIGHT, parts)


def power_of_ten(power: int) -> str:
    """Return a power of ten as it is printed."""
    return f"10{str(power).translate(_RAISED)}"


def clipping(series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Say what `draw_evidence` cuts off, if anything."""
    high = [world for world, values in series if max(values) > _HIGHEST]
    low = [world for world, values in series if min(values) < _LOWEST]
    ends = [(high, "above", power_of_ten(8)), (low, "below", power_of_ten(-4))]
    return "".join(
        f" Evidence {side} {end} is drawn at {end} ({', '.join(worlds)})."
        for worlds, side, end in ends
        if worlds
    )


def _apart(ends: list[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Move labels down until none covers another."""
    placed: list[tuple[float, str, str]] = []
    for y, world, color in sorted(ends):
        lowest = placed[-1][0] + 16 if placed else y
        placed.append((max(y, lowest), world, color))
    overflow = max(placed[-1][0] - (_HEIGHT - _BOTTOM), 0.0)
    return [(y - overflow, world, color) for y, world, color in placed]
