"""The Bernstein form that bounds the level of a test for every rate at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
