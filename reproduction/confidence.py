"""MSP and MaxLogit, the paper's baselines: they watch the network's confidence, not the task.

They **carry no guarantee**: the threshold is a quantile of resampled training data, which bounds nothing, and
low confidence need not mean a higher cost, nor a higher cost low confidence.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_level
from boundwatch.detectors.base import LOOK_LEVEL, Verdict
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]
Said = TypeVar("Said", Verdict, NDArray[np.str_])
Score = TypeVar("Score", float, Array)
RESAMPLES = 10_000


@dataclass(frozen=True, kw_only=True, repr=False)
class BaselineFinding(Generic[Said, Score]):
    """What a baseline says of a dataset; of many of equal size, `verdict` and `score` are arrays.

    The verdict is ADVERSE if the mean confidence `score` is below `threshold`, else WITHIN: a baseline cannot
    tell a benign shift from an adverse one. Nothing is guaranteed, so both error rates are 1.
    """

    verdict: Said
    n: int
    score: Score
    threshold: float
    detector: str
    false_positive_rate: float = 1.0
    false_negative_rate: float = 1.0

    def __repr__(self) -> str:
        return one_line(self, vars(self))

    def __str__(self) -> str:
        adverse, datasets = np.sum(self.verdict == Verdict.ADVERSE), np.size(self.score)
        called = f"{adverse} of {datasets} datasets of {self.n} environments ADVERSE"
        return f"{called}, without a guarantee: threshold {self.threshold:.4g} ({self.detector})"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding on one dataset as plain JSON values."""
        return dataclasses.asdict(self) | {"verdict": str(self.verdict)}


class _ConfidenceBaseline(ABC):
    """Declares a shift when the mean confidence of n outputs is low for n training outputs."""

    name: ClassVar[str]

    def __init__(self, training_logits: ArrayLike, *, alpha: float = LOOK_LEVEL, seed: int = 0) -> None:
        self.alpha = check_level(alpha, "alpha")
        self._training = self.scores(_check_logits(training_logits, "training_logits", ndim=2))
        self._seed = seed
        self._thresholds: dict[int, float] = {}

    def __repr__(self) -> str:
        return one_line(self, {"training": self._training.size, "alpha": self.alpha, "seed": self._seed})

    def __str__(self) -> str:
        return f"{type(self).__name__} at {self.alpha:g}, without a guarantee"

    @staticmethod
    @abstractmethod
    def scores(logits: Array) -> Array:
        """Return the confidence of each output."""

    def threshold(self, n: int) -> float:
        """Return the alpha-quantile of the mean confidence of n environments resampled from training."""
        if n not in self._thresholds:
            rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(n,)))
            means = [rng.choice(self._training, size=(100, n)).mean(axis=1) for _ in range(RESAMPLES // 100)]
            self._thresholds[n] = float(np.quantile(np.concatenate(means), self.alpha))
        return self._thresholds[n]

    def decide(self, logits: ArrayLike) -> BaselineFinding[Verdict, float]:
        """Judge one dataset by the network's outputs before the softmax, shape (n, actions)."""
        many = self.decide_many(_check_logits(logits, "logits", ndim=2)[None])
        one = vars(many) | {"verdict": Verdict(str(many.verdict[0])), "score": float(many.score[0])}
        return BaselineFinding(**one)

    def decide_many(self, logits: ArrayLike) -> BaselineFinding[NDArray[np.str_], Array]:
        """Judge many datasets of equal size at once: shape (datasets, n, actions)."""
        values = _check_logits(logits, "logits", ndim=3)
        n, score = values.shape[1], self.scores(values).mean(axis=-1)
        threshold = self.threshold(n)
        verdict = np.where(score < threshold, Verdict.ADVERSE, Verdict.WITHIN)
        return BaselineFinding(verdict=verdict, n=n, score=score, threshold=threshold, detector=self.name)


class MSP(_ConfidenceBaseline):
    """Maximum softmax probability (Hendrycks and Gimpel, 2017). **Guarantee**: none.

    Parameters
    ----------
    training_logits
        The network's outputs on its training environments, before the softmax, shape (m, actions).
    alpha
        The share of datasets resampled from training that the threshold calls shifted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> baseline = MSP(rng.normal(scale=4.0, size=(1000, 7)))
    >>> baseline.decide(rng.normal(scale=1.0, size=(10, 7))).verdict.value
    'adverse'
    """

    name = "msp"

    @staticmethod
    def scores(logits: Array) -> Array:
        """Return the largest softmax probability of each output."""
        return np.asarray(1.0 / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1))


class MaxLogit(_ConfidenceBaseline):
    """Largest logit (Hendrycks et al., 2020); parameters as for `MSP`. **Guarantee**: none."""

    name = "max-logit"

    @staticmethod
    def scores(logits: Array) -> Array:
        """Return the largest logit of each output."""
        return np.asarray(logits.max(axis=-1))


def _check_logits(logits: ArrayLike, name: str, *, ndim: int) -> Array:
    remedy = "pass the network's outputs, " + ("(n, actions)" if ndim == 2 else "(datasets, n, actions)")
    try:
        values = np.asarray(logits, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSetting("is not an array of numbers", name=name, value=logits, remedy=remedy) from None
    if values.ndim != ndim or values.size == 0 or values.shape[-1] < 2:
        problem = f"has shape {values.shape}, not that of outputs for at least 2 actions"
        raise InvalidSetting(problem, name=name, remedy=remedy)
    if not np.all(np.isfinite(values)):
        raise InvalidSetting("has entries that are not finite", name=name, remedy=remedy)
    return values
