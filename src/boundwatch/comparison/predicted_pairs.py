"""Bets on which of two policies costs less, with predicted costs of scenes that were run and that were not.

A bet of size s that B costs more multiplies its capital by 1 + s (x_B - x_A - luck): by at most 1 on average
if B does not, whatever the size and the predictions are (`boundwatch.bounds.predicted_mean`). So sizes are
free, and taken from the region for matched pairs without predictions: those by which fair coins have 1/alpha
just where it alarms. They follow from the capital and from how many coins were tossed. Here the squares of
what luck leaves unexplained are counted instead. If predictions explain nothing, that is the number of pairs
that differ, and bets alarm about where the region does. The more they explain, the larger are bets.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from scipy.special import ndtri

from boundwatch.bounds.predicted_mean import ENOUGH, Luck, MeanBets, Past, controls_of
from boundwatch.comparison.region import CHANCES, SignRegion, find_region

_MOST = 0.99  # of the capital, that a bet may risk
# Bets that aim are larger than those of coins: so that rounding misses no goal, and where luck explains
# much. Other sizes have a tenth of the capital, as differences may be small. Chosen at .1/.25, .4/.6, .2/.5
# and .05/.2, and by coins.
_BOLD, _BOLDER, _CAUTION = 1.05, 0.25, 1.0
_SIZES = np.geomspace(0.01, 0.5, 12)
_SHARES = np.append(0.9, np.full(_SIZES.size, 0.1 / _SIZES.size))


class GoalBets:
    """The capital of both sides, "A is better" and "B is better", of bets that aim at 1/alpha.

    **Guarantee**: if the costs of the two have the same expected value given all earlier pairs, either side
    ever reaches 1/alpha with probability at most alpha, for any predictions. **Assumes**: scenes of a round
    that are exchangeable, for each policy by itself.
    """

    def __init__(self, alpha: float) -> None:
        region = cast("SignRegion", find_region(alpha, paired=True))
        self._aims, self._alpha, self.past = region.sizes, alpha, Past(_CAUTION)
        self.capital = [_SHARES.copy(), _SHARES.copy()]
        self._tossed = [0.0, 0.0]

    @property
    def evidence(self) -> list[float]:
        """The logarithms of both e-values: the capital, a little less against rounding."""
        return [math.log(max(float(each.sum()) / ENOUGH, 1e-300)) for each in self.capital]

    def add(self, half: float, lucks: tuple[Luck, Luck]) -> None:
        """Count one more pair, from (1 + x_B - x_A) / 2 and half of what luck adds to x_B - x_A."""
        slope, (whole, left), _ = self.past.guess()
        for side, sign in enumerate((1, -1)):
            aim = self._aim(side) * (_BOLD + _BOLDER * (1 - left / whole))
            sizes = np.append(min(max(aim, 1e-6), _MOST), _SIZES)
            rest = np.full(sizes.size, sign * (2 * half - 1))
            # Either has a room of its own for debt, see `MeanBets.add`.
            room = (1 - 1e-3 - sizes) / sizes / len(lucks)
            for control, worst in controls_of(lucks, 2 * sign * slope):
                rest -= np.minimum(1.0, room / max(worst, 1e-12)) * control
            self.capital[side] *= 1 + sizes * rest
            self._tossed[side] += float(rest[0]) ** 2
        self.past.add(half, Luck(*map(sum, zip(*lucks, strict=True))))

    def _aim(self, side: int) -> float:
        tossed, last = self._tossed[side], len(self._aims) - 1
        chance = float(self.capital[side][0]) / float(_SHARES[0]) * self._alpha
        score = ndtri(min(max(chance, 1e-12), 1 - 1e-9))
        size = float(np.interp(score, CHANCES, self._aims[min(round(tossed), last)]))
        return size * math.sqrt(min(1.0, last / max(tossed, 1.0)))


class LazyLimits:
    """Limits on the difference after any pair, with predictions or without, computed when asked for."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._pairs: list[tuple[float, tuple[Luck, Luck]]] = []
        self._known: dict[bool, tuple[int, MeanBets]] = {}

    def add(self, half: float, lucks: tuple[Luck, Luck]) -> None:
        """Remember one more pair, as `GoalBets.add` takes it."""
        self._pairs.append((half, lucks))

    def limit(self, pairs: int, helped: bool, side: int) -> float:
        """Return the lower (0) or upper limit (1) after so many pairs."""
        known, bets = self._known.get(helped, (pairs + 1, None))
        if bets is None or known > pairs:
            known, bets = 0, MeanBets.anytime(self._alpha, self._alpha)
        for half, lucks in self._pairs[known:pairs]:
            bets.add(half, *(lucks if helped else (Luck(),)))
        self._known[helped] = pairs, bets
        return 2 * bets.limits[side] - 1
