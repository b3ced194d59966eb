"""An e-value over the draw of a reference and of new costs together, for costs in [0, 1].

Let c be the reference's expected cost. Bets on low costs in the reference give an e-value e(c) against "its
expected cost is c or more"; bets on high costs in the stream give one, W(c), against "the stream's expected
costs are c or less". If the stream is not worse, both hypotheses are true at the true c, so e(c) W(c) has an
expected value of at most 1 over the joint draw, whenever you stop. Nobody knows the true c, but the smallest
product over all c is never larger. That is the evidence.

e(c) grows with c and W(c) falls, so on an interval from a to b no product is below e(a) W(b): the smallest
product is bounded, not searched on a grid. Where e(c) is below e^8, it grows by about 1 % on each interval,
so the bound is about 1 % below the smallest product there. Beyond, intervals are coarse and the bound loose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import SMALLEST_BOUND, Array, Bets, clamp_bound, grid_points, log_sums, shared
from boundwatch.bounds.betting_limits import fixed_bets
from boundwatch.bounds.halving import halve

Indices = NDArray[np.intp]
_STEP = 0.01
_STRIDES = 64, 8, 1
_BLOCK = 2**17
# The bounded e-value is a minimum over all means; it is computed when it is high enough at one of them, where
# the reference has gathered this share of the evidence that is needed.
_SENTINEL_SHARE = 0.3


@dataclass(frozen=True)
class Wager:
    """Bets that a mean is exceeded, placed on costs: sizes, log shares, how many costs at which points."""

    sizes: Array
    log_shares: Array
    points: Array
    weights: Array

    def on(self, points: Array, weights: Array) -> Wager:
        """Return the same bets on other costs; points without any are left out."""
        present = weights > 0
        return Wager(self.sizes, self.log_shares, points[present], weights[present])

    def log_wealth(self, means: Array) -> Array:
        """Return the log wealth against each of some means; it falls with the mean."""
        # A block at a time: the factors of thousands of means at hundreds of points would fill the memory.
        block = 1 + _BLOCK // (1 + self.sizes.size * self.points.size)
        starts = range(0, max(means.size, 1), block)
        logs = [self.log_factors(means[start : start + block]) @ self.weights for start in starts]
        # Much faster than scipy's.
        return np.asarray(np.logaddexp.reduce(np.concatenate(logs) + self.log_shares, axis=1))

    def log_factors(self, means: Array) -> Array:
        """Return by what, against each mean, each bet is multiplied at a cost at each of the points."""
        scaled = self.points / np.maximum(means, SMALLEST_BOUND)[:, None, None]
        sizes = self.sizes[:, None]
        with np.errstate(divide="ignore"):  # a bet of the whole capital is lost at a cost of 0
            logs: Array = np.log((1 - sizes) + sizes * scaled)
        return logs


@dataclass(frozen=True)
class Reference:
    """The log e-value of a reference against each possible expected cost, at the ends of intervals."""

    means: Array
    logs: Array

    @classmethod
    def of(cls, wager: Wager) -> Reference:
        """Return the curve of bets on 1 - cost in the reference; for the other direction, on the costs."""
        fine = np.linspace(0, 1, 2049)
        logs = wager.log_wealth(1 - fine)
        # Beyond e^8 the minimum is taken only where there is no evidence at all.
        steps = np.concatenate([np.arange(float(logs[0]), 8, _STEP), np.linspace(8, 40, 20)])
        means = np.unique(np.concatenate([[0.0, 1.0], np.interp(steps, logs, fine)]))
        return cls(shared(means), shared(wager.log_wealth(1 - means)))

    def ends(self, margin: float) -> Array:
        """Return the stream's expected cost at the upper end of each interval."""
        return np.clip(self.means[1:] + margin, 0.0, 1.0)

    def at(self, log: float) -> float:
        """Return about the smallest mean against which the log e-value is that large."""
        return float(self.means[min(int(np.searchsorted(self.logs, log)), self.means.size - 1)])


def joint_log_evidence(
    reference: Reference, stream: Wager, margin: float = 0.0, *, enough: float = -math.inf
) -> float:
    """Return the log e-value against "the stream costs at most a margin more than the reference".

    **Guarantee**: under the hypothesis the expected e-value is at most 1 over the draw of reference and
    stream, at any stopping time; and with probability at most alpha it ever reaches 1/alpha. About 1 %
    below the smallest product where the reference's e-value is below e^8 there, and further below elsewhere.
    **Assumes**: independent costs in the reference, with one expected value and a number fixed in advance;
    costs in the stream whose expected value, given all that came before, is at most that value plus the
    margin. A result below `enough` may be too high, but is below it.
    """
    ends = reference.ends(margin)
    best, _ = _smallest_products(reference, lambda which, _: stream.log_wealth(ends[which]), 1, enough)
    return float(best[0])


