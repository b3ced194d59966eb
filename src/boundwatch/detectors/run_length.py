"""Where a change detector for costs of 0 and 1 alarms so that the average run length is what was promised.

The logarithms of its bets move on a lattice: a failure adds `up` units, a success takes `down`, and a bet
starts anew where it has lost (CUSUM). The places of two bets are a Markov chain, so the average run length
solves linear equations, and the threshold need not come from a bound on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.sparse import linalg

Array = NDArray[np.float64]
# The bets are nearly the best ones against these multiples of the odds of the bound, with these shares. Of
# ten pairs this had the least mean delay in ten worlds (bounds of 0.05, 0.2 and 0.4) that no published number
# is about. With a bound near 0 or 1 two bets have too many places, and there is one.
_BETS = (((2.0, 0.7), (8.0, 0.3)), ((3.0, 1.0),))
_FINE = 8  # a failure, or a success, is at least so many units: the lattice is that close to the best bet
_MOST_PLACES = 20_000


@dataclass(frozen=True)
class Lattice:
    """A bet against a failure rate: a failure multiplies it by exp(up unit), a success by exp(-down unit)."""

    up: int
    down: int
    unit: float
    share: float

    @property
    def size(self) -> float:
        """The share of its capital that is at stake."""
        return -math.expm1(-self.down * self.unit)

    @classmethod
    def against(cls, bound: float, odds: float, share: float) -> Lattice:
        """Return nearly the best bet if the odds of a failure are so many times the bound's."""
        rate = odds * bound / (1 - bound + odds * bound)
        ratio = math.log(rate / bound) / math.log((1 - bound) / (1 - rate))
        down = max(1, math.ceil(_FINE / ratio)) if 1 / _FINE <= ratio < _FINE else 1
        up = max(1, round(ratio * down))
        if ratio < 1 / _FINE:
            up, down = 1, round(1 / ratio)
        common = math.gcd(up, down)
        up, down = up // common, down // common

        def gain(unit: float) -> float:  # what is expected at the bound; 0 at a fair unit, and at 0
            return bound * math.expm1(up * unit) + (1 - bound) * math.expm1(-down * unit)

        # It falls, is least here, and then grows.
        least = high = math.log((1 - bound) * down / (bound * up)) / (up + down)
        while gain(high) <= 0:
            high *= 2
        return cls(up, down, float(optimize.brentq(gain, least, high, xtol=1e-15)), share)

    def places(self, threshold: float) -> int:
        """Return at how many places it can be without an alarm, by itself."""
        return 1 + math.ceil(math.log(threshold / self.share) / self.unit)


@lru_cache(maxsize=1024)
def calibrated(bound: float, alpha: float) -> tuple[tuple[Lattice, ...], float] | None:
    """Return bets, and the sum of their capitals at which to alarm; None if the chain would be too large.

    **Guarantee**: if every episode fails, whatever came before, with probability at most `bound`, the average
    number of episodes until an alarm is at least 1/alpha, and there is one within N episodes with probability
    at most N alpha.

    Examples
    --------
    >>> bets, threshold = calibrated(0.1, 0.001)
    >>> [(bet.up, bet.down) for bet in bets], 50 < threshold < 60
    ([(13, 2), (3, 1)], True)
    """
    for choice in _BETS if 0 < bound < 1 else ():
        bets = tuple(Lattice.against(bound, odds, share) for odds, share in choice)
        if math.prod(bet.places(max(0.1 / alpha, 2.0)) for bet in bets) <= _MOST_PLACES:
            return bets, _threshold(bets, bound, 1 / alpha)
    return None


def _threshold(bets: tuple[Lattice, ...], bound: float, wanted: float) -> float:
    """Return nearly the lowest threshold with such a run length, which is nearly in proportion to it."""
    low, best = 1.0, wanted  # the sum is never above that of Shiryaev and Roberts, for which this suffices
    threshold = max(0.1 * wanted, 1.0)
    for _ in range(8):
        length = run_length(bets, bound, threshold)
        low, best = (low, threshold) if length >= wanted else (threshold, best)
        threshold = max(threshold * 1.003 * wanted / length, 1.0)
        if not low <= threshold < best:
            threshold = math.sqrt(low * best)
        if best < 1.002 * low:
            break
    return best


def run_length(bets: tuple[Lattice, ...], rate: float, threshold: float) -> float:
    """Return the average number of episodes until an alarm at a constant failure rate.

    **Guarantee**: not above the true one, however the equations were rounded.
    """
    shape = tuple(bet.places(threshold) for bet in bets)
    places = np.indices(shape).reshape(len(bets), -1)
    size = places.shape[1]
    rows, columns, chances = [], [], []
    for steps, chance in (([bet.up for bet in bets], rate), ([-bet.down for bet in bets], 1 - rate)):
        moved = places + np.array(steps)[:, None]
        capital = sum(bet.share * np.exp(bet.unit * k) for bet, k in zip(bets, moved, strict=True))
        going = np.flatnonzero(capital < threshold * (1 - 1e-9))  # so close to it the detector may round up
        rows.append(going)
        columns.append(np.ravel_multi_index(np.maximum(moved[:, going], 0), shape))
        chances.append(np.full(going.size, chance))
    where = np.concatenate(rows), np.concatenate(columns)
    stays = sparse.csc_array((np.concatenate(chances), where), shape=(size, size))
    lengths = linalg.spsolve(sparse.eye_array(size, format="csc") - stays, np.ones(size))
    # Lengths grow with the right side of the equations: if that is off by `error`, they are, relatively, too.
    error = float(np.abs(lengths - stays @ lengths - 1).max())
    return float(lengths[0]) / (1 + error)
