"""Repeats of a scene, a seed or a day, which are not independent, become one cost: the mean over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.record import Trials
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidSetting

_APART = ("cluster", "strata", "by", "policy")


class Clustered(NamedTuple):
    """A cost per cluster, the row of its first trial, and the trials behind it."""

    costs: NDArray[np.float64]
    rows: list[int]
    repeats: tuple[Trials, ...]


def clustered(costs: NDArray[np.float64], keys: Mapping[Any, Sequence[str]], *, binary: bool) -> Clustered:
    """Return the mean cost of each cluster, in the order in which they appear.

    Trials of one cluster that are of different strata, tasks or policies are different clusters.
    """
    parts = [keys[role] for role in _APART if role in keys]
    groups = list(rows_of(list(zip(*parts, strict=True))).values())
    pairs = keys.get("pair", ())
    for rows in groups if pairs else ():
        if len({pairs[row] for row in rows}) > 1:
            remedy = ("give the same columns as ", Argument("cluster"), ": clusters are matched, not trials")
            several = f"tells trials of {keys['cluster'][rows[0]]!r} apart, which are one unit"
            raise InvalidSetting(several, name="pair_by", remedy=remedy)
    found = np.array([costs[rows].mean() for rows in groups])
    sums = [int(costs[rows].sum()) if binary else None for rows in groups]
    repeats = tuple(Trials(rows.size, failed) for rows, failed in zip(groups, sums, strict=True))
    return Clustered(found, [int(rows[0]) for rows in groups], repeats)


def describe(repeats: Sequence[Trials], unit: str) -> str:
    """Say how many clusters there are and what is in them: 20 scenes x 10 repeats, 200 trials, 43 failed."""
    sizes = sorted({each.n for each in repeats})
    each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    times = "" if sizes == [1] else f" x {each} repeats"
    several = unit if len(repeats) == 1 or unit.endswith("s") else f"{unit}s"
    return f"{len(repeats)} {several}{times}: {sum(repeats, Trials(0, 0))}"
