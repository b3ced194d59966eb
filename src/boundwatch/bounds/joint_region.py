"""When a reference of n trials and a stream of new ones, all failing or not, say together "worse now".

The stream alarms at its first trial t at which it has `needed(K, t)` failures or more, where K is the number
of failures in the reference. For each K that is a region above a line, so streams whose failure rates
vary, but never exceed the reference's, alarm no more often than one at the same constant rate.

The line follows from a Bayes factor ("the reference's rate is uniform on (0, 1), and the stream's uniform
above it", against one common rate, mixed over Jeffreys' prior) and a threshold that depends on the pooled
rate and sinks in the first trials. It is tuned until the false-alarm probability is nearly the same for all
common rates c. What counts is the proof afterward:

1. The probability of an alarm within the horizon is a polynomial in c. Its Bernstein form bounds it for every
   c at once.
2. After the horizon a stream alarms when the likelihood ratio of a mixture of rates above U against U
   reaches 2/`later`, where U is the exact upper limit on the reference's rate that fails with probability
   `later`/2. If U holds, that is a supermartingale of expectation 1, so all of this adds at most `later`.

The sum of both is `bound`, and it is at most `level`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from boundwatch.bounds import held_out, two_sample
from boundwatch.bounds.bets import Array, Bets, Counts, shared

MOST_REFERENCE_TRIALS = 5000  # also of bounded costs
# Rounding is allowed for with 1e-10: a level that is not far above that cannot be proven.
SMALLEST_TOTAL = 1e-6
_MOST_RAISES = 500  # a few are needed
_KNOTS = 65
# After t trials the threshold is 1 + _EARLY/t times that of the pooled rate. A failure in the first trials
# carries the evidence so far at once that, without this, alarms there would use up the level of many rates.
# Mean trials (n = 50, 0.08 -> 0.3 and -> 0.5): 72.5 and 7.6 at 0, 56.3 and 7.5 at 8, 52.1 and 7.9 at 16.
_EARLY = 8.0
_ROWS_AT_ONCE = 32  # so that they stay in the processor's cache
_LARGE = 1000  # a reference of more trials is computed at fewer looks and nodes
_RESCALED = 64  # orders are rescaled after so many trials: 2^1000 of them still fit into a float
_NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class JointRegion:
    """Where a stream alarms, for every number of failures in a reference of n trials; see `joint_region`."""

    n: int
    level: float
    """The false-alarm probability that was asked for."""
    bound: float
    """The one that is proven, for every common rate and however long you look."""
    horizon: int
    """Trials of the stream that are covered by exact sums."""
    later: float
    """What alarms after the horizon may add; `bound` includes it."""
    _block: Counts = field(repr=False)
    _needed: NDArray[np.int32] = field(repr=False)

    def line(self, failures: int) -> AlarmLine:
        """Return the line for a reference with so many failures."""
        return AlarmLine(self, failures)


class AlarmLine:
    """The fewest failures that alarm after t trials of the stream, for one reference; grows as asked for."""

    def __init__(self, region: JointRegion, failures: int) -> None:
        self._region, self._failures = region, failures
        row = region._block[failures]
        line = region._needed[:, row].astype(np.int64)
        line[0] = _NEVER  # nothing alarms before the first trial
        # Threads share a line. What they read is never changed, and replaced as a whole by one assignment.
        self._line = shared(line)

    def needed(self, trials: int) -> Counts:
        """Return the line for t = 0, 1, …, at least `trials`; a number above t means that nothing alarms."""
        line = self._line
        if line.size <= trials:
            line = self._line = self._extended(line, max(trials - line.size + 1, line.size))
        return line

    def _extended(self, line: Counts, more: int) -> Counts:
        region = self._region
        upper = float(held_out.clopper_pearson_upper(self._failures, region.n, region.later / 2))
        trials = np.arange(line.size, line.size + more)
        if upper >= 1:
            return shared(np.append(line, np.full(more, _NEVER)))
        # The evidence grows with the failures beyond U t: halve the range in which it crosses, for all t.
        low, high = np.floor(upper * trials).astype(np.int64), trials + 1  # more than t: nothing alarms
        while (high - low > 1).any():
            middle = (low + high) // 2
            reached = _log_evidence(middle, trials, upper) >= math.log(2 / region.later)
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return shared(np.append(line, np.maximum(high, line[-1])))


@lru_cache(maxsize=256)
def alarm_line(n: int, failures: int, level: float) -> AlarmLine:
    """Return the line for a reference of n trials with so many failures; shared, as it only ever grows."""
    return joint_region(n, level).line(failures)


@lru_cache(maxsize=64)
def joint_region(n: int, level: float) -> JointRegion:
    """Return where to alarm so that "worse" is wrong with probability at most `level`, at any time.

    **Guarantee**: if every trial of the reference fails with probability c, and every trial of the stream,
    whatever came before, with probability at most c, then an alarm is ever raised with probability at most
    `bound`, which is at most `level`, over the draw of both, for every c. **Assumes**: independent trials in
    the reference, and n fixed in advance.

    >>> region = joint_region(50, 0.045)
    >>> 0.043 < region.bound <= 0.045
    True
    """
    if level < SMALLEST_TOTAL:
        raise ValueError(f"level = {level:g} is below {SMALLEST_TOTAL:g}: rounding leaves no line to prove")
    return region_within(n, level, _horizon(n), 0.01 * level)


def _horizon(n: int) -> int:
    """Return up to which trial of the stream the line is exact; a stream much longer than n learns little."""
    return min(max(400, 10 * n), _LARGE) + min(2 * max(0, n - _LARGE), 2 * _LARGE)


def region_within(n: int, level: float, horizon: int, later: float) -> JointRegion:
    """Return the region that is exact up to a horizon and leaves `later` of its level for what follows."""
    target = level - later
    early = _Program(n, 250)
    thresholds = np.full(_KNOTS, math.log(1 / level))
    for damping in (0.9, 0.9, 0.9, 0.5, 0.5):
        thresholds = _flattened(thresholds, early.levels(early.lines(thresholds)), target, damping)
    program = _Program(n, horizon)
    for damping in (0.5, 0.5):
        thresholds = _flattened(thresholds, program.levels(program.lines(thresholds)), target, damping)
    for _ in range(_MOST_RAISES):
        needed = program.lines(thresholds)
        levels = program.levels(needed)
        bound = float(levels.max()) * (1 + two_sample.SLACK) + two_sample.SLACK
        if bound <= target:
            block, needed = shared(program.block), shared(needed)
            return JointRegion(n, level, bound + later, horizon, later, block, needed)
        thresholds = _raised(thresholds, levels, target - 2 * two_sample.SLACK)  # or the slack stays above it
    raise RuntimeError(f"no line with a proven level of {level:g} was found for a reference of {n} trials")


class _Program:
    """The exact dynamic program over (failures in the reference, trials and failures of the stream).

    It counts orders of successes and failures, which needs additions only. References whose failures differ
    by less than a third of a standard error share a line, that of the largest.
    """

    def __init__(self, n: int, horizon: int) -> None:
        self.n, self.horizon = n, horizon
        self.block, largest = _blocks(n)
        self.rows = largest.size
        self.largest, self.smallest = largest, np.append(0, largest[:-1] + 1)
        self._looks = _looks(horizon, 100 if n > _LARGE else horizon)
        nodes = max(64, int(3.5 * math.sqrt(min(horizon, _LARGE) + min(n, horizon, _LARGE))))
        self.rates, _ = _nodes(nodes)
        logs = _log_weights(n, largest[:-1], nodes)
        self.log_scale = logs.max(axis=1)
        self.weights = np.exp(logs - self.log_scale[:, None])

    def lines(self, thresholds: Array) -> NDArray[np.int32]:
        """Return the failures needed after t = 0, 1, … trials (rows), for every block of references."""
        angles = np.linspace(0, np.pi, _KNOTS)
        failures = self.largest[:-1]
        needed = np.full((self.horizon + 1, self.rows), np.iinfo(np.int32).max, dtype=np.int32)
        count = np.ones(self.rows - 1, dtype=np.int64)
        capitals, scale = self.weights * self.rates, self.log_scale.copy()
        odds = self.rates / (1 - self.rates)
        last = 1
        for t in self._looks:
            if t > last:
                capitals *= (1 - self.rates) ** (t - last)
            if t % 16 == 0:
                top = capitals.max(axis=1)
                capitals /= top[:, None]
                scale += np.log(top)
            for _ in range(t - last or 1):  # a trial raises the line by at most one
                pooled = np.minimum(failures + count, self.n + t)
                mixture = np.log(capitals.sum(axis=1)) + scale
                evidence = mixture - two_sample.log_common_rate(self.n + t, pooled)
                limit = np.interp(2 * np.arcsin(np.sqrt(pooled / (self.n + t))), angles, thresholds)
                limit += math.log1p(_EARLY / t)
                below = np.flatnonzero((evidence < limit) | (count > t))
                if not below.size:
                    break
                count[below] += 1
                capitals[below] *= odds
            needed[t, :-1] = count
            # Between two looks the line is straight, rounded up.
            for between in range(last + 1, t):
                part = -((last - between) * (count - needed[last, :-1]) // (t - last))
                needed[between, :-1] = needed[last, :-1] + part
            last = t
        return needed

    def levels(self, needed: NDArray[np.int32]) -> Array:
        """Return Bernstein coefficients of the probability of an alarm within the horizon, in the rate."""
        alive, shifts = np.zeros((self.rows, self.horizon + 2)), np.zeros((self.rows, 1), dtype=np.int64)
        alive[:, 0] = 1.0
        for start in range(0, self.rows, _ROWS_AT_ONCE):
            chosen = slice(start, start + _ROWS_AT_ONCE)
            self._count(alive[chosen], shifts[chosen], needed[:, chosen], int(self.smallest[start]))
        total = self.n + self.horizon
        shares = self._shares(alive[:, :-1], np.log(2) * shifts)
        return two_sample.raise_degree(1.0 - shares, total + min(total, 1500))

    def _count(self, alive: Array, shifts: Counts, limits: NDArray[np.int32], fewest: int) -> None:
        """Count the orders of the stream that have not alarmed at the horizon, divided by 2^shift."""
        rows, low = np.arange(alive.shape[0]), 0
        highest = limits.max(axis=1).tolist()
        for t in range(1, self.horizon + 1):
            top = min(t, highest[t])
            alive[:, low + 1 : top + 1] += alive[:, low:top]
            alive[rows, np.minimum(limits[t], t + 1)] = 0.0
            if self.n > _LARGE and t % _RESCALED == 0:
                exponents = np.frexp(alive.max(axis=1, keepdims=True))[1].astype(np.int64) - 900
                alive[:] = np.ldexp(alive, -exponents)
                shifts += exponents
                rate = (fewest + 1) / (self.n + 2)
                # Even fewer failures, in less than 1e-15 of the orders, are left out, and so count as alarms.
                width = 9 * math.sqrt(t * (1 + t / self.n) * rate * (1 - rate)) + 30
                low = max(low, int(rate * t - width))
                alive[:, :low] = 0.0

    def _shares(self, alive: Array, shifts: Array) -> Array:
        """Return, for each pooled number of failures, the share of the orders that have not alarmed.

        Orders, less than 1e-15 of them, with numbers in the stream that are far from their share are left
        out, and so count as alarms.
        """
        total, horizon = self.n + self.horizon, self.horizon
        orders, pooled = (two_sample.log_choose(m, np.arange(m + 1)) for m in (self.n, total))
        with np.errstate(divide="ignore"):
            logs = np.log(alive) + shifts
        shares = np.zeros(total + 1)
        for k in range(horizon + 1):
            width = 9 * math.sqrt(k * (horizon - k) / horizon) + 30
            low = max(0, int(total * (k - width) / horizon) - k)
            high = min(self.n, int(total * (k + width) / horizon) + 1 - k) + 1
            if low < high:
                logs_k = logs[self.block[low:high], k] + orders[low:high] - pooled[low + k : high + k]
                shares[low + k : high + k] += np.exp(logs_k)
        return np.minimum(shares, 1.0)


def _looks(horizon: int, dense: int) -> list[int]:
    """Return every trial at first, and later about `dense` of them for each multiplication by e."""
    looks = [1]
    while looks[-1] < horizon:
        looks.append(min(looks[-1] + max(1, looks[-1] // dense), horizon))
    return looks


def _blocks(n: int) -> tuple[Counts, Counts]:
    """Return the block of each number of failures, and the largest of each; "all failed" is the last one."""
    steps = max(1.0, 3 * math.sqrt(n))  # a third of a standard error, in the angle 2 arcsin sqrt(rate)
    angles = 2 * np.arcsin(np.sqrt(np.arange(n) / n))
    block = np.unique(np.floor(angles * steps), return_inverse=True)[1].astype(np.int64)
    largest = np.flatnonzero(np.diff(np.append(block, -1)))
    return np.append(block, block[-1] + 1), np.append(largest, n)


def _nodes(size: int) -> tuple[Array, Array]:
    """Return rates and weights that integrate over (0, 1): equal steps of the angle 2 arcsin sqrt(rate)."""
    angles = (np.arange(size) + 0.5) * np.pi / size
    return np.sin(angles / 2) ** 2, np.pi / size * np.sin(angles) / 2


def _log_weights(n: int, failures: Counts, size: int) -> Array:
    """Return, for each reference, the log weights of the nodes in the mixture over higher rates.

    What a reference with K < n failures gives the stream's rate p is the integral of x^K (1 - x)^(n - K - 1)
    over x < p.
    """
    rates, weights = _nodes(size)
    k = failures[:, None]
    with np.errstate(divide="ignore"):
        inside = np.log(special.betainc(k + 1.0, n - k * 1.0, rates))
    return np.asarray(np.maximum(inside, -700.0) + special.betaln(k + 1.0, n - k * 1.0) + np.log(weights))


def _flattened(thresholds: Array, levels: Array, target: float, damping: float) -> Array:
    """Move each threshold toward where the level at its rate is the target."""
    at_knots = np.interp(np.linspace(0, np.pi, _KNOTS), _angles(levels), levels)
    steps = np.clip(np.log(np.maximum(at_knots, 1e-9) / target), -1, 1)
    return np.maximum(thresholds + damping * steps, 0.0)


def _raised(thresholds: Array, levels: Array, target: float) -> Array:
    """Raise the thresholds next to each rate at which the level is above the target."""
    left = np.minimum((_angles(levels) * ((_KNOTS - 1) / np.pi)).astype(np.int64), _KNOTS - 2)
    highest = np.zeros(_KNOTS)
    np.maximum.at(highest, left, levels)
    np.maximum.at(highest, left + 1, levels)
    steps = np.log(np.maximum(highest, target) / target)
    return thresholds + np.where(highest > target * (1 - 1e-6), steps + 0.005, 0.0)


def _angles(levels: Array) -> Array:
    return np.asarray(2 * np.arcsin(np.sqrt(np.linspace(0, 1, levels.size))))


def _log_evidence(failures: Counts, trials: Counts, upper: float) -> Array:
    """Return the log likelihood ratio of a mixture of rates above `upper` against `upper`."""
    bets = Bets.for_costs(binary=True)
    zero, one = bets.log_factors(upper)
    logs = np.log(bets.shares) + np.outer(trials - failures, zero) + np.outer(failures, one)
    return np.asarray(special.logsumexp(logs, axis=1))
