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
_BOLD = 1.05  # so that rounding does not miss the goal by a percent


class GoalBets:
    """The capital of both sides, "A is better" and "B is better", of bets that aim at 1/alpha.

    **Guarantee**: if the costs of the two have the same expected value given all earlier pairs, either side
    ever reaches 1/alpha with probability at most alpha, for any predictions. **Assumes**: scenes of a round
    that are exchangeable, for each policy by itself.
    """

    def __init__(self, alpha: float) -> None:
        region = cast("SignRegion", find_region(alpha, paired=True))
        self._sizes, self._alpha, self.past = region.sizes, alpha, Past()
        self.capital = [1.0, 1.0]
        self._tossed = [0.0, 0.0]

    def reached(self, side: int) -> bool:
        """Return whether a side has 1/alpha."""
        return self.capital[side] >= ENOUGH / self._alpha

    def add(self, half: float, lucks: tuple[Luck, Luck]) -> None:
        """Count one more pair, from (1 + x_B - x_A) / 2 and half of what luck adds to x_B - x_A."""
        slope = self.past.guess()[0]
        for side, sign in enumerate((1, -1)):
            size = self._size(side)
            rest = sign * (2 * half - 1)
            # Either has a room of its own for debt, see `MeanBets.add`.
            room = (1 - 1e-3 - size) / size / len(lucks)
            for control, worst in controls_of(lucks, 2 * sign * slope):
                rest -= min(1.0, room / max(worst, 1e-12)) * control
            self.capital[side] *= 1 + size * rest
            self._tossed[side] += rest * rest
        self.past.add(half, Luck(*map(sum, zip(*lucks, strict=True))))

    def _size(self, side: int) -> float:
        tossed, last = self._tossed[side], len(self._sizes) - 1
        score = ndtri(min(max(self.capital[side] * self._alpha, 1e-12), 1 - 1e-9))
        size = _BOLD * float(np.interp(score, CHANCES, self._sizes[min(round(tossed), last)]))
        return min(max(size * math.sqrt(min(1.0, last / max(tossed, 1.0))), 1e-6), _MOST)


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
