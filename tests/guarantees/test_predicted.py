"""Predicted costs: the level holds for every predictor, exactly; power; and the shortcut fails."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks.predicted import enumerate_streams, worlds

import boundwatch as bw
from boundwatch.detectors.predicted import BINS, Design
from rates import assert_rate_at_most, min_trials

UPPER, LOWER = 0.3, 0.2
CERTIFICATE = bw.Certificate.from_bounds(lower=LOWER, upper=UPPER, delta=1e-12, binary=True)
SCENES = (0, 1)


@pytest.mark.parametrize(("side", "mean"), [("adverse", UPPER), ("benign", LOWER)])
def test_the_expected_wealth_never_exceeds_one(side, mean):
    """Exactly, over all streams of two rounds: for every kind of predictor, on both sides."""
    largest = 0.0
    for share, rates, predictions in worlds(mean):
        expected = 0.0
        for probability, stream in enumerate_streams(share, rates, rounds=2, k=1):
            test = bw.PredictedTest(CERTIFICATE)
            for cost, scene, others in stream:
                test._round(float(cost), predictions[scene], np.array([predictions[s] for s in others]))
            index = 0 if side == "adverse" else 1
            expected += probability * float(np.exp(test._log_wealth(index)))
        assert expected <= 1 + 1e-9
        largest = max(largest, expected)
    assert largest > 1 - 1e-6  # at the bound the bets are fair, so nothing is given away


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("uses", ["right", "useless", "inverted"])
def test_every_round_is_a_fair_bet_however_many_scenes_are_seen(k, uses):
    """The control's two terms have the same expectation, so one round's factor is 1 at the bound."""
    share, low = 0.25, 0.1
    high = (UPPER - (1 - share) * low) / share
    predictions = {"right": (low, high), "useless": (0.4, 0.4), "inverted": (high, low)}[uses]
    places = [min(int(p * BINS), BINS - 1) for p in predictions]
    weights = np.full(BINS, 1 / BINS)
    design = Design.of(UPPER, np.array([0.05, 0.3, 0.9]), weights)
    expected, smallest = np.zeros(design.nu.shape), 0.0
    for scene, cost in itertools.product(SCENES, (0, 1)):
        rate = (low, high)[scene]
        weight = (1 - share, share)[scene] * (rate if cost else 1 - rate)
        for ones in range(k + 1):  # how many of the scenes not run are of kind 1
            times = math.comb(k, ones) * share**ones * (1 - share) ** (k - ones)
            others = np.array([places[1]] * ones + [places[0]] * (k - ones))
            gains = design.gains(cost, places[scene], others)
            expected += weight * times * gains
            smallest = min(smallest, float(gains.min()))
    np.testing.assert_allclose(expected, 0, atol=1e-12)
    assert smallest >= -1


def test_centering_at_the_certified_world_is_invalid():
    """The broken twin: costs unchanged, scenes that look easier. The bets gain all the same."""
    design = Design.of(UPPER, np.array([0.3]), np.full(BINS, 1 / BINS))
    control = design.control[2, 0]
    easier, certified = control[2], control[12]  # predictions of 0.08 now, of 0.39 when it was certified
    gain = design.scale[2, 0] * (easier - certified)
    assert gain > 0.05  # in every round, so that it alarms in every run
    rounds = math.ceil(math.log(1 / 0.04) / math.log1p(gain))
    assert rounds < 60


def ranked(rounds):
    """A test that has counted rounds of a cost, a prediction and others, and the capital of its ranks."""
    test = bw.PredictedTest(CERTIFICATE)
    for cost, prediction, others in rounds:
        test._round(float(cost), float(prediction), np.asarray(others, dtype=float))
    return test, float(np.exp(np.logaddexp.reduce(test._rows["ranks"], axis=None)))


def test_ranks_win_nothing_unless_predictions_know_the_cost():
    """Exactly, over all streams of two rounds with two unrun scenes; the broken twin predicts the cost."""
    honest, knowing = [], []
    for share, rates, predictions in itertools.islice(worlds(UPPER), 0, None, 5):
        expected = np.zeros(2)
        for probability, stream in enumerate_streams(share, rates, rounds=2, k=2):
            rounds = [(cost, predictions[s], [predictions[o] for o in others]) for cost, s, others in stream]
            leaky = [(cost, cost, others) for cost, _, others in rounds]
            expected += probability * np.array([ranked(rounds)[1], ranked(leaky)[1]])
        honest.append(expected[0])
        knowing.append(expected[1])
    assert max(honest) <= 1 + 1e-12
    assert max(knowing) > 1.2


@pytest.mark.parametrize("known", [0.0, 0.5, 1.0])
def test_ranks_notice_predictions_that_know_the_cost(known):
    rng, noticed, runs = np.random.default_rng(3), 0, 10
    for _ in range(runs):
        costs, scenes, others = stream(rng, UPPER, 0.5, 240, 10, "good")
        test, _ = ranked(zip(costs, (1 - known) * scenes + known * costs, others, strict=True))
        noticed += test.finding().p_exchangeable <= 0.001
    assert noticed == 0 if known == 0 else noticed >= 0.8 * runs


def stream(rng, mean, correlation, n, k, kind):
    """Draw failures and calibrated predictions with this correlation; then spoil the predictions."""
    strength = 1 / correlation**2 - 1
    rates = rng.beta(mean * strength, (1 - mean) * strength, (n, k + 1))
    costs = (rng.random(n) < rates[:, 0]).astype(float)
    predictions = {
        "good": lambda: rates,
        "useless": lambda: rng.random((n, k + 1)),
        "inverted": lambda: 1 - rates,
        "optimistic": lambda: rates / 10,
    }[kind]()
    return costs, predictions[:, 0], predictions[:, 1:]


def trials_to_alarm(rng, certificate, mean, correlation, k, kind, most):
    test = bw.PredictedTest(certificate)
    costs, scenes, others = stream(rng, mean, correlation, most, k, kind)
    for cost, scene, rest in zip(costs.tolist(), scenes.tolist(), others, strict=True):
        test._round(cost, scene, rest)
        if test.verdict is bw.Verdict.ADVERSE:
            break
    return test.n, test.verdict


def test_a_good_predictor_saves_trials_and_a_useless_one_costs_few():
    """The numbers are in docs/before-it-fails.md; here, the order and the size of the effect."""
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=0.2, delta=0.01, binary=True)
    rng = np.random.default_rng(7)
    mean = {
        kind: np.mean([trials_to_alarm(rng, certificate, 0.45, 0.95, 5, kind, 100)[0] for _ in range(50)])
        for kind in ("good", "useless", "inverted")
    }
    alone = bw.plan(certificate, cost=0.45).powers[-1].mean_trials
    assert mean["good"] < 0.8 * alone
    assert mean["inverted"] < 0.9 * alone  # its sign is learned on the way
    assert mean["useless"] < 1.35 * alone


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["good", "useless", "inverted", "optimistic"])
def test_false_alarms_within_200_trials(kind):
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=0.2, delta=0.01, binary=True)
    rng = np.random.default_rng(11)
    runs = min_trials(limit=0.04, broken=0.08)
    hits = sum(
        trials_to_alarm(rng, certificate, 0.2, 0.8, 5, kind, 200)[1] is bw.Verdict.ADVERSE
        for _ in range(runs)
    )
    assert_rate_at_most(hits, runs, 0.04)
