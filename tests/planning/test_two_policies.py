"""Plans of comparisons against the test that they plan."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidSetting


def share_decided(pairs, low, high, *, paired, correlation, runs=400):
    rng, decided = np.random.default_rng(1), 0
    both = low * high + correlation * np.sqrt(low * (1 - low) * high * (1 - high))
    for _ in range(runs):
        draws = rng.random(pairs)
        a, b = draws < low, (draws < both) | ((draws >= low) & (draws < low + high - both))
        test = bw.PolicyComparison(binary=True, paired=paired)
        decided += test.update_many(a.astype(float), b.astype(float)).verdict is bw.ComparisonVerdict.A_BETTER
    return decided / runs


@pytest.mark.parametrize("paired", [False, True])
def test_the_power_is_that_of_the_test(paired):
    correlation = 0.2 if paired else 0.0
    plan = bw.plan_comparison(cost_a=0.1, cost_b=0.5, paired=paired, correlation=correlation)
    pairs = plan.trials[0.8]
    assert plan.power[pairs - 1] < 0.8 <= plan.power[pairs]
    simulated = share_decided(pairs, 0.1, 0.5, paired=paired, correlation=correlation)
    assert abs(simulated - plan.power[pairs]) < 5 * np.sqrt(0.16 / 400)
    assert plan.trials[0.5] < plan.mean_pairs * 1.2 < plan.trials[0.9] * 1.2


def test_pairing_saves_more_the_more_scenes_are_hard_for_both():
    plans = [bw.plan_comparison(cost_a=0.3, cost_b=0.1, paired=True, correlation=c) for c in (0.0, 0.2, 0.4)]
    means = [plan.mean_pairs for plan in plans]
    assert means == sorted(means, reverse=True)
    assert means[-1] <= 39
    assert plans[0].to_dict()["trials"][0.9] == plans[0].trials[0.9]


def test_a_difference_too_small_for_the_table_is_still_planned():
    plan = bw.plan_comparison(cost_a=0.1, cost_b=0.2)
    assert 300 < plan.trials[0.9] <= plan.most_pairs
    assert all(np.diff(plan.power) >= -1e-12)
    ended = bw.plan_comparison(cost_a=0.1, cost_b=0.2, horizon=100)
    assert ended.trials[0.9] is None
    assert ended.power[100] > plan.power[100]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"cost_b": 0.1}, "cannot be told apart"),
        ({"cost_b": 1.2}, r"cost_b = 1\.2 is not an expected cost"),
        ({"cost_b": 0.2, "correlation": 0.3}, "goes with paired trials only"),
        ({"cost_b": 0.6, "correlation": 0.8, "paired": True}, "not possible"),
    ],
)
def test_what_cannot_be_planned_is_refused(settings, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        bw.plan_comparison(cost_a=0.1, **settings)
