"""The monitor's drawings: plain SVG, colored by the style sheet, each with its content in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from boundwatch.certificates.certificate import Certificate
from boundwatch.reporting.svg import svg
from boundwatch.server.live_detectors import Curve

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 40
_USUAL = 20.0  # evidence that is always in the picture where no threshold is


def sparkline(curve: Curve, threshold: float | None) -> Markup:
    """Draw the evidence of a stream in a line of text; the dashed line, if any, is where it alarms.

    Examples
    --------
    >>> "polyline" in sparkline(Curve([0, 500], [0, 0]), 25.0)
    True
    """
    values = [value / 1000 for value in curve.adverse[-48:]]
    mark = math.log10(threshold or _USUAL)
    top = max([mark * 1.15, *values])
    bottom = min([-1.0, *values])

    def height(value: float) -> float:
        return 2 + 24 * (top - value) / (top - bottom)

    step = 116 / max(len(values) - 1, 1)
    places = [(2 + index * step, height(value)) for index, value in enumerate(values)]
    line = "".join(f"{x:.1f},{y:.1f} " for x, y in places)
    dot = "".join(f'<circle class="mean" cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in places[-1:])
    limit = f'<path class="limit" d="M0 {height(mark):.1f}H120"/>' if threshold else ""
    return Markup(  # noqa: S704 - numbers only
        f'<svg class="spark" viewBox="0 0 120 28" aria-hidden="true" focusable="false">{limit}'
        f'<polyline class="curve" points="{line}"/>{dot}</svg>'
    )


def draw_costs(certificate: Certificate, costs: Sequence[float], first: int) -> Markup:
    """Draw costs as dots and their running mean over the certified band.

    Parameters
    ----------
    certificate
        Whose band it is.
    costs
        The latest costs, in their order.
    first
        The number of the first of them.
    """
    right = _WIDTH - _RIGHT
    step = (right - _LEFT) / max(len(costs), 2)
    parts = [_axis(("0", 0.0), ("0.5", 0.5), ("1", 1.0))]
    low, high = _y(certificate.lower), _y(certificate.upper)
    parts.append(
        f'<rect class="band" x="{_LEFT}" y="{high:.1f}" width="{right - _LEFT}" '
        f'height="{max(low - high, 1):.1f}"/>'
        f'<path class="limit" d="M{_LEFT} {high:.1f}H{right}"/>'
    )
    total, means = 0.0, []
    for index, cost in enumerate(costs):
        x = _LEFT + (index + 0.5) * step
        total += cost
        means.append(f"{x:.1f},{_y(total / (index + 1)):.1f}")
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{_y(cost):.1f}" r="2.5"/>')
    parts.append(f'<polyline class="curve" points="{" ".join(means)}"/>')
    parts.append(_label(first, first + len(costs) - 1))
    what = "failure (1) or success (0)" if certificate.binary else "cost"
    return _drawn(
        f"Episodes {first} to {first + len(costs) - 1}: {what} of each, their running mean, which ends at "
        f"{total / len(costs):.3f}, and the certified band from {certificate.lower:.3f} "
        f"to {certificate.upper:.3f}.",
        parts,
    )


def draw_evidence(curve: Curve, threshold: float | None, n: int, now: float) -> Markup:
    """Draw the evidence that costs have risen, on a logarithmic scale, against any threshold."""
    values = [*(value / 1000 for value in curve.adverse), math.log10(max(now, 1e-12))]
    episodes, right = [*curve.episodes[:-1], n], _WIDTH - _RIGHT
    mark = math.log10(threshold or _USUAL)
    top = math.ceil(max([mark + 0.3, *values]))
    bottom = math.floor(min([-1.0, *values]))
    span = top - bottom

    def height(value: float) -> float:
        return _y((value - bottom) / span)

    tick = max(1, math.ceil(span / 5))
    ticks = [
        (f"1e{power}" if abs(power) > 2 else f"{10.0**power:g}", (power - bottom) / span)
        for power in range(bottom, top + 1, tick)
    ]
    step = (right - _LEFT) / max(n, 1)
    places = zip(episodes, values, strict=True)
    points = " ".join(f"{_LEFT + episode * step:.1f},{height(value):.1f}" for episode, value in places)
    parts = [_axis(*ticks), f'<polyline class="curve" points="{points}"/>', _label(1, n)]
    said = f"Evidence that costs have risen, over {n} episodes: now {now:.3g}"
    if threshold:
        said += f"; the alarm is at {threshold:.3g}"
        parts += [
            f'<path class="limit" d="M{_LEFT} {height(mark):.1f}H{right}"/>',
            f'<text x="{right}" y="{height(mark) - 5:.1f}" text-anchor="end">alarm at {threshold:.3g}</text>',
        ]
    return _drawn(f"{said}.", parts)


def _y(share: float) -> float:
    return _TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _axis(*ticks: tuple[str, float]) -> str:
    return "".join(
        f'<path class="grid" d="M{_LEFT} {_y(share):.1f}H{_WIDTH - _RIGHT}"/>'
        f'<text x="{_LEFT - 8}" y="{_y(share) + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        for name, share in ticks
    )


def _label(first: int, last: int) -> str:
    y = _HEIGHT - 12
    return (
        f'<text x="{_LEFT}" y="{y}">episode {first}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{y}" text-anchor="end">{last}</text>'
    )


def _drawn(label: str, parts: Sequence[str]) -> Markup:
    return Markup(svg(label, _WIDTH, _HEIGHT, parts))  # noqa: S704 - numbers, and names that were escaped
