"""Held-out limits: coverage by exact enumeration over Bernoulli costs, and by simulation for others."""

import numpy as np
import pytest
from scipy.stats import binom

from boundwatch import bounds
from rates import assert_rate_at_most, min_trials

MEANS = np.concatenate([[0.001, 0.01], np.linspace(0.03, 0.97, 48), [0.99, 0.999]])
SIZES = [1, 2, 5, 10, 30, 100, 200]
FAMILIES = ["hoeffding", "chernoff", "clopper_pearson", "betting", "tuned"]
BETS = ("betting", "tuned")


def limits(family, n, delta):
    """Lower and upper limits for each number of failures from 0 to n."""
    failures = np.arange(n + 1)
    lower, upper = getattr(bounds, f"{family}_lower"), getattr(bounds, f"{family}_upper")
    if family in BETS:
        rows = (np.arange(n)[None] < failures[:, None]).astype(float)
        return lower(rows, delta), upper(rows, delta)
    observed = failures if family == "clopper_pearson" else failures / n
    return lower(observed, n, delta), upper(observed, n, delta)


def misses(lower, upper, n):
    """Probability that each limit lies on the wrong side of the mean, for each mean."""
    probability = binom.pmf(np.arange(n + 1)[None], n, MEANS[:, None])
    return (probability * (lower > MEANS[:, None])).sum(1), (probability * (upper < MEANS[:, None])).sum(1)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("delta", [0.005, 0.05, 0.4])
def test_each_limit_misses_at_most_delta(family, n, delta):
    below, above = misses(*limits(family, n, delta), n)
    assert below.max() <= delta
    assert above.max() <= delta


@pytest.mark.parametrize("family", FAMILIES)
def test_a_limit_that_is_too_tight_fails_this_test(family):
    lower, upper = limits(family, 200, 0.05)
    below, above = misses(lower + 0.05, upper - 0.05, 200)
    assert below.max() > 0.05
    assert above.max() > 0.05


def test_exact_spends_most_of_its_delta():
    """No vacuous limits: somewhere on the grid the exact limits miss nearly as often as they may."""
    below, above = misses(*limits("clopper_pearson", 200, 0.05), 200)
    assert below.max() > 0.04
    assert above.max() > 0.04


@pytest.mark.parametrize("n", SIZES[1:])
def test_families_are_ordered(n):
    (h_low, h_up), (c_low, c_up), (e_low, e_up) = (limits(f, n, 0.05) for f in FAMILIES[:3])
    assert np.all(h_low <= c_low)
    assert np.all(c_low <= e_low + 1e-12)
    assert np.all(h_up >= c_up)
    assert np.all(c_up >= e_up - 1e-12)
    assert np.sum(e_up - e_low) < np.sum(c_up - c_low) < np.sum(h_up - h_low)


@pytest.mark.parametrize("family", ["hoeffding", "chernoff", *BETS])
def test_coverage_for_a_continuous_cost(family):
    trials, n, delta = 20_000, 40, 0.05
    assert trials >= min_trials(limit=delta, broken=0.07)
    costs = np.random.default_rng(11).beta(0.3, 0.6, (trials, n))
    observed = (costs,) if family in BETS else (costs.mean(1), n)
    lower, upper = (getattr(bounds, f"{family}_{side}")(*observed, delta) for side in ("lower", "upper"))
    assert_rate_at_most(int(np.sum(lower > 1 / 3)), trials, delta)
    assert_rate_at_most(int(np.sum(upper < 1 / 3)), trials, delta)
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(int(np.sum(lower + 0.15 > 1 / 3)), trials, delta)
