"""MSP and MaxLogit: their scores, their thresholds, and that they promise nothing."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.confidence import MSP, MaxLogit
from scipy.special import softmax

from boundwatch.detectors import Verdict
from boundwatch.errors import InvalidLevel, InvalidSetting

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
    verdicts = baseline(TRAINING).decide_many(datasets).verdict
    assert np.mean(verdicts == Verdict.ADVERSE) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("baseline", BASELINES)
def test_low_confidence_is_a_shift_and_high_confidence_never_is(baseline):
    rng = np.random.default_rng(2)
    judge = baseline(TRAINING)
    assert judge.decide(rng.normal(scale=0.5, size=(10, 7))).verdict is Verdict.ADVERSE
    assert judge.decide(rng.normal(scale=9.0, size=(10, 7))).verdict is Verdict.WITHIN


@pytest.mark.parametrize("baseline", BASELINES)
def test_many_datasets_are_judged_as_one_by_one(baseline):
    datasets = np.random.default_rng(3).normal(scale=2.5, size=(20, 10, 7))
    judge = baseline(TRAINING)
    many = judge.decide_many(datasets)
    for logits, verdict, score in zip(datasets, many.verdict, many.score, strict=True):
        finding = judge.decide(logits)
        assert (finding.verdict, finding.n) == (Verdict(str(verdict)), 10)
        assert finding.score == pytest.approx(score)


@pytest.mark.parametrize("baseline", BASELINES)
def test_nothing_is_guaranteed_and_thresholds_do_not_depend_on_who_asked_before(baseline):
    first, second = baseline(TRAINING), baseline(TRAINING)
    content = first.decide(TRAINING[:10]).to_dict()
    assert content["false_positive_rate"] == content["false_negative_rate"] == 1.0
    assert content["verdict"] in ("adverse", "within")
    assert first.threshold(10) == (second.threshold(20), second.threshold(10))[1]


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros((0, 7)), "shape"),
        (np.zeros(7), "shape"),
        (np.zeros((5, 1)), "at least 2 actions"),
        (np.full((5, 7), np.nan), "not finite"),
        ("x", "= 'x' is not an array of numbers"),
        ({}, "= {} is not an array of numbers"),
    ],
)
def test_bad_outputs_are_refused(logits, message):
    with pytest.raises(InvalidSetting, match=message):
        MSP(logits)
    with pytest.raises(InvalidSetting, match=message):
        MSP(TRAINING).decide(logits)


def test_bad_levels_are_refused():
    with pytest.raises(InvalidLevel, match="alpha"):
        MaxLogit(TRAINING, alpha=0.0)
