"""Limits on failures among many judged episodes from the labels of a few that were drawn at random.

A machine judged N episodes, and people labeled n of them: n1 of the N1 that the judge calls failures, n0 of
the N0 others, drawn without replacement within each. K = K1 + K0 of all failed, and X1 and X0 of the drawn
ones: two independent hypergeometric numbers. Outcomes (X1, X0) are ordered by a rough upper limit that never
falls when either grows. The p-value of a number K is the largest probability, over all splits K1 + K0 = K
that the labels leave possible, of an outcome no higher than the observed one (Buehler, 1957). Nothing is
assumed of the judge: a bad one makes limits wide, never wrong.

From the N episodes to the policy: K is binomial, and given K its p-value is no smaller than uniform. Two such
p-values are combined by a region of both, nearly a half-plane in normal scores, so that their errors add as
squares: whatever is below it is refuted, for every number K. Where tasks have rates of their own, the
binomial probability is used below the mean, where none is larger; where repeats of a scene depend on each
other, Chernoff's bound for independent units. ``docs/theory.md`` has the proofs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from boundwatch.bounds.bets import Counts, shared
from boundwatch.bounds.betting_limits import betting_upper, tuned_upper
from boundwatch.bounds.halving import halve
from boundwatch.bounds.held_out import Array, chernoff_p_value, chernoff_upper

GRID: Array = np.sin(np.linspace(0, np.pi / 2, 1025)) ** 2
"""The rates at which p-values are known; between them they neither rise nor fall."""
_LEFT = np.array([1.0, 0.5, 0.25])  # shares of the variance that a judge may leave: regions suit these
_SPLITS = 1024  # beyond, splits are put into cells, each with the largest probability in it
_POINTS = 128, 160  # numbers K at which p-values are known, of a limit and of a curve; between, none rises
_ROUNDING = 1e-6  # what logarithms of factorials of 1e7 leave of a probability, at most
_CAP = 0.02  # share of delta, or of a p-value, that an error of one kind alone has
_OF_LABELS, _OF_JUDGE = 0.25, 0.15  # shares of delta, for bounded costs
_OFTEN, _RARE, _SMALLEST = 0.98, 1e-6, 1e-12  # p-values of a curve: the first, the last, and the least
_REACHES = np.arange(0, 7.5, 0.005)


class Judged(NamedTuple):
    """One number for what the judge calls successes and one for what it calls failures."""

    passed: int
    failed: int


class Audited(NamedTuple):
    """How many episodes were judged, how many of them drawn, and how many of those failed by their labels."""

    judged: Judged
    drawn: Judged
    failures: Judged

    def mirrored(self) -> Audited:
        """Return the same about successes: who bounds them from above bounds failures from below."""
        return self._replace(failures=Judged(*np.subtract(self.drawn, self.failures).tolist()))


def audit_upper(audited: Audited, delta: float, *, policy: bool = False, units: int | None = None) -> float:
    """Return an upper limit on the share of failures among all judged episodes, or with `policy` in others.

    **Guarantee**: with probability at least 1 - delta over the draw, no smaller than the share; with `policy`
    no smaller than the failure rate, over episodes and draw. **Assumes**: right labels of episodes that were
    drawn at random without replacement among those that the judge called alike; how many of each was fixed
    before any label. With `policy` also i.i.d. episodes, whose number was fixed in advance; or, given
    `units`, as many of tasks and scenes as `units_of` says.

    >>> audited = Audited(Judged(800, 200), Judged(37, 13), failures=Judged(1, 12))
    >>> audit_upper(audited, 0.025), round(audit_upper(audited, 0.025, policy=True), 4)
    (0.289, 0.2985)
    """
    n, curve = sum(audited.judged), _Curve(audited, delta)
    if not policy:
        return curve.largest(delta) / n
    most = curve.largest(_CAP * delta)  # what is less likely is refuted at every rate
    first = np.linspace(curve.largest(0.5), most, _POINTS[0]).astype(np.int64)
    first = np.unique(np.append(first, curve.least))
    last, p_values = np.append(first[1:] - 1, most), curve.p_values(first)
    drawn, alike, single = sum(audited.drawn), units is None, units in (None, n)
    edges, values = _shape(drawn / ((units or n) * (1 - drawn / n + 1e-9)), delta, alike, single)

    def is_left(rate: float) -> bool:
        if single:
            below = special.bdtr(last, n, rate if alike else np.where(last > n * rate - 1, 0.0, rate))
        else:
            below = chernoff_p_value(1 - last / n, units or n, np.asarray(1 - rate))
        heights = values[np.searchsorted(edges, below * (1 + _ROUNDING), "right") - 1]
        return bool((p_values >= heights).any())

    return float(halve(curve.least / n, 1.0, is_left, 40)[1])


def audit_lower(audited: Audited, delta: float, *, policy: bool = False, units: int | None = None) -> float:
    """Return a lower limit; as `audit_upper`."""
    most = audit_upper(audited.mirrored(), delta, policy=policy, units=units)
    n = sum(audited.judged)
    return max(1 - most, 0.0) if policy else (n - round(most * n)) / n


def units_of(tasks: Sequence[Hashable], scenes: Sequence[Hashable]) -> int | None:
    """Return how many independent units the mean over all episodes is worth; None unless tasks weigh alike.

    Each episode has a task and a scene; repeats of a scene may depend on each other in any way. The mean over
    all is the mean over tasks, weighted by their episodes, if all scenes of a task have as many.

    >>> units_of(["mug"] * 6 + ["bowl"] * 6, [1, 1, 2, 2, 3, 3] * 2), units_of(["mug"] * 3, [1, 1, 2])
    (6, None)
    """
    sizes: dict[Hashable, set[int]] = {}
    for (task, _), size in Counter(zip(tasks, scenes, strict=True)).items():
        sizes.setdefault(task, set()).add(size)
    if any(len(each) > 1 for each in sizes.values()):
        return None
    return len(tasks) // max(size for each in sizes.values() for size in each)


def judge_errors(audited: Audited, delta: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return limits on the share of failures that the judge missed, and of successes that it called failures.

    **Guarantee**: with probability at least 1 - delta over the draw, all four hold for the judged episodes.
    **Assumes**: as `audit_upper`.

    >>> misses, alarms = judge_errors(Audited(Judged(800, 200), Judged(37, 13), Judged(1, 12)), 0.05)
    >>> [round(each, 3) for each in (*misses, *alarms)]
    [0.005, 0.506, 0.001, 0.104]
    """
    parts = [Audited(*(Judged(each[which], 0) for each in audited)) for which in (0, 1)]
    (fail0, fail1), (pass0, pass1) = (
        [_Curve(each, delta / 4).largest(delta / 4) for each in side]
        for side in (parts, [each.mirrored() for each in parts])
    )
    n0, n1 = audited.judged
    misses = (n0 - pass0) / max(n0 - pass0 + fail1, 1), fail0 / max(fail0 + n1 - pass1, 1)
    alarms = (n1 - fail1) / max(n1 - fail1 + pass0, 1), pass1 / max(pass1 + n0 - fail0, 1)
    return misses, alarms


