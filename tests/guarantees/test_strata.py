"""Several tasks in one evaluation: limits on the mean over them, and "no task got worse", by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from boundwatch.bounds import strata
from boundwatch.bounds.held_out import clopper_pearson_lower

GRID = (0.0, 0.03, 0.1, 0.3, 0.5, 0.8, 1.0)


def outcomes(*sizes):
    """Return all numbers of failures of tasks, a row per outcome."""
    return np.array(list(itertools.product(*(range(n + 1) for n in sizes))))


def chances(found, sizes, rates):
    """Return the chance of each outcome."""
    return binom.pmf(found, sizes, rates).prod(axis=1)


def worst_level(p_values, weights, tried):
    """Return how often a p-value is at most alpha, for the alpha of those tried that is exceeded most."""
    return max(weights[p_values <= alpha].sum() / alpha for alpha in tried)


@pytest.mark.parametrize(("lab", "new"), [((6, 6), (5, 5)), ((3, 3, 2), (2, 2, 3))])
def test_no_task_got_worse_is_rejected_at_most_as_often_as_promised(lab, new, monkeypatch):
    found, tasks = outcomes(*lab, *new), len(lab)
    grid = GRID if tasks == 2 else (0.0, 0.1, 0.4, 0.9, 1.0)
    tried = [0.01, 0.05, 0.1, 0.2, 0.3]

    alike = [rates * 2 for rates in itertools.product(grid, repeat=tasks)]
    better = [(*rates[:tasks], rates[0] / 2, *rates[1:tasks]) for rates in alike]

    def levels(p_values):
        return max(worst_level(p_values, chances(found, lab + new, each), tried) for each in alike + better)

    p_values = np.array([strata.stratified_p_value(lab, k[:tasks], new, k[tasks:]) for k in found])
    assert 0.5 < levels(p_values) <= 1 + 1e-9
    assert strata.stratified_p_value(lab, (0,) * tasks, new, new) < 0.05
    # Weights must not look at where the failures are: here the task that got worst counts most.
    for row, k in enumerate(found):
        change = k[tasks:] / new - k[:tasks] / np.array(lab)
        weights = np.where(np.arange(tasks) == np.argmax(change), 400, 2)
        monkeypatch.setattr(strata, "_weights", lambda *_, weights=weights: weights)
        p_values[row] = strata.stratified_p_value(lab, k[:tasks], new, k[tasks:])
    assert levels(p_values) > 1.05


@pytest.mark.parametrize("most_spread", [0, strata._MOST_SPREAD])
def test_the_p_value_is_the_chance_of_as_many_weighted_failures_given_each_total(most_spread, monkeypatch):
    monkeypatch.setattr(strata, "_MOST_SPREAD", most_spread)  # below it tasks count unlike
    rng, tried = np.random.default_rng(8), 0
    for _ in range(40):
        old, new = rng.integers(3, 12, (2, 3))
        lab, seen = rng.binomial(old, 0.3), rng.binomial(new, 0.5)
        totals = lab + seen
        open_ = (totals > 0) & (totals < old + new)
        weights = strata._weights(totals, old + new)
        assert (weights.min() == weights.max() == 1) == (most_spread == 0)
        chances = [hypergeom(n + m, t, m) for n, m, t in zip(old, new, totals, strict=True)]
        each = np.ix_(*(one.pmf(np.arange(m + 1)) for one, m in zip(chances, new, strict=True)))
        counted = np.tensordot(weights * open_, np.indices([m + 1 for m in new]), 1)
        expected = math.prod(each)[counted >= (weights * open_) @ seen].sum()
        tried += bool(open_.all())
        assert strata.stratified_p_value(old, lab, new, seen) == pytest.approx(min(expected, 1), rel=1e-9)
    assert tried > 20


def test_a_task_that_got_worse_and_one_that_got_better_are_no_test_of_the_mean():
    """What the docstring says that it is not: the mean stays, and the test may reject more often."""
    lab, new = (40, 4), (4, 40)
    found = outcomes(4, 4)
    at = [strata.stratified_p_value(lab, (0, 4), new, (k[0], 10 * k[1])) for k in found]
    assert min(at) < 0.05


@pytest.mark.parametrize("delta", [0.005, 0.05, 0.3])
def test_pooled_limits_hold_for_tasks_that_differ_in_any_way(delta):
    """The largest chance over all rates of a given mean is at rates in {0, 1, a} (Hoeffding, 1956)."""
    worst = broken = 0.0
    for n in range(2, 13):
        k = np.arange(n + 1)
        lower, upper = strata.pooled_lower(k, n, delta), strata.pooled_upper(k, n, delta)
        exact = clopper_pearson_lower(k, n, delta)
        assert (lower <= k / n).all()
        assert (upper >= k / n).all()
        np.testing.assert_allclose(1 - upper[::-1], lower, atol=1e-12)
        for ones in range(n):
            for others in range(1, n - ones + 1):
                # Just below each limit is where it fails most often.
                means = np.concatenate([lower[2:], exact[1:2], lower[1:2]]) - 1e-9
                rates = (means * n - ones) / others
                for rate, mean in zip(rates, means, strict=True):
                    if not 0 <= rate <= 1:
                        continue
                    chance = binom.pmf(k - ones, others, rate)
                    worst = max(worst, chance[lower > mean].sum(), chance[::-1][upper < 1 - mean].sum())
                    broken = max(broken, chance[exact > mean].sum())
    assert 0.9 * delta < worst <= delta
    assert broken > delta * (1.0015 if delta < 0.01 else 1.02)  # Clopper-Pearson's at a single failure


@pytest.mark.parametrize("delta", [0.02, 0.2])
def test_weighted_limits_hold_for_unequal_numbers(delta):
    sizes, weights = np.array([9, 3]), np.array([0.5, 0.5])
    found = outcomes(*sizes)
    lower = np.array([strata.weighted_lower(k / sizes, sizes, weights, delta) for k in found])
    pooled = strata.pooled_lower(found.sum(axis=1), int(sizes.sum()), delta)
    worst = broken = 0.0
    for rates in itertools.product(np.linspace(0, 1, 21), repeat=2):
        chance, mean = chances(found, sizes, rates), weights @ rates
        worst = max(worst, chance[lower > mean + 1e-9].sum())
        broken = max(broken, chance[pooled > mean + 1e-9].sum())
    assert 0.1 * delta < worst <= delta
    assert broken > 2 * delta  # as if every trial, not every task, had the same weight


def test_the_difference_of_two_weighted_means_is_judged_over_the_draw_of_both():
    lab, new, half = (5, 3), (3, 4), np.array([0.5, 0.5])
    sizes, weights = np.array(new + lab), np.concatenate([half, -half])
    found = outcomes(*sizes)
    for margin in (0.0, 0.2):
        p_values = np.array([strata.weighted_p_value(k / sizes, sizes, weights, margin) for k in found])
        worst = 0.0
        for rates in itertools.product((0, 0.1, 0.3, 0.6, 1), repeat=4):
            if weights @ rates <= margin + 1e-12:
                level = worst_level(p_values, chances(found, sizes, rates), (0.02, 0.1, 0.3))
                worst = max(worst, level)
        assert 0.05 < worst <= 1
    surely = np.array([1.0, 1.0, 0.0, 0.0])
    assert strata.weighted_p_value(surely, 5 * sizes, weights, 0.2) < 0.001
    limit = strata.weighted_lower(surely, 5 * sizes, weights, 0.05)
    assert strata.weighted_p_value(surely, 5 * sizes, weights, limit) == pytest.approx(0.05, rel=1e-4)


def test_equal_numbers_give_chernoffs_limits_and_a_sum_of_many_trials_is_quick():
    from boundwatch.bounds import chernoff_lower, chernoff_p_value

    means, n, weights = [0.6, 0.5, 0.7], [30] * 3, [1 / 3] * 3
    assert strata.weighted_lower(means, n, weights, 0.05) == pytest.approx(
        chernoff_lower(0.6, 90, 0.05), abs=1e-6
    )
    assert strata.weighted_p_value(means, n, weights, 0.4) == pytest.approx(
        chernoff_p_value(0.6, 90, 0.4), rel=1e-5
    )
    many = strata.stratified_p_value([20_000] * 3, [4000] * 3, [5000] * 3, [1050] * 3)
    assert 0.001 < many < 0.1
    assert strata.stratified_p_value([4, 5], [0, 5], [3, 3], [0, 3]) == 1.0  # the totals leave nothing open


def test_a_p_value_is_at_most_one_just_above_the_null():
    assert strata.weighted_p_value([0.5], [10], [1.0], 0.5 - 1e-12) == 1.0
