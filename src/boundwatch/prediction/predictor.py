"""A score of scenes, and the curve that turns it into a predicted cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from boundwatch._support.validation import check_costs
from boundwatch.errors import InvalidCost, InvalidSetting

Array = NDArray[np.float64]
Score = Callable[[Any], ArrayLike]
# Newton's method on two coefficients; the ridge keeps them finite where a score separates the costs.
_STEPS = 50
_RIDGE = 1e-3


@dataclass(frozen=True)
class Predictor:
    """Predicts costs from scenes: a logistic curve of a score, so always a number in [0, 1].

    A good one saves real trials, a bad one costs some. The guarantee of `boundwatch.PredictedTest` does not
    depend on it. **Assumes**, as that test does, that it sees the scene that is run and those that are not in
    the same way: predict them in one call.

    ``score`` maps scenes to one finite number each; the prediction is ``expit(offset + slope * score)``.
    ``correlation`` is that between predictions and costs in the rollouts that the curve was fitted to. What
    it promises in trials is in ``docs/before-it-fails.md``; in a new world it may be lower.
    """

    score: Score
    slope: float
    offset: float
    correlation: float | None = None

    def __str__(self) -> str:
        known = "unknown" if self.correlation is None else f"{self.correlation:.3g}"
        return f"Predictor with slope {self.slope:.4g}; the correlation with costs is {known}"

    def __call__(self, scenes: Any) -> Array:
        """Return the predicted costs of some scenes, one each."""
        return np.asarray(expit(self.offset + self.slope * check_scores(self.score(scenes))))


def calibrate(score: Score, scenes: Any, costs: ArrayLike) -> Predictor:
    """Fit the curve from a score to costs, by logistic regression on rollouts of the certified world.

    The score maps scenes to one number each, on any scale and in either direction; ``costs``, in [0, 1], are
    what the policy cost in these scenes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clutter = rng.integers(0, 10, 400)
    >>> failed = rng.random(400) < clutter / 12
    >>> predict = calibrate(lambda scenes: scenes, clutter, failed.astype(float))
    >>> predict(np.array([0, 5, 9])).round(1).tolist(), round(predict.correlation, 1)
    ([0.1, 0.4, 0.8], 0.5)
    """
    scores, known = check_scores(score(scenes)), check_costs(costs)
    if scores.size != known.size:
        problem = f"{scores.size} scores, {known.size} costs"
        raise InvalidSetting(problem, remedy="give one scene per cost")
    # In standard units, so that the ridge means the same on every scale; a constant score has no slope.
    spread = float(scores.std())
    if spread > 1e-12 * max(1.0, float(np.abs(scores).max())):
        slope, offset = _logistic((scores - scores.mean()) / spread, known)
        slope, offset = slope / spread, offset - slope * float(scores.mean()) / spread
    else:
        slope, offset = 0.0, _logistic(np.zeros_like(scores), known)[1]
    return Predictor(score, slope, offset, _correlation(expit(offset + slope * scores), known))


def check_scores(scores: ArrayLike) -> Array:
    """Return scores as one finite number per scene, or say which is not."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.size == 0:
        problem = f"a predictor returned a shape {values.shape}"
        raise InvalidSetting(problem, remedy="return one number per scene")
    bad = ~np.isfinite(values)
    if bad.any():
        place = int(np.argmax(bad))
        problem = f"a predictor returned {values[place]} for scene {place}"
        raise InvalidCost(problem, remedy="return finite numbers")
    return values


def _logistic(scores: Array, costs: Array) -> tuple[float, float]:
    """Return slope and offset of the least cross-entropy."""
    features = np.stack([scores, np.ones_like(scores)])
    weights = np.zeros(2)
    for _ in range(_STEPS):
        rates = expit(weights @ features)
        gradient = features @ (rates - costs) / costs.size + _RIDGE * weights
        curvature = (features * (rates * (1 - rates))) @ features.T / costs.size + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])


def _correlation(predictions: Array, costs: Array) -> float:
    if np.ptp(predictions) == 0 or np.ptp(costs) == 0:
        return 0.0
    return float(np.corrcoef(predictions, costs)[0, 1])
