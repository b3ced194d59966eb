"""An e-value over the draw of a reference and of new costs together, for costs in [0, 1].

Let c be the reference's expected cost. Bets on low costs in the reference give an e-value e(c) against "its
expected cost is c or more"; bets on high costs in the stream give one, W(c), against "the stream's expected
costs are c or less". If the stream is not worse, both hypotheses are true at the true c, so e(c) W(c) has an
expected value of at most 1 over the joint draw, whenever you stop. Nobody knows the true c, but
the smallest product over all c is never larger. That is the evidence.

e(c) grows with c and W(c) falls, so on an interval from a to b no product is below e(a) W(b): the smallest
product is bounded, not searched on a grid. Where e(c) is below e^8, it grows by about 1 % on each interval,
so the bound is about 1 % below the smallest product there. Beyond, intervals are coarse and the bound loose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import SMALLEST_BOUND

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
_STEP = 0.01
_STRIDES = 64, 8, 1
_BLOCK = 2**17


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
        return _mixed(np.concatenate(logs), self.log_shares)

    def log_factors(self, means: Array) -> Array:
        """Return by what, against each mean, each bet is multiplied at a cost at each of the points."""
        scaled = self.points / np.maximum(means, SMALLEST_BOUND)[:, None, None]
        sizes = self.sizes[:, None]
        with np.errstate(divide="ignore"):  # a bet of the whole capital is lost at a cost of 0
            logs: Array = np.log((1 - sizes) + sizes * scaled)
        return logs


def _mixed(logs: Array, log_shares: Array) -> Array:
    """Return the log wealth of bets (columns) that were given shares of the capital."""
    return np.asarray(np.logaddexp.reduce(logs + log_shares, axis=1))  # much faster than scipy's


@dataclass(frozen=True)
class Reference:
    """The log e-value of a reference against each possible expected cost, at the ends of intervals.

    Make one with `of`. For the other direction place the bets on the costs themselves instead of on 1 - cost.
    """

    means: Array
    logs: Array

    @classmethod
    def of(cls, wager: Wager) -> Reference:
        """Return the curve of bets that are placed on 1 - cost, of the costs in the reference."""
        fine = np.linspace(0, 1, 2049)
        logs = wager.log_wealth(1 - fine)
        # Beyond e^8 the minimum is taken only where there is no evidence at all.
        steps = np.concatenate([np.arange(float(logs[0]), 8, _STEP), np.linspace(8, 40, 20)])
        means = np.unique(np.concatenate([[0.0, 1.0], np.interp(steps, logs, fine)]))
        logs = wager.log_wealth(1 - means)
        for shared in (means, logs):  # by threads, as detectors keep references
            shared.setflags(write=False)
        return cls(means, logs)

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

    `log_wealth` returns the log wealth at the end of an interval for a stream, for many such pairs. Intervals
    are searched in groups, and what is smaller than the best so far, in smaller groups.
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
    # The evidence falls with the margin that it is against: halve, and stay on the refuted side.
    target = math.log(1 / alpha)

    def is_refuted(margin: float) -> bool:
        return joint_log_evidence(reference, stream, margin, enough=target) >= target

    low, high = (0.0, 1.0) if is_refuted(0.0) else (-1.0, 0.0)
    for _ in range(12):
        middle = (low + high) / 2
        if is_refuted(middle):
            low = middle
        else:
            high = middle
    return low
