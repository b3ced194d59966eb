"""Limits in rounds on the mean over tasks: every outcome of small worlds, with its probability."""

import itertools

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds import anytime_upper
from boundwatch.bounds.rounds import Centered, equal_weights, refuted_by_rounds, rounds_lower, rounds_upper
from rates import assert_rate_at_most, min_trials

RATES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)
LEVELS = (0.3, 0.05)
# What people posted about their policies (success rates by task) and by how much limits may exceed the truth.
DREAM = 1 - np.array([1, 1, 0.95, 1, 0.95, 0.2, 1, 0.85, 1, 0.9])
VIDEO = 1 - np.array([0.22, 0.34, 0.32, 0.40, 0.62, 0.24, 0.66, 0.38, 0.76, 0.92, 0.92, 1, 0.42, 0.94])
LIBERO = 1 - np.array([0.131, 0.068, 0.656, 0.87, 0.818, 0.164, 0.727])
TABLES = [(DREAM, 20, 0.050), (DREAM, 50, 0.028), (VIDEO, 20, 0.073), (VIDEO, 50, 0.046), (LIBERO, 50, 0.064)]


def enumerate_rounds(tasks: int, rounds: int, values=(0.0, 1.0)) -> np.ndarray:
    every = np.array(list(itertools.product(values, repeat=tasks * rounds)))
    return every.reshape(-1, rounds, tasks)


