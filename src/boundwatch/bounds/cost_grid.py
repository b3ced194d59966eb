"""Costs in constant memory: a grid of 257 points that keeps their mean, and limits computed from it.

Each cost is split between its two neighbors on the grid such that its mean is kept. A bet's log capital is
concave in the cost, so a wealth computed from the grid is never above the true one, and a limit found from it
never tighter than the exact one. Costs of 0 and 1 are on the grid: nothing is lost.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from boundwatch.bounds.bets import SMALLEST_BOUND, Array, Bets
from boundwatch.bounds.halving import halve
from boundwatch.bounds.rows import Where, numbers

STEPS = 256
_AT_ONCE = 1 << 15  # costs that fit into a cache with all that is computed from them


def grid_points() -> Array:
    """Return the points of the grid, 0, 1/256, …, 1."""
    return np.linspace(0, 1, STEPS + 1)


def split_on_grid(costs: Array) -> Array:
    """Return how much of the costs comes to lie on each point of the grid."""
    weights = np.zeros(STEPS + 2)  # one more than needed: nothing is beyond the last
    for start in range(0, costs.size, _AT_ONCE):
        place = costs[start : start + _AT_ONCE] * STEPS  # exact, as is what follows: it is a power of two
        index = place.astype(np.int64)
        beyond = place - index
        weights[:-1] += np.bincount(index, weights=1.0 - beyond, minlength=STEPS + 1)
        weights[1:] += np.bincount(index, weights=beyond, minlength=STEPS + 1)
    return weights[:-1]


def add_costs(weights: Array, where: Where, costs: Array) -> None:
    """Split one cost each on the grids of some different streams, which are rows."""
    place = costs * STEPS
    index = place.astype(np.int64)
    beyond = place - index
    flat = weights.reshape(-1)  # one index is much quicker than two
    if len(weights) > 1:
        index += numbers(where, len(weights)) * (STEPS + 1)
    flat[index] += 1.0 - beyond
    # A cost of 1 has nothing beyond it, and so adds nothing to where the next row begins.
    flat[np.minimum(index + 1, flat.size - 1)] += beyond


class CostGrid:
    """The costs of one stream, one at a time."""

    def __init__(self, weights: ArrayLike | None = None) -> None:
        self.weights = np.zeros(STEPS + 1) if weights is None else np.array(weights, dtype=np.float64)

    def add(self, cost: float) -> None:
        """Remember one cost."""
        add_costs(self.weights[None], slice(0, 1), np.array([cost]))

    def mean_lower(self, bets: Bets, alpha: float) -> float:
        """Return the largest mean that the wealth against it refutes at level alpha, at all times at once."""
        return largest_refuted(bets, grid_points(), self.weights, alpha)

    def mean_upper(self, bets: Bets, alpha: float) -> float:
        """Return the same from above."""
        return 1 - largest_refuted(bets, 1 - grid_points(), self.weights, alpha)


def largest_refuted(bets: Bets, points: Array, weights: Array, alpha: float) -> float:
    """Return the largest mean against which the wealth reaches 1/alpha, rounded to the refuted side.

    **Guarantee**: with probability at least 1 - alpha, at no time above the expected cost. **Assumes**: costs
    whose expected value, given all earlier ones, is the same.
    """
    # The wealth falls with the mean that it is against: bisect, and stay on the refuted side.
    points, weights = points[weights > 0], weights[weights > 0]
    mean, target = float(points @ weights / weights.sum()), math.log(1 / alpha)

    def is_refuted(bound: float) -> bool:
        return bound > SMALLEST_BOUND and bets.log_wealth(points, weights, bound) >= target

    return float(halve(0.0, mean, is_refuted, 50)[0])
