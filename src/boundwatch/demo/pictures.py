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
    ".scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.82rem; }"
    "th, td { padding: 0.3rem 0.45rem; text-align: left; vertical-align: bottom; }"
    "th, td { border-bottom: 1px solid var(--line); }"
    "td:first-child { white-space: nowrap; }"
    "td.number { text-align: right; font-variant-numeric: tabular-nums; }"
    "td.adverse { color: var(--adverse); font-weight: 600; }"
    "td.benign { color: var(--benign); font-weight: 600; }"
    "svg .obstacle { fill: var(--muted); } svg .option { stroke: var(--muted); opacity: 0.45; fill: none; }"
    "svg .flown { stroke: var(--new); stroke-width: 2.5; fill: none; } svg .far { fill: var(--panel); }"
    "svg .near { fill: var(--certified); } svg .trace { fill: none; stroke-width: 2; }"
    "</style>"
)
_SCALE = 34.0  # pixels per meter in the top-down picture
_ACROSS, _AHEAD = 4.0, 9.0  # meters shown to either side and ahead
_LEVELS = 12  # shades of a depth image
_NEAREST = 0.5  # in units of the depth range: what is this near or nearer gets the strongest shade
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 300, 52, 130, 14, 42
_LOWEST, _HIGHEST = 1e-4, 1e8  # e-values shown
_DASHES = {"training": "", "harder": "8 3", "easier": "2 3", "windy": "10 3 2 3", "task-irrelevant": "5 5"}
_COLORS = ("--ink", "--adverse", "--benign", "--certified", "--muted")


def draw_flight(
    obstacles: NDArray[np.float32], flights: NDArray[np.float32], chosen: int, radii: tuple[float, float]
) -> Html:
    """Draw one environment from above: obstacles, every primitive, and the one that was flown.

    Examples
    --------
    >>> drawn = draw_flight(np.zeros((9, 2)), np.zeros((7, 5, 2)), 3, (0.2, 0.17))
    >>> drawn.count("circle"), drawn.count("polyline")
    (10, 7)
    """
    width, height = 2 * _ACROSS * _SCALE, _AHEAD * _SCALE
    obstacle_radius, drone_radius = radii

    def at(x: float, y: float) -> tuple[float, float]:
        return (x + _ACROSS) * _SCALE, height - 12 - y * _SCALE

    def line(flight: NDArray[np.float32], kind: str) -> str:
        points = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in flight[::8].tolist())
        return f'<polyline class="{kind}" points="{points}"/>'

    start = at(0.0, 0.0)
    parts = [
        f'<rect class="far" width="{width:g}" height="{height:g}"/>',
        *(line(flight, "option") for number, flight in enumerate(flights) if number != chosen),
        *(
            '<circle class="obstacle" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>'.format(
                *at(x, y), obstacle_radius * _SCALE
            )
            for x, y in obstacles.tolist()
        ),
        line(flights[chosen], "flown"),
        f'<circle class="mean" cx="{start[0]:.1f}" cy="{start[1]:.1f}" r="{drone_radius * _SCALE:.1f}"/>',
    ]
    return svg("Flight from above", width, height, parts)


def draw_depth(image: NDArray[np.float32], depth_range: float) -> Html:
    """Draw a depth image: the nearer, the stronger the color.

    Examples
    --------
    >>> draw_depth(np.full((50, 50), 7.0), 7.0).count("<path")
    0
    """
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
    """Draw e-values over trials, one line per world, on a logarithmic scale.

    Examples
    --------
    >>> draw_evidence([("training", [0.5, 0.2]), ("windy", [3.0, 40.0])], 25.0, "e-value").count("polyline")
    2
    """
    trials = max(len(values) for _, values in series)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    span = math.log10(_HIGHEST / _LOWEST)

    def at(trial: float, value: float) -> tuple[float, float]:
        share = math.log10(min(max(value, _LOWEST), _HIGHEST) / _LOWEST) / span
        return _LEFT + trial / trials * (right - _LEFT), bottom - share * (bottom - _TOP)

    parts = []
    for power in range(-4, 9, 2):
        y = at(0, 10.0**power)[1]
        name = "1" if power == 0 else f"10^{power}"
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    y = at(0, threshold)[1]
    parts.append(f'<path class="limit" d="M{_LEFT} {y:.1f}H{right}"/>')
    ends = []
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


def _apart(ends: list[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Move labels down until none covers another."""
    placed: list[tuple[float, str, str]] = []
    for y, world, color in sorted(ends):
        lowest = placed[-1][0] + 14 if placed else y
        placed.append((max(y, lowest), world, color))
    overflow = max(placed[-1][0] - (_HEIGHT - _BOTTOM), 0.0)
    return [(y - overflow, world, color) for y, world, color in placed]
