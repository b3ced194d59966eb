"""MSP and MaxLogit, the paper's baselines: they watch the network's confidence, not the task.

They **carry no guarantee**: the threshold is a quantile of resampled training data, which bounds nothing, and
low confidence need not mean a higher cost, nor a higher cost low confidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from boundwatch.detectors.verdicts import Verdict
from reproduction.artifacts import Array

RESAMPLES = 10_000


class Confidence(ABC):
    """Declares a shift when the mean confidence of n outputs is low for n training outputs.

    ``training_logits`` are the network's outputs on its training environments before the softmax, shape
    (m, actions), and ``alpha`` is the share of datasets resampled from them that is called shifted.
    """

    name: ClassVar[str]

    def __init__(self, training_logits: Array, *, alpha: float = 0.05, seed: int = 0) -> None:
        self.alpha, self._training, self._seed = alpha, self.scores(training_logits), seed
        self._thresholds: dict[int, float] = {}

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

    def decide_many(self, logits: Array) -> NDArray[np.str_]:
        """Return ADVERSE or WITHIN for datasets of outputs, shape (datasets, n, actions)."""
        low = self.scores(logits).mean(axis=-1) < self.threshold(logits.shape[1])
        return np.where(low, Verdict.ADVERSE, Verdict.WITHIN)


class MSP(Confidence):
    """Maximum softmax probability (Hendrycks and Gimpel, 2017).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> baseline = MSP(rng.normal(scale=4.0, size=(1000, 7)))
    >>> baseline.decide_many(rng.normal(scale=1.0, size=(1, 10, 7))).tolist()
    ['adverse']
    """

    name = "msp"

    @staticmethod
    def scores(logits: Array) -> Array:
        """Return the largest softmax probability of each output."""
        return np.asarray(1.0 / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1))


class MaxLogit(Confidence):
    """Largest logit (Hendrycks et al., 2020)."""

    name = "max-logit"

    @staticmethod
    def scores(logits: Array) -> Array:
        """Return the largest logit of each output."""
        return np.asarray(logits.max(axis=-1))
