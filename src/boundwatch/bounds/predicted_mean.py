"""Limits on an expected cost with the help of predictions, valid for any predictor, good or malicious.

Beside its cost c, a trial has *luck*: the prediction for its scene less the mean of those for scenes that
were not run. Somebody bets that the mean exceeds m; a bet of size s multiplies its capital by

    1 + s (c - m - t b luck),

with s and the coefficient b, of either sign, fixed before the trial. The scenes of a round are exchangeable,
so luck has the expected value zero whatever the predictor is, also given which predictions occurred: t may
follow from these, and it is as large as leaves no outcome in debt. ``docs/theory.md`` has the proof.

The coefficient is the slope of costs on luck in earlier trials, shrunk to zero while it may be chance. A mean
that was refuted stays refuted, so limits are the narrowest so far. Either half of the capital goes to costs
alone (`MeanBets.anytime`), or all of it is for one look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from boundwatch._support.validation import check_predictions
from boundwatch.bounds.bets import Array
from boundwatch.errors import InvalidSetting

STEPS = 1000
"""Means that are tested are the whole multiples of 1/STEPS in between; limits are rounded outward to them."""
HEDGE = 0.8
"""The share of the error rate that bounded costs alone have in one look: their own test is sharper."""
_SIZES = np.geomspace(0.05, 1.2, 12)[:, None]  # in standard deviations of a trial without what luck explains
_MOST = 0.99  # of the capital, that a bet may risk
ENOUGH = 1 + 1e-9  # of the capital that refutes, against rounding
# Trials of variance 1/4 that everybody is taken to have seen, and the chance that a slope is none.
_PRIOR, _RIDGE = 0.25, 0.05


class Luck(NamedTuple):
    """What predictions say of a round: how much higher that for the trial is than those for the others.

    `most` and `least` are what this would be had any of the scenes been the trial's.
    """

    value: float = 0.0
    most: float = 0.0
    least: float = 0.0


def luck_of(predicted: float | None = None, unlabeled: ArrayLike = ()) -> Luck:
    """Return the luck of a trial from the prediction for its scene and for others that were not run.

    >>> luck_of(0.5, [0.2, 0.4])
    Luck(value=0.2, most=0.2, least=-0.25)
    """
    scene, others = check_predictions(predicted, unlabeled)
    if scene is None:
        return Luck()
    total, k = math.fsum([scene, *others.tolist()]), others.size
    each = (scene, max(scene, others.max()), min(scene, others.min()))
    return Luck(*(min(max(float(round(((k + 1) * one - total) / k, 12)), -1.0), 1.0) for one in each))


def lucks_of(predicted: Sequence[float | None], unlabeled: Sequence[ArrayLike]) -> list[Luck]:
    """Return the luck of each trial."""
    if len(predicted) != len(unlabeled):
        problem = f"are for {len(predicted)} trials, and unlabeled ones for {len(unlabeled)}"
        raise InvalidSetting(problem, name="predicted", remedy="give both for each trial")
    return [luck_of(*each) for each in zip(predicted, unlabeled, strict=True)]


def controls_of(lucks: Sequence[Luck], slope: float) -> list[tuple[float, float]]:
    """Return what each luck adds to a cost, and the most that it could have."""
    return [(slope * each.value, max(slope * each.most, slope * each.least)) for each in lucks]


class Past:
    """Sums over trials, and what they say about the next one."""

    def __init__(self, caution: float = 2.0) -> None:
        self.n, self.sums, self._caution = 0, np.zeros(7), caution

    def add(self, cost: float, luck: Luck) -> None:
        """Count one more trial."""
        self.n, x = self.n + 1, luck.value
        self.sums += (cost, cost * cost, x, x * x, cost * x, luck.most, luck.least)

    def guess(self) -> tuple[float, tuple[float, float], tuple[float, float]]:
        """Return the coefficient, the variances without and with it (in those of failures), and usual risks.

        A variance of 1 is that of a trial that fails or not with the mean in question.
        """
        n, (total, squares, lucky, ll, cl, most, least) = self.n, self.sums.tolist()
        mean = (total + 0.5) / (n + 1)
        spread = squares - 2 * mean * total + n * mean * mean + _PRIOR
        both, ridged = cl - mean * lucky, ll + _RIDGE
        explained = both * both / ridged
        chance = self._caution * max(spread - explained, 1e-9) / max(n - 1, 1)
        slope = both / ridged * max(0.0, 1 - chance / max(explained, 1e-12))
        rest = spread - 2 * slope * both + slope * slope * ll
        whole = max(spread, n * mean * (1 - mean) + _PRIOR) + 2 * _PRIOR
        first, second = (max((each + 2 * _PRIOR) / whole, 0.02) for each in (spread, rest))
        above, below = (slope * each / max(n, 1) for each in (most, least))
        return slope, (first, second), (max(above, below), max(-above, -below))


class MeanBets:
    """Bets against many means at once, from below and from above, one trial at a time.

    The deltas are the probabilities with which each limit may ever fail, `alone` the share of the capital
    that ignores predictions. `horizon` is the number of trials, if there is one look after all of them: bets
    are then those of the cheapest way to have 1/delta after the last one, the delta of a digital option.
    `means` are those to test; left out, a fine grid.

    >>> bets = MeanBets.anytime(0.05, 0.05)
    >>> rng = np.random.default_rng(0)
    >>> for scene, *others in rng.choice([0.1, 0.1, 0.1, 0.9], (120, 5)):
    ...     bets.add(float(rng.random() < scene), luck_of(scene, others))
    >>> bets.lower < 0.3 < bets.upper
    True
    """

    def __init__(
        self,
        delta_lower: float,
        delta_upper: float,
        *,
        alone: float = 0.0,
        horizon: int | None = None,
        means: Array | None = None,
    ) -> None:
        self._past, self._horizon = Past(), horizon
        self._deltas = delta_lower, delta_upper
        known = [share for share in (alone, 1 - alone) if share]
        self._uses = np.repeat([0.0, 1.0][-len(known) :], 1 if horizon else len(_SIZES))[:, None]
        shares = np.repeat(known, 1 if horizon else len(_SIZES))[:, None]
        points = np.arange(1, STEPS) / STEPS if means is None else means
        self._means = [points, np.sort(1 - points)]
        self._capital = [np.tile(shares / shares.sum(), points.size) for _ in (0, 1)]

    @classmethod
    def anytime(cls, delta_lower: float, delta_upper: float) -> MeanBets:
        """Return bets that may be read after any trial, half of them on costs alone."""
        return cls(delta_lower, delta_upper, alone=0.5)

    @property
    def lower(self) -> float:
        """The lower limit: all means below it were refuted."""
        return self._limit(0) / STEPS

    @property
    def upper(self) -> float:
        """The upper limit."""
        return (STEPS - self._limit(1)) / STEPS

    @property
    def limits(self) -> tuple[float, float]:
        """Both; if they cross, one has failed, and they are moved outward."""
        return min(self.lower, self.upper), max(self.lower, self.upper)

    def add(self, cost: float, *lucks: Luck) -> None:
        """Count one more trial; of two policies, with the luck of each.

        Either has a share of the room for debt. A common one would follow from both sets of predictions,
        and where policies share scenes, both together tell which scene was run.
        """
        slope, ratios, risks = self._past.guess()
        for side, x in enumerate((cost, 1 - cost)):
            if self._means[side].size:
                controls = controls_of(lucks, slope * (1 - 2 * side))
                self._bet(side, x, controls, np.sqrt(ratios), risks[side])
        self._past.add(cost, Luck(*map(sum, zip(*lucks, strict=True))))

    def _bet(
        self, side: int, cost: float, controls: list[tuple[float, float]], scales: Array, risk: float
    ) -> None:
        means, capital, uses = self._means[side], self._capital[side], self._uses
        deviations = np.sqrt(means * (1 - means)) * np.where(uses, scales[1], scales[0])
        if self._horizon is None:
            sizes = np.resize(_SIZES, uses.shape) / deviations
        else:
            chance = np.clip(capital * self._deltas[side], 1e-200, 1 - 1e-9)
            z = ndtri(chance)
            left = math.sqrt(max(self._horizon - self._past.n, 1))
            # A failure that is rare moves a chance by more than its slope, unless it was predicted.
            skew = (1 - 2 * means) / (np.sqrt(means * (1 - means)) * left)
            steep = np.clip(1 + skew * z / 3 * np.where(uses, (scales[1] / scales[0]) ** 2, 1.0), 0.7, 1.5)
            sizes = np.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * steep * chance * deviations * left)
        sizes = np.minimum(sizes, _MOST / (means + uses * risk))
        # Each whole control, or as much of it as no scene of this round could have turned into debt.
        room = ((1 - 1e-3) - sizes * means) / len(controls)
        gains = cost - means
        for control, worst in controls:
            gains = gains - uses * np.minimum(1.0, room / np.maximum(sizes * worst, 1e-12)) * control
        capital *= 1 + sizes * gains
        wealth = capital.sum(axis=0)
        open_ = wealth < ENOUGH / self._deltas[side]
        if not open_.all():
            self._means[side], self._capital[side] = means[open_], np.ascontiguousarray(capital[:, open_])

    def _limit(self, side: int) -> int:
        first = self._means[side][0] if self._means[side].size else 1.0
        return max(round(float(first) * STEPS) - 1, 0)
