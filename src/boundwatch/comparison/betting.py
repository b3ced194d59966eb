"""Bets on which of two policies costs less.

A bet of size s in [0, 1) that B costs more multiplies its capital by 1 + s (x_B - x_A) at a pair of costs. If
B does not cost more, the expected factor is at most 1 given the past, whatever ties the two costs of a pair
together. So the capital, spread over many sizes with shares fixed in advance, is a supermartingale that
starts at 1, and by Ville's inequality ever reaches 1/alpha with probability at most alpha.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from boundwatch.bounds.bets import Bets

Array = NDArray[np.float64]

# A bet of everything would be lost for good at the first pair that goes the other way.
LARGEST_BET = 0.995
# Of a capital against a margin, the part that aims at a date; what a variance is before it is known, how sure
# that is, and what the margin adds to it; the power that is aimed at, time to spare, and by how much bets are
# larger, as a date that is missed is put off. Chosen at rates of 0.02 to 0.5 and margins of 0.05 to 0.2, by
# the pairs that 90 % of runs take (0.3 = 0.3, margin 0.15: 209 instead of 307). If B is better by the margin,
# the median rises by almost half (60 to 88 pairs), the 90 % point by a tenth.
_AIMED, _VARIANCE, _PRIOR, _OF_MARGIN, _POWER, _SPARE, _BOLD = 0.85, 0.25, 8.0, 0.25, 0.9, 1.15, 1.25


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
        return np.asarray(np.log1p(self._steepness * (cost_b - cost_a - self._margin)))

    def wealth(self, differing: int) -> Array:
        """Return the wealth after pairs that differ by 1, for b = 0, 1, … of them against B."""
        b = np.arange(differing + 1)[:, None]
        logs = b * self.log_factors(0.0, 1.0) + (differing - b) * self.log_factors(1.0, 0.0)
        return np.asarray(np.exp(logs + self.log_shares).sum(axis=1))


class MarginBets(DifferenceBets):
    """Bets against "B costs at least `margin` more than A".

    Part of the capital is spread over sizes, and most of it aims: if the two are equally good, the margin
    says how many pairs show it. The size that most likely reaches a goal by a date, for a sum that moves
    evenly (Browne, 1999), depends only on the capital, the time that is left and the spread so far. A date
    that has passed is put off to twice as many pairs. Whatever the size, it is fixed before the pair, so the
    expected factor is at most 1: the aim is an assumption that only numbers of trials rest on.
    """

    def __init__(self, margin: float, alpha: float) -> None:
        super().__init__(-margin)
        self._goal = math.log(1 / alpha / _AIMED)
        self._needed = _SPARE * max(float(ndtri(_POWER) - ndtri(_AIMED * alpha)), 1.0) ** 2 / margin**2
        self.log_shares = np.append(self.log_shares + math.log(1 - _AIMED), math.log(_AIMED))

    def size(self, pairs: int, squares: float, log_capital: float) -> float:
        """Return the size of the bet that aims, from the squared differences and its capital so far."""
        margin = -self._margin
        variance = (_PRIOR * _VARIANCE + squares) / (_PRIOR + pairs) + _OF_MARGIN * margin
        date = self._needed * variance
        if pairs >= date:
            date *= 2.0 ** (math.floor(math.log2(pairs / date)) + 1)
        # The chance to reach the goal, and how far that is in standard deviations.
        log_chance = min(max(log_capital - math.log(_AIMED) - self._goal, -27.0), -1e-9)
        z = float(ndtri(math.exp(log_chance)))
        slope = _BOLD * math.exp(-z * z / 2 - 0.5 * math.log(2 * math.pi) - float(log_ndtr(z)))
        return min(slope / math.sqrt(variance * max(date - pairs, 1.0)), LARGEST_BET / (1 - margin))

    def log_factors_of(self, size: float, cost_a: float, cost_b: float) -> Array:
        """Return what a pair of costs does to each bet, the last of which has a size of its own."""
        aimed = math.log1p(size * (cost_a - cost_b - self._margin))
        return np.append(self.log_factors(cost_b, cost_a), aimed)