def probabilities(streams: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return np.where(streams == 1, rates, 1 - rates).prod(axis=(1, 2))


WEIGHTS = {2: [None, (0.8, 0.2)], 3: [None, (0.1, 0.3, 0.6)]}


@pytest.mark.parametrize(("tasks", "rounds"), [(2, 7), (3, 4)])
@pytest.mark.parametrize("weighted", [0, 1])
@pytest.mark.parametrize("delta", LEVELS)
def test_no_world_makes_a_limit_fail_more_often_at_any_round(tasks, rounds, weighted, delta):
    streams, spent = enumerate_rounds(tasks, rounds), []
    weights = equal_weights(tasks) if weighted == 0 else np.array(WEIGHTS[tasks][1])
    centered = Centered.of(streams, weights)
    sizes = centered.sizes(-np.log(delta))
    for rates in map(np.array, itertools.product(RATES, repeat=tasks)):
        chances = probabilities(streams, rates)
        logs = np.cumsum(centered.log_factors(sizes, np.full(len(streams), weights @ rates)), axis=1)
        expected = chances @ np.exp(logs)  # the capital, in every round
        assert (expected <= 1 + 1e-12).all()
        assert chances @ (logs >= -np.log(delta)).any(axis=1) <= delta
        spent.append(expected[-1])
    assert max(spent) > (0.9 if weighted else 1 - 1e-9)  # little is given away where tasks are alike


def changing_sizes(centered: Centered, sizes: np.ndarray, mean: float) -> np.ndarray:
    """The broken twin: in each round it bets on the first tasks, and nothing on the others."""
    within = np.arange(centered.values.shape[-1]) < centered.values.shape[-1] / 2
    placed = np.minimum(sizes, 0.95 / np.maximum(centered.tops - mean, 1e-12))
    return np.log1p((placed[..., None] * within) * (mean - centered.values)).sum(axis=-1)


def test_a_size_that_changes_within_a_round_breaks_it():
    streams, delta, rates = enumerate_rounds(2, 7), 0.3, np.array([0.0, 1.0])
    centered = Centered.of(streams, equal_weights(2))
    sizes, mean = centered.sizes(-np.log(delta)), 0.5
    logs = np.cumsum(changing_sizes(centered, sizes, mean), axis=1)
    chances = probabilities(streams, rates)
    assert (chances @ np.exp(logs)).max() > 1.05
    # With costs as they are, not centered, the capital grows in every round, and the level does not hold.
    uncentered = Centered(streams, np.ones((len(streams), 7)), *[centered.variances * 0 + 0.25] * 2)
    for twin, broken in ((changing_sizes, True), (_constant_sizes, False)):
        logs = np.cumsum(twin(uncentered, 3 * sizes, mean), axis=1)
        assert (chances @ (logs >= -np.log(delta)).any(axis=1) > delta) == broken


def _constant_sizes(centered: Centered, sizes: np.ndarray, mean: float) -> np.ndarray:
    return centered.log_factors(sizes, np.full(len(sizes), mean))


def test_costs_in_between_keep_the_expected_capital_below_one():
    values, rounds = np.array([0.0, 0.3, 1.0]), 4
    streams = enumerate_rounds(2, rounds, values)
    chances_of = [np.array(one) for one in ((0.5, 0.5, 0.0), (0.2, 0.3, 0.5), (0.0, 0.9, 0.1))]
    places = np.searchsorted(values, streams)
    for weights in (equal_weights(2), np.array([0.8, 0.2])):
        for side in (streams, 1 - streams):
            centered = Centered.of(side, weights)
            sizes = centered.sizes(-np.log(0.1))
            for first, second in itertools.product(chances_of, repeat=2):
                chances = first[places[..., 0]].prod(axis=1) * second[places[..., 1]].prod(axis=1)
                mean = float(chances @ (side @ weights).mean(axis=1))
                logs = np.cumsum(centered.log_factors(sizes, np.full(len(side), mean)), axis=1)
                assert (chances @ np.exp(logs) <= 1 + 1e-12).all()


def test_the_limits_are_where_the_capital_reaches_its_mark_and_follow_from_earlier_ones():
    rng = np.random.default_rng(71)
    for weights in (None, (0.5, 0.3, 0.1, 0.1)):
        costs = (rng.random((40, 4)) < [0.05, 0.2, 0.5, 0.9]).astype(float)
        uppers = [rounds_upper(costs[:rounds], 0.05, weights) for rounds in range(1, 41)]
        lowers = [rounds_lower(costs[:rounds], 0.05, weights) for rounds in range(1, 41)]
        assert (np.diff(uppers) <= 1e-12).all()  # the narrowest so far
        assert (np.diff(lowers) >= -1e-12).all()
        for upper in set(uppers) - {1.0}:
            rounds = uppers.index(upper) + 1
            assert refuted_by_rounds(costs[:rounds], upper, 0.05, weights)
            assert not refuted_by_rounds(costs[:rounds], upper - 1e-9, 0.05, weights)
        assert rounds_lower(costs, 0.05, weights) == pytest.approx(1 - rounds_upper(1 - costs, 0.05, weights))


@pytest.mark.parametrize("place", range(len(TABLES)))
def test_posted_tables_get_narrow_limits_that_hold(place):
    rates, rounds, asked = TABLES[place]
    rng = np.random.default_rng(72 + place)
    streams = (rng.random((120, rounds, rates.size)) < rates).astype(float)
    uppers = np.array([rounds_upper(stream, 0.05) for stream in streams])
    assert uppers.mean() - rates.mean() <= asked
    assert_rate_at_most(int((uppers <= rates.mean()).sum()), 120, 0.05)


def test_tasks_that_are_alike_cost_little():
    rng = np.random.default_rng(73)
    rates = np.full(10, 0.2)
    for rounds in (20, 50):
        streams = (rng.random((60, rounds, 10)) < rates).astype(float)
        ours = np.mean([rounds_upper(stream, 0.05) for stream in streams]) - 0.2
        pooled = float(np.mean(anytime_upper(streams.sum(axis=(1, 2)), rounds * 10, 0.05))) - 0.2
        assert ours <= 1.05 * pooled


@pytest.mark.parametrize("weights", [None, (0.4, 0.3, 0.2, 0.1)])
def test_the_level_over_many_rounds(weights):
    runs, delta, rounds = 20_000, 0.05, 60
    assert runs >= min_trials(delta, 0.066)
    rng, rates = np.random.default_rng(74), np.array([0.05, 0.2, 0.5, 0.9])
    mean = float(rates @ (equal_weights(4) if weights is None else np.array(weights)))
    hits = [0, 0]
    for _ in range(10):
        streams = (rng.random((runs // 10, rounds, 4)) < rates).astype(float)
        hits[0] += int(refuted_by_rounds(streams, mean, delta, weights).sum())
        hits[1] += int(refuted_by_rounds(1 - streams, 1 - mean, delta, weights).sum())
    for side in hits:
        assert_rate_at_most(side, runs, delta)
        assert side > 0.1 * delta * runs


def test_a_campaign_holds_at_whatever_round_one_stops():
    rng, rates, missed = np.random.default_rng(75), {"mug": 0.1, "bowl": 0.5}, 0
    for _ in range(40):
        campaign = bw.Campaign(0.2, binary=True, strata=rates)
        for _ in range(15):
            for task, rate in rates.items():
                campaign.update(int(rng.random() < rate), task)
        missed += not campaign.lower <= (0.1 * 0.1 + 0.5 * 0.5) / 0.6 <= campaign.upper
    assert_rate_at_most(missed, 40, 0.2)
