"""Limits with predictions: every bet is fair for any predictor and any past; power; the broken twins fail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.predicted import draw, enumerate_streams, worlds

import boundwatch as bw
from boundwatch.bounds.predicted_mean import Luck, MeanBets, luck_of

MEAN = 0.3
PASTS = {  # of costs and luck: what the coefficient is learned from
    "none": [],
    "right": [(cost, Luck(cost - 0.5, 0.5, -0.5)) for cost in (0.0, 1.0) * 6],
    "inverted": [(cost, Luck(0.5 - cost, 0.5, -0.5)) for cost in (0.0, 1.0) * 6],
    "narrow": [(cost, Luck(0.01 * cost, 0.01, 0.0)) for cost in (0.0, 0.0, 1.0) * 5],
}


class FromTheCurrentTrial(MeanBets):
    """The broken twin whose coefficient knows the trial that it is for."""

    def add(self, cost, luck):
        for _ in range(6):
            self._past.add(cost, luck)
        super().add(cost, luck)


def expected(kind, past, horizon, mean=MEAN, unlabeled=None):
    """The largest expected capital of a side over worlds of two scenes, after two more rounds; exactly."""
    largest, scenes = 0.0, itertools.islice(worlds(mean), 0, None, 1 if past == "right" else 5)
    for share, rates, predictions in scenes:
        total = np.zeros(2)
        for probability, stream in enumerate_streams(share, rates, rounds=2, k=1):
            alone = 0.0 if horizon else 0.5
            bets = kind(1e-9, 1e-9, alone=alone, horizon=horizon, means=np.array([mean]))
            for each in PASTS[past]:
                bets._past.add(*each)
            for cost, scene, others in stream:
                unrun = [predictions[s] if unlabeled is None else unlabeled for s in others]
                bets.add(float(cost), luck_of(predictions[scene], unrun))
            total += probability * np.array([capital.sum() for capital in bets._capital])
        largest = max(largest, total.max())
    return largest


@pytest.mark.parametrize("horizon", [None, 40])
@pytest.mark.parametrize("past", PASTS)
def test_every_bet_is_fair_for_any_predictor_whatever_was_learned(past, horizon):
    """Exactly, over all streams of two rounds: good, useless, inverted and hopelessly wrong predictions."""
    assert expected(MeanBets, past, horizon) == pytest.approx(1, abs=1e-9)


def test_a_mean_of_predictions_that_is_taken_as_known_is_no_control():
    """The broken twin: compared with a mean that is not of scenes of this world."""
    assert expected(MeanBets, "right", 40, unlabeled=0.0) > 1.02


def test_a_coefficient_that_knows_the_trial_wins_by_itself():
    assert expected(FromTheCurrentTrial, "right", 40) > 1.02


@pytest.mark.parametrize("k", [1, 3])
def test_no_outcome_turns_a_bet_into_debt(k):
    rng = np.random.default_rng(1)
    for horizon in (None, 30):
        bets = MeanBets(1e-300, 1e-300, alone=0.0 if horizon else 0.5, horizon=horizon)
        for step in range(30):
            helpful = step < 15
            cost = float(rng.random() < 0.5)
            scene = cost if helpful else 1 - cost  # an adversary, who is trusted by then
            bets.add(cost, luck_of(scene, rng.integers(0, 2, k)))
            assert min(capital.min() for capital in bets._capital) >= 0


def widths(kind, correlation, n, runs=12):
    """Mean widths of limits without predictions and with them, of one look and of a campaign."""
    rng, found = np.random.default_rng(5), []
    for _ in range(runs):
        costs, scenes, others = (part[:n] for part in draw(rng, 0.3, kind, correlation, 10, True))
        given = {"predicted": scenes.tolist(), "unlabeled": list(others)}
        campaign = bw.Campaign(binary=True, predictions=True)
        for cost, scene, rest in zip(costs, scenes, others, strict=True):
            campaign.update(cost, predicted=scene, unlabeled=rest)
        each = [
            bw.Certificate.from_held_out(costs, binary=True),
            bw.Certificate.from_held_out(costs, binary=True, **given),
            bw.Campaign(binary=True).update_many(costs),
            campaign,
        ]
        found.append([limits.upper - limits.lower for limits in each])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("kind", ["calibrated", "inverted"])
def test_predictions_of_either_sign_narrow_the_limits(kind):
    once, helped, ever, campaign = widths(kind, 0.8, 150)
    assert helped < 0.93 * once
    assert campaign < 0.85 * ever


def test_useless_predictions_widen_them_little():
    once, helped, ever, campaign = widths("useless", 0.8, 100)
    assert helped < 1.05 * once
    assert campaign < 1.05 * ever
