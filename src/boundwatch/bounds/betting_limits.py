"""Betting: limits and p-values for the mean of bounded costs that profit from a small variance.

Somebody bets that the mean exceeds m: a bet of size b in [0, 1] multiplies the capital by 1 - b + b x/m at
every cost x. If the mean is at most m, the expected factor is at most 1, so the product over n costs is at
least 1/alpha with probability at most alpha (Markov). Nobody knows the best b in advance; the capital is
spread over a few bets, fixed before the costs are seen, and the wealth is their weighted sum. It does not
depend on the order of the costs, and falls with m, so the limits are roots.

See Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (2024).

Limits at one level need no bets for other levels: `tuned_lower` and `tuned_upper` bet what is best at this
level and against each mean by itself, for a few variances. With 10 to 50 costs that is 5 to 17 % narrower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from boundwatch.bounds.bets import Array, grid_points, log_sums, split_on_grid
from boundwatch.bounds.halving import from_above, halve

_FAR = 600.0
_SMALLEST_MEAN = 1e-300
_HALVINGS = 45
_LONGEST = 100_000  # costs of one dataset that are looked at one by one


def fixed_bets(n: int) -> tuple[Array, Array]:
    """Return the sizes of the bets and the logarithms of their shares for n costs.

    Against costs of variance s², the smallest shift that n costs can show asks for a bet of about
    m sqrt(2 ln(1/alpha) / n s²). At the largest variance, m(1 - m), that is 0.7/√n for m near 0.05 and 7/√n
    for m near 0.9 (the side of low costs bets on 1 - cost): half-octave steps cover this range. Costs that
    hardly vary ask for more: octaves up to the whole capital cover them, at half a share each.

    >>> fixed_bets(10_000)[0].round(4)
    array([0.007 , 0.0099, 0.014 , 0.0198, 0.028 , 0.0396, 0.056 , 0.0792, 0.125 , 0.25  , 0.5   , 1.    ])
    """
    near = np.unique(np.minimum(0.7 / np.sqrt(float(n)) * 2.0 ** (np.arange(8) / 2), 1.0))
    large = 2.0 ** np.arange(-4, 1)
    large = large[large > 1.4 * near[-1]]
    shares = np.concatenate([np.ones(near.size), np.full(large.size, 0.5)])
    return np.concatenate([near, large]), np.log(shares / shares.sum())


def betting_log_wealth(costs: ArrayLike, null_mean: float | Array) -> Array:
    """Return the logarithm of the capital after betting that the mean exceeds `null_mean`.

    The last axis of `costs` runs over the episodes of one dataset; `null_mean` is the largest mean that the
    null hypothesis allows, for all datasets or for each.

    >>> float(betting_log_wealth([0.6, 0.5, 0.7, 0.6, 0.5, 0.6], 0.2).round(3))
    5.28
    """
    rows, counts, shape = _rows(costs, None)
    null = np.broadcast_to(np.asarray(null_mean, dtype=np.float64), shape).ravel()
    bets, log_shares = fixed_bets(round(float(counts[0].sum())))
    # Against a larger mean there is never more to win, and no quotient overflows.
    scaled = rows / np.maximum(null, _SMALLEST_MEAN)[:, None]
    logs = np.stack([_log_capital(scaled, counts, b)[0] for b in bets], axis=-1)
    # Any cost at all refutes a mean of 0.
    certain = np.where(_weighed(rows, counts) > 0, np.inf, 0.0)
    return np.where(null > 0, logsumexp(logs + log_shares, axis=-1), certain).reshape(shape)


def betting_p_value(costs: ArrayLike, null_mean: float | Array) -> Array:
    """Return min(1, 1/wealth), a p-value of "the mean is at most `null_mean`".

    **Guarantee**: under the null it is at most alpha with probability at most alpha, for every alpha.
    **Assumes**: i.i.d. costs in [0, 1], n fixed in advance.

    >>> float(betting_p_value([0.6, 0.5, 0.7, 0.6, 0.5, 0.6], 0.2).round(4))
    0.0051
    """
    return np.exp(-np.maximum(betting_log_wealth(costs, null_mean), 0.0))


def betting_lower(costs: ArrayLike, delta: float, weights: ArrayLike | None = None) -> Array:
    """Return the largest m that the wealth refutes, a lower limit on the mean.

    **Guarantee**: with probability at least 1 - delta over the draw of the costs, at most the expected cost;
    rounded outward. **Assumes**: i.i.d. costs in [0, 1], n fixed in advance.

    `weights` say how many times each cost of the last axis occurs, for all datasets or for each (whose sums
    must then be the same); left out, once.

    >>> [float(of([0.5, 0.6, 0.7], 0.05, [2, 3, 1]).round(4)) for of in (betting_lower, betting_upper)]
    [0.3028, 0.7852]
    """
    rows, counts, shape = _rows(costs, weights)
    limits = np.zeros(len(rows))
    # Below, 0 is as good a limit and cannot overflow.
    positive = _weighed(rows, counts) > 1e-100 * counts.sum(axis=1)
    if positive.any():
        limits[positive] = _largest_refuted_mean(rows[positive], counts[positive], delta)
    return limits.reshape(shape)


def betting_upper(costs: ArrayLike, delta: float, weights: ArrayLike | None = None) -> Array:
    """Return the smallest m that betting on low costs refutes; see `betting_lower`."""
    return from_above(betting_lower(1 - np.asarray(costs, dtype=np.float64), delta, weights))


def tuned_lower(costs: ArrayLike, delta: float, weights: ArrayLike | None = None) -> Array:
    """Return the largest m that bets for this level refute, a lower limit on the mean.

    Against m, the bet for costs of variance r m(1 - m) is sqrt(2 ln(1/delta) m / ((1 - m) n r)). The capital
    is spread over r = 1/2, 1/8, 1/32, ... until the bet is the whole capital; each has half the share of the
    one before. Every factor 1 - b + b x/m falls with m, b included, so the limit is a root here, too.

    **Guarantee**: with probability at least 1 - delta over the draw of the costs, at most the expected cost.
    **Assumes**: i.i.d. costs in [0, 1], n fixed in advance.

    >>> [float(of([0.6, 0.5, 0.7, 0.6, 0.5, 0.6], 0.05).round(4)) for of in (tuned_lower, tuned_upper)]
    [0.3516, 0.76]
    """
    rows, counts, shape = _rows(costs, weights)
    n = counts.sum(axis=1)
    target, steps = np.log(1 / delta), int(np.ceil(np.log2(n[0]) / 2)) + 2
    shares = 2.0 ** -np.minimum(np.arange(steps) + 1.0, steps - 1)

    def is_refuted(mean: Array) -> Array:
        first = 2 * np.sqrt(target * mean / ((1 - mean) * n))
        scaled = rows / np.maximum(mean, _SMALLEST_MEAN)[:, None]
        bets = [np.minimum(first * 2.0**k, 1.0)[:, None] for k in range(steps)]
        logs = np.stack([_log_capital(scaled, counts, bet)[0] for bet in bets], axis=1)
        refuted = log_sums(np.maximum(logs, -_FAR) + np.log(shares)) >= target  # where all is lost, too
        return np.asarray(refuted & (mean > _SMALLEST_MEAN))

    low, _ = halve(np.zeros(len(rows)), _weighed(rows, counts) / n, is_refuted, _HALVINGS)
    return np.asarray(low * (1 - 1e-12)).reshape(shape)


def tuned_upper(costs: ArrayLike, delta: float, weights: ArrayLike | None = None) -> Array:
    """Return the smallest m that bets on low costs refute at this level; see `tuned_lower`."""
    return from_above(tuned_lower(1 - np.asarray(costs, dtype=np.float64), delta, weights))


def _rows(costs: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array, tuple[int, ...]]:
    """Return one row of costs per dataset, how many there are of each, and the shape of the datasets.

    Very long datasets are put on a grid that keeps their mean, which can only lower a wealth.
    """
    costs = np.asarray(costs, dtype=np.float64)
    rows = costs.reshape(-1, costs.shape[-1])
    if weights is None and costs.shape[-1] > _LONGEST:
        counts = np.stack([split_on_grid(row) for row in rows])
        return np.broadcast_to(grid_points(), counts.shape), counts, costs.shape[:-1]
    counts = np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)
    return rows, np.broadcast_to(counts, costs.shape).reshape(rows.shape), costs.shape[:-1]


def _weighed(values: Array, weights: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", values, weights))


def _log_capital(scaled: Array, weights: Array, bet: float | Array) -> tuple[Array, Array]:
    """Return the log of a bet's capital for each row of costs in units of the mean, and the factors."""
    factors = (1 - bet) + bet * scaled
    with np.errstate(divide="ignore"):  # a bet of 1 loses everything at a cost of 0
        logs = np.log(factors)
    logs[weights == 0] = 0.0
    return _weighed(logs, weights), factors