def bounded_upper(
    given: Sequence[Array], delta: float, *, policy: bool = False, units: int | None = None
) -> Array:
    """Return an upper limit on the mean of costs in [0, 1], from a draw that is not split by the judge.

    Given are all costs of the judge, labels, and (label - judge + 1)/2 of what is labeled, each as two rows
    (of many datasets: stacks of rows): values, and how many there are. Bets are on the last and, for a
    quarter of delta, on labels alone, in case the judge is useless; the lower limit holds. A capital is a
    product over labels, whose mean without replacement is at most that with it (Maclaurin).

    **Guarantee** and **Assumes**: as `audit_upper`, for the mean over all judged episodes or expected cost.

    >>> judge, labels = np.tile([0.1, 0.5], 500), np.tile([0.1, 0.6], 20)
    >>> given = [np.stack([x, np.ones_like(x)]) for x in (judge, labels, (labels - judge[:40] + 1) / 2)]
    >>> [float(bounded_upper(given, 0.025, policy=each).round(3)) for each in (False, True)]
    [0.453, 0.475]
    """
    if policy and units is not None:
        most = bounded_upper(given, (1 - _OF_JUDGE) * delta)
        return chernoff_upper(most, units, _OF_JUDGE * delta)
    judge, labels, differences = given
    mean, left = np.vecdot(judge[0], judge[1]) / judge[1].sum(axis=-1), 1 - _OF_LABELS
    if policy:
        mean, left = betting_upper(judge[0], _OF_JUDGE * delta, judge[1]), left - _OF_JUDGE
    beyond = 2 * tuned_upper(differences[0], left * delta, differences[1]) - 1
    of_labels = tuned_upper(labels[0], _OF_LABELS * delta, labels[1])
    return np.asarray(np.minimum(np.minimum(mean + beyond, of_labels), 1.0))


