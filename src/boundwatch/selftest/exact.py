"""Promises about costs of 0 and 1 where a detector can be asked about every outcome: no rate is simulated.

Errors are then drawn with the exact rate, as many as one likes, so that a small excess is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.stats import binom

from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonVerdict, compare_once
from boundwatch.detectors import Fleet, HypothesisTest, Verdict
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.selftest.tallies import alphas
from boundwatch.selftest.worlds import Claim, Counts, Lab, Levels

READ = 600  # trials of a stream, more than those for which the line of a small lab is exact
_LOOK, _PAIR, _SCALE = 50, (20, 15), 100.0
_MOST_LABS = 60  # a line for each number of failures takes a while
_RATES = np.linspace(0.02, 0.98, 49)


def claims_of_outcomes(limits: Certificate, certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised of binary costs given the limits and, of a small lab, over its draw, too."""
    alpha = levels[Verdict.ADVERSE]
    count = partial(_drawn, partial(_worst_comparison, alpha))
    world = f"{_PAIR[0]} and {_PAIR[1]} trials, equally good, the worst rate"
    yield Claim("compare, once, exact", ComparisonVerdict.A_BETTER, world, alpha, count, scale=_SCALE)
    if not limits.binary:
        return
    if 0 < limits.upper < 1:
        rate = partial(_crossing, limits, levels, limits.upper)
        yield _claim(f"sequential-test, read {READ} times, exact", Verdict.ADVERSE, levels, 0.0, rate)
    if certificate.source == "held-out" and certificate.method == "exact" and not certificate.strata:
        deltas = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
        for verdict, delta in deltas.items():
            rate = partial(_worst_look, certificate, levels, verdict)
            yield _claim(f"hypothesis-test, total, n = {_LOOK}, exact", verdict, levels, delta, rate)
        if (certificate.n or 0) <= _MOST_LABS:
            rate = partial(_streams, certificate, levels)
            delta = certificate.delta_upper
            yield _claim(f"sequential-test, total, {READ} times, exact", Verdict.ADVERSE, levels, delta, rate)


def _claim(name: str, verdict: Verdict, levels: Levels, delta: float, rate: Callable[[], float]) -> Claim:
    world = "0 or 1, lab drawn, too" if delta else "0 or 1, at the limit"
    return Claim(name, verdict, world, levels[verdict] + delta, partial(_drawn, rate), scale=_SCALE)


def _drawn(rate: Callable[[], float], rng: np.random.Generator, runs: int) -> int:
    return int(rng.binomial(runs, min(rate(), 1.0)))


def _labs(like: Certificate) -> list[Certificate]:
    """Return a certificate like this one for every number of failures in the lab."""
    lab = Lab(like, Verdict.ADVERSE, 0.0, 1.0, 0.5)
    return [lab.redrawn(failures) for failures in range((like.n or 1) + 1)]


def _worst_look(like: Certificate, levels: Levels, verdict: Verdict) -> float:
    """Return the largest probability of a wrong verdict over the draw of lab and new trials."""
    costs = np.where(np.arange(_LOOK) < np.arange(_LOOK + 1)[:, None], 1.0, 0.0)
    called = np.array(
        [HypothesisTest(lab, **alphas(levels)).decide_many(costs).verdict == verdict for lab in _labs(like)]
    )
    of_lab, of_new = (binom.pmf(np.arange(n + 1), n, _RATES[:, None]) for n in (like.n or 1, _LOOK))
    return float(np.einsum("rk,kj,rj->r", of_lab, called, of_new).max())


def _streams(like: Certificate, levels: Levels) -> float:
    """Return the chance that a stream ever alarms, over the draw of the lab, too, at the lab's own rate."""
    labs, rate = _labs(like), min(max(like.mean_cost or 0.0, 0.02), 0.98)
    chances = binom.pmf(np.arange(len(labs)), len(labs) - 1, rate)
    likely = np.flatnonzero(chances > 1e-4).tolist()  # what is left out alarms at most too seldom
    return float(sum(chances[k] * _crossing(labs[k], levels, rate) for k in likely))


def _worst_comparison(alpha: float) -> float:
    """Return the largest probability that one of two equally good policies is called better."""
    sizes = range(_PAIR[0] + 1), range(_PAIR[1] + 1)
    costs = [[(np.arange(len(each) - 1) < k) * 1.0 for k in each] for each in sizes]
    found = [[compare_once({"a": a, "b": b}, alpha=alpha, binary=True) for b in costs[1]] for a in costs[0]]
    better = np.array([[each.verdict is ComparisonVerdict.A_BETTER for each in row] for row in found])
    of_a, of_b = (binom.pmf(np.arange(n + 1), n, _RATES[:, None]) for n in _PAIR)
    return float(np.einsum("ra,ab,rb->r", of_a, better, of_b).max())


def _crossing(certificate: Certificate, levels: Levels, rate: float) -> float:
    return float(alarm_distribution(_line(certificate, levels), rate)[0].sum())


def _line(certificate: Certificate, levels: Levels) -> Counts:
    """Return the fewest failures among n trials that alarm in a fleet, whose stream m first succeeds m times.

    More failures are more evidence, so what begins with its successes alarms with its last trial or not.
    """
    fleet, streams = Fleet(certificate, **alphas(levels)), np.arange(READ + 1)
    fleet.update(np.repeat(streams, streams), np.zeros(streams.sum()))
    fewest, going = np.full(READ + 1, READ + 1), streams
    for failures in range(1, READ + 1):
        going = going[going + failures <= READ]
        if not going.size:
            break
        alarmed = np.array(fleet.update(going, np.ones(going.size)), dtype=np.int64)
        fewest[alarmed] = failures
        going = np.setdiff1d(going, alarmed)
    n, k = np.ogrid[: READ + 1, : READ + 1]
    enough = (k <= n) & (fewest[np.maximum(n - k, 0)] <= k)
    return np.where(enough.any(axis=1), enough.argmax(axis=1), n[:, 0] + 1)
