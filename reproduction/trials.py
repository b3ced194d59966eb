"""How many trials each detector needs for costs from a sample: simulated, for every tail beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets, Rows, Wealth, bet_bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.mixture import Mark
from boundwatch.detectors.verdicts import EvidenceName, TailName
from boundwatch.planning.power import MOST_TRIALS, fewest, first_reaching
from reproduction.artifacts import Array

RUNS = 2000
MOST_DRAWS = 1000
POWER = 0.9


def trials_needed(
    certificate: Certificate, costs: Array, alpha: float
) -> Iterator[tuple[EvidenceName, int | None, float | None]]:
    """Yield evidence, trials for a power of 90 %, and of the sequential test the mean to the alarm."""
    adverse, rng = costs.mean() > certificate.upper, np.random.default_rng(0)
    null_mean = bet_bounds(certificate.lower, certificate.upper)[not adverse]
    sample = costs if adverse else 1 - costs
    sizes = np.unique(np.geomspace(1, MOST_DRAWS, 60).round()).astype(int).tolist()
    draws = rng.choice(sample, size=(RUNS, sizes[-1]))

    @cache
    def power(tail: TailName, n: int) -> float:
        return float((TAILS[tail].p_value(draws[:, :n], null_mean) <= alpha).mean())

    def suffices(tail: TailName, n: int) -> bool:
        return power(tail, n) >= POWER

    tails = [tail for tail in TAILS if tail != "exact"]
    certain = (all(power(tail, n) >= 0.99 for tail in tails) for n in sizes)
    used = sizes[: next((place + 1 for place, sure in enumerate(certain) if sure), None)]
    for tail in tails:
        first = first_reaching(np.array([power(tail, n) for n in used]), POWER)
        found = None
        if first is not None:
            found = fewest(partial(suffices, tail), used[first - 1] if first else 0, used[first])
        yield tail, found, None
    alarms = _alarms(sample, null_mean, alpha, rng)
    finite = alarms > 0
    reached = np.cumsum(np.bincount(alarms[finite], minlength=2)) / RUNS
    yield "mixture", first_reaching(reached, POWER), float(alarms.mean()) if finite.all() else None


def _alarms(sample: Array, null_mean: float, alpha: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the trial of the alarm in each of many simulated streams, 0 where there is none in time."""
    alarms, active = np.zeros(RUNS, dtype=np.int64), np.arange(RUNS)
    wealth = Wealth(Bets.for_costs(binary=False), null_mean)
    mark = math.log(Mark(null_mean, alpha, False).threshold)
    rows = Rows(wealth.first, size=RUNS)
    for n in range(1, 2 * MOST_TRIALS + 1):
        costs = rng.choice(sample, size=active.size)
        alarmed = wealth.step(rows, active, costs, np.full(active.size, n))[:, 0] >= mark
        alarms[active[alarmed]] = n
        active = active[~alarmed]
        if active.size == 0:
            break
    return alarms
