"""Bets that the mean of costs exceeds a bound, and their wealth: for many streams, in constant memory.

A bet of size b against "the mean cost is at most m" multiplies its capital by 1 - b + b x/m at a cost x. The
capital is shared out over bets of many sizes before any cost is seen; the wealth is their sum.

Costs are kept on a grid of 257 points: each is split between its two neighbors such that its mean is kept. A
log capital is concave in the cost, so a wealth computed from the grid is never above the true one, and a
limit never tighter. Costs of 0 and 1 are on the grid: nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import roots_legendre

from boundwatch.bounds.halving import halve

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.generic)
Where = slice | Counts
"""Some different streams: a block of rows, or their numbers."""

NODES = 16
# The share put on b = 1, the best bet when costs vary so little that hardly any lies below the bound.
WHOLE_SHARE = 0.2
# Testing a slightly larger mean than the certified one is valid, and spares every formula a division by 0.
SMALLEST_BOUND = 1e-9
STEPS = 256
# Below this the leading bet has lost everything, and the others are far behind.
_WIPED_OUT = 1e-250
_AT_ONCE = 1 << 15  # costs that fit into a cache with all that is computed from them


def shared(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return an array that nobody can change from now on: threads share it."""
    array.setflags(write=False)
    return array


class Rows(dict[str, NDArray[Any]]):
    """Named arrays with a row per stream, which grow together; every stream begins with the same row."""

    def __init__(self, first: Mapping[str, NDArray[Any]], size: int) -> None:
        super().__init__({name: np.empty((0, *row.shape), row.dtype) for name, row in first.items()})
        self._first = dict(first)
        self.size = 0
        self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""
        for name, row in self._first.items():
            array = np.empty((size, *row.shape), row.dtype)  # rows one after the other in memory
            array[: self.size], array[self.size :] = self[name], row
            self[name] = array
        self.size = size

    def begin(self, where: Where) -> None:
        """Begin some streams anew."""
        for name, row in self._first.items():
            self[name][where] = row


def numbers(where: Where, size: int) -> Counts:
    """Return the numbers of some of so many streams."""
    return np.arange(*where.indices(size)) if isinstance(where, slice) else where


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


@dataclass(frozen=True)
class Bets:
    """Sizes of the bets and the share of the capital behind each."""

    sizes: Array
    shares: Array

    @classmethod
    def for_costs(cls, *, binary: bool) -> Bets:
        """Return the uniform mixture over [0, 1]; unless costs are binary, with a share on the whole capital.

        Gauss-Legendre nodes in the cube root of b are closer together near 0, where small shifts have their
        best bets: with 16 of them no shift above 1e-6 is out of reach.
        """
        return cls(*_mixture(binary))

    def log_factors(self, bound: float) -> tuple[Array, Array]:
        """Return the logarithms of what a cost of 0 and a cost of 1 do to each bet's capital."""
        with np.errstate(divide="ignore"):  # the whole capital is lost at a cost of 0
            return np.log1p(-self.sizes), np.log1p(self.sizes * (1 / bound - 1))

    def log_wealth(self, points: Array, weights: Array, mean: float) -> float:
        """Return the log wealth against `mean` after costs at `points`, `weights` of them at each."""
        with np.errstate(divide="ignore"):
            capitals = np.log((1 - self.sizes) + np.outer(points / mean, self.sizes))
        return log_sum(weights @ capitals + np.log(self.shares))


@cache
def _mixture(binary: bool) -> tuple[Array, Array]:
    points, weights = roots_legendre(NODES)
    root = (points + 1) / 2
    sizes, shares = root**3, 1.5 * weights * root**2
    if not binary:
        sizes, shares = np.append(sizes, 1.0), np.append(shares * (1 - WHOLE_SHARE), WHOLE_SHARE)
    shares /= shares.sum()
    return shared(sizes), shared(shares)


class CostGrid:
    """The costs of one stream on the grid, one at a time."""

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
    points, weights = points[weights > 0], weights[weights > 0]
    mean, target = float(points @ weights / weights.sum()), math.log(1 / alpha)

    def is_refuted(bound: float) -> bool:
        return bound > SMALLEST_BOUND and bets.log_wealth(points, weights, bound) >= target

    return float(halve(0.0, mean, is_refuted, 50)[0])


