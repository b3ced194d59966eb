"""Predicted costs as side information: fewer real trials, valid whatever the predictor.

Every trial comes with a predicted cost f for its scene, and with predictions for other scenes of the *same
new world* that were not run. A bet multiplies the capital by

    1 + s (nu (c - U) + A(f) - mean of A over the scenes that were not run),

with nu, A and s fixed before the round. ``docs/theory.md`` shows why that is valid for any A, and that
A = (1 - r)/(1 - q) is the fastest for a model r of the failure rate and the nearest q with mean U. The models
here shift the logit of the prediction, with slope 1 (the predictor is right except for its level), 1/2
(overconfident), -1 (it predicts the opposite) or 0 (useless: a bet on costs alone), to one of 16 levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from boundwatch._support.validation import check_predictions
from boundwatch.bounds.bets import STEPS, Bets, CostGrid, Rows, add_costs, bet_bounds, shared
from boundwatch.bounds.halving import halve
from boundwatch.bounds.ranks import first_logs, log_gains
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.anytime_detector import ONLY, AnytimeDetector
from boundwatch.detectors.evidence import bounded_exp
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, Finding, refuse_tasks

Array = NDArray[np.float64]
# Slopes of the models and the capital behind each, chosen by simulation (docs/before-it-fails.md).
SLOPES = np.array([0.0, 0.5, 1.0, -1.0])
SLOPE_SHARES = np.array([0.55, 0.10, 0.22, 0.13])
# Bets on models that hardly use the prediction are cut where one failure would carry the wealth past its
# mark: what lies beyond is wasted. A strong predictor leaves little overshoot, and cutting its bets costs
# trials.
_CUT = (np.abs(SLOPES) < 0.7)[:, None]
BINS = 32
_POINTS = (np.arange(BINS) + 0.5) / BINS
_LOGITS = logit(np.clip(_POINTS, 0.02, 0.98))
# The bets are designed anew when half as many scenes again have been seen: often at first, then hardly ever.
_GROWTH = 1.5
# Validity does not hang on how exactly a design is solved, only the last percent of its growth does.
_HALVINGS = 20


@dataclass(frozen=True, kw_only=True)
class PredictedFinding(Finding):
    """What a `PredictedTest` knows after a trial, `predicted` of which came with predictions.

    Valid whenever it is read. The shift limits come from the costs alone, so an alarm may come before they
    exclude a shift of zero.

    Attributes
    ----------
    p_exchangeable
        The p-value of "scenes that are run and scenes that are not get predictions alike", by ranks: small
        says that predictions of trials were made in another way, such as with their costs known. Then no rate
        is promised; a large one is no proof.
    """

    predicted: int
    p_exchangeable: float


class PredictedTest(AnytimeDetector[PredictedFinding]):
    """Watches a stream of costs with the help of predicted costs; may be read after every trial.

    **Guarantee**: that of `SequentialTest` against the certified limits, for any predictor, good, useless or
    malicious. **Assumes**: given the past, the scene of the trial and the scenes that were not run are
    exchangeable (draws from the same new world), the predictor sees them in the same way and does not look at
    the cost; costs of the certified kind, an unchanged policy.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> test = bw.PredictedTest(certificate)
    >>> for cost, predicted in [(1, 0.3), (1, 0.2), (0, 0.1), (1, 0.2), (1, 0.4), (1, 0.2)]:
    ...     finding = test.update(cost, predicted=predicted, unlabeled=[0.2, 0.3, 0.1, 0.25])
    >>> finding.verdict.value, finding.first_alarm
    ('adverse', 5)
    """

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = ANYTIME_LEVEL,
        alpha_benign: float = ANYTIME_LEVEL,
    ) -> None:
        self._accept(certificate, alpha_adverse, alpha_benign)
        refuse_tasks(self.certificate)
        self.bets = Bets.for_costs(binary=certificate.binary)
        self._bounds = bet_bounds(certificate.lower, certificate.upper)
        start = np.log(np.outer(SLOPE_SHARES, self.bets.shares))
        self._rows = Rows(
            {
                "predicted": np.array(0),
                "ranks": first_logs(),
                "best_rank": np.array(0.0),
                "best": np.zeros(2),
                "logs": np.stack([start, start]),
                "seen": np.zeros(BINS),
                "designed_for": np.zeros(BINS),
                "grid": np.zeros(STEPS + 1),
            },
            size=1,
        )
        self.reset()

    @property
    def predicted(self) -> int:
        """How many trials came with predictions."""
        return int(self._rows["predicted"][0])

    def reset(self) -> None:
        """Forget all trials and any alarm: what follows is a new watch."""
        super().reset()
        self._design()

    def update(
        self, cost: float, predicted: float | None = None, unlabeled: ArrayLike = ()
    ) -> PredictedFinding:
        """Count one more trial and return the finding.

        Parameters
        ----------
        predicted
            The cost predicted for its scene, in [0, 1], made without looking at the cost.
        unlabeled
            Predictions for scenes of the same world that were observed but not run; at least one if
            `predicted` is given. Without predictions the round is a bet on the cost alone.
        """
        value = self._check(cost)
        self._round(value, *check_predictions(predicted, unlabeled))
        return self._finding()

    def _step(self, cost: float) -> None:
        self._round(cost, None, np.empty(0))

    def _round(self, cost: float, predicted: float | None, others: Array) -> None:
        seen, designed_for, best = (self._rows[name][0] for name in ("seen", "designed_for", "best"))
        if seen.sum() > _GROWTH * designed_for.sum():
            designed_for[:] = seen
            self._design()
        self.n += 1
        self._total += cost
        add_costs(self._rows["grid"], ONLY, np.array([cost]))
        places = None if predicted is None else (_bins(predicted), _bins(others))
        alphas = self.alpha_adverse, self.alpha_benign
        for side in (0, 1):
            self._bet(side, cost if side == 0 else 1 - cost, places, alphas[side])
            wealth = self._log_wealth(side)
            best[side] = max(best[side], wealth)
            if wealth >= math.log(1 / alphas[side]) - 1e-12:
                self._alarm(side)
        if predicted is not None and places is not None:
            self._rows["predicted"] += 1
            above, tied = (others > predicted).sum(), (others == predicted).sum()
            self._rows["ranks"] += log_gains(*np.array([[above], [tied], [others.size + 1]]))
            evidence = np.logaddexp.reduce(self._rows["ranks"], axis=None)
            self._rows["best_rank"][:] = np.maximum(self._rows["best_rank"], evidence)
            for place in places:
                np.add.at(seen, place, 1.0)

    def _log_wealth(self, side: int) -> float:
        return float(np.logaddexp.reduce(self._rows["logs"][0, side], axis=None))

    def _bet(self, side: int, cost: float, places: tuple[Any, Any] | None, alpha: float) -> None:
        """Settle one round of one side; the benign side sees 1 - cost and 1 - prediction."""
        design, logs = self._designs[side], self._rows["logs"][0, side]
        if places is None:
            gains = design.scale * design.nu * (cost - design.bound)
            gains[SLOPES != 0] = 0.0  # these models have nothing to go by
        else:
            scene, others = places if side == 0 else tuple(BINS - 1 - place for place in places)
            gains = design.gains(cost, scene, others)
        shares = design.cut_to(logs, alpha) if self._rows["best"][0, side] < math.log(1 / alpha) else 1.0
        with np.errstate(divide="ignore"):  # a bet may lose everything
            logs += np.log(np.maximum(1 + shares * gains, 0.0))

    def _design(self) -> None:
        scenes = self._rows["designed_for"][0]
        weights = (scenes + 1 / BINS) / (scenes.sum() + 1)
        upper, rest = self._bounds
        sizes = tuple(self.bets.sizes.tolist())
        self._designs = [
            _design(upper, sizes, tuple(weights.tolist())),
            _design(rest, sizes, tuple(weights[::-1].tolist())),
        ]

    def _finding(self) -> PredictedFinding:
        certificate, grid = self.certificate, CostGrid(self._rows["grid"][0])
        best = self._rows["best"][0].tolist()
        return PredictedFinding(
            **self._known(),
            p_adverse=math.exp(-best[0]),
            p_benign=math.exp(-best[1]),
            shift_lower=grid.mean_lower(self.bets, self.alpha_adverse) - certificate.upper,
            shift_upper=grid.mean_upper(self.bets, self.alpha_benign) - certificate.lower,
            detector="predicted-test",
            e_adverse=bounded_exp(self._log_wealth(0)),
            e_benign=bounded_exp(self._log_wealth(1)),
            predicted=self.predicted,
            p_exchangeable=math.exp(-float(self._rows["best_rank"][0])),
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._design()


@dataclass(frozen=True)
class Design:
    """The bets of one side for the next round: one for each slope (rows) and level (columns).

    `nu` is the stake on the cost, `scale` the share of it that no outcome can turn into debt, `control` A(f)
    for every bin of the prediction (the last axis), `after_failure` and `after_success` the expected gain of
    each bet if its model is right.
    """

    bound: float
    nu: Array
    scale: Array
    control: Array
    after_failure: Array
    after_success: Array

    @classmethod
    def of(cls, bound: float, sizes: Array, weights: Array) -> Design:
        """Design the bets for predictions that fall into the bins with these weights."""
        levels = bound + (1 - bound) * sizes
        rates = _shifted(np.broadcast_to(levels, (SLOPES.size, sizes.size)), weights)
        nu, nearest = _nearest_null(rates, weights, bound)
        control = (1 - rates) / np.maximum(1 - nearest, 1e-300)
        mean = control @ weights
        spread = control.max(axis=-1) - control.min(axis=-1)
        scale = np.minimum(1.0, (1 - 1e-12) / np.maximum(nu * bound + spread, 1e-300))
        # If the whole capital is at stake on the cost alone, there is no spread to leave room for.
        scale[0] = 1.0
        fails, passes = rates * weights, (1 - rates) * weights
        given_failure = (control * fails).sum(axis=-1) / fails.sum(axis=-1) - mean
        given_success = (control * passes).sum(axis=-1) / np.maximum(passes.sum(axis=-1), 1e-300) - mean
        after = scale * (nu * (1 - bound) + given_failure), scale * (given_success - nu * bound)
        return cls(bound, *map(shared, (nu, scale, control, *after)))

    def gains(self, cost: float, scene: Any, others: Any) -> Array:
        """Return what each bet gains, relative to its capital; never below -1."""
        luck = self.control[..., scene] - self.control[..., others].mean(axis=-1)
        luck[0] = 0.0  # slope 0 is a bet on costs alone, whatever rounding left of its control
        return np.asarray(self.scale * (self.nu * (cost - self.bound) + luck))

    def cut_to(self, logs: Array, alpha: float) -> Array:
        """Return the shares of the bets that one outcome can turn into an alarm, and no more than that."""
        capital = np.exp(logs)
        most = max(float((capital * self.after_failure).sum()), float((capital * self.after_success).sum()))
        room = 1 / alpha - float(capital.sum())
        share = min(max(room / most, 0.0), 1.0) if most > 0 else 1.0
        return np.where(_CUT, share, 1.0)


@lru_cache(maxsize=256)  # tests of one certificate begin alike, and a design takes milliseconds
def _design(bound: float, sizes: tuple[float, ...], weights: tuple[float, ...]) -> Design:
    return Design.of(bound, np.array(sizes), np.array(weights))


def _shifted(levels: Array, weights: Array) -> Array:
    """Return models that shift the logit of the prediction until their mean is the level."""
    slopes, most = SLOPES[:, None, None] * _LOGITS, np.full(levels.shape, 20.0)
    low, _ = halve(-most, most, lambda shift: expit(shift[..., None] + slopes) @ weights < levels, _HALVINGS)
    rates: Array = expit(low[..., None] + slopes)
    rates[0] = levels[0][:, None]  # slope 0 is exact
    return rates


def _nearest_null(rates: Array, weights: Array, bound: float) -> tuple[Array, Array]:
    """Return nu, and the model with mean `bound` that is nearest to each in relative entropy."""
    most = np.full(rates.shape[:-1], 1 / bound)
    _, high = halve(np.zeros_like(most), most, lambda nu: _tilted(rates, nu) @ weights > bound, _HALVINGS)
    high[0] = (rates[0, :, 0] - bound) / (bound * max(1 - bound, 1e-300))
    return high, _tilted(rates, high)


def _tilted(rates: Array, nu: Array) -> Array:
    # The smaller root of nu q² - (1 + nu) q + r = 0, which is r/q - (1 - r)/(1 - q) = nu.
    nu = nu[..., None]
    return np.asarray(2 * rates / ((1 + nu) + np.sqrt(np.maximum((1 + nu) ** 2 - 4 * nu * rates, 0.0))))


def _bins(predictions: Any) -> Any:
    return np.minimum((np.asarray(predictions) * BINS).astype(np.int64), BINS - 1)
