"""Powers of detectors: finite sums for costs of 0 and 1, simulated by drawing from a sample of others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import betaincinv, logsumexp

from boundwatch import bounds
from boundwatch.bounds.bets import Bets, Wealth
from boundwatch.bounds.rate_difference import fewest_that_differ
from boundwatch.bounds.rows import Rows
from boundwatch.detectors.base import TailName
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.planning.power import (
    MOST_TRIALS,
    POWERS,
    Array,
    CertifiedSide,
    Counts,
    Power,
    chance_of,
    first_reaching,
    refined,
)

RUNS = 2000
STANDARD_ERROR = math.sqrt(0.25 / RUNS)
MOST_DRAWS = 1000  # trials for one look; the sequential test is followed further


def p_value_of_counts(tail: str, n: Counts, null_mean: float) -> Callable[[Array], Array]:
    """Return a tail's p-value as a function of the failures among n, for each of several n."""
    if tail == "hoeffding":
        return lambda failures: bounds.hoeffding_p_value(failures / n, n, null_mean)
    if tail == "kl":
        return lambda failures: bounds.chernoff_p_value(failures / n, n, null_mean)
    if tail == "exact":
        return lambda failures: bounds.binomial_p_value(failures, n, null_mean)
    different, where = np.unique(n, return_inverse=True)
    bets = [bounds.fixed_bets(each) for each in different.tolist()]
    sizes = np.zeros((len(bets), max(each.size for each, _ in bets)))  # bets of nothing fill the rows up
    log_shares = np.full(sizes.shape, -np.inf)
    for row, (own, shares) in enumerate(bets):
        sizes[row, : own.size], log_shares[row, : own.size] = own, shares
    loses, gains = (each[where] for each in Bets(sizes, np.exp(log_shares)).log_factors(null_mean))

    def of_betting(failures: Array) -> Array:
        lost = (n - failures)[:, None]
        with np.errstate(invalid="ignore"):
            capitals = np.where(lost > 0, lost * loses, 0.0)
        capitals = capitals + failures[:, None] * gains + log_shares[where]
        return np.asarray(np.exp(-np.maximum(logsumexp(capitals, axis=1), 0.0)))

    return of_betting


def fewest_failures(tail: str, level: float, n: int, null_mean: float) -> int:
    """Return the fewest failures among n with a p-value within the level; n + 1 if none has."""
    return int(_fewest_of_each(tail, level, np.array([n]), null_mean)[0])


def _fewest_of_each(tail: str, level: float, n: Counts, null_mean: float) -> Counts:
    """Return `fewest_failures` for each n: p-values fall with the failures, so that halving finds it."""
    p_value = p_value_of_counts(tail, n, null_mean)
    low, high = np.zeros_like(n), n + 1
    while (low < high).any():
        middle = (low + high) // 2
        within = p_value(np.minimum(middle, n).astype(np.float64)) <= level
        found = low == high
        low, high = np.where(found | within, low, middle + 1), np.where(found | ~within, high, middle)
    return low


def exact_powers(side: CertifiedSide, rate: float) -> list[Power]:
    """Return the power of every detector when failures come at a rate."""
    rows = []
    for detector, tail, level in side.one_look:
        find = _joint_curve if tail == "joint" else _curve
        trials, n, curve = find(side, tail, level, rate)
        rows.append(Power(detector=detector, tail=tail, level=level, trials=trials, n=n, power=curve))
    return [*rows, exact_sequential(side, rate)]


_Curve = tuple[dict[float, int | None], Array, Array]


