"""Both sides of joint evidence: what each supposes of new costs and a reference, and the bets against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets, clamp_bound, log_sums
from boundwatch.bounds.betting_limits import fixed_bets
from boundwatch.bounds.cost_grid import grid_points
from boundwatch.bounds.joint_evidence import (
    Indices,
    Reference,
    Wager,
    joint_difference_lower,
    joint_log_evidence,
    joint_log_evidence_many,
)

Array = NDArray[np.float64]
# The bounded e-value is a minimum over all means; it is computed when it is high enough at one of them, where
# the reference has gathered this share of the evidence that is needed.
_SENTINEL_SHARE = 0.3


@dataclass(frozen=True)
class JointSide:
    """One hypothesis: the stream's expected cost exceeds the reference's by at most a margin.

    `reference` is what the reference says about its mean, `stream` the bets on the stream, not placed yet; if
    `mirrored`, both are on 1 - cost, so that low costs are evidence. `level` is what may be spent on a wrong
    rejection, over the joint draw.
    """

    reference: Reference
    stream: Wager
    mirrored: bool
    margin: float
    level: float

    @property
    def target(self) -> float:
        """The log e-value that rejects the hypothesis."""
        return math.log(1 / self.level)

    def log_e_value(self, points: Array, weights: Array, *, enough: float = -math.inf) -> float:
        """Return the log e-value after costs at some points; one below `enough` may be given too high."""
        return joint_log_evidence(self.reference, self._placed(points, weights), self.margin, enough=enough)

    def log_e_values(self, points: Array, weights: Array) -> Array:
        """Return the same for many streams (rows), whose costs are at two points or on the grid."""
        if len(weights) == 1:
            return np.array([self.log_e_value(points, weights[0])])
        shares, two = self.stream.log_shares, points.size == 2
        wager = self._placed(points, np.ones(points.size))
        on_grid = np.ascontiguousarray(weights[:, ::-1] if self.mirrored else weights)

        def quickly(means: Array, owners: Indices) -> Array:
            if not two:
                return log_sums(_grid_logs(means, on_grid, owners) + shares)
            different, which = np.unique(means, return_inverse=True)  # streams ask for the same ones
            first, second = wager.log_factors(different).T  # bets in rows: sums over rows are much quicker
            logs = first[:, which] * weights[owners, 0] + second[:, which] * weights[owners, 1]
            logs += shares[:, None]
            top = logs.max(axis=0)
            return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))

        def exactly(means: Array, owners: Indices) -> Array:
            if two:
                logs = np.matmul(wager.log_factors(means), weights[owners, :, None])[..., 0]
                return np.asarray(np.logaddexp.reduce(logs + shares, axis=1))
            each = zip(means, owners, strict=True)
            return np.array([self._placed(points, weights[i]).log_wealth(mean[None])[0] for mean, i in each])

        # What fits into the cache; and so few products on the grid are not shared out over threads.
        at_once = 256 if two else 48
        return joint_log_evidence_many(
            self.reference, quickly, len(weights), self.margin, at_once=at_once, exactly=exactly
        )

    def difference_lower(self, points: Array, weights: Array) -> float:
        """Return a lower limit on the difference, at all times at once."""
        return joint_difference_lower(self.reference, self._placed(points, weights), self.level)

    def sentinel(self) -> tuple[float, float]:
        """Return a mean at which to follow the stream's wealth, and the reference's log e-value there."""
        mean = self.reference.at(_SENTINEL_SHARE * self.target)
        log = np.interp(mean, self.reference.means, self.reference.logs)
        return clamp_bound(mean + self.margin), float(log)

    def _placed(self, points: Array, weights: Array) -> Wager:
        return self.stream.on(1 - points if self.mirrored else points, weights)


def _grid_logs(means: Array, counts: Array, owners: Indices) -> Array:
    """Return the log capital of each bet for pairs of a mean and a stream, whose costs are on the grid."""
    order = np.argsort(means, kind="stable")
    logs = np.empty((means.size, Bets.for_costs(binary=False).sizes.size))
    for part in np.split(order, np.flatnonzero(np.diff(means[order])) + 1):
        logs[part] = counts[owners[part]] @ _grid_factors(float(means[part[0]]))
    return logs


@lru_cache(maxsize=1024)  # 35 kB each; the minima of a stream move slowly
def _grid_factors(mean: float) -> Array:
    """Return by what a cost at each point of the grid multiplies each bet against a mean, as logarithms."""
    sizes, points = Bets.for_costs(binary=False).sizes, grid_points()
    logs = Wager(sizes, sizes, points, points).log_factors(np.array([mean]))[0].T
    factors: Array = np.maximum(logs, -1e300)  # not minus infinity: no cost at a point must add nothing
    factors.setflags(write=False)  # threads share it
    return factors


def references_of(values: Array, weights: Array) -> tuple[Reference, Reference]:
    """Return what so many costs at some values say about their mean, from below and from above."""
    n, nothing = round(float(weights.sum())), np.empty(0)
    sizes, log_shares = fixed_bets(n)
    kept = _kept(n)
    if kept > 0:
        sizes = np.append(0.0, sizes)
        log_shares = np.append(math.log(kept), log_shares + math.log1p(-kept))
    placed = Wager(sizes, log_shares, nothing, nothing)
    return Reference.of(placed.on(1 - values, weights)), Reference.of(placed.on(values, weights))


def _kept(n: int) -> float:
    """Return the share of the capital that is not bet on a reference of n costs.

    Near the reference's own mean every bet loses, and the more the longer it is; the wealth never falls below
    what is kept. A short reference needs the capital for its bets, a long one is nearly a known mean. Chosen
    on pairs of worlds that no published number is about, by how many trials are saved against the limits, in
    the geometric mean: 69 % with nothing kept and 67 % with a fifth at 50 costs; 54, 56 and 55 % with
    nothing, a fifth and a half at 200; -5 and 18 % with nothing and a half at 1,000; -47 and 10 % with
    nothing and 85 % at 4,000.
    """
    return max(n - 50, 0) / (n + 750)


def sides_against(
    references: tuple[Reference, Reference],
    levels: tuple[float, float],
    margin: float | None,
    *,
    binary: bool,
) -> list[JointSide]:
    """Return the hypotheses "did not rise", "did rise" and, with a margin, "rose by more than it"."""
    bets, nothing = Bets.for_costs(binary=binary), np.empty(0)
    stream = Wager(bets.sizes, np.log(bets.shares), nothing, nothing)
    low, high = references
    sides = [
        JointSide(low, stream, mirrored=False, margin=0.0, level=levels[0]),
        JointSide(high, stream, mirrored=True, margin=0.0, level=levels[1]),
    ]
    if margin is not None:
        sides.append(JointSide(high, stream, mirrored=True, margin=-margin, level=levels[1]))
    return sides
