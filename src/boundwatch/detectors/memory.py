"""The costs so far in constant memory, and the confidence sequence that is computed from them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

import numpy as np

from boundwatch.detectors.mixture import SMALLEST_BOUND, Array, Bets

STEPS = 256


class CostMemory:
    """Costs on a grid of 257 points.

    Each cost is split between its two neighbours on the grid such that its mean is kept. A bet's log capital
    is concave in the cost, so the wealth computed from the grid is never above the true one, and a limit
    found from it never tighter than the exact one. Costs of 0 and 1 are on the grid: nothing is lost.

    Examples
    --------
    >>> memory = CostMemory()
    >>> for cost in [0.9, 0.8, 0.9, 0.7]:
    ...     memory.add(cost)
    >>> round(memory.mean_lower(Bets.for_costs(binary=False), alpha=0.04), 3)
    0.301
    """

    def __init__(self, weights: Iterable[float] | None = None) -> None:
        self.weights = array("d", [0.0] * (STEPS + 1) if weights is None else weights)

    def add(self, cost: float) -> None:
        """Remember one cost."""
        place = cost * STEPS
        index = int(place)
        beyond = place - index
        self.weights[index] += 1.0 - beyond
        if beyond:
            self.weights[index + 1] += beyond

    def mean_lower(self, bets: Bets, alpha: float) -> float:
        """Return the largest mean that the wealth against it refutes at level alpha, at all times at once."""
        return _largest_refuted(bets, np.linspace(0, 1, STEPS + 1), np.array(self.weights), alpha)

    def mean_upper(self, bets: Bets, alpha: float) -> float:
        """Return the same from above."""
        return 1 - _largest_refuted(bets, np.linspace(1, 0, STEPS + 1), np.array(self.weights), alpha)


def _largest_refuted(bets: Bets, points: Array, weights: Array, alpha: float) -> float:
    # The wealth falls with the mean that it is against: bisect, and stay on the refuted side.
    points, weights = points[weights > 0], weights[weights > 0]
    low, high = 0.0, float(points @ weights / weights.sum())
    target = math.log(1 / alpha)
    for _ in range(50):
        middle = (low + high) / 2
        if middle > SMALLEST_BOUND and bets.log_wealth(points, weights, middle) >= target:
            low = middle
        else:
            high = middle
    return low
