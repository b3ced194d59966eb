"""The bets behind every anytime-valid detector: which sizes, which shares, and their exact crossing rates.

A bet of size b against "the mean cost is at most U" multiplies its capital by 1 - b + b x/U at a cost x.
While that holds, an average of capitals with shares fixed in advance is a non-negative supermartingale that
starts at 1, and ever reaches 1/alpha with probability at most alpha (Ville). With costs of 0 and 1 that
probability is computed instead of bounded, so that a lower threshold keeps it. See ``docs/anytime.md``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets, log_sum
from boundwatch.bounds.halving import halve

Array = NDArray[np.float64]

HORIZON = 2000
# No exact threshold is below this power of 1/alpha, so a smaller wealth need not wait for its computation.
_LOWEST_POWER = 0.5


@dataclass(frozen=True)
class Mark:
    """Where the wealth of one side alarms: at 1/alpha, or at the exact threshold if costs are binary.

    The exact one takes a fifth of a second, so it is computed when a wealth first comes near it.
    """

    bound: float
    alpha: float
    binary: bool

    @cached_property
    def lowest(self) -> float:
        """A log wealth that is below the mark for sure, or the mark."""
        return (_LOWEST_POWER if self.binary else 1.0) * math.log(1 / self.alpha)

    @cached_property
    def threshold(self) -> float:
        """The wealth itself."""
        return exact_threshold(self.bound, self.alpha) if self.binary else 1 / self.alpha

    def reached(self, log_wealth: float) -> bool:
        """Return whether a wealth is an alarm."""
        return log_wealth >= self.lowest and log_wealth >= math.log(self.threshold)

    def p_value(self, best: float) -> float:
        """Return 1 over the largest e-value so far, or alpha once a threshold below 1/alpha is reached."""
        p_value = math.exp(-best) if best < 709.0 else sys.float_info.min
        return self.alpha if p_value > self.alpha and self.reached(best) else p_value


@lru_cache(maxsize=4096)  # two numbers an entry: room for every task of a large family, at several levels
def exact_threshold(bound: float, alpha: float) -> float:
    """Return the wealth at which to alarm on costs of 0 and 1: nearly the smallest that keeps the promise.

    **Guarantee**: a stream of independent costs with failure rates of at most `bound` ever reaches it with
    probability at most `alpha`. It is between 1/sqrt(alpha) and 1/alpha. Crossings in the first 2,000
    episodes are summed exactly; later ones are bounded by Ville's inequality from what is left then.

    Examples
    --------
    >>> round(exact_threshold(0.2, 0.04), 1)
    15.1
    """
    if bound >= 1:  # nothing can exceed it
        return 1 / alpha
    bets = Bets.for_costs(binary=True)
    most = math.log(1 / alpha)

    def is_low(log: float) -> bool:  # the crossing probability falls with the threshold, in steps
        return crossing_probability(bets, bound, log) > alpha * (1 - 1e-9)

    return math.exp(halve(_LOWEST_POWER * most, most, is_low, 9)[1])


def crossing_probability(bets: Bets, bound: float, log_threshold: float) -> float:
    """Bound the probability that failures at rate `bound` ever carry the wealth that far."""
    needed = alarm_counts(bets, bound, log_threshold, HORIZON)
    alarms, counts, alive = alarm_distribution(needed, bound)
    zero, one = bets.log_factors(bound)
    left = math.fsum(
        p * math.exp(log_sum(np.log(bets.shares) + (HORIZON - k) * zero + k * one) - log_threshold)
        for k, p in zip(counts.tolist(), alive.tolist(), strict=True)
        if p > 0
    )
    return float(alarms.sum()) + left


def alarm_counts(bets: Bets, bound: float, log_threshold: float, horizon: int) -> NDArray[np.int64]:
    """Return, for n = 0, 1, …, horizon, the fewest failures among n episodes that alarm (n + 1 if none does).

    One more success lowers the wealth and one more failure raises it, so from n to n + 1 the number stays or
    grows by one, and one evaluation per episode finds it.
    """
    partial = bets.sizes < 1
    zero, one = (factor[partial].tolist() for factor in bets.log_factors(bound))
    whole = float(bets.shares[~partial].sum())  # this bet survives failures only
    # Plain floats: at 16 nodes they are quicker than arrays.
    logs = [math.log(share) + log for share, log in zip(bets.shares[partial].tolist(), one, strict=True)]
    needed = np.empty(horizon + 1, dtype=np.int64)
    needed[0] = failures = 1
    for n in range(1, horizon + 1):  # logs: the capitals after `failures` failures among n episodes
        if n > 1:
            logs = [a + b for a, b in zip(logs, zero, strict=True)]
        held = [math.log(whole) - n * math.log(bound)] if whole and failures == n else []
        top = max(logs + held)
        wealth = top + math.log(math.fsum([math.exp(a - top) for a in logs + held]))
        if wealth < log_threshold:
            failures += 1
            logs = [a - b + c for a, b, c in zip(logs, zero, one, strict=True)]
        needed[n] = failures
    return needed


def alarm_distribution(needed: NDArray[np.int64], rate: float) -> tuple[Array, NDArray[np.int64], Array]:
    """Run the exact dynamic program over (episodes, failures) for costs of 0 and 1.

    Return the probability that the first alarm comes with episode n, for every n; and the numbers of failures
    still without an alarm at the end, with their probabilities.
    """
    horizon = needed.size - 1
    alarms = np.zeros(horizon + 1)
    alive = np.zeros(horizon + 2)
    alive[0] = 1.0
    low, high = 0, 0  # failures with a probability that matters
    for n in range(1, horizon + 1):
        window = alive[low : high + 2]
        moved = window * (1 - rate)
        moved[1:] += window[:-1] * rate
        alive[low : high + 2] = moved
        high += 1
        limit = int(needed[n])
        if high >= limit:
            alarms[n] = alive[limit : high + 1].sum()
            alive[limit : high + 1] = 0.0
            high = limit - 1
        while low < high and alive[low] < 1e-22:
            # Too unlikely to matter; counted as an alarm, so that no probability is ever understated.
            alarms[n] += alive[low]
            alive[low] = 0.0
            low += 1
    return alarms, np.arange(low, high + 1), alive[low : high + 1]
