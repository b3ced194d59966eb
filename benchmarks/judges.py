"""How many labels do the work of 100 if a machine judged 1,000 episodes, and how often limits miss.

A judge of 90/95 % calls 90 % of failures failures, and 95 % of successes successes. "All judged" compares
with the exact hypergeometric interval from 100 labels drawn from the 1,000, "policy" with Clopper-Pearson's
from 100 trials; widths are expected ones. Beside it, if it is installed (group `bench`),
prediction-powered intervals of the package ppi-python, which are asymptotic. At the end a real judge, see
`benchmarks.judged_drone`.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks import judged_drone
from boundwatch import bounds
from boundwatch.bounds.audit import Audited, Judged, audit_lower, audit_upper
from boundwatch.evaluation.audit import allocation

DELTA = 0.05
JUDGED = 1000
MASS = 0.9  # of the outcomes, the likely ones that widths are taken over
MISSES = 400
SEED = 23
RATES = (0.1, 0.2, 0.3)
JUDGES = {
    "90/95 %": (0.9, 0.95),
    "98/98 %": (0.98, 0.98),
    "coin": (0.5, 0.5),
    "random, 20 %": (0.2, 0.8),
    "inverted 90/95 %": (0.1, 0.05),
}
LADDER = "90/95 %", "98/98 %", "coin"
LABELS = range(25, 131, 5)
Pair = tuple[float, float]


@cache
def limits(audited: Audited, policy: bool) -> Pair:
    """Return both limits."""
    below = audit_lower(audited, DELTA / 2, policy=policy)
    return below, audit_upper(audited, DELTA / 2, policy=policy)


def episodes(rng: np.random.Generator, rate: float, judge: Pair) -> tuple[Any, Any]:
    """Return which episodes failed, and which of them the judge calls failures."""
    failed = rng.random(JUDGED) < rate
    return failed, np.where(failed, rng.random(JUDGED) < judge[0], rng.random(JUDGED) >= judge[1])


def drawn(rng: np.random.Generator, failed: Any, called: Any, n: int) -> Audited:
    """Return what an audit with n labels sees."""
    judged = Judged(int((~called).sum()), int(called.sum()))
    labels, found = allocation(judged, n), []
    for part, k in zip((~called, called), labels, strict=True):
        found.append(int(failed[rng.choice(np.flatnonzero(part), k, replace=False)].sum()) if k else 0)
    return Audited(judged, labels, Judged(*found))


def alone(rate: float) -> Pair:
    """Return the expected widths from 100 labels without a judge: all judged, and policy."""
    failures = np.arange(101)
    chances = binom.pmf(failures, 100, rate)
    known = [Audited(Judged(JUDGED, 0), Judged(100, 0), Judged(int(k), 0)) for k in failures]
    widths = [float(np.diff(limits(each, False))[0]) for each in known]
    upper, lower = (
        limit(failures, 100, DELTA / 2)
        for limit in (bounds.clopper_pearson_upper, bounds.clopper_pearson_lower)
    )
    return float(chances @ widths), float(chances @ (upper - lower))


def mean_width(rate: float, judge: Pair, n: int, policy: bool) -> float:
    """Return the expected width, if as many episodes are called failures as are expected to be."""
    called = round(JUDGED * (rate * judge[0] + (1 - rate) * (1 - judge[1])))
    judged = Judged(JUDGED - called, called)
    wrong = rate * (1 - judge[0]) * JUDGED / judged.passed, rate * judge[0] * JUDGED / max(called, 1)
    labels = allocation(judged, n)
    chances = np.multiply.outer(
        *(binom.pmf(np.arange(k + 1), k, p) for k, p in zip(labels, wrong, strict=True))
    )
    likely = np.argsort(chances, axis=None)[::-1]
    likely = likely[: int(np.searchsorted(np.cumsum(chances.ravel()[likely]), MASS)) + 1]
    total = 0.0
    for place in likely:
        x0, x1 = map(int, np.unravel_index(place, chances.shape))
        lower, upper = limits(Audited(judged, labels, Judged(x0, x1)), policy)
        total += chances[x0, x1] * (upper - lower)
    return float(total / chances.ravel()[likely].sum())


def labels_needed(rate: float, judge: Pair, policy: bool, width: float) -> int:
    """Return the fewest labels, in steps of 5, whose expected width is at most this one."""
    first, last = 0, len(LABELS) - 1
    while first < last:
        middle = (first + last) // 2
        narrow = mean_width(rate, judge, LABELS[middle], policy) <= width
        first, last = (first, middle) if narrow else (middle + 1, last)
    return LABELS[first]


def missed(rate: float, judge: Pair, n: int) -> dict[str, float]:
    """Return how often intervals for the policy's failure rate miss it, for n labels."""
    rng, hits = np.random.default_rng(SEED), {"audit": 0.0}
    try:
        powered = importlib.import_module("ppi_py").ppi_mean_ci
    except ImportError:
        powered = None
    for _ in range(MISSES):
        failed, called = episodes(rng, rate, judge)
        lower, upper = limits(drawn(rng, failed, called, n), True)
        hits["audit"] += not lower <= rate <= upper
        if powered is not None:
            rows = rng.permutation(JUDGED)
            given = [failed[rows[:n]], called[rows[:n]], called[rows[n:]]]
            low, high = (
                float(np.squeeze(x)) for x in powered(*(x.astype(float) for x in given), alpha=DELTA)
            )
            hits["ppi-python"] = hits.get("ppi-python", 0.0) + (not low <= rate <= high)
    return {name: count / MISSES for name, count in hits.items()}


def run() -> dict[str, Any]:
    """Return the labels that do what 100 do alone, and how often limits miss."""
    needed: dict[str, Any] = {}
    for name, judge in JUDGES.items():
        for rate in RATES if name in LADDER else (0.2,):
            widths = zip(("all judged", "policy"), (False, True), alone(rate), strict=True)
            needed[f"{name}, {rate:g}"] = {
                what: labels_needed(rate, judge, policy, width) for what, policy, width in widths
            }
    misses = {
        f"{name}, {n} labels, {rate:g}": missed(rate, JUDGES[name], n)
        for name, n, rate in (
            ("90/95 %", 20, 0.05),
            ("98/98 %", 20, 0.05),
            ("coin", 20, 0.05),
            ("90/95 %", 50, 0.2),
        )
    }
    settings = {"delta": DELTA, "judged": JUDGED, "seed": SEED}
    return settings | {"labels": needed, "missed": misses, "drone": judged_drone.run()}


def show(results: dict[str, Any]) -> None:
    """Print both tables."""
    print(f"labels that do what 100 do alone; {results['judged']} judged, delta {results['delta']:g}")
    for name, row in results["labels"].items():
        print(f"{name:<24}" + "".join(f"  {what} {value}" for what, value in row.items()))
    print(f"missed, of {MISSES} intervals at {results['delta']:g}")
    for name, row in results["missed"].items():
        print(f"{name:<32}" + "".join(f"  {what} {value:.3f}" for what, value in row.items()))
    judged_drone.show(results["drone"])
