"""Limits on the mean over a fixed set of tasks that hold after every round; a round runs each task once.

Task i has the weight w_i, K tasks in all, and in a round it costs X_i. Before the round there is a guess c_i
of each task's mean. Then Y_i = c + K w_i (X_i - c_i), with c the weighted mean of the guesses, has the
expected value c + K w_i (p_i - c_i), and the plain mean of these over the tasks is the weighted mean of the
p_i, whatever was guessed. Somebody bets that this mean is below m: with one size s for the whole round, the
capital is multiplied by the product of 1 + s (m - Y_i). If the mean is m or more, the expected product is

    prod (1 + s (m - E Y_i)) <= (1 + s (m - mean of E Y_i))^K <= 1

by the inequality between the geometric and the arithmetic mean. So the capital is a supermartingale at
complete rounds, and good guesses leave in Y only how a task's trials differ from each other, not how tasks
differ. The size must not change within a round: see ``docs/theory.md``.

Guesses and sizes follow from earlier rounds. A bet risks at most 95 % of its capital at the highest cost; its
factor then never falls with m, so the means that any round has refuted reach from 1 down to a root. That is
the upper limit. The lower one is that of 1 - cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.bounds.bets import Array
from boundwatch.bounds.halving import halve

_MOST = 0.95  # of the capital; see `boundwatch.bounds.anytime`
_HEAD_START = 100  # trials by which sizes are smaller than the best ones for so few
_GUESSED_VARIANCE = 0.25  # of the first round: no cost in [0, 1] varies more
_ROUNDING = 1e-9  # in the log wealth, far more than floats lose
_TOGETHER = 64  # tasks whose factors are multiplied before the logarithm: 0.05^64 is still a float


def equal_weights(tasks: int) -> Array:
    """Return the weights of tasks that count alike."""
    return np.full(tasks, 1 / tasks)


@dataclass(frozen=True)
class Centered:
    """Rounds without the differences between tasks, and what was known before each of them.

    `values` are the Y of the docstring above, (rounds, tasks), `tops` and `bottoms` the highest and the
    lowest that a cost in [0, 1] could have given in each round, `variances` the guesses of theirs. Arrays may
    have further axes in front: many streams at once.
    """

    values: Array
    tops: Array
    bottoms: Array
    variances: Array

    @classmethod
    def of(cls, costs: Array, weights: Array) -> Centered:
        """Center rounds of costs, (..., rounds, tasks)."""
        rounds, tasks = costs.shape[-2:]
        numbers = np.arange(rounds)
        sums = np.cumsum(costs, axis=-2) - costs
        shares = tasks * weights
        means = (sums @ shares + 0.5) / (numbers * tasks + 1)
        guesses = (sums + means[..., None]) / (numbers + 1)[:, None]
        middle = (guesses @ weights)[..., None]
        values = middle + shares * (costs - guesses)
        squares = ((values - means[..., None]) ** 2).mean(axis=-1)
        earlier = np.cumsum(squares, axis=-1) - squares
        variances = (earlier + _GUESSED_VARIANCE * float(shares @ weights)) / (numbers + 1)
        tops = (middle + shares * (1 - guesses)).max(axis=-1)
        bottoms = (middle - shares * guesses).min(axis=-1)
        return cls(values, tops, bottoms, variances)

    def sizes(self, evidence: float) -> Array:
        """Return the size of each round's bet, near the best one for so much evidence (a log wealth)."""
        rounds, tasks = self.values.shape[-2:]
        after = tasks * np.arange(1, rounds + 1)
        return np.asarray(np.sqrt(2 * evidence / (self.variances * (after + _HEAD_START))))

    def log_factors(self, sizes: Array, means: Array) -> Array:
        """Return by what each round multiplies a bet that the mean is below each of some: (means, rounds)."""
        risk = np.maximum(self.tops - means[..., None], 1e-12)
        placed = np.minimum(sizes, _MOST / risk)
        factors = 1 + placed[..., None] * (means[..., None, None] - self.values)
        pieces = np.arange(0, self.values.shape[-1], _TOGETHER)
        return np.asarray(np.log(np.multiply.reduceat(factors, pieces, axis=-1)).sum(axis=-1))

    def mirrored(self) -> Centered:
        """Return the same for 1 - cost."""
        return Centered(1 - self.values, 1 - self.bottoms, 1 - self.tops, self.variances)


def rounds_upper(costs: ArrayLike, delta: float, weights: Sequence[float] | Array | None = None) -> float:
    """Return the smallest mean over tasks that any round has refuted, an upper limit for all times at once.

    **Guarantee**: with probability at least 1 - delta over the draw of the costs, after no number of rounds
    below the weighted mean of the tasks' expected costs; rounded outward. **Assumes**: costs in [0, 1], in
    every round one of each task, whose expected value given all that came before it is the task's.

    `costs` are those of complete rounds in their order, (rounds, tasks); `weights` those of the tasks in the
    mean, positive, with the sum 1; left out, all count alike.

    >>> [round(of([[0, 1, 0, 0]] * 20, 0.05), 3) for of in (rounds_lower, rounds_upper)]
    [0.201, 0.3]
    """
    return _upper(_centered(costs, weights), delta)


def rounds_lower(costs: ArrayLike, delta: float, weights: Sequence[float] | Array | None = None) -> float:
    """Return the same from below."""
    return max(1 - _upper(_centered(costs, weights).mirrored(), delta) - 1e-15, 0.0)


def refuted_by_rounds(
    costs: Array, mean: float, delta: float, weights: Sequence[float] | Array | None = None
) -> NDArray[np.bool_]:
    """Return of which streams, (..., rounds, tasks), `rounds_upper` is that mean or less."""
    return _refutes(_centered(costs, weights), mean, delta)


def _centered(costs: ArrayLike, weights: Sequence[float] | Array | None) -> Centered:
    values = np.asarray(costs, dtype=np.float64)
    shares = equal_weights(values.shape[-1]) if weights is None else np.asarray(weights, dtype=np.float64)
    return Centered.of(values, shares)


def _refutes(centered: Centered, mean: float, delta: float) -> NDArray[np.bool_]:
    target = -np.log(delta)
    means = np.full(centered.tops.shape[:-1], mean)
    logs = centered.log_factors(centered.sizes(target), means)
    return np.asarray(np.cumsum(logs, axis=-1).max(axis=-1) >= target + _ROUNDING)


def _upper(centered: Centered, delta: float) -> float:
    if not _refutes(centered, 1.0, delta):
        return 1.0
    return float(halve(0.0, 1.0, lambda mean: not _refutes(centered, mean, delta), 44)[1])