def joint_log_evidence_many(
    reference: Reference,
    log_wealth: Callable[[Array, Indices], Array],
    streams: int,
    margin: float = 0.0,
    *,
    at_once: int = 1000,
    exactly: Callable[[Array, Indices], Array] | None = None,
) -> Array:
    """Return `joint_log_evidence` for many streams, for so many `at_once`.

    `log_wealth` returns the log wealth of some streams, each against a mean of its own. Where the search
    ended, `exactly` does the same to the last digit.
    """
    ends = reference.ends(margin)
    found = np.empty(streams)
    # One part after the other: the means of all of them would fill the memory.
    for first in range(0, streams, at_once):
        part = np.arange(first, min(first + at_once, streams))

        def of_part(which: Indices, owners: Indices, part: Indices = part) -> Array:
            return log_wealth(ends[which], part[owners])

        found[part], where = _smallest_products(reference, of_part, part.size)
        if exactly is not None:
            found[part] = reference.logs[where] + exactly(ends[where], part)
    return found


def _smallest_products(
    reference: Reference,
    log_wealth: Callable[[Indices, Indices], Array],
    streams: int,
    enough: float = -math.inf,
) -> tuple[Array, Indices]:
    """Return the log of each stream's smallest product, and in which interval it is.

    Intervals are searched in groups, and what is smaller than the best so far, in smaller groups.
    """
    below = reference.logs[:-1]
    best, where = np.full(streams, np.inf), np.zeros(streams, dtype=np.intp)
    owners = np.arange(streams)
    firsts, ends = np.zeros(streams, dtype=np.intp), np.full(streams, below.size)
    for stride in _STRIDES:
        firsts, lasts, owners = _cut(firsts, ends, stride, owners)
        wealth = log_wealth(lasts, owners)
        products = below[lasts] + wealth
        before = best.copy()
        np.minimum.at(best, owners, products)
        found = (products == best[owners]) & (products < before[owners])
        where[owners[found]] = lasts[found]
        # No interval of a group is below its first e-value times its last wealth.
        wanted = (below[firsts] + wealth < best[owners]) & (best[owners] >= enough)
        firsts, ends, owners = firsts[wanted], lasts[wanted] + 1, owners[wanted]
        if not owners.size:
            break
    return best, where


def _cut(firsts: Indices, ends: Indices, stride: int, owners: Indices) -> tuple[Indices, Indices, Indices]:
    """Cut ranges into pieces: return first and last of each piece, and to whom it belongs."""
    pieces = -((firsts - ends) // stride)
    starts = np.cumsum(pieces) - pieces
    within = np.arange(pieces.sum()) - np.repeat(starts, pieces)
    firsts = np.repeat(firsts, pieces) + stride * within
    return firsts, np.minimum(firsts + stride, np.repeat(ends, pieces)) - 1, np.repeat(owners, pieces)


def joint_difference_lower(reference: Reference, stream: Wager, alpha: float) -> float:
    """Return a lower limit on how much the stream's expected cost exceeds the reference's.

    **Guarantee**: with probability at least 1 - alpha over the draw of reference and stream, at no time above
    the difference. **Assumes**: as `joint_log_evidence`, with one expected cost in the stream.
    """
    target = math.log(1 / alpha)

    def is_refuted(margin: float) -> bool:
        return joint_log_evidence(reference, stream, margin, enough=target) >= target

    ends = (0.0, 1.0) if is_refuted(0.0) else (-1.0, 0.0)
    return float(halve(*ends, is_refuted, 12)[0])


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
    return shared(np.maximum(logs, -1e300))  # not minus infinity: no cost at a point must add nothing


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
    on pairs of worlds that no published number is about: at 1,000 costs, a half kept saves 18 % of the trials
    against the limits, nothing kept -5 %; at 50, nothing kept saves 69 %, a fifth 67 %.
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
    rising = [JointSide(high, stream, True, -each, levels[1]) for each in (0.0, margin) if each is not None]
    return [JointSide(low, stream, False, 0.0, levels[0]), *rising]
