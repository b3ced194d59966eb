"""How the pages say times, shares and verdicts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from boundwatch.detectors import Verdict
from boundwatch.reporting.wording import count, says

_SIGNS = {"adverse": "▲", "benign": "▼", "within": "●"}


def verdict(value: str) -> Markup:
    """Return a verdict as a badge that is read without its color.

    Examples
    --------
    >>> print(verdict("adverse"))
    <span class="badge adverse"><span aria-hidden="true">▲</span> ADVERSE</span>
    """
    known = Verdict(value)
    return Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>').format(
        known.value, _SIGNS[known.value], known.name
    )


def headline(row: Mapping[str, Any]) -> str:
    """Say a verdict in one sentence.

    Examples
    --------
    >>> headline({"verdict": "adverse", "binary": 1})
    'ADVERSE: evidence of more failures than certified'
    """
    return says(Verdict(row["verdict"]), binary=bool(row["binary"]))


def mean(row: Mapping[str, Any]) -> str:
    """Say the mean cost; where costs are 0 or 1, the failures in trials.

    Examples
    --------
    >>> mean({"n": 53, "total": 7.0, "binary": 1}), mean({"n": 4, "total": 1.0, "binary": 0})
    ('7 of 53 failed', '0.250')
    >>> mean({"n": 0, "total": 0.0, "binary": 1})
    '–'
    """
    if not row["n"]:
        return "–"
    return f"{row['total']:.0f} of {row['n']} failed" if row["binary"] else f"{row['total'] / row['n']:.3f}"


def evidence(value: float) -> str:
    """Say an e-value with no more digits than it deserves.

    Examples
    --------
    >>> evidence(3.39), evidence(1234.5), evidence(4e9), evidence(0.00123)
    ('3.4', '1,234', 'over 1,000,000', '0.0012')
    """
    if value > 1e6:
        return "over 1,000,000"
    if 0 < value < 1e-3:
        return "below 0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def moment(seconds: float | None) -> Markup:
    """Say a time as an age, with the time itself in the element.

    Examples
    --------
    >>> print(moment(None))
    never
    """
    if seconds is None:
        return Markup("never")
    exact = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    code = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(code, exact, age(time.time() - seconds))


def age(seconds: float) -> str:
    """Say how long ago something was.

    Examples
    --------
    >>> age(0.2), age(75), age(7300), age(200000)
    ('just now', '1 minute ago', '2 hours ago', '2 days ago')
    """
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{count(int(seconds // size), name)} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} seconds ago"