class Wealth:
    """The wealth of bets against some bounds on many streams, one cost at a time and in constant memory.

    The first bound is one of the mean cost from above: its side bets that costs are higher. The others bound
    the mean of 1 - cost, and their sides bet that costs are lower. All that is known of a stream is in a row:
    ``log`` and ``best``, the log wealth of each side now and the largest so far; ``logs`` and ``product``, of
    which the capital of each bet is exp(logs) * product, where logs are touched only when products may leave
    the floats; and what follows from the logs: ``tops``, the largest of each side, and ``scale``, how far the
    others are behind.
    """

    DERIVED: ClassVar = frozenset({"tops", "scale"})

    def __init__(self, bets: Bets, upper: float, *rests: float) -> None:
        self._sides = 1 + len(rests)
        # A cost x multiplies each bet by intercept + slope x.
        sizes = bets.sizes
        self._intercept = np.concatenate([1 - sizes, *[(1 - sizes) + sizes / rest for rest in rests]])
        self._slope = np.concatenate([sizes / upper, *[-sizes / rest for rest in rests]])
        # For so many episodes a product of factors, which are at least 0.015, stays between 1e-120 and 1e60.
        self._fold_every = max(1, min(64, int(138 / max(-math.log(min(upper, *rests, 1.0)), 1.0))))
        logs, none = np.tile(np.log(bets.shares), self._sides), np.zeros(self._sides)
        tops, scale = self._scaled(logs[None])
        self.first: dict[str, Array] = {
            "log": none,
            "best": none,
            "logs": logs,
            "product": np.ones(logs.size),
        }
        """The row of a stream without costs."""
        self.first |= {"tops": tops[0], "scale": scale[0]}

    def step(self, rows: Rows, where: Where, costs: Array, n: Counts) -> Array:
        """Count one cost for each of some different streams; return their log wealth, one column per side."""
        factor = costs[:, None] * self._slope
        factor += self._intercept
        product = rows["product"][where]
        product *= factor
        rows["product"][where] = product
        sums = np.matmul(product[:, None], rows["scale"][where])[:, 0]
        totals = sums.ravel().tolist()  # lists: on the few numbers of one stream they are quicker than arrays
        if min(totals) < _WIPED_OUT or 0 in (n % self._fold_every).tolist():
            due = (n % self._fold_every == 0) | (sums < _WIPED_OUT).any(axis=1)
            fold = numbers(where, rows.size)[due]
            self._fold(rows, fold)
            sums[due] = np.matmul(rows["product"][fold][:, None], rows["scale"][fold])[:, 0]
            totals = sums.ravel().tolist()
        # numpy's logarithm differs in the last digit on some processors.
        log: Array = rows["tops"][where] + np.array([*map(math.log, totals)]).reshape(sums.shape)
        rows["log"][where] = log
        rows["best"][where] = np.maximum(rows["best"][where], log)
        return log

    def rescale(self, rows: Rows, where: Where) -> None:
        """Compute what follows from the logs of some streams."""
        rows["tops"][where], rows["scale"][where] = self._scaled(rows["logs"][where])

    def _fold(self, rows: Rows, where: Where) -> None:
        with np.errstate(divide="ignore"):  # a bet may have lost everything
            rows["logs"][where] += np.log(rows["product"][where])
        rows["product"][where] = 1.0
        self.rescale(rows, where)

    def _scaled(self, logs: Array) -> tuple[Array, Array]:
        by_side = logs.reshape(len(logs), self._sides, -1)
        tops = by_side.max(axis=2)
        scale = np.zeros((*by_side.shape, self._sides))
        for side in range(self._sides):
            scale[:, side, :, side] = np.exp(by_side[:, side] - tops[:, side, None])
        return tops, scale.reshape(len(logs), -1, self._sides)


def bet_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return what the bets of each side divide by: a wrong ADVERSE needs a mean cost of at most `upper`.

    A wrong BENIGN needs one of at least `lower`: that is a mean of 1 - cost of at most 1 - `lower`.
    """
    return clamp_bound(upper), clamp_bound(1 - lower)


def clamp_bound(bound: float) -> float:
    """Return a bound that a bet can divide by."""
    return min(max(bound, SMALLEST_BOUND), 1.0)


def log_sum(logs: Array) -> float:
    """Return the logarithm of a sum from the logarithms of its terms."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def log_sums(logs: Array) -> Array:
    """Return the same along the last axis; scipy's logsumexp is ten times slower on so few numbers."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1)))
