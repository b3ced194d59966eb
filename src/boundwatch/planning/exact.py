"""Costs of 0 and 1: every power is a finite sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, betaincinv, logsumexp

from boundwatch import bounds
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.bounds.rate_difference import fewest_that_differ
from boundwatch.detectors.mixture import alarm_counts, alarm_distribution
from boundwatch.planning.side import MOST_TRIALS, POWERS, Array, Power, Side, sequential_power


def p_value_of_counts(tail: str, failures: Array, n: int | NDArray[np.int64], null_mean: float) -> Array:
    """Return what a tail's p-value is for so many costs of 1 among n, the others being 0."""
    return _p_value(tail, np.broadcast_to(n, failures.shape), null_mean)(failures)


def _p_value(tail: str, n: NDArray[np.int64], null_mean: float) -> Callable[[Array], Array]:
    """Return a function of the number of failures for each of several n."""
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


def _fewest_of_each(tail: str, level: float, n: NDArray[np.int64], null_mean: float) -> NDArray[np.int64]:
    """Return `fewest_failures` for each n: p-values fall with the failures, so that halving finds it."""
    p_value = _p_value(tail, n, null_mean)
    low, high = np.zeros_like(n), n + 1
    while (low < high).any():
        middle = (low + high) // 2
        within = p_value(np.minimum(middle, n).astype(np.float64)) <= level
        found = low == high
        low, high = np.where(found | within, low, middle + 1), np.where(found | ~within, high, middle)
    return low


def _fewest_jointly(side: Side, level: float, n: int) -> int:
    """Return the fewest failures among n that differ enough from the certificate's."""
    assert side.reference is not None  # noqa: S101  (only then there is such a tail)
    trials, failures = side.reference
    return fewest_that_differ(trials, failures, n, level)


def _joint_power(side: Side, detector: str, level: float, rate: float) -> Power:
    """Return the power of a look that judges jointly, at as few numbers of trials as can be told from."""

    @lru_cache
    def power(n: int) -> float:
        return float(_reaching(_fewest_jointly(side, level, n), n, rate))

    tried = [0, *(2**k for k in range(1, 13) if 2**k < MOST_TRIALS), MOST_TRIALS]
    reached = [0.0]
    while reached[-1] < POWERS[-1] and len(reached) < len(tried):
        reached.append(power(tried[len(reached)]))
    trials: dict[float, int | None] = dict.fromkeys(POWERS)
    for target in POWERS:
        if reached[-1] >= target:
            last = next(i for i, value in enumerate(reached) if value >= target)
            low, high = tried[last - 1], tried[last]
            # Powers go up and down by a little, as failures are whole: this is where they first stay above.
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if power(middle) >= target else (middle, high)
            trials[target] = high
    end = tried[len(reached) - 1] if trials[POWERS[-1]] is None else int(1.25 * (trials[POWERS[-1]] or 0)) + 1
    sizes = np.unique(np.linspace(1, end, 12).round().astype(int))
    curve = np.array([power(int(n)) for n in sizes])
    return Power(
        detector=detector, tail="joint", level=level, trials=trials, n=sizes.astype(np.float64), power=curve
    )


def exact_powers(side: Side, rate: float) -> list[Power]:
    """Return the power of every detector when failures come at a rate."""
    rows = []
    for detector, tail, level in side.fixed_detectors:
        if tail == "joint":
            rows.append(_joint_power(side, detector, level, rate))
            continue
        curve, reached = np.empty(0), 0
        # A little further than the last power, for the curve.
        while curve.size < MOST_TRIALS and not 0 < 1.25 * reached <= curve.size:
            n = np.arange(curve.size + 1, min(max(64, 2 * curve.size), MOST_TRIALS) + 1)
            needed = _fewest_of_each(tail, level, n, side.null_mean)
            curve = np.append(curve, _reaching(needed, n, rate))
            reached = int(np.argmax(curve >= POWERS[-1])) + 1 if curve.max() >= POWERS[-1] else 0
        curve = curve[: math.ceil(1.25 * reached) or None]
        rows.append(
            Power(
                detector=detector,
                tail=tail,
                level=level,
                trials={
                    power: int(np.argmax(curve >= power)) + 1 if curve.max() >= power else None
                    for power in POWERS
                },
                n=np.arange(1.0, curve.size + 1),
                power=curve,
            )
        )
    return [*rows, exact_sequential(side, rate)]


def _reaching(needed: ArrayLike, n: ArrayLike, rate: float) -> Array:
    """Return P[at least so many failures among n]."""
    least, trials = np.asarray(needed), np.asarray(n)
    chances = np.where(least <= 0, 1.0, bdtrc(np.maximum(least - 1, 0), trials, rate))
    return np.where(least > trials, 0.0, chances)


def exact_sequential(side: Side, rate: float) -> Power:
    """Return the power of the sequential test when failures come at a rate."""
    horizon = 250
    while True:
        needed = _alarm_line(side, horizon)
        alarms, _, _ = alarm_distribution(needed, rate)
        missing = 1 - alarms.sum()
        if missing < 1e-9 or horizon >= 4 * MOST_TRIALS:
            break
        horizon *= 2
    reached = np.cumsum(alarms)
    mean = float(alarms @ np.arange(alarms.size)) if missing < 1e-6 else None
    return sequential_power(side, reached, mean)


def smallest_shift(side: Side, n: int) -> dict[str, Any]:
    """Return, for n trials and each tail, the smallest shift that is noticed with 90 % power."""
    shifts: dict[str, float | None] = {}
    for detector, tail, level in side.fixed_detectors:
        if detector == "hypothesis-test":
            if tail == "joint":
                needed = _fewest_jointly(side, level, n)
            else:
                needed = fewest_failures(tail, level, n, side.null_mean)
            # P[at least k of n] = 0.9 is an incomplete beta function of the rate.
            rate = float(betaincinv(needed, n - needed + 1, 0.9)) if 0 < needed <= n else None
            shifts[tail] = None if rate is None else max(rate - side.known_mean, 0.0)
    noticed = _smallest_noticed(partial(_alarm_within, _alarm_line(side, n)), side.known_mean)
    shifts["watch"] = noticed
    return {"n": n, "shift": shifts}


def _alarm_line(side: Side, trials: int) -> NDArray[np.int64]:
    """Return how many failures alarm the sequential test after 0, 1, … trials."""
    if side.reference is None:
        return alarm_counts(side.bets, side.null_mean, math.log(side.threshold), trials)
    return alarm_line(*side.reference, side.sequential[1]).needed(trials)[: trials + 1]


def _alarm_within(needed: NDArray[np.int64], rate: float) -> float:
    return float(alarm_distribution(needed, rate)[0].sum())


def _smallest_noticed(power: Callable[[float], float], null_mean: float) -> float | None:
    low, high = null_mean, 1.0
    if power(high) < 0.9:
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= 0.9 else (middle, high)
    return high - null_mean
