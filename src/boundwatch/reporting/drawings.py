"""What reports draw: new costs beside what was certified, and the chance that a shift is noticed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.reporting.page import Html
from boundwatch.reporting.svg import Frame, circle, diamond, path, polyline, rect, svg, text
from boundwatch.reporting.wording import count, limits

_FRAME = Frame(560, 270, left=58, right=14, top=14, bottom=44)
_QUARTERS = [(f"{share:g}", share) for share in (0, 0.25, 0.5, 0.75, 1)]
_FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
_MOST_DOTS = 1000
_CELLS, _ROWS = 50, 20  # of a strip: so many per row, until there are more rows than these


def draw_costs(certificate: Certificate, costs: NDArray[np.float64], interval: tuple[float, float]) -> Html:
    """Draw new costs (evenly spaced ones beyond 1000), the certified interval, and that of the new mean."""
    episodes = replace(_FRAME, right=120)  # the mean has a place of its own beside them
    n, mean = costs.size, float(costs.mean())
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_DOTS)).round().astype(int)).tolist()
    radius = 4 if n <= 60 else 2.5 if n <= 300 else 1.5
    center, below = (episodes.end + _FRAME.end) / 2, _FRAME.height - 26
    low, high = (_FRAME.y(end) for end in interval)
    parts = [
        _FRAME.axis(_QUARTERS, "cost"),
        _FRAME.band(certificate.lower, certificate.upper),
        *(circle("dot", episodes.x((i + 0.5) / n), _FRAME.y(costs[i]), radius) for i in shown),
        *(text(episodes.x((i - 0.5) / n), below, str(i)) for i in _ticks(n)),
        text(episodes.x(0.5), _FRAME.height - 8, "episode"),
        path("new", "M", center, low, "V", high, "M", center - 8, low, "h16M", center - 8, high, "h16"),
        diamond(center, _FRAME.y(mean)),
        text(center, below, f"mean {mean:.3f}"),
    ]
    return _FRAME.draw(f"Costs of {count(n, 'episode')} with mean {mean:.3f}; {_range(certificate)}", parts)


def draw_outcomes(
    certificate: Certificate, costs: NDArray[np.float64], interval: tuple[float, float] | None = None
) -> Html:
    """Draw trials as a strip of cells, dark where one failed, and below it the rates of failures."""
    strip, top = _strip(costs)
    failed = f"{int(costs.sum())} of {costs.size}"
    line, mean = top + 18, float(costs.mean())
    low, high = _FRAME.x(certificate.lower), _FRAME.x(certificate.upper)
    ends = [] if interval is None else [_FRAME.x(end) for end in interval]
    parts = [
        *strip,
        *(path("grid", "M", _FRAME.x(tick), top, "v36") for tick in _FIFTHS),
        *(text(_FRAME.x(tick), top + 50, f"{100 * tick:g}") for tick in _FIFTHS),
        rect("band", low, top, high - low, 36),
        *(path("limit", "M", end, top, "v36") for end in (low, high)),
        *([path("new", "M", ends[0], line, "H", ends[1])] if ends else []),
        *(path("new", "M", end, line - 8, "v16") for end in ends),
        diamond(_FRAME.x(mean), line),
        text(_FRAME.x(0.5), top + 70, f"percent of trials that fail ({failed} failed)"),
    ]
    return svg(f"{failed} trials failed; certified: {limits(certificate)}", _FRAME.width, top + 78, parts)


def _strip(costs: NDArray[np.float64]) -> tuple[list[str], float]:
    """Return one cell per trial with their numbers, and where the drawing goes on below them."""
    n, columns = costs.size, strip_columns(costs.size)
    rows = math.ceil(n / columns)
    width, tall = min((_FRAME.end - _FRAME.left) / columns, 32), 32 if rows == 1 else 14
    gap = 1.5 if width >= 5 else 0  # without room for gaps, cells touch
    bottom = _FRAME.top + rows * tall

    def cells(numbers: Iterable[int]) -> str:
        return "".join(
            f"M{_FRAME.left + i % columns * width:.2f} {_FRAME.top + i // columns * tall}"
            f"h{width - gap:.2f}v{tall - gap}h-{width - gap:.2f}z"
            for i in numbers
        )

    if rows == 1:
        numbers = [text(_FRAME.left + (i - 0.5) * width, bottom + 14, str(i)) for i in _ticks(n)]
    else:
        numbers = [
            text(_FRAME.left - 8, _FRAME.top + row * tall + 11, str(row * columns + 1), "end")
            for row in range(0, rows, 1 if rows <= 10 else 5)
        ]
    succeeded, failed = (cells(np.flatnonzero(costs == cost).tolist()) for cost in (0, 1))
    parts = [
        text(12, (_FRAME.top + bottom) / 2, "trial", upright=True),
        f'<path class="succeeded" stroke-width="{0.5 if gap else 0.15}" d="{succeeded}"/>',
        f'<path class="failed" d="{failed}"/>',
        *numbers,
    ]
    return parts, bottom + (26 if rows == 1 else 14)


def strip_columns(n: int) -> int:
    """Return how many of n trials a row of the strip has."""
    return min(n, _CELLS) if n <= _CELLS * _ROWS else math.ceil(n / _ROWS)


def draw_power(certificate: Certificate, costs: ArrayLike, chances: ArrayLike) -> Html:
    """Draw the chance of ADVERSE against the new expected cost, from points on the curve."""
    low, high, tall = _FRAME.x(certificate.lower), _FRAME.x(certificate.upper), _FRAME.y(0) - _FRAME.top
    points = zip(np.asarray(costs), np.asarray(chances), strict=True)
    what = "share of new trials that fail" if certificate.binary else "expected cost of new episodes"
    parts = [
        _FRAME.axis(_QUARTERS, "chance of ADVERSE"),
        *(text(_FRAME.x(tick), _FRAME.height - 26, f"{tick:g}") for tick in _FIFTHS),
        text(_FRAME.x(0.5), _FRAME.height - 8, what),
        rect("band", low, _FRAME.top, high - low, tall),
        path("limit", "M", high, _FRAME.top, "v", tall),
        _FRAME.level("axis", 0.9),
        text(_FRAME.left + 4, _FRAME.y(0.9) + 14, "90 %", "start"),
        polyline("curve", ((_FRAME.x(cost), _FRAME.y(chance)) for cost, chance in points)),
    ]
    return _FRAME.draw(f"Chance of the verdict ADVERSE by expected cost; {_range(certificate)}", parts)


def _ticks(n: int) -> list[int]:
    """Return numbers of episodes for the axis: the first, and at most six round ones."""
    if n == 1:
        return [1]
    power = 10 ** math.floor(math.log10(n / 6)) if n > 6 else 1
    step = next(size * power for size in (1, 2, 5, 10) if size * power * 6 >= n)
    return sorted({1, *range(step, n + 1, step)})


def _range(certificate: Certificate) -> str:
    return f"certified expected cost {certificate.lower:.3f} to {certificate.upper:.3f}"
