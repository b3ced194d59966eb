"""What labels of judged episodes say about every failure rate, and how two samples are compared by that.

Two p-values that are no smaller than uniform, the first given the second, are combined by a region of both:
whatever is below it is refuted. It is nearly a half-plane in normal scores, so that errors add as squares,
for several ratios of these errors, whichever turns out to be right.

The rate of a policy is refuted if for every number of failures among its judged episodes either the labels
refute that number, or the number the rate, or both together do. The difference of two rates is refuted if
that is so for every rate of the first. The proofs are in ``docs/theory.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from boundwatch.bounds.audit import Audited, _Curve
from boundwatch.bounds.halving import halve
from boundwatch.bounds.held_out import Array

GRID: Array = np.sin(np.linspace(0, np.pi / 2, 1025)) ** 2
"""The rates at which p-values are known; between them they neither rise nor fall."""
_LEFT = np.array([1.0, 0.5, 0.25])  # shares of the variance that a judge may leave
_EACH = 0.02  # share of a p-value that either of the two has by itself
_SMALLEST = 1e-12
_SCORES = np.append(-np.inf, np.arange(-8, 8, 0.01))
_STEPS = np.arange(0, 7.5, 0.005)
_POINTS = 160  # numbers of failures at which the p-values of labels are known
_OFTEN, _RARE = 0.98, 1e-6  # the p-values of the first and of the last one


@dataclass(frozen=True)
class RateCurve:
    """P-values of "the failure rate is at most (at least) GRID[i]", by one sample.

    **Guarantee**: at the true rate, either is at most p with probability at most p. **Assumes**: i.i.d.
    episodes, in a number that was fixed in advance; of an audit, what `boundwatch.bounds.audit` assumes.
    `sizes` are how many trials it is worth if the judge leaves all, half or a quarter of the variance.
    """

    at_most: Array
    at_least: Array
    sizes: Array

    @classmethod
    def of_counts(cls, n: int, failures: int) -> RateCurve:
        """Return that of trials whose outcomes are all known.

        >>> curve = RateCurve.of_counts(20, 1)
        >>> round(curve.upper(0.025), 3)
        0.25
        """
        at_most = special.bdtrc(failures - 1, n, GRID) if failures else np.ones_like(GRID)
        return cls(at_most, np.asarray(special.bdtr(failures, n, GRID)), np.full(_LEFT.size, float(n)))

    @classmethod
    def of_audit(cls, audited: Audited, level: float) -> RateCurve:
        """Return that of judged episodes, some of them labeled; outcomes are ordered as is best at a level.

        >>> from boundwatch.bounds.audit import Judged
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
        return (
            float(GRID[np.searchsorted(self.at_most, alpha, "right") - 1])
            if self.at_most[0] <= alpha
            else 0.0
        )

    def upper(self, alpha: float) -> float:
        """Return the upper limit; as `lower`."""
        return 1 - self.mirrored().lower(alpha)

    def mirrored(self) -> RateCurve:
        """Return the same about successes."""
        return RateCurve(self.at_least[::-1], self.at_most[::-1], self.sizes)


def difference_p_value(a: RateCurve, b: RateCurve, margin: float = 0.0) -> float:
    """Return a p-value of "the rate of b is at most that of a, plus a margin", from independent samples.

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
    together = _chances(slopes)[
        np.clip(np.nan_to_num(reach, neginf=-1.0) / _STEPS[1], 0, _STEPS.size - 1).astype(int)
    ]
    together = np.where(reach <= 0, 1.0, together / (1 - 2 * _EACH))
    alone = np.minimum(first, second) / _EACH
    return np.minimum(np.minimum(together, alone), 1.0)


@cache
def _chances(slopes: tuple[float, ...]) -> Array:
    """Return how likely two uniform numbers reach as far as each of the steps, rounded up."""
    chances, lengths = np.zeros(_STEPS.size), np.diff(special.ndtr(_SCORES), append=1.0)
    for place, reach in enumerate(_STEPS):
        heights = np.max([-reach * np.hypot(1, slope) - slope * _SCORES for slope in slopes], axis=0)
        chances[place] = special.ndtr(heights) @ lengths
    return chances


def audit_p_value(audited: Audited, level: float, n_lab: int, of_number: Callable[[int], float]) -> float:
    """Return a p-value from an audit and a lab, given the p-value of each number of failures beside the lab.

    **Guarantee**: at most p with probability at most p under a hypothesis, over the draw of all, if
    ``of_number(k)`` has that for the true number k of failures among the judged episodes, under the same one,
    and does not rise with k.
    """
    n, drawn = sum(audited.judged), sum(audited.drawn)
    slopes = np.sqrt((drawn / n + drawn / n_lab) / (_LEFT * (1 - drawn / n) + 1e-9))
    last, p_values = _numbers(audited.mirrored(), level)
    of_lab = np.array([of_number(n - int(number)) for number in last])
    return float(combined(p_values, of_lab, tuple(slopes.tolist())).max())


def _at_least(audited: Audited, level: float, slopes: tuple[float, ...]) -> Array:
    n, found = sum(audited.judged), np.zeros(GRID.size)
    for number, p_value in zip(*_numbers(audited, level), strict=True):
        of_rate = special.bdtr(number, n, GRID)
        found = np.maximum(found, combined(np.full(GRID.size, p_value), of_rate, slopes))
    return found


def _numbers(audited: Audited, level: float) -> tuple[NDArray[np.int64], Array]:
    """Return the last of each of some ranges of numbers of failures, and the largest p-value in the range."""
    curve = _Curve(audited, level)
    ends = np.linspace(curve.largest(_OFTEN), curve.largest(_RARE), _POINTS).astype(np.int64) + 1
    first = np.unique(np.append(ends[ends <= curve.most], curve.least))
    return np.append(first[1:] - 1, curve.most), np.minimum(curve.p_values(first), 1.0)
