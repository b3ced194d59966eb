"""Bets on which of two policies costs less.

A bet of size s in [0, 1) that B costs more multiplies its capital by 1 + s (x_B - x_A) at a pair of costs. If
B does not cost more, the expected factor is at most 1 given the past, whatever ties the two costs of a pair
together. So the capital, spread over many sizes with shares fixed in advance, is a supermartingale that
starts at 1, and by Ville's inequality ever reaches 1/alpha with probability at most alpha.

For independent trials a product of two factors, one per policy, is possible as well: `LateBets` needs it.
Measured on costs of 0 and 1 and on beta-distributed ones, a mixture of such products takes 25 to 60 % more
pairs (one case in eight: 6 % fewer), because it has to be spread over two unknown means. So everybody gets
the bets on differences, paired or not.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# A bet of everything would be lost for good at the first pair that goes the other way.
LARGEST_BET = 0.995
# On the scale arcsin(sqrt(rate)), on which n pairs tell rates apart that differ by about 1/sqrt(n) anywhere.
LATE_GAPS = 0.005 * math.sqrt(2) ** np.arange(13)
_LATE_SHARES = LATE_GAPS / LATE_GAPS.sum()
_EDGE = 0.015
# A bet may use any rate that is known before the pair; rounded ones can be looked up.
_LATE_RATES = 1024


def rate_pairs(smallest: float, largest: float, middles: int) -> tuple[Array, Array, Array]:
    """Return pairs of rates p0 < p1 and the distances between them, evenly spread in difficulty.

    On the scale arcsin(sqrt(rate)) the middles are equally spaced and the distances grow by sqrt(2) each.
    """
    steps = math.floor(2 * math.log2(largest / smallest) + 1e-9) + 1
    gaps = np.repeat(smallest * math.sqrt(2) ** np.arange(steps), middles)
    middle = np.tile((np.arange(middles) + 0.5) / middles * np.pi / 2, steps)
    low, high = middle - gaps / 2, middle + gaps / 2
    inside = (low > _EDGE) & (high < np.pi / 2 - _EDGE)
    return np.sin(low[inside]) ** 2, np.sin(high[inside]) ** 2, gaps[inside]


class DifferenceBets:
    """Bets against "B costs at most `margin` more than A"; with the arms exchanged, against the opposite."""

    def __init__(self, margin: float = 0.0) -> None:
        bets = Bets.for_costs(binary=False)
        # Scaled such that 1 + size (x_B - x_A - margin)/(1 + margin) is never below 1 - size.
        self._steepness = np.minimum(bets.sizes, LARGEST_BET) / (1 + margin)
        self._margin = margin
        self.log_shares = np.log(bets.shares)

    def log_factors(self, cost_a: float | Array, cost_b: float | Array) -> Array:
        """Return the logarithm of what a pair of costs (or a column of them) does to each bet."""
        logs: Array = np.log1p(self._steepness * (cost_b - cost_a - self._margin))
        return logs

    def wealth(self, differing: int) -> Array:
        """Return the wealth after pairs that differ by 1, for b = 0, 1, … of them against B."""
        b = np.arange(differing + 1)[:, None]
        logs = b * self.log_factors(0.0, 1.0) + (differing - b) * self.log_factors(1.0, 0.0)
        total: Array = np.exp(logs + self.log_shares).sum(axis=1)
        return total


class LateBets:
    """Bets on independent trials with costs of 0 and 1 that begin when a region's table ends.

    For 0 < d <= min(m, 1 - m) let t(x) = (x - m)/(m (1 - m)). A bet multiplies its capital by
    (1 - d t(x_A)) (1 + d t(x_B)). Given the past, and so m and d, the expected factor is
    (1 - d t(p_A)) (1 + d t(p_B)). If p_A >= p_B, that is at most 1 - d^2 t(p_A)^2 <= 1, whatever p_A and p_B
    are. Each bet has its distance between the rates (on the scale of arcsines); m follows the pooled rate.

    What the capital is at the start may depend on the counts in any way: its expectation over what has had no
    alarm is computed, for every common rate at once.
    """

    def __init__(self, pairs: int) -> None:
        self.pairs = pairs

    def start(self, failures_a: int, failures_b: int) -> Array:
        """Return the log capitals after `pairs` pairs."""
        logs: Array = _late_start(self.pairs)[:, failures_a, failures_b]
        return logs

    def wealth(self) -> Array:
        """Return the sum of the capitals at the start, for every (a, b)."""
        total: Array = np.exp(_late_start(self.pairs)).sum(axis=0)
        return total

    def log_factors(
        self, n: int, pooled: int | NDArray[np.int64], failed_a: bool | Flags, failed_b: bool | Flags
    ) -> Array:
        """Return the logarithm of what pair n + 1 does to each bet, after `pooled` failures in n pairs.

        Counts and outcomes may be arrays, one entry per run; the bets are the last axis.
        """
        place = pooled * _LATE_RATES // (2 * n + 1)
        factors: Array = _late_factors()[place, _index(failed_a), _index(failed_b)]
        return factors


def _index(failed: bool | Flags) -> int | NDArray[np.int64]:
    return failed.astype(np.int64) if isinstance(failed, np.ndarray) else int(failed)


@lru_cache(maxsize=1)
def _late_factors() -> Array:
    """Return the log factors for every pooled rate (rounded), outcome of A, outcome of B and bet."""
    low, high = _rates_around((np.arange(_LATE_RATES) + 0.5) / _LATE_RATES)
    middle = (low + high) / 2
    of_a = np.log(np.stack([(1 - low) / (1 - middle), low / middle]))
    of_b = np.log(np.stack([(1 - high) / (1 - middle), high / middle]))
    factors: Array = np.moveaxis(of_a[:, None] + of_b[None], (0, 1, 2, 3), (1, 2, 3, 0)).copy()
    factors.setflags(write=False)  # threads share it
    return factors


def _rates_around(rate: float | Array) -> tuple[Array, Array]:
    """Return, for every gap, the two rates at that distance around one rate."""
    angle = np.arcsin(np.sqrt(np.asarray(rate)))
    gaps = LATE_GAPS.reshape(-1, *[1] * angle.ndim)
    low = np.sin(np.clip(angle - gaps / 2, _EDGE / 2, np.pi / 2 - _EDGE)) ** 2
    high = np.sin(np.clip(angle + gaps / 2, _EDGE, np.pi / 2 - _EDGE / 2)) ** 2
    return low, high


@lru_cache(maxsize=2)
def _late_start(pairs: int) -> Array:
    """Return the likelihood ratios at the start, made to rise with b and to fall with a."""
    k = np.arange(pairs + 1)
    pooled = np.arange(2 * pairs + 1)
    low, high = _rates_around((pooled + 0.5) / (2 * pairs + 1))
    middle = (low + high) / 2
    index = k[:, None] + k
    logs = np.tile(np.log(_LATE_SHARES)[:, None, None], (1, pairs + 1, pairs + 1))
    for j in range(LATE_GAPS.size):
        for rates, failures in ((low[j], k[:, None]), (high[j], k[None])):
            logs[j] += failures * np.log(rates / middle[j])[index]
            logs[j] += (pairs - failures) * np.log((1 - rates) / (1 - middle[j]))[index]
    logs = np.maximum.accumulate(logs, axis=2)
    rising: Array = np.maximum.accumulate(logs[:, ::-1], axis=1)[:, ::-1]
    rising.setflags(write=False)  # threads share it
    return rising