def _largest_refuted_mean(costs: Array, weights: Array, delta: float) -> Array:
    """Solve log wealth(m) = ln(1/delta) for each row by Newton's method in v = ln(1/m).

    Log wealth is convex and increasing in v: the first step from below may overshoot, every later one
    approaches from the side where m is refuted, and that is the side to stop on.
    """
    n = weights.sum(axis=1)
    bets, log_shares = fixed_bets(round(float(n[0])))
    target = np.log(1 / delta)
    v = -np.log(_weighed(costs, weights) / n)
    moving = np.arange(len(v))
    for _ in range(60):
        scaled, counts = costs[moving] * np.exp(v[moving])[:, None], weights[moving]
        logs, gains = np.empty((2, len(moving), len(bets)))
        for k, b in enumerate(bets):
            logs[:, k], factors = _log_capital(scaled, counts, b)
            # A bet of 1 that has lost everything has no share left, whatever its gain.
            lost = np.divide(1 - b, factors, out=np.zeros_like(factors), where=factors > 0)
            gains[:, k] = _weighed(1 - lost, counts)
        logs += log_shares
        wealth = logsumexp(logs, axis=-1)
        slope = _weighed(np.exp(logs - wealth[:, None]), gains)
        # From a flat start a step may leave the floats; a mean that far down is as good as 0.
        moved = np.minimum(v[moving] - (wealth - target) / slope, _FAR)
        settled = np.abs(moved - v[moving]) < 1e-13
        v[moving] = moved
        moving = moving[~settled]
        if moving.size == 0:
            break
    return np.asarray(np.where(v == _FAR, 0.0, np.exp(-v) * (1 - 1e-12)))