@lru_cache(maxsize=64)
def _shape(ratio: float, delta: float, alike: bool, single: bool) -> tuple[Array, Array]:
    """Return which p-values refute, given the probability of a number: a step function with its `edges`.

    In normal scores, a of the number of failures and b of the p-value, it keeps s a + b >= -c √(1 + s²) for
    the ratios s of the two errors if a judge leaves a share of the variance. Unless all are `alike` no score
    is above 0, where nothing is known; unless each is `single`, -a has the probability exp(-a²/2).
    """
    scores = np.append(-np.inf, np.arange(-8, 8 if alike else 0, 0.01))
    edges = special.ndtr(scores) if single else np.exp(-(scores**2) / 2)
    lengths = np.diff(edges, append=1.0)
    slopes = np.sqrt(ratio / _LEFT)[:, None]

    def heights(c: float) -> Array:
        found = special.ndtr((-c * np.hypot(1, slopes) - slopes * scores).max(axis=0))
        return np.where(edges < _CAP * delta, 1.0, np.maximum(found, _CAP * delta))

    _, high = halve(0.0, 40.0, lambda c: heights(c) @ lengths > delta, 60)
    return shared(edges), shared(np.where(heights(high) < 1, heights(high), 2.0))  # that no p-value reaches


class _Curve:
    """The p-values of all numbers of failures; what they are is said at the top of this file."""

    def __init__(self, audited: Audited, delta: float) -> None:
        self.audited, self.least = audited, sum(audited.failures)
        self.most = sum(audited.judged) - sum(audited.drawn) + self.least
        axes, mean, variance = np.ix_(*(np.arange(n + 1) for n in audited.drawn)), np.zeros(1), np.zeros(1)
        for size, n, x in zip(audited.judged, audited.drawn, axes, strict=True):
            share, weight = (x + 0.5) / (n + 1), size / max(sum(audited.judged), 1)
            mean = mean + weight * share
            variance = variance + weight**2 * share * (1 - share) / (n + 2) * (1 - n / max(size, 1))
        like = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-9)
        rough = special.betaincinv(mean * like, (1 - mean) * like, 1 - delta)
        rough = np.maximum.accumulate(np.maximum.accumulate(rough, axis=0), axis=1)
        self.ends = (rough <= rough[audited.failures] + 1e-12).sum(axis=0)
        """For each X1, how many X0 there are with an outcome that is no higher than the observed one."""

    def largest(self, level: float) -> int:
        """Return the largest number whose p-value exceeds a level."""
        possible = range(self.least + 1, self.most + 1)
        return self.least + bisect_left(
            possible, True, key=lambda k: self.p_values(np.array([k]))[0] <= level
        )

    def p_values(self, numbers: Counts) -> Array:
        """Return the p-value of each number of failures among all judged episodes, rounded up."""
        (all0, all1), (n0, n1), (x0, x1) = self.audited
        step = -(-(all1 - n1 + 1) // _SPLITS)
        first, found = np.arange(x1, all1 - n1 + x1 + 1, step), []
        upto, chances = np.minimum(first + step - 1, all1 - n1 + x1), _hypergeometric(all1, first, n1)
        for number in numbers:
            others = number - upto  # the fewest in the cell, with the most likely low outcomes
            possible = (number - first >= x0) & (others <= all0 - n0 + x0)
            below = np.cumsum(_hypergeometric(all0, np.maximum(others[possible], x0), n0), axis=1)
            below = np.concatenate([np.zeros((len(below), 1)), below], axis=1)
            found.append((chances[possible] * below[:, self.ends]).sum(axis=1).max())
        return np.asarray(found) * (1 + _ROUNDING)


@lru_cache(maxsize=64)
def _ranges(audited: Audited, level: float) -> tuple[Counts, Array]:
    """Return the last of each of some ranges of numbers, and the largest p-value in the range."""
    curve = _Curve(audited, level)
    ends = np.linspace(curve.largest(_OFTEN), curve.largest(_RARE), _POINTS[1]).astype(np.int64) + 1
    first = np.unique(np.append(ends[ends <= curve.most], curve.least))
    return shared(np.append(first[1:] - 1, curve.most)), shared(np.minimum(curve.p_values(first), 1.0))


def _hypergeometric(size: int, failures: Counts, n: int) -> Array:
    """Return the chances of 0 to n failures among n of `size` episodes, a row for each number of them."""
    x, k = np.arange(n + 1), failures[:, None]

    def log_choose(of: Any, some: Any) -> Any:
        logs = special.gammaln(of + 1) - special.gammaln(some + 1) - special.gammaln(abs(of - some) + 1)
        return np.where(of >= some, logs, -np.inf)

    return np.asarray(np.exp(log_choose(k, x) + log_choose(size - k, n - x) - log_choose(size, n)))


@dataclass(frozen=True)
class RateCurve:
    """P-values of "the failure rate is at most (at least) GRID[i]", by one sample.

    **Guarantee**: at the true rate, either is at most p with probability at most p. **Assumes**: i.i.d.
    episodes, in a number that was fixed in advance; of an audit, what `audit_upper` assumes.
    `sizes` are how many trials it is worth if the judge leaves all, half or a quarter of the variance.
    """

    at_most: Array
    at_least: Array
    sizes: Array

    @classmethod
    def of_counts(cls, n: int, failures: int) -> RateCurve:
        """Return that of trials whose outcomes are all known.

        >>> round(RateCurve.of_counts(20, 1).upper(0.025), 3)
        0.25
        """
        at_most = special.bdtrc(failures - 1, n, GRID) if failures else np.ones_like(GRID)
        return cls(at_most, np.asarray(special.bdtr(failures, n, GRID)), np.full(_LEFT.size, float(n)))

    @classmethod
    def of_audit(cls, audited: Audited, level: float) -> RateCurve:
        """Return that of judged episodes, some of them labeled; outcomes are ordered as is best at a level.

        >>> curve = RateCurve.of_audit(Audited(Judged(800, 200), Judged(37, 13), Judged(1, 12)), 0.025)
        >>> round(curve.lower(0.025), 3), round(curve.upper(0.025), 3)
        (0.14, 0.3)
        """
        n, share = sum(audited.judged), sum(audited.drawn) / sum(audited.judged)
        sizes = 1 / (1 / n + _LEFT * (1 - share) / sum(audited.drawn))
        slopes = tuple(np.sqrt(share / (_LEFT * (1 - share) + 1e-9)).tolist())
        at_least = _at_least(audited, level, slopes)
        return cls(_at_least(audited.mirrored(), level, slopes)[::-1], at_least, sizes)

    def lower(self, alpha: float) -> float:
        """Return the lower limit on the rate that fails with probability at most alpha."""
        place = int(np.searchsorted(self.at_most, alpha, "right"))
        return float(GRID[place - 1]) if self.at_most[0] <= alpha else 0.0

    def upper(self, alpha: float) -> float:
        """Return the upper limit; as `lower`."""
        return 1 - self.mirrored().lower(alpha)

    def mirrored(self) -> RateCurve:
        """Return the same about successes."""
        return RateCurve(self.at_least[::-1], self.at_most[::-1], self.sizes)


def difference_p_value(a: RateCurve, b: RateCurve, margin: float = 0.0) -> float:
    """Return a p-value of "the rate of b is at most that of a, plus a margin", from independent samples.

    The difference is refuted if every rate of the first, with it, is.

    >>> act, dp = RateCurve.of_counts(50, 3), RateCurve.of_counts(50, 13)
    >>> round(difference_p_value(act, dp), 4), round(difference_lower(act, dp, 0.05), 3)
    (0.011, 0.049)
    """
    places = np.searchsorted(GRID, GRID[1:] + margin)
    high = np.append(b.at_most, 1.0)[places]
    slopes = tuple(np.sqrt(b.sizes / a.sizes).tolist())
    return float(combined(high, a.at_least[:-1], slopes).max())


def difference_lower(a: RateCurve, b: RateCurve, alpha: float) -> float:
    """Return a lower limit on the rate of b less that of a, which fails with probability at most alpha."""
    return float(halve(-1.0, 1.0, lambda margin: difference_p_value(a, b, margin) <= alpha, 20)[0])


def combined(first: Array, second: Array, slopes: tuple[float, ...]) -> Array:
    """Return the p-values of two each; a slope is the standard error of `second` over that of `first`.

    **Guarantee**: at most p with probability at most p, if `second` is, and `first` given `second`.

    >>> float(combined(np.array([0.02]), np.array([0.02]), (1.0,)).round(4)[0])
    0.002
    """
    one, other = (special.ndtri(np.maximum(each, _SMALLEST)) for each in (first, second))
    reach = np.max([-(one + slope * other) / np.hypot(1, slope) for slope in slopes], axis=0)
    step = np.clip(np.nan_to_num(reach, neginf=-1.0) / _REACHES[1], 0, _REACHES.size - 1).astype(int)
    together = np.where(reach <= 0, 1.0, _chances(slopes)[step] / (1 - 2 * _CAP))
    return np.minimum(np.minimum(together, np.minimum(first, second) / _CAP), 1.0)


@lru_cache(maxsize=256)
def _chances(slopes: tuple[float, ...]) -> Array:
    """Return how likely two uniform numbers reach as far as each of the steps, rounded up."""
    scores = np.append(-np.inf, np.arange(-8, 8, 0.01))
    chances, lengths = np.zeros(_REACHES.size), np.diff(special.ndtr(scores), append=1.0)
    for place, reach in enumerate(_REACHES):
        heights = np.max([-reach * np.hypot(1, slope) - slope * scores for slope in slopes], axis=0)
        chances[place] = special.ndtr(heights) @ lengths
    return shared(chances)


def audit_p_value(audited: Audited, level: float, n_lab: int, of_number: Callable[[int], float]) -> float:
    """Return a p-value from an audit and a lab, given the p-value of each number of failures beside the lab.

    **Guarantee**: at most p with probability at most p under a hypothesis, over the draw of all, if
    ``of_number(k)`` has that for the true number k of failures among the judged episodes, under the same one,
    and does not rise with k.
    """
    n, drawn = sum(audited.judged), sum(audited.drawn)
    slopes = np.sqrt((drawn / n + drawn / n_lab) / (_LEFT * (1 - drawn / n) + 1e-9))
    last, p_values = _ranges(audited.mirrored(), level)
    of_lab = np.array([of_number(n - int(number)) for number in last])
    return float(combined(p_values, of_lab, tuple(slopes.tolist())).max())


def _at_least(audited: Audited, level: float, slopes: tuple[float, ...]) -> Array:
    found = np.zeros(GRID.size)
    for number, p_value in zip(*_ranges(audited, level), strict=True):
        of_rate = special.bdtr(number, sum(audited.judged), GRID)
        found = np.maximum(found, combined(np.full(GRID.size, p_value), of_rate, slopes))
    return found