def _curve(side: CertifiedSide, tail: TailName, level: float, rate: float) -> _Curve:
    """Return the trials for each power, and the power of one look at 1, 2, … trials."""
    curve, reached = np.zeros(1), 0
    # A little further than the last power, for the curve.
    while (done := curve.size - 1) < MOST_TRIALS and not 0 < 1.25 * reached <= done:
        n = np.arange(done + 1, min(max(64, 2 * done), MOST_TRIALS) + 1)
        needed = _fewest_of_each(tail, level, n, side.null_mean)
        curve = np.append(curve, chance_of(needed, n, rate))
        reached = first_reaching(curve, POWERS[-1]) or 0
    curve = curve[: math.ceil(1.25 * reached) + 1 if reached else None]
    return {power: first_reaching(curve, power) for power in POWERS}, np.arange(1.0, curve.size), curve[1:]


def _joint_curve(side: CertifiedSide, tail: TailName, level: float, rate: float) -> _Curve:
    """Return the same of a look that judges jointly, at as few numbers of trials as can be told from."""

    @lru_cache
    def power(n: int) -> float:
        return float(chance_of(_fewest_at_one_look(side, tail, level, n), n, rate))

    sizes, reached = [*(2**k for k in range(1, 13)), MOST_TRIALS], list[float]()
    while not reached or (reached[-1] < POWERS[-1] and len(reached) < len(sizes)):
        reached.append(power(sizes[len(reached)]))
    trials = {target: refined(target, np.array(reached), sizes, power) for target in POWERS}
    most = trials[POWERS[-1]]
    end = sizes[len(reached) - 1] if most is None else int(1.25 * most) + 1
    drawn = np.unique(np.linspace(1, end, 12).round().astype(int))
    return trials, drawn.astype(np.float64), np.array([power(int(n)) for n in drawn])


def _fewest_at_one_look(side: CertifiedSide, tail: TailName, level: float, n: int) -> int:
    """Return the fewest failures among n that are declared, n + 1 if none are."""
    if tail == "joint" and side.reference is not None:
        return fewest_that_differ(*side.reference, n, level)
    return fewest_failures(tail, level, n, side.null_mean)


def exact_sequential(side: CertifiedSide, rate: float) -> Power:
    """Return the power of the sequential test when failures come at a rate."""
    horizon = 250
    while True:
        alarms, _, _ = alarm_distribution(side.alarm_line(horizon), rate)
        missing = 1 - alarms.sum()
        if missing < 1e-9 or horizon >= 4 * MOST_TRIALS:
            break
        horizon *= 2
    mean = float(alarms @ np.arange(alarms.size)) if missing < 1e-6 else None
    return side.sequential_power(np.cumsum(alarms), mean)


def smallest_shift(side: CertifiedSide, n: int) -> dict[str, Any]:
    """Return, for n trials and each tail, the smallest shift that is noticed with 90 % power."""
    shifts: dict[str, float | None] = {}
    for detector, tail, level in side.one_look:
        if detector == "hypothesis-test":
            needed = _fewest_at_one_look(side, tail, level, n)
            # P[at least k of n] = 0.9 is an incomplete beta function of the rate.
            rate = float(betaincinv(needed, n - needed + 1, 0.9)) if 0 < needed <= n else None
            shifts[tail] = None if rate is None else max(rate - side.known_mean, 0.0)
    return {"n": n, "shift": shifts | {"watch": _smallest_alarmed(side, n)}}


def _smallest_alarmed(side: CertifiedSide, n: int) -> float | None:
    """Return the smallest shift for which the sequential test alarms within n trials, with 90 % power."""
    needed = side.alarm_line(n)

    def is_noticed(rate: float) -> bool:
        return bool(alarm_distribution(needed, rate)[0].sum() >= 0.9)

    low, high = side.known_mean, 1.0
    if not is_noticed(high):
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if is_noticed(middle) else (middle, high)
    return high - side.known_mean


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
    alarms = _simulate_alarms(side, sample, rng)
    finite = alarms > 0
    reached = np.cumsum(np.bincount(alarms[finite], minlength=2)) / RUNS
    return [*rows, side.sequential_power(reached, float(alarms.mean()) if finite.all() else None)]


def _simulate_alarms(side: CertifiedSide, sample: Array, rng: np.random.Generator) -> Counts:
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
