"""Figures for HTML pages, as SVG that takes its colors from the page: no library, light and dark alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.reporting.page import Html
from boundwatch.reporting.wording import count, percent

_WIDTH, _HEIGHT = 560, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 44
_MOST_DOTS = 1000
_CELLS, _ROWS = 50, 20  # of a strip: so many per row, until there are more rows than these


def draw_costs(certificate: Certificate, costs: NDArray[np.float64], interval: tuple[float, float]) -> Html:
    """Draw new costs, the certified interval, and the interval for the new expected cost.

    Parameters
    ----------
    certificate
        What was promised.
    costs
        The new costs; beyond 1000, evenly spaced ones are drawn.
    interval
        For the new expected cost, as `boundwatch.reporting.wording.new_interval` returns it.

    Examples
    --------
    >>> certificate = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> draw_costs(certificate, np.array([0.1, 0.7]), (0.0, 0.9)).count('class="dot"')
    2
    """
    right = _WIDTH - 120  # the mean has a place of its own beside the episodes
    n, mean = costs.size, float(costs.mean())
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_DOTS)).round().astype(int))
    radius = 4 if n <= 60 else 2.5 if n <= 300 else 1.5
    center, ends = (right + _WIDTH - _RIGHT) / 2, [_y(end) for end in interval]
    parts = [
        *_vertical_axis("cost", right=_WIDTH - _RIGHT),
        *_certified(certificate, right=_WIDTH - _RIGHT),
        *(
            f'<circle class="dot" cx="{_LEFT + (i + 0.5) / n * (right - _LEFT):.1f}" '
            f'cy="{_y(costs[i]):.1f}" r="{radius}"/>'
            for i in shown.tolist()
        ),
        *(_text(_LEFT + (i - 0.5) / n * (right - _LEFT), _HEIGHT - 26, str(i)) for i in _ticks(n)),
        _text((_LEFT + right) / 2, _HEIGHT - 8, "episode"),
        f'<path class="new" d="M{center} {ends[0]:.1f}V{ends[1]:.1f}'
        + "".join(f"M{center - 8} {end:.1f}h16" for end in ends)
        + '"/>',
        f'<path class="mean" d="M{center} {_y(mean) - 6:.1f}l6 6l-6 6l-6 -6z"/>',
        _text(center, _HEIGHT - 26, f"mean {mean:.3f}"),
    ]
    label = f"Costs of {count(n, 'episode')} with mean {mean:.3f}; {_range_text(certificate)}"
    return svg(label, _WIDTH, _HEIGHT, parts)


def draw_outcomes(
    certificate: Certificate, costs: NDArray[np.float64], interval: tuple[float, float] | None = None
) -> Html:
    """Draw trials that succeeded or failed as a strip of cells, and their rate of failures below it.

    Parameters
    ----------
    certificate
        What was promised.
    costs
        The new costs, each 0 or 1, in their order: a cell for each, dark where it failed.
    interval
        For the new rate of failures, if it is to be drawn.

    Examples
    --------
    >>> certificate = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> drawn = draw_outcomes(certificate, np.array([0, 1, 1, 0]), (0.1, 0.9))
    >>> drawn.count("h-"), "2 of 4 failed" in drawn
    (4, True)
    """
    n, failures = costs.size, int(costs.sum())
    columns = strip_columns(n)
    rows = math.ceil(n / columns)
    width = min((_WIDTH - _RIGHT - _LEFT) / columns, 32)
    tall = 32 if rows == 1 else 14
    gap = 1.5 if width >= 5 else 0  # without room for gaps, cells touch

    def cells(numbers: Iterable[int]) -> str:
        return "".join(
            f"M{_LEFT + i % columns * width:.2f} {_TOP + i // columns * tall}"
            f"h{width - gap:.2f}v{tall - gap}h-{width - gap:.2f}z"
            for i in numbers
        )

    bottom = _TOP + rows * tall
    if rows == 1:
        numbers = [_text(_LEFT + (i - 0.5) * width, bottom + 14, str(i)) for i in _ticks(n)]
    else:
        each = 1 if rows <= 10 else 5
        numbers = [
            _text(_LEFT - 8, _TOP + row * tall + 11, str(row * columns + 1), anchor="end")
            for row in range(0, rows, each)
        ]
    middle = (_TOP + bottom) / 2
    scale = bottom + (26 if rows == 1 else 14)  # where the part with the rates begins
    line = scale + 18
    across = _WIDTH - _RIGHT - _LEFT

    def at(rate: float) -> float:
        return _LEFT + rate * across

    low, high, mean = at(certificate.lower), at(certificate.upper), at(failures / n)
    ends = [] if interval is None else [at(end) for end in interval]
    parts = [
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">trial</text>',
        f'<path class="succeeded" stroke-width="{0.5 if gap else 0.15}" '
        f'd="{cells(np.flatnonzero(costs == 0).tolist())}"/>',
        f'<path class="failed" d="{cells(np.flatnonzero(costs == 1).tolist())}"/>',
        *numbers,
        *(
            f'<path class="grid" d="M{at(tick):.1f} {scale}v36"/>'
            + _text(at(tick), scale + 50, f"{100 * tick:g}")
            for tick in (0, 0.2, 0.4, 0.6, 0.8, 1)
        ),
        f'<rect class="band" x="{low:.1f}" y="{scale}" width="{high - low:.1f}" height="36"/>',
        *(f'<path class="limit" d="M{end:.1f} {scale}v36"/>' for end in (low, high)),
        *([f'<path class="new" d="M{ends[0]:.1f} {line}H{ends[1]:.1f}"/>'] if ends else []),
        *(f'<path class="new" d="M{end:.1f} {line - 8}v16"/>' for end in ends),
        f'<path class="mean" d="M{mean:.1f} {line - 6}l6 6l-6 6l-6 -6z"/>',
        _text(_LEFT + across / 2, scale + 70, f"percent of trials that fail ({failures} of {n} failed)"),
    ]
    label = (
        f"{failures} of {n} trials failed; certified: {percent(certificate.lower, 'down')} to "
        f"{percent(certificate.upper, 'up')}"
    )
    return svg(label, _WIDTH, scale + 78, parts)


def strip_columns(n: int) -> int:
    """Return how many of n trials a row of the strip has.

    Examples
    --------
    >>> strip_columns(12), strip_columns(120), strip_columns(10_000)
    (12, 50, 500)
    """
    return min(n, _CELLS) if n <= _CELLS * _ROWS else math.ceil(n / _ROWS)


def draw_power(certificate: Certificate, costs: ArrayLike, chances: ArrayLike) -> Html:
    """Draw the chance of ADVERSE against the new expected cost, from points on the curve.

    Examples
    --------
    >>> certificate = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> draw_power(certificate, [0.2, 0.6, 1.0], [0.05, 0.9, 1.0]).count("polyline")
    1
    """
    width = _WIDTH - _RIGHT - _LEFT
    points = " ".join(
        f"{_LEFT + cost * width:.1f},{_y(chance):.1f}"
        for cost, chance in zip(np.asarray(costs), np.asarray(chances), strict=True)
    )
    upper = _LEFT + certificate.upper * width
    parts = [
        *_vertical_axis("chance of ADVERSE", right=_WIDTH - _RIGHT),
        *(_text(_LEFT + tick * width, _HEIGHT - 26, f"{tick:g}") for tick in (0, 0.2, 0.4, 0.6, 0.8, 1)),
        _text(
            _LEFT + width / 2,
            _HEIGHT - 8,
            "share of new trials that fail" if certificate.binary else "expected cost of new episodes",
        ),
        f'<rect class="band" x="{_LEFT + certificate.lower * width:.1f}" y="{_TOP}" '
        f'width="{(certificate.upper - certificate.lower) * width:.1f}" height="{_y(0) - _TOP}"/>',
        f'<path class="limit" d="M{upper:.1f} {_TOP}V{_y(0)}"/>',
        f'<path class="axis" d="M{_LEFT} {_y(0.9):.1f}H{_WIDTH - _RIGHT}"/>',
        _text(_LEFT + 4, _y(0.9) + 14, "90 %", anchor="start"),
        f'<polyline class="curve" points="{points}"/>',
    ]
    label = f"Chance of the verdict ADVERSE by expected cost; {_range_text(certificate)}"
    return svg(label, _WIDTH, _HEIGHT, parts)


def svg(label: str, width: float, height: float, parts: Iterable[str]) -> Html:
    """Return a figure of so many units, with a label for those who cannot see it.

    Examples
    --------
    >>> svg("A dot", 10, 10, ['<circle r="1"/>'])
    '<svg viewBox="0 0 10 10" role="img" aria-label="A dot"><circle r="1"/></svg>'
    """
    return Html(
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
        + "".join(parts)
        + "</svg>"
    )


def _y(value: float) -> float:
    return _TOP + (1 - value) * (_HEIGHT - _TOP - _BOTTOM)


def _vertical_axis(label: str, right: float) -> list[str]:
    middle = _y(0.5)
    return [
        *(
            f'<path class="grid" d="M{_LEFT} {_y(tick):.1f}H{right}"/>'
            + _text(_LEFT - 8, _y(tick) + 4, f"{tick:g}", anchor="end")
            for tick in (0, 0.25, 0.5, 0.75, 1)
        ),
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{label}</text>',
    ]


def _certified(certificate: Certificate, right: float) -> list[str]:
    low, high = _y(certificate.lower), _y(certificate.upper)
    return [
        f'<rect class="band" x="{_LEFT}" y="{high:.1f}" width="{right - _LEFT}" height="{low - high:.1f}"/>',
        *(f'<path class="limit" d="M{_LEFT} {end:.1f}H{right}"/>' for end in (low, high)),
    ]


def _ticks(n: int) -> list[int]:
    """Return numbers of episodes for the axis: the first, and at most six round ones.

    Examples
    --------
    >>> _ticks(1), _ticks(12), _ticks(85)
    ([1], [1, 2, 4, 6, 8, 10, 12], [1, 20, 40, 60, 80])
    """
    if n == 1:
        return [1]
    power = 10 ** math.floor(math.log10(n / 6)) if n > 6 else 1
    step = next(size * power for size in (1, 2, 5, 10) if size * power * 6 >= n)
    return sorted({1, *range(step, n + 1, step)})


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _range_text(certificate: Certificate) -> str:
    return f"certified expected cost {certificate.lower:.3f} to {certificate.upper:.3f}"
