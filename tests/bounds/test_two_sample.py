"""The Bernstein form that bounds the level of a test for every rate at once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from boundwatch.bounds import two_sample


def test_the_probabilities_of_all_orders_sum_to_one():
    failures = np.arange(31)
    pooled = two_sample.log_choose(30, failures) + two_sample.log_common_rate(30, failures)
    assert np.exp(pooled).sum() == pytest.approx(1, abs=1e-12)


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


@pytest.mark.parametrize(("n", "degree"), [(7, 30), (7, 1000), (7, 1001), (90, 2500), (800, 2000)])
def test_every_way_to_raise_the_degree_averages_over_hypergeometric_draws(n, degree):
    coefficients = np.random.default_rng(n + degree).random(n + 1)
    raised = two_sample.raise_degree(coefficients, degree)
    assert raised.size == degree + 1
    for failures in {0, 1, 2, degree // 3, degree // 2, degree - 1, degree}:
        expected = hypergeom.pmf(np.arange(n + 1), degree, failures, n) @ coefficients
        assert raised[failures] == pytest.approx(expected, rel=1e-9)


def test_binomial_coefficients_are_those_of_integers_and_zero_outside():
    for n in (0, 1, 2, 9):
        chosen = np.exp(two_sample.log_choose(n, np.arange(-2, n + 3)))
        assert chosen == pytest.approx([0, 0, *(math.comb(n, k) for k in range(n + 1)), 0, 0], rel=1e-12)
    given_total = np.exp(two_sample.log_hypergeometric(5, np.arange(6), 7, 4))
    assert given_total == pytest.approx(hypergeom.pmf(np.arange(6), 12, 4, 5), abs=1e-14)


def test_the_bound_is_raised_to_four_times_the_degree_and_above_rounding():
    coefficients = np.array([0.0, 0.2, 0.9, 0.1])
    assert two_sample.bernstein_upper(coefficients) == two_sample.bernstein_upper(coefficients, 12)
    for degree in (3, 12):
        largest = two_sample.raise_degree(coefficients, degree).max()
        assert largest * (1 + 1e-12) < two_sample.bernstein_upper(coefficients, degree) < largest * (1 + 1e-8)
