"""A sample of costs: powers are simulated by drawing from it."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from boundwatch.bounds.bets import Wealth
from boundwatch.bounds.rows import Rows
from boundwatch.detectors.base import TailName
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.planning.certified_side import MOST_TRIALS, POWERS, CertifiedSide
from boundwatch.planning.power import Array, Counts, Power, refined

RUNS = 2000
STANDARD_ERROR = math.sqrt(0.25 / RUNS)
MOST_DRAWS = 1000  # trials for one look; the sequential test is followed further


def information_rate(costs: Array, null_mean: float) -> float:
    """Return KL_inf, the best growth rate of a bet against `null_mean` when costs come from this sample.

    Examples
    --------
    >>> from boundwatch.bounds import binary_kl
    >>> round(information_rate(np.array([0.0, 1.0]), 0.2), 4), round(float(binary_kl(0.5, 0.2)), 4)
    (0.2231, 0.2231)
    """
    scaled = costs / null_mean

    def loss(bet: float) -> float:
        return -float(np.log1p(bet * (scaled - 1)).mean())

    from scipy.optimize import minimize_scalar  # here: it takes longer to import than all the rest

    best = minimize_scalar(loss, bounds=(0.0, 1 - 1e-12), method="bounded", options={"xatol": 1e-9})
    return -float(best.fun)


def simulated_powers(side: CertifiedSide, sample: Array, rng: np.random.Generator) -> list[Power]:
    """Return the power of every detector when costs are drawn from a sample."""
    sizes = np.unique(np.geomspace(1, MOST_DRAWS, 60).round()).astype(int).tolist()
    draws = rng.choice(sample, size=(RUNS, sizes[-1]))

    @cache
    def p_values(tail: TailName, n: int) -> Array:
        return TAILS[tail].p_value(draws[:, :n], side.null_mean)

    def power(tail: TailName, level: float, n: int) -> float:
        return float((p_values(tail, n) <= level).mean())

    certain = (all(power(tail, level, n) >= 0.99 for _, tail, level in side.one_look) for n in sizes)
    used = sizes[: next((place + 1 for place, sure in enumerate(certain) if sure), None)]
    rows = []
    for detector, tail, level in side.one_look:
        power_of = partial(power, tail, level)
        curve = np.array([power_of(n) for n in used])
        trials = {target: refined(target, curve, used, power_of) for target in POWERS}
        n = np.array(used, dtype=np.float64)
        rows.append(Power(detector=detector, tail=tail, level=level, trials=trials, n=n, power=curve))
    return [*rows, _simulated_sequential(side, sample, rng)]


def _simulated_sequential(side: CertifiedSide, sample: Array, rng: np.random.Generator) -> Power:
    alarms = simulate_alarms(side, sample, rng)
    finite = alarms > 0
    reached = np.cumsum(np.bincount(alarms[finite], minlength=2)) / RUNS
    return side.sequential_power(reached, float(alarms.mean()) if finite.all() else None)


def simulate_alarms(side: CertifiedSide, sample: Array, rng: np.random.Generator) -> Counts:
    """Return the trial of the alarm in each of many simulated streams, 0 where there is none in time."""
    alarms = np.zeros(RUNS, dtype=np.int64)
    active = np.arange(RUNS)
    wealth, mark = Wealth(side.bets, side.null_mean), math.log(side.threshold)
    rows = Rows(wealth.first, size=RUNS)
    for n in range(1, 2 * MOST_TRIALS + 1):
        costs = rng.choice(sample, size=active.size)
        alarmed = wealth.step(rows, active, costs, np.full(active.size, n))[:, 0] >= mark
        alarms[active[alarmed]] = n
        active = active[~alarmed]
        if active.size == 0:
            break
    return alarms
