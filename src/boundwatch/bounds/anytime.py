"""Limits on a failure probability that hold at all times at once: look after every trial, stop by any rule.

Somebody bets that the failure probability exceeds p. A bet of size s in units of the standard deviation of
one trial multiplies the capital by 1 + s (x - p)/sqrt(p (1 - p)) at a cost x of 0 or 1; no bet risks more
than 95 % of its capital. If the failure probability is at most p, the expected factor is at most 1 whatever
came before, so by Ville's inequality the capital ever reaches 1/delta with probability at most delta. The
factor never rises with p, so the largest p that is refuted is a root.

The capital is shared out before the first trial. After n trials the best s is about 3.3/sqrt(n): shares are
equal per octave for s from 1.2 to 0.1, which serves 10 to 1,000 trials, and fall slowly below that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from boundwatch.bounds.bets import Array, log_sums
from boundwatch.bounds.halving import from_above, halve

_SIZES = np.geomspace(0.002, 1.2, 40)
_SHARES = np.where(_SIZES >= 0.1, 1.0, 1 / (1 + np.log(np.maximum(0.1 / _SIZES, 1.0))) ** 2)
_MOST = 0.95  # a bet of everything is best while nothing failed, and lost at the first failure
_LOG_SHARES = np.log(_SHARES / _SHARES.sum())
# Log odds between which the root is looked for: beyond them a float's 1 - p is 1, or p is.
_LOWEST, _HIGHEST = -60.0, 40.0


def anytime_log_wealth(failures: ArrayLike, n: ArrayLike, log_odds: ArrayLike) -> Array:
    """Return the log of the capital after betting that the failure probability exceeds that of `log_odds`."""
    k, trials, odds = (np.asarray(value, dtype=np.float64)[..., None] for value in (failures, n, log_odds))
    root = np.exp(odds / 2)
    bets = np.minimum(_SIZES * root, _MOST)
    return log_sums(k * np.log1p(bets / root**2) + (trials - k) * np.log1p(-bets) + _LOG_SHARES)


def anytime_lower(failures: ArrayLike, n: ArrayLike, delta: float) -> Array:
    """Return the largest failure probability that the wealth refutes, a lower limit for all times at once.

    **Guarantee**: with probability at least 1 - delta over the draw of the costs, at no n above the failure
    probability; rounded outward. **Assumes**: costs of 0 and 1, each a failure with the same probability
    given all earlier ones.

    >>> float(anytime_lower(7, 10, 0.05).round(4)), float(anytime_upper(0, 10, 0.05).round(4))
    (0.2572, 0.355)
    """
    k, trials = np.broadcast_arrays(np.asarray(failures, dtype=np.float64), np.asarray(n, dtype=np.float64))
    first, last, target = np.full(k.shape, _LOWEST), np.full(k.shape, _HIGHEST), -np.log(delta)
    low, _ = halve(first, last, lambda odds: anytime_log_wealth(k, trials, odds) >= target, 60)
    return np.where(k == 0, 0.0, special.expit(low) * (1 - 1e-13))


def anytime_upper(failures: ArrayLike, n: ArrayLike, delta: float) -> Array:
    """Return the same from above."""
    k, trials = np.asarray(failures, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return from_above(anytime_lower(trials - k, trials, delta))
