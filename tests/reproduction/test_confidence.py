"""MSP and MaxLogit: their scores, and their thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.confidence import MSP, MaxLogit
from scipy.special import softmax

BASELINES = [MSP, MaxLogit]
TRAINING = np.random.default_rng(0).normal(scale=3.0, size=(5000, 7))


def test_scores_are_their_definitions():
    logits = TRAINING[:50]
    assert np.allclose(MSP.scores(logits), softmax(logits, axis=1).max(axis=1))
    assert np.array_equal(MaxLogit.scores(logits), logits.max(axis=1))
    assert MSP.scores(np.array([[1e4, 0.0]])) == 1.0  # nothing overflows


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("n", [1, 10, 50])
def test_threshold_calls_five_percent_of_training_datasets_shifted(baseline, n):
    rng = np.random.default_rng(1)
    datasets = TRAINING[rng.integers(len(TRAINING), size=(4000, n))]
    assert np.mean(baseline(TRAINING).decide_many(datasets) == "adverse") == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("baseline", BASELINES)
def test_low_confidence_is_a_shift_and_high_confidence_never_is(baseline):
    rng = np.random.default_rng(2)
    datasets = np.array([[[0.5]], [[9.0]]]) * rng.normal(size=(2, 10, 7))
    assert baseline(TRAINING).decide_many(datasets).tolist() == ["adverse", "within"]


@pytest.mark.parametrize("baseline", BASELINES)
def test_thresholds_do_not_depend_on_who_asked_before(baseline):
    first, second = baseline(TRAINING), baseline(TRAINING)
    assert first.threshold(10) == (second.threshold(20), second.threshold(10))[1]
