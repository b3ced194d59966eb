"""A sample of costs: powers are simulated by drawing from it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets, Wealth
from boundwatch.bounds.rows import Rows
from boundwatch.detectors.base import TailName
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.planning.side import MOST_TRIALS, POWERS, Array, Power, Side, sequential_power

RUNS = 2000
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


def simulated_powers(side: Side, sample: Array, rng: np.random.Generator) -> list[Power]:
    """Return the power of every detector when costs are drawn from a sample."""
    sizes = np.unique(np.geomspace(1, MOST_DRAWS, 60).round()).astype(int)
    draws = rng.choice(sample, size=(RUNS, int(sizes[-1])))
    curves: dict[tuple[str, str], list[float]] = {(d, t): [] for d, t, _ in side.fixed_detectors}
    used: list[int] = []
    for n in sizes.tolist():
        used.append(n)
        for tail in side.tails:
            p_values = TAILS[tail].p_value(draws[:, :n], side.null_mean)
            for detector in ("hypothesis-test", "confidence-interval"):
                curves[detector, tail].append(float((p_values <= side.levels[detector]).mean()))
        if all(curve[-1] >= 0.99 for curve in curves.values()):
            break
    rows = []
    for detector, tail, level in side.fixed_detectors:
        curve = np.array(curves[detector, tail])

        def reaches(n: int, power: float, tail: TailName = tail, level: float = level) -> bool:
            return bool((TAILS[tail].p_value(draws[:, :n], side.null_mean) <= level).mean() >= power)

        trials = {power: _fewest_trials(power, curve, used, reaches) for power in POWERS}
        rows.append(
            Power(
                detector=detector,
                tail=tail,
                level=level,
                trials=trials,
                n=np.array(used, dtype=np.float64),
                power=curve,
            )
        )
    return [*rows, _simulated_sequential(side, sample, rng)]


def _fewest_trials(
    power: float, curve: Array, sizes: list[int], reaches: Callable[[int, float], bool]
) -> int | None:
    """Refine the first size on the grid that reaches a power, by bisection on the same draws."""
    if not (curve >= power).any():
        return None
    first = int(np.argmax(curve >= power))
    low, high = (sizes[first - 1] if first else 0), sizes[first]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle, power) else (middle, high)
    return high


def _simulated_sequential(side: Side, sample: Array, rng: np.random.Generator) -> Power:
    alarms = simulate_alarms(side.bets, side.null_mean, side.threshold, sample, rng, RUNS, 2 * MOST_TRIALS)
    finite = alarms > 0
    reached = np.cumsum(np.bincount(alarms[finite], minlength=2)) / RUNS
    return sequential_power(side, reached, float(alarms.mean()) if finite.all() else None)


def simulate_alarms(
    bets: Bets,
    bound: float,
    threshold: float,
    sample: Array,
    rng: np.random.Generator,
    runs: int,
    horizon: int,
) -> NDArray[np.int64]:
    """Return the trial of the alarm in each of many simulated streams, 0 where there is none in time."""
    alarms = np.zeros(runs, dtype=np.int64)
    active = np.arange(runs)
    wealth = Wealth(bets, bound)
    rows = Rows(wealth.first, size=runs)
    for n in range(1, horizon + 1):
        costs = rng.choice(sample, size=active.size)
        alarmed = wealth.step(rows, active, costs, np.full(active.size, n))[:, 0] >= math.log(threshold)
        alarms[active[alarmed]] = n
        if alarmed.any():
            active = active[~alarmed]
            if active.size == 0:
                break
    return alarms
