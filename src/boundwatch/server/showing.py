"""How the pages say and draw things: as plain SVG, colored by the style sheet, with its content in words."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from boundwatch.bounds.joint_region import alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import Verdict
from boundwatch.detectors.joint import counts_of
from boundwatch.reporting import wording
from boundwatch.reporting.svg import Frame, circle, path, polyline, text
from boundwatch.server.live_detectors import POINTS

_FRAME = Frame(720, 220, left=56, right=12, top=12, bottom=40)
_SIGNS = {"adverse": "▲", "benign": "▼", "within": "●"}
_USUAL = 20.0  # evidence that is always in the picture where no threshold is


def _curve(row: Mapping[str, Any]) -> list[float]:
    return [value / 1000 for value in json.loads(row["curve"])[0]]


def draw_costs(certificate: Certificate, episodes: Sequence[Mapping[str, Any]]) -> Markup:
    """Draw the costs of the latest episodes, and their mean over the certified band."""
    costs = [episode["cost"] for episode in episodes]
    first, last = episodes[0]["number"], episodes[-1]["number"]
    places = [_FRAME.x((index + 0.5) / max(len(costs), 2)) for index in range(len(costs))]
    means = [total / (index + 1) for index, total in enumerate(accumulate(costs))]
    parts = [
        _FRAME.axis([("0", 0.0), ("0.5", 0.5), ("1", 1.0)]),
        _FRAME.band(certificate.lower, certificate.upper),
        *(circle("dot", x, _FRAME.y(cost), 2.5) for x, cost in zip(places, costs, strict=True)),
        polyline("curve", ((x, _FRAME.y(mean)) for x, mean in zip(places, means, strict=True))),
        *_episodes(first, last),
    ]
    what = "failure (1) or success (0)" if certificate.binary else "cost"
    said = (
        f"Episodes {first} to {last}: {what} of each, their running mean, which ends at {means[-1]:.3f}, "
        f"and the certified band from {certificate.lower:.3f} to {certificate.upper:.3f}."
    )
    return Markup(_FRAME.draw(said, parts))  # noqa: S704 - numbers, and words of ours


def draw_evidence(row: Mapping[str, Any], now: float) -> Markup:
    """Draw the evidence that costs have risen, on a logarithmic scale, against any threshold."""
    n, threshold, curve = row["n"], row["threshold_adverse"], _curve(row)
    values = [*curve, math.log10(max(now, 1e-12))]
    mark = math.log10(threshold or _USUAL)
    top, bottom = math.ceil(max([mark + 0.3, *values])), math.floor(min([-1.0, *values]))
    span = top - bottom
    ticks = [
        (f"1e{power}" if abs(power) > 2 else f"{10.0**power:g}", (power - bottom) / span)
        for power in range(bottom, top + 1, max(1, math.ceil(span / 5)))
    ]
    points = zip([*POINTS[: len(curve)], n], values, strict=True)
    line = ((_FRAME.x(episode / max(n, 1)), _FRAME.y((value - bottom) / span)) for episode, value in points)
    parts = [_FRAME.axis(ticks), polyline("curve", line), *_episodes(1, n)]
    said = f"Evidence that costs have risen, over {n} episodes: now {now:.3g}"
    if threshold:
        said += f"; the alarm is at {threshold:.3g}"
        share = (mark - bottom) / span
        parts.append(_FRAME.level("limit", share))
        parts.append(text(_FRAME.end, _FRAME.y(share) - 5, f"alarm at {threshold:.3g}", "end"))
    if (alarm := row["first_alarm"]) is not None:
        parts += _alarm(alarm, _FRAME.x(alarm / n))
    return Markup(_FRAME.draw(f"{said}.", parts))  # noqa: S704 - as above


def draw_failures(
    row: Mapping[str, Any], certificate: Certificate, level: float, episodes: Sequence[Mapping[str, Any]]
) -> Markup:
    """Draw the failures so far, over the latest episodes, and the line at which they alarm."""
    first, last, before = episodes[0]["number"] - 1, row["n"], row["total"]
    for episode in episodes:
        before -= episode["cost"]
    failures = enumerate(accumulate((episode["cost"] for episode in episodes), initial=before), first)
    line = alarm_line(*counts_of(certificate, 0), level).needed(last)[: last + 1].tolist()
    most = 1.1 * max(row["total"], line[last] if line[last] <= last else 1.0)

    def curve(kind: str, points: Iterable[tuple[int, float]]) -> str:
        return polyline(
            kind, ((_FRAME.x((n - first) / (last - first)), _FRAME.y(y / most)) for n, y in points)
        )

    parts = [
        _FRAME.axis([(str(y), y / most) for y in range(0, int(most) + 1, math.ceil(most / 5))]),
        curve("curve", failures),
        curve("limit", [(n, line[n]) for n in range(first + 1, last + 1) if line[n] <= n]),
        *_episodes(first + 1, last),
    ]
    said = f"{row['total']:.0f} failures in {last} trials"
    said += f"; the alarm is at {line[last]}" if line[last] <= last else ""
    if (alarm := row["first_alarm"]) is not None and alarm > first:
        parts += _alarm(alarm, _FRAME.x((alarm - first) / (last - first)))
    return Markup(_FRAME.draw(f"{said}.", parts))  # noqa: S704 - as above


def _alarm(number: int, x: float) -> list[str]:
    """Return a mark where the verdict was declared."""
    side = "start" if x < (_FRAME.left + _FRAME.end) / 2 else "end"
    said = text(x + (5 if side == "start" else -5), _FRAME.top + 10, f"declared at {number}", side)
    return [path("alarm", "M", x, _FRAME.top, "V", _FRAME.y(0)), said]


def _episodes(first: int, last: int) -> list[str]:
    y = _FRAME.height - 12
    return [text(_FRAME.left, y, f"episode {first}", "start"), text(_FRAME.end, y, str(last), "end")]


def verdict(value: str) -> Markup:
    """Return a verdict as a badge that is read without its color."""
    badge = Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>')
    return badge.format(value, _SIGNS[value], Verdict(value).name)


def headline(row: Mapping[str, Any]) -> str:
    """Say a verdict in one sentence."""
    joint = not row["threshold_adverse"]
    return wording.says(Verdict(row["verdict"]), binary=bool(row["binary"]), joint=joint)


def mean(row: Mapping[str, Any]) -> str:
    """Say the mean cost; where costs are 0 or 1, the failures in trials."""
    if not row["n"]:
        return "–"
    said = f"{row['total']:.0f} of {row['n']} failed" if row["binary"] else f"{row['total'] / row['n']:.3f}"
    return f"the judge says {said}" if row["detector"] == "judged-test" else said


def evidence(value: float) -> str:
    """Say an e-value with no more digits than it deserves."""
    if value > 1e6:
        return "over 1,000,000"
    if 0 < value < 1e-3:
        return "below 0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def moment(seconds: float | None) -> Markup:
    """Say a time as an age, with the time itself in the element."""
    if seconds is None:
        return Markup("never")
    exact = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    code = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(code, exact, age(time.time() - seconds))


def age(seconds: float) -> str:
    """Say how long ago something was."""
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{wording.count(int(seconds // size), name)} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} seconds ago"
