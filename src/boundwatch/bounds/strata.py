"""Several tasks, each with trials of its own: limits on the mean over them, and a test that none got worse.

Trials are independent, those of a task alike, and tasks may differ in any way. Where the numbers of trials
are in proportion to the tasks' weights, the mean over tasks is the expected share of all trials, and methods
for one sample hold but for what Hoeffding (1956) excepts. Elsewhere an exponential moment of the weighted
sum is bounded, over all tasks that have the mean in question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.bounds import held_out, two_sample
from boundwatch.bounds.bets import Array, Counts
from boundwatch.bounds.halving import from_above, halve

_LOWEST_WEIGHT = 30
_MORE_WEIGHT = 10
_SHRUNK_BY = 10.0  # trials at the common rate, added to those of a task
_MOST_SPREAD = 4000  # new failures that the totals leave open; with more, their plain sum is judged
_BISECTIONS = 50
_STEPS = np.linspace(-1.0, 1.0, 25)
_SCALES = 6.0, 0.5, 0.05, 0.005  # of the logarithm of a step
_LONGEST_STEP = 300.0  # of which the exponential is a float


def in_proportion(n: ArrayLike, weights: ArrayLike) -> bool:
    """Return whether numbers of trials are in proportion to the weights, which add up to 1.

    >>> in_proportion([20, 10], [2 / 3, 1 / 3]), in_proportion([20, 11], [2 / 3, 1 / 3])
    (True, False)
    """
    sizes = np.asarray(n, dtype=np.float64)
    return bool(np.allclose(sizes / sizes.sum(), weights, rtol=1e-12, atol=0.0))


def stratified_p_value(n0: ArrayLike, k0: ArrayLike, n1: ArrayLike, k1: ArrayLike) -> float:
    """Return a p-value of "no task fails more often", from k0 failures in n0 trials of each and k1 in n1 new.

    Given each task's total of failures, the new ones are hypergeometric at equal rates and stochastically
    fewer where the rate fell. They are added up with whole weights that depend on the totals alone: nearly
    equal, and larger where failures are rare.

    **Guarantee**: if the failure rate of no task rose, it is at most alpha with probability at most alpha,
    for every alpha and all rates, over the draw of both series. It says nothing about the mean over tasks
    where some rose and others fell. **Assumes**: independent trials, and numbers of trials fixed in advance.

    >>> round(stratified_p_value([20, 20], [2, 16], [10, 10], [4, 10]), 4)
    0.0136
    """
    old, lab, new, seen = (np.atleast_1d(np.asarray(each, dtype=np.int64)) for each in (n0, k0, n1, k1))
    totals, trials = lab + seen, old + new
    open_ = (totals > 0) & (totals < trials)  # elsewhere the totals leave nothing open
    if not open_.any():
        return 1.0
    weights, parts, beyond = _weights(totals, trials), [], 0
    for n, m, t, k, u in np.stack([old, new, totals, seen, weights], axis=1)[open_].tolist():
        fewest = max(0, t - n)
        possible = np.arange(fewest, min(m, t) + 1)  # numbers of new failures
        parts.append((u, np.exp(two_sample.log_hypergeometric(m, possible, n, t))))
        beyond += u * (k - fewest)
    # Each chance is the exponential of a sum of logarithms of factorials, which are off by their last digit.
    slack = 1e-14 * float((trials * np.log1p(trials)).sum())
    return min((_tail(parts, beyond) if parts[0][0] > 1 else _plain_tail(parts, beyond)) * (1 + slack), 1.0)


def _weights(totals: Counts, trials: Counts) -> Counts:
    """Return how much a new failure of each task counts, by the totals alone."""
    spread = np.minimum(totals, trials - totals).sum()
    if spread > _MOST_SPREAD:
        return np.ones_like(totals)
    common = totals.sum() / trials.sum()
    rates = np.clip((totals + _SHRUNK_BY * common) / (trials + _SHRUNK_BY), 0.001, 0.999)
    precision = 1 / (rates * (1 - rates))
    return np.asarray(_LOWEST_WEIGHT + np.round(_MORE_WEIGHT * precision / precision.max()).astype(np.int64))


def _tail(parts: list[tuple[int, Array]], beyond: int) -> float:
    """Return the chance that a sum of weighted numbers is at least `beyond`."""
    alike: dict[int, Array] = {}
    for weight, ours in parts:
        alike[weight] = np.convolve(alike.get(weight, np.ones(1)), ours)
    ordered = sorted(alike.items(), key=lambda part: part[1].size)
    halves = []
    for half in (ordered[::2], ordered[1::2]):  # two halves are quicker to add up than the whole
        chances = np.ones(1)
        for weight, ours in half:
            added = np.zeros(chances.size + weight * (ours.size - 1))
            for number, chance in enumerate(ours.tolist()):
                added[number * weight : number * weight + chances.size] += chance * chances
            chances = added
        halves.append(chances)
    first, second = halves
    tails = np.append(np.cumsum(second[::-1])[::-1], 0.0)
    return float(first @ tails[np.clip(beyond - np.arange(first.size), 0, second.size)])


def _plain_tail(parts: list[tuple[int, Array]], beyond: int) -> float:
    """Return the chance that a sum of many numbers is at least `beyond`, and what Fourier may lose of it."""
    size = 1 << sum(ours.size - 1 for _, ours in parts).bit_length()
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for _, ours in parts:
        product *= np.fft.rfft(ours, size)
    return max(float(np.fft.irfft(product, size)[beyond:].sum()), 0.0) + 1e-12


def pooled_lower(failures: ArrayLike, n: int, delta: float) -> Array:
    """Return a lower limit on the mean failure rate of n trials, each of which may have a rate of its own.

    Clopper-Pearson's, where Hoeffding (1956) lets one rate for all stand for them: at most one failure below
    what was seen. A single failure needs the union bound instead.

    **Guarantee**: with probability at least 1 - delta over the draw of the trials, at most their mean rate.
    **Assumes**: independent trials whose number, and rates, were fixed in advance.

    >>> [of([0, 1, 2, 7], 10, 0.05).round(4).tolist() for of in (pooled_lower, pooled_upper)]
    [[0.0, 0.005, 0.0368, 0.3934], [0.2589, 0.3942, 0.5069, 0.9127]]
    """
    k = np.asarray(failures, dtype=np.float64)
    limit = np.minimum(held_out.clopper_pearson_lower(k, n, delta), np.maximum(k - 1, 0) / n)
    return np.where(k == 1, delta / n * (1 - 1e-13), limit)


def pooled_upper(failures: ArrayLike, n: int, delta: float) -> Array:
    """Return the upper limit by counting successes; see `pooled_lower`."""
    return from_above(pooled_lower(n - np.asarray(failures, dtype=np.float64), n, delta))


def weighted_p_value(means: ArrayLike, n: ArrayLike, weights: ArrayLike, null: float) -> float:
    """Return a p-value of "the weighted sum of expected costs is at most `null`", from each task's mean cost.

    Weights may be negative: those of new trials and, with the other sign, of old ones give a difference.
    Chernoff's bound with the largest exponential moment that any tasks with that sum can have.

    **Guarantee**: under the hypothesis it is at most alpha with probability at most alpha, for every alpha
    and all tasks, over the draw of all costs. **Assumes**: independent costs in [0, 1], those of a task with
    one expected value, and numbers of them fixed in advance.

    >>> old = [0.6, 0.5], [40, 20], [0.5, 0.5]
    >>> round(weighted_p_value(*old, 0.3), 6), round(weighted_lower(*old, 0.05), 4)
    (0.000774, 0.3842)
    """
    sums, total = _Sums.of(means, n, weights)
    if total <= null:
        return 1.0
    if null < sums.lowest:
        return 0.0  # no expected costs have so small a sum

    def minus_log(steps: Array) -> Array:
        prices = sums.prices(steps, lambda costs, _: costs @ sums.weights > null)
        return steps * total - prices * null - sums.largest(steps, prices)[2]

    return min(float(np.exp(-sums.best(minus_log, total - null))) * (1 + 1e-9), 1.0)


def weighted_lower(means: ArrayLike, n: ArrayLike, weights: ArrayLike, delta: float) -> float:
    """Return the largest sum of expected costs that `weighted_p_value` refutes at delta: a lower limit.

    **Guarantee**: with probability at least 1 - delta over the draw of all costs, at most the weighted sum
    of the expected costs. **Assumes**: as `weighted_p_value`.
    """
    (sums, total), log_delta = _Sums.of(means, n, weights), float(np.log(delta))

    def limits(steps: Array) -> Array:
        allowed = log_delta + steps * total  # the logarithm of the moment that such a chance leaves
        prices = sums.prices(steps, lambda _, moments: moments > allowed)
        return (allowed - sums.largest(steps, prices)[2]) / prices

    excess = float(np.sqrt((sums.weights**2 / sums.n).sum() * -log_delta / 2))
    return float(np.clip(sums.best(limits, excess) - 1e-12, sums.lowest, total))


@dataclass(frozen=True)
class _Sums:
    """Weighted sums of the mean costs of tasks with n trials each, and their exponential moments.

    A task of expected cost p adds at most n ln(1 + p (exp(step weight / n) - 1)) to the logarithm of a
    moment. The most that tasks of a given sum add up to is, for every price, at most the most that they add
    less price times sum, plus price times the given sum (Lagrange). So a search need not be exact.
    """

    n: Array
    weights: Array

    @classmethod
    def of(cls, means: ArrayLike, n: ArrayLike, weights: ArrayLike) -> tuple[_Sums, float]:
        sums = cls(np.asarray(n, dtype=np.float64), np.asarray(weights, dtype=np.float64))
        return sums, float(np.asarray(means, dtype=np.float64) @ sums.weights)

    @property
    def lowest(self) -> float:
        """The smallest sum of expected costs that there can be."""
        return float(self.weights[self.weights < 0].sum())

    def largest(self, steps: Array, prices: Array) -> tuple[Array, Array, Array]:
        """Return, for steps and prices, the costs that add most, what they add, and what less their price."""
        # Not quite -1: a larger moment is valid, too, and no logarithm is infinite.
        gains = np.maximum(np.expm1(steps[:, None] * self.weights / self.n), np.nextafter(-1.0, 0.0))
        costs = np.clip(self.n / (prices[:, None] * self.weights) - 1 / gains, 0.0, 1.0)
        moments = np.log1p(costs * gains) @ self.n
        return costs, moments, moments - prices * (costs @ self.weights)

    def prices(self, steps: Array, is_low: Callable[[Array, Array], NDArray[np.bool_]]) -> Array:
        """Return the price for each step at which its costs, or its moment, are no longer too large."""
        sizes = np.abs(self.weights)
        reach = steps[:, None] * sizes / self.n
        low = np.log((-np.expm1(-reach) * self.n / sizes).min(axis=1))
        high = np.log((np.expm1(reach) * self.n / sizes).max(axis=1))

        def too_low(logs: Array) -> NDArray[np.bool_]:
            costs, moments, _ = self.largest(steps, np.exp(logs))
            return is_low(costs, moments)

        return np.asarray(np.exp(halve(low, high, too_low, _BISECTIONS)[1]))

    def best(self, value: Callable[[Array], Array], excess: float) -> float:
        """Return about the largest value over all steps."""
        first = np.log(excess / (self.weights**2 / self.n).sum())
        most = np.log(_LONGEST_STEP / (np.abs(self.weights) / self.n).max())
        centers, found = first, -np.inf
        for scale in _SCALES:
            tried = np.minimum(centers + scale * _STEPS, most)
            values = value(np.exp(tried))
            centers, found = float(tried[int(values.argmax())]), max(found, float(values.max()))
        return found
