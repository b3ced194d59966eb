"""Two fixed numbers of trials, all failing or not: does the second rate exceed the first by a margin or more.

The p-value of "p1 - p0 <= margin" is the probability, at the worst pair of rates, of what was seen or of
anything that ranks as more extreme: by how often a rate drawn from the exact lower limits of the second
series lies within the margin of one drawn from the exact upper limits of the first, each at a random level.
At a margin of 0 that ranks as Fisher's exact p-value does, so the result is Boschloo's test.

The worst pair lies on the line p1 = p0 + margin. On it the probability is a polynomial: draw a bit per
trial that is 1 with probability s. With margin m >= 0 a trial of the first series fails with probability
1 - m if its bit is 1, else never; one of the second fails surely if its bit is 1, else with probability m.
So p0 = (1 - m) s and p1 = m + (1 - m) s, and given the sum S of all bits nothing depends on s. The chances
given S are Bernstein coefficients, and the largest of them bounds the probability for every s at once.

Where such tables would be too large, which the numbers of trials alone decide, Fisher's exact p-value is
taken at a margin of 0; at others outcomes are ranked by the likelihood ratio W, the smallest over rates c of
n0 kl(k0/n0, c) + n1 kl(k1/n1, c + margin), where a series that agrees with the hypothesis at c counts 0. W
grows with k1 and falls with k0, so an outcome and all that rank as high are k1 >= needed(k0), whose chance
grows with p1 and falls with p0: finitely many intervals of p0 bound it for all rates. Only rates p0 within
exact limits are looked at; how often those fail, `BETA`, is added (Berger, Boos 1994).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from boundwatch.bounds import held_out, two_sample
from boundwatch.bounds.bets import Array, Counts, shared
from boundwatch.bounds.halving import halve

_NODES = 256
MOST_CELLS = 1_100_000  # of the largest table; more would take longer than a second
_GRID = 2048  # limits on a difference are multiples of one over this
_STEPS = range(1 - _GRID, _GRID)
_SOME = 65  # rates at which a chance is computed before it is bounded for all
BETA = 1e-9
"""What is added to every p-value, so that none is smaller."""
_STEP = 0.015  # the width of intervals in standard errors of the difference: less than a point of power
_ROWS = 200.0  # rows of k0 per standard deviation


def is_computable(n0: int, n1: int) -> bool:
    """Return whether the two numbers of trials are small enough for the whole table of outcomes."""
    return (max(n0, n1) + 1) ** 2 <= MOST_CELLS


@lru_cache(maxsize=4096)
def rate_difference_p_value(n0: int, k0: int, n1: int, k1: int, margin: float = 0.0) -> float:
    """Return a p-value of "p1 - p0 <= margin" from k0 failures in n0 trials and k1 in n1.

    **Guarantee**: under the hypothesis it is at most alpha with probability at most alpha, for every alpha
    and every pair of rates, over the draw of both series. **Assumes**: independent trials, and numbers of
    trials fixed in advance.

    >>> round(rate_difference_p_value(50, 4, 10, 5), 5), round(rate_difference_lower(50, 4, 10, 5, 0.05), 3)
    (0.0017, 0.15)
    """
    if is_computable(n0, n1):
        return _chance(n0, n1, _as_extreme(n0, k0, n1, k1, margin), margin)
    if margin == 0:
        return _fisher(n0, k0, n1, k1)
    rank = float(likelihood_ratio(n0, k0, n1, k1, margin))
    return Alarms.ranked(n0, k0, n1, margin, rank).upper(margin) if rank > 0 else 1.0


def _fisher(n0: int, k0: int, n1: int, k1: int) -> float:
    """Return the chance of k1 failures or more in the second series, given all failures in both."""
    failures = k0 + k1
    k = np.arange(k1, min(n1, failures) + 1)
    total = special.logsumexp(two_sample.log_hypergeometric(n1, k, n0, failures))
    return min(float(np.exp(total)) * (1 + 1e-6), 1.0)  # logarithms of so large numbers are that far off


@lru_cache(maxsize=4096)
def rate_difference_lower(n0: int, k0: int, n1: int, k1: int, alpha: float) -> float:
    """Return a lower limit on p1 - p0, the largest margin at which what was seen is that unlikely.

    What counts as more extreme is ranked by an approximate limit, whatever the margin: the difference less
    the root of the squared distances to the exact limits of the two rates. Its chance then grows with the
    margin, and the largest margin at which it is at most alpha is an exact limit (Buehler's).

    **Guarantee**: with probability at least 1 - alpha, over the draw of both series, at most p1 - p0.
    **Assumes**: as `rate_difference_p_value`.
    """
    if not is_computable(n0, n1):
        return _large_lower(n0, k0, n1, k1, alpha)
    rates = np.arange(n0 + 1)[:, None] / n0, np.arange(n1 + 1) / n1
    above = held_out.clopper_pearson_upper(np.arange(n0 + 1), n0, alpha)[:, None] - rates[0]
    below = rates[1] - held_out.clopper_pearson_lower(np.arange(n1 + 1), n1, alpha)
    limits = rates[1] - rates[0] - np.sqrt(above**2 + below**2)
    needed = np.minimum.accumulate(_fewest(limits >= limits[k0, k1] - 1e-12)[::-1])[::-1]
    # The chance is quick to compute at some rates, and takes long to bound for all: only near the end.
    steps = bisect_left(_STEPS, True, key=lambda i: _chance_at_some(n0, n1, needed, i / _GRID) > alpha)
    return _largest_within(lambda i: _chance(n0, n1, needed, i / _GRID) <= alpha, steps - _GRID) / _GRID


def _large_lower(n0: int, k0: int, n1: int, k1: int, alpha: float) -> float:
    """Return the same limit for very many trials, with outcomes ranked by the likelihood ratio's limit.

    That is the largest margin at which it reaches a rank; the ratio falls with the margin.
    """
    rank = typical_rank(alpha)
    seen = bisect_left(_STEPS, True, key=lambda i: bool(likelihood_ratio(n0, k0, n1, k1, i / _GRID) < rank))
    if seen == 0:
        return -1.0
    alarms = Alarms.ranked(n0, k0, n1, (seen - _GRID) / _GRID, rank)
    steps = bisect_left(_STEPS, True, key=lambda i: alarms.upper(i / _GRID, at_some=True) > alpha)
    return _largest_within(lambda i: alarms.upper(i / _GRID) <= alpha, steps - _GRID) / _GRID


def _largest_within(is_within: Callable[[int], bool], most: int) -> int:
    """Return the largest margin, in steps of the grid and at most `most`, that is within; at least -1."""
    beyond, step = most + 1, 1
    while most > -_GRID and not is_within(most):
        beyond, most, step = most, max(most - step, -_GRID), 2 * step
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if is_within(middle) else (most, middle)
    return most


def fewest_that_differ(n0: int, k0: int, n1: int, alpha: float) -> int:
    """Return the fewest k1 with a p-value of at most alpha at a margin of 0; n1 + 1 if none has."""
    # More failures are never less evidence, and Fisher's p-value, which takes no time, is rarely much larger.
    k1 = bisect_left(range(n1 + 1), True, key=lambda k: _fisher(n0, k0, n1, k) <= alpha)
    while k1 <= n1 and not _differs(n0, k0, n1, k1, alpha):
        k1 += 1
    while k1 > 0 and _differs(n0, k0, n1, k1 - 1, alpha):
        k1 -= 1
    return k1


def _differs(n0: int, k0: int, n1: int, k1: int, alpha: float) -> bool:
    """Return whether the p-value is at most alpha; if it is above at some rates, that is seen at once."""
    if is_computable(n0, n1) and _chance_at_some(n0, n1, _as_extreme(n0, k0, n1, k1, 0.0), 0.0) > alpha:
        return False
    return rate_difference_p_value(n0, k0, n1, k1) <= alpha


@lru_cache(maxsize=4096)
def rate_difference_region(n0: int, n1: int, alpha: float, margin: float = 0.0) -> Counts:
    """Return, for each k0 = 0, …, n0, the fewest k1 with a p-value of at most alpha; n1 + 1 if none has."""
    # p-values grow with the rank, so the region is all ranks up to one.
    ranks = _ranks(n0, n1, margin)
    levels = np.unique(ranks)
    low, high = -1, levels.size - 1  # the last is everything, whose chance is 1
    likely = np.searchsorted(levels, [2 * alpha, alpha]).tolist()
    while high - low > 1:
        middle = likely.pop() if likely and low < likely[-1] < high else (low + high) // 2
        needed = _fewest(ranks <= levels[middle] * (1 + 1e-9))
        within = _chance(n0, n1, np.minimum.accumulate(needed[::-1])[::-1], margin) <= alpha
        low, high = (middle, high) if within else (low, middle)
    return shared(_fewest(ranks <= levels[low] * (1 + 1e-9)) if low >= 0 else np.full(n0 + 1, n1 + 1))


def _fewest(extreme: NDArray[np.bool_]) -> Counts:
    return np.asarray(np.where(extreme.any(axis=1), extreme.argmax(axis=1), extreme.shape[1]))


def _as_extreme(n0: int, k0: int, n1: int, k1: int, margin: float) -> Counts:
    """Return, for each number of failures in the first series, the fewest in the second as extreme."""
    ranks = _ranks(n0, n1, margin)
    needed = _fewest(ranks <= ranks[k0, k1] * (1 + 1e-9))
    # More failures in the first series must not make fewer in the second suffice: the worst pair would then
    # not lie on the line. What that adds to the region only raises the p-value.
    return np.minimum.accumulate(needed[::-1])[::-1]


@lru_cache(maxsize=64)
def _ranks(n0: int, n1: int, margin: float) -> Array:
    """Return P[second <= first + margin] for rates drawn as described above, k0 in rows and k1 in columns."""
    if 1 - abs(margin) == 1:
        return _fisher_table(n0, n1)
    angles = (np.arange(_NODES) + 0.5) * np.pi / _NODES
    rates, steps = np.sin(angles / 2) ** 2, np.sin(angles)
    k0, k1 = np.arange(n0)[:, None], np.arange(1, n1 + 1)
    logs = special.xlogy(k0, rates) + special.xlog1py(n0 - k0 - 1, -rates) + np.log(steps)
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    moved = np.clip(rates + margin, 0.0, 1.0)[:, None]
    within = _tails(n1, moved)
    within[:, 0] = 1.0  # without a failure the lower limit is 0
    within[moved[:, 0] <= 0, 0] = 0.0 if margin < 0 else 1.0
    ranks = np.ones((n0 + 1, n1 + 1))  # if all failed in the first series, the upper limit is 1
    ranks[:-1] = (density @ within) / density.sum(axis=1, keepdims=True)
    if margin < 0:
        ranks[-1, 1:] = special.betainc(k1, n1 - k1 + 1.0, 1 + margin)
    return shared(ranks)


def _fisher_table(n0: int, n1: int) -> Array:
    """Return Fisher's p-value for every pair of outcomes: all sums along lines of k0 + k1 at once."""
    # A row that is padded with as many zeros as there are rows is moved by its number when cut off anew.
    moved = np.zeros((n0 + 1, n0 + n1 + 2))
    moved[:, : n1 + 1] = _orders(n0, n1)
    by_sum = np.cumsum(moved.ravel()[: -(n0 + 1)].reshape(n0 + 1, n0 + n1 + 1), axis=0)
    moved.ravel()[: -(n0 + 1)] = by_sum.ravel()
    return shared(moved[:, : n1 + 1])


def _chance(n0: int, n1: int, needed: Counts, margin: float) -> float:
    """Bound, for all rates with p1 = p0 + margin, the chance of so many failures in the second series."""
    if margin >= 1 or margin <= -1:
        return 1.0
    ones0, ones1 = np.arange(n0 + 1)[:, None], np.arange(n1 + 1)
    if margin == 0:  # then ones are failures
        chances: Array = np.where(ones1 >= needed[:, None], _orders(n0, n1), 0.0)
    else:
        (sure0, floor0), (sure1, floor1) = _on_line(margin)
        second = _failures_given_ones(n1, sure1, floor1)
        tails = np.zeros((n1 + 1, n1 + 2))
        tails[:, :-1] = np.cumsum(second[:, ::-1], axis=1)[:, ::-1]
        # Rows: ones in the first series; columns: ones in the second.
        chances = _failures_given_ones(n0, sure0, floor0) @ tails[:, needed].T * _orders(n0, n1)
    coefficients = np.bincount((ones0 + ones1).ravel(), weights=chances.ravel())
    return min(two_sample.bernstein_upper(coefficients, max(2 * (n0 + n1), 1000)), 1.0)


def _on_line(margin: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return with which chances trials of both series fail if their bit is 1, and if it is 0."""
    rest = 1 - abs(margin)
    return ((rest, 0.0), (1.0, margin)) if margin >= 0 else ((1.0, -margin), (rest, 0.0))


@lru_cache(maxsize=4)  # up to 9 MB each
def _orders(n0: int, n1: int) -> Array:
    """Return how likely it is, given all ones, that so many are in the first series (rows) and the second."""
    ones0, ones1 = np.arange(n0 + 1)[:, None], np.arange(n1 + 1)
    return shared(np.exp(two_sample.log_hypergeometric(n0, ones0, n1, ones0 + ones1)))


def _chance_at_some(n0: int, n1: int, needed: Counts, margin: float) -> float:
    """Return the largest of the chances that `_chance` bounds at some rates, less what rounding may add."""
    bits = np.sin(np.linspace(0, np.pi / 2, _SOME)[:, None]) ** 2
    first, second = (floor + (sure - floor) * bits for sure, floor in _on_line(margin))
    tails = np.append(_tails(n1, second), np.zeros((_SOME, 1)), axis=1)[:, needed]
    return float((two_sample.chances(n0, first) * tails).sum(axis=1).max()) * (1 - 1e-9)


def _tails(n: int, rates: Array) -> Array:
    """Return the chances of k failures or more; the smallest are added first, and so keep their digits."""
    return np.cumsum(two_sample.chances(n, rates)[:, ::-1], axis=1)[:, ::-1]


def _failures_given_ones(n: int, sure: float, floor: float) -> Array:
    """Return the distribution of the failures among n trials (columns), for each number of ones (rows).

    A trial with a one fails with probability `sure`, another with `floor`: `sure` is 1, or `floor` is 0.
    """
    ones, failures = np.arange(n + 1)[:, None], np.arange(n + 1)
    if sure == 1:  # all ones fail, and some of the others
        others, hits, chance = n - ones, failures - ones, floor
    else:
        others, hits, chance = ones, failures, sure
    factorials = special.gammaln(np.arange(1, n + 2))
    misses = others - hits
    inside = (hits >= 0) & (misses >= 0)
    hits, misses = np.where(inside, hits, 0), np.where(inside, misses, 0)
    logs = factorials[others] - factorials[hits] - factorials[misses]
    # Not hits * log(chance): a margin may be so small that 1 less it is 1, and then a chance is 0.
    logs += special.xlogy(failures, chance)[hits] + special.xlog1py(failures, -chance)[misses]
    return np.asarray(np.exp(np.where(inside, logs, -np.inf)))


def likelihood_ratio(n0: int, k0: ArrayLike, n1: int, k1: ArrayLike, margin: float) -> Array:
    """Return W: how far the outcomes are from every pair of rates with p1 <= p0 + margin."""
    first, second = np.broadcast_arrays(np.asarray(k0, float) / n0, np.asarray(k1, float) / n1)
    low = np.maximum(first, -margin)
    high = np.clip(second - margin, low, max(min(1.0, 1 - margin), 0.0))

    def falls(c: Array) -> NDArray[np.bool_]:  # W's slope in c grows
        q = c + margin
        return np.asarray(n0 * (c - first) * q * (1 - q) < n1 * (second - q) * c * (1 - c))

    low, high = halve(low, high, falls, 50)
    c = (low + high) / 2
    pairs = (n0, first, np.maximum(c, first)), (n1, second, np.minimum(np.clip(c + margin, 0.0, 1.0), second))
    found = sum(n * (special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)) for n, p, q in pairs)
    return np.asarray(np.where(second - margin > first, found, 0.0))


def typical_rank(level: float) -> float:
    """Return the W that about this share of outcomes reach at the edge of the hypothesis."""
    return max(float(special.ndtri(1 - level)), 0.1) ** 2 / 2


@dataclass(frozen=True)
class Alarms:
    """Outcomes k1 >= needed(k0) of some rank, and the rates p0 that the first series leaves possible."""

    n0: int
    n1: int
    rates: tuple[float, float]
    rows: Counts
    """The first k0 of each block of rows, and the end; what is outside counts as an alarm."""
    needed: Counts
    """The fewest k1 in each block."""

    @classmethod
    def ranked(cls, n0: int, k0: int, n1: int, margin: float, rank: float) -> Alarms:
        """Return the outcomes with W of at least `rank`, after k0 failures in the first series."""
        low = float(held_out.clopper_pearson_lower(k0, n0, BETA / 2))
        high = float(held_out.clopper_pearson_upper(k0, n0, BETA / 2))
        center = min(max(0.5, low), high)
        spread = float(np.sqrt(n0 * center * (1 - center)))
        first, end = max(int(n0 * low - 7 * spread - 20), 0), min(int(n0 * high + 7 * spread + 20), n0) + 1
        rows = np.arange(first, end, 1 + int(spread / _ROWS))
        none, enough = np.full(rows.size, -1), np.full(rows.size, n1 + 1)
        for _ in range(n1.bit_length() + 1):
            middle = np.clip((none + enough) // 2, 0, n1)
            reached = likelihood_ratio(n0, rows, n1, middle, margin) >= rank * (1 - 1e-9)
            none, enough = np.where(reached, none, middle), np.where(reached, middle, enough)
        needed = np.minimum.accumulate(enough[::-1])[::-1]  # whatever is rounded
        return cls(n0, n1, (low, high), np.append(rows, end), needed)

    def chances(self, p0: Array, p1: Array) -> Array:
        """Return a bound on the chance of an alarm at each of some pairs of rates."""
        below = special.bdtr(np.maximum(self.rows - 1.0, 0.0), self.n0, np.clip(p0, 0.0, 1.0)[:, None])
        below[:, self.rows == 0] = 0.0
        tails = special.bdtrc(np.maximum(self.needed - 1.0, 0.0), self.n1, np.clip(p1, 0.0, 1.0)[:, None])
        tails[:, self.needed == 0], tails[:, self.needed > self.n1] = 1.0, 0.0
        inside = (np.diff(below, axis=1) * tails).sum(axis=1)
        return np.asarray((inside + 1 - (below[:, -1] - below[:, 0])) * (1 + 1e-6))

    def upper(self, margin: float, *, at_some: bool = False) -> float:
        """Bound the chance of an alarm for all rates that are left, or some, with p1 <= p0 + margin."""
        low, high = max(self.rates[0], -margin), self.rates[1]
        if low > high:  # there is no such p1
            return BETA
        p0 = (low + high) / 2
        p1 = min(max(p0 + margin, 0.0), 1.0)
        ratio = p1 * (1 - p1) / self.n1 / (p0 * (1 - p0) / self.n0)
        first, last = np.arcsin(np.sqrt([low, high])).tolist()
        step = 20 * _STEP if at_some else _STEP
        parts = 1 + int(2 * (last - first) * np.sqrt(self.n0 / (1 + ratio)) / step)
        grid = np.sin(np.linspace(first, last, parts + 1)) ** 2
        starts = np.array_split(np.arange(parts), 1 + parts // 64)  # the memory
        chances = [self.chances(grid[i], grid[i + (not at_some)] + margin).max() for i in starts]
        return min(float(max(chances)) + BETA, 1.0)
