"""Numerics at the edge of the floats: nothing rounds inward, nothing becomes NaN."""

import numpy as np
import pytest
from scipy import special, stats

import boundwatch as bw
from boundwatch import bounds
from boundwatch.errors import InvalidLevel


@pytest.mark.parametrize("n", [10**8, 10**12, 10**15])
def test_exact_limits_hold_for_any_number_of_costs(n):
    """Against the Poisson limits for few failures and the normal ones for many: exact enough here."""
    delta = 0.005
    few = np.array([0.0, 1.0, 10.0, 1000.0])
    below = np.where(few > 0, special.gammaincinv(np.maximum(few, 1), delta), 0) / n
    above = special.gammainccinv(few + 1, delta) / n
    lower, upper = bounds.clopper_pearson_lower(few, n, delta), bounds.clopper_pearson_upper(few, n, delta)
    assert np.all(lower <= below * (1 + 1e-4))
    assert np.all(upper >= above * (1 - 1e-4))
    assert np.all(upper - lower < 2.5 * (above - below))
    many = np.array([0.1, 0.5, 0.99]) * n
    width = stats.norm.isf(delta) * np.sqrt(many / n * (1 - many / n) / n)
    lower, upper = bounds.clopper_pearson_lower(many, n, delta), bounds.clopper_pearson_upper(many, n, delta)
    assert np.all(many / n - lower > width * (1 - 1e-3))
    assert np.all(upper - many / n > width * (1 - 1e-3))
    assert np.all(upper - lower < 3 * width)


@pytest.mark.parametrize("upper", [1e-310, 5e-324, 0.0])
def test_a_bound_next_to_zero(upper):
    certificate = bw.Certificate.from_bounds(lower=0, upper=upper, delta=0.01)
    tests = [bw.HypothesisTest(certificate, tail=tail) for tail in ("hoeffding", "kl", "betting")]
    findings = [test.decide([0, 0.1, 0.2]) for test in (*tests, bw.ConfidenceInterval(certificate))]
    for finding in (*findings, bw.SequentialTest(certificate).update_many([0, 0.5])):
        numbers = (finding.p_adverse, finding.p_benign, finding.shift_lower, finding.shift_upper)
        assert np.isfinite(numbers).all()
    assert np.isfinite(bw.ChangeDetector(certificate).update_many([0, 0.5]).statistic_adverse)


@pytest.mark.parametrize("delta", [5e-324, 1e-310])
def test_a_level_that_cannot_be_computed_with_is_refused_when_it_is_chosen(delta):
    for binary in (False, True):
        with pytest.raises(InvalidLevel, match="too small to compute with"):
            bw.Certificate.from_held_out([0, 1], delta=delta, binary=binary)
    with pytest.raises(InvalidLevel, match="too small to compute with"):
        bw.SequentialTest(bw.Certificate.from_bounds(lower=0, upper=1, delta=0.1), alpha_adverse=delta)
    smallest = bw.Certificate.from_held_out([0, 1], delta=1e-299, binary=True)
    assert np.isfinite([smallest.lower, smallest.upper]).all()


@pytest.mark.parametrize("delta", [0.05, 1e-6, 1e-30, 1e-49, 1e-51, 1e-100, 1e-200, 1e-298])
def test_exact_limits_hold_at_any_delta(delta):
    """The inverse beta function is no number for some of these, and 30 orders of magnitude off for others."""
    for n in (1, 2, 5, 50, 1146, 10**6):
        k = np.unique(np.round(n * np.linspace(0, 1, 41) ** 2))
        lower, upper = bounds.clopper_pearson_lower(k, n, delta), bounds.clopper_pearson_upper(k, n, delta)
        assert ((lower >= 0) & (lower <= k / n) & (k / n <= upper) & (upper <= 1)).all()
        allowed = delta * (1 + 1e-6)
        assert (special.bdtrc(k - 1, n, lower)[(k > 0) & (lower < k / n)] <= allowed).all()
        assert (special.bdtr(k, n, upper)[(k < n) & (upper > k / n)] <= allowed).all()
    # Still as narrow as it may be, but for a few parts in a hundred where it is kl-Chernoff's.
    narrow = float(bounds.clopper_pearson_upper(500, 1000, delta))
    assert delta**1.06 < float(special.bdtr(500, 1000, narrow)) <= delta * (1 + 1e-6)
