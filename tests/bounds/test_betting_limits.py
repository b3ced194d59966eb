"""Betting limits against brute force, and what makes them usable at all sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from boundwatch.bounds import (
    betting_log_wealth,
    betting_lower,
    betting_p_value,
    betting_upper,
    chernoff_upper,
    fixed_bets,
)

costs_lists = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def brute_force_wealth(costs, null_mean):
    bets, log_shares = fixed_bets(len(costs))
    return sum(
        np.exp(s) * np.prod([1 - b + b * x / null_mean for x in costs])
        for b, s in zip(bets, log_shares, strict=True)
    )


@pytest.mark.parametrize("n", [1, 5, 30])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-4])
def test_limits_are_roots_of_the_wealth(n, delta):
    costs = np.random.default_rng(n).beta(0.7, 1.5, n)
    root = brentq(lambda m: np.log(brute_force_wealth(costs, m) * delta), 1e-6, 1.0, xtol=1e-14)
    lower = float(betting_lower(costs, delta))
    assert lower == pytest.approx(root, abs=1e-10)
    assert lower <= root + 1e-13
    mirrored = 1 - float(betting_lower(1 - costs, delta))
    assert float(betting_upper(costs, delta)) == pytest.approx(mirrored, abs=1e-12)


@given(costs_lists, st.floats(0.01, 0.99))
def test_wealth_matches_brute_force_and_ignores_order(costs, null_mean):
    wealth = float(betting_log_wealth(costs, null_mean))
    assert wealth == pytest.approx(np.log(brute_force_wealth(costs, null_mean)), abs=1e-9)
    assert wealth == pytest.approx(float(betting_log_wealth(sorted(costs), null_mean)), abs=1e-9)


@given(costs_lists, st.floats(0.001, 0.99))
def test_limits_enclose_the_mean_and_there_is_no_evidence_unless_it_lies_beyond_the_null(costs, level):
    mean = np.mean(costs)
    assert 0 <= betting_lower(costs, level) <= mean + 1e-12
    assert mean - 1e-12 <= betting_upper(costs, level) <= 1
    assert mean > level or betting_p_value(costs, level) > 1 - 1e-9


def test_degenerate_data():
    assert betting_lower(np.zeros(10), 0.05) == 0.0
    assert betting_upper(np.ones(10), 0.05) == 1.0
    assert betting_p_value(np.zeros(3), 0.0) == 1.0
    assert betting_p_value([0.0, 0.1], 0.0) == 0.0
    rows = np.array([[0.0, 0.0], [0.5, 1.0]])
    assert betting_lower(rows, 0.1).shape == (2,)
    assert betting_lower(rows, 0.1)[1] == betting_lower(rows[1], 0.1)


def test_a_small_variance_pays():
    """Ten thousand costs spread like the drone's: betting is a sixth tighter than kl-Chernoff or better."""
    rng = np.random.default_rng(0)
    costs = np.where(rng.random(10_000) < 0.35, 0.0, rng.random(10_000))
    gap = float(betting_upper(costs, 0.005)) - costs.mean()
    assert gap < 5 / 6 * (float(chernoff_upper(costs.mean(), 10_000, 0.005)) - costs.mean())


@pytest.mark.parametrize("n", [10, 62, 200, 1000, 10_000])
def test_costs_that_never_vary_are_not_wasted(n):
    """A policy that never fails: within 1.7 times kl-Chernoff, which is made for this case."""
    assert betting_upper(np.zeros(n), 0.005) < 1.7 * chernoff_upper(0.0, n, 0.005)
    rare = np.zeros(n)
    rare[: n // 100] = 1.0
    assert betting_upper(rare, 0.005) < 1.7 * chernoff_upper(rare.mean(), n, 0.005)


def test_a_million_costs_neither_overflow_nor_stall():
    costs = np.zeros(1_000_000)
    costs[0] = 1.0
    assert 0 <= betting_lower(costs, 0.005) < 1e-6
    assert 1e-6 < betting_upper(costs, 0.005) < 1e-4


def test_rows_have_their_own_null_and_weights():
    rows = np.random.default_rng(4).beta(2, 5, (3, 20)).round(2)
    null = np.array([0.1, 0.0, 0.3])
    each = [float(betting_log_wealth(row, mean)) for row, mean in zip(rows, null, strict=True)]
    assert betting_log_wealth(rows, null) == pytest.approx(each, rel=1e-12)
    # What occurs zero times changes nothing, not even a cost of 0, on which a bet of 1 is lost.
    padded, weights = np.zeros((2, 3, 25))
    padded[:, :20], weights[:, :20] = rows, 1
    assert betting_lower(padded, 0.05, weights) == pytest.approx(betting_lower(rows, 0.05), rel=1e-14)


def test_the_grid_of_a_very_long_dataset_only_widens():
    costs = np.random.default_rng(5).beta(0.3, 0.9, 150_000)
    values, counts = np.unique(costs, return_counts=True)
    exact = betting_lower(values, 0.01, counts), betting_upper(values, 0.01, counts)
    limits = betting_lower(costs, 0.01), betting_upper(costs, 0.01)
    assert exact[0] - 1e-5 < limits[0] <= exact[0]
    assert exact[1] <= limits[1] < exact[1] + 1e-5
    assert betting_log_wealth(costs, exact[0]) <= np.log(100) + 1e-9
