"""The evidence that one failure rate is above another, and the Bernstein form that bounds its level."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.stats import binom

from boundwatch.bounds import two_sample


@pytest.mark.parametrize(("k0", "k1"), [(0, 0), (0, 5), (3, 4), (7, 0), (7, 5)])
def test_the_finite_sum_is_the_integral(k0, k1):
    n0, n1 = 7, 5
    integral, _ = dblquad(
        lambda p1, p0: p0**k0 * (1 - p0) ** (n0 - k0 - 1) * p1**k1 * (1 - p1) ** (n1 - k1),
        0,
        1,
        lambda p0: p0,
        1.0,
    )
    assert np.exp(two_sample.log_higher_rate(n0, n1)[k0, k1]) == pytest.approx(integral, rel=1e-9)


def test_the_probabilities_of_all_orders_sum_to_one():
    n0, n1 = 30, 45
    orders = two_sample.log_choose(n0, np.arange(n0 + 1))[:, None] + two_sample.log_choose(
        n1, np.arange(n1 + 1)
    )
    assert np.exp(orders + two_sample.log_higher_rate(n0, n1)).sum() == pytest.approx(1, abs=1e-12)
    failures = np.arange(n0 + 1)
    pooled = two_sample.log_choose(n0, failures) + two_sample.log_common_rate(n0, failures)
    assert np.exp(pooled).sum() == pytest.approx(1, abs=1e-12)


@given(st.integers(1, 120), st.integers(1, 120))
def test_the_evidence_grows_with_failures_in_the_second_series(n0, n1):
    evidence = two_sample.log_bayes_factors(n0, n1)
    assert (np.diff(evidence[:-1], axis=1) > 0).all()
    # Among the rows it selects, a choice of k0 changes nothing.
    assert (two_sample.log_bayes_factors(n0, n1, [n0 // 2])[0] == evidence[n0 // 2]).all()


def test_the_best_rate_beats_every_mixture():
    n, failures = 40, np.arange(41)
    assert (two_sample.log_best_rate(n, failures) >= two_sample.log_common_rate(n, failures)).all()


def test_coefficients_are_the_shares_of_orders_that_alarm():
    # Alarm when two of the three trials of the second series failed and none of the two of the first did.
    paths, orders, alarms = np.zeros((3, 4)), np.zeros(6), np.zeros(6)
    for order in itertools.product((0, 1), repeat=5):
        k0, k1 = sum(order[:2]), sum(order[2:])
        alarmed = k0 == 0 and k1 >= 2
        orders[sum(order)] += 1
        alarms[sum(order)] += alarmed
        paths[k0, k1] += not alarmed
    coefficients = two_sample.alarm_coefficients(paths, 5)
    assert coefficients == pytest.approx(alarms / orders, abs=1e-12)
    rates = np.linspace(0, 1, 9)
    direct = binom.pmf(0, 2, rates) * binom.sf(1, 3, rates)
    assert two_sample.bernstein_values(coefficients, rates) == pytest.approx(direct, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_bound_holds_for_every_rate_and_tightens_with_the_degree(coefficients):
    n, rates = len(coefficients) - 1, np.linspace(0, 1, 301)
    values = two_sample.bernstein_values(coefficients, rates)
    raised = two_sample.raise_degree(coefficients, 3 * n)
    assert two_sample.bernstein_values(raised, rates) == pytest.approx(values, abs=1e-10)
    bounds = [two_sample.bernstein_upper(coefficients, degree) for degree in (n, 2 * n, 16 * n)]
    assert values.max() <= bounds[2] <= bounds[1] * (1 + 1e-9) <= bounds[0] * (1 + 2e-9)


def test_the_largest_value_on_a_grid_is_not_a_bound():
    # Broken on purpose: a peak between two points of a grid.
    coefficients = np.zeros(401)
    coefficients[200] = 1.0
    grid = two_sample.bernstein_values(coefficients, np.linspace(0, 1, 10)).max()
    assert grid < 0.1 * two_sample.bernstein_values(coefficients, 0.5)
    assert two_sample.bernstein_upper(coefficients) >= two_sample.bernstein_values(coefficients, 0.5)
