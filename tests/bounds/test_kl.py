"""kl and its inverses against 60-digit arithmetic, over the whole range that they promise."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.bounds import binary_kl, kl_inverse_lower, kl_inverse_upper

MEANS = [0.0, 5e-324, 1e-300, 1e-17, 1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999]
MEANS += [1 - 1e-9, 1 - 2**-53, 1.0]
BUDGETS = [1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0]


def reference_kl(q, p):
    """Relative entropy of two mpmath numbers."""
    total = mpmath.mpf(0)
    for a, b in ((q, p), (1 - q, 1 - p)):
        if a > 0:
            total += mpmath.inf if b <= 0 else a * mpmath.log(a / b)
    return total


def reference_inverse(q, c, end):
    """The point furthest from q toward `end` whose relative entropy from q is at most c."""
    q, c, inside, outside = mpmath.mpf(q), mpmath.mpf(c), mpmath.mpf(q), mpmath.mpf(end)
    if reference_kl(q, outside) <= c:
        return outside
    for _ in range(190):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if reference_kl(q, middle) <= c else (inside, middle)
    return inside


@pytest.mark.parametrize("q", MEANS)
@pytest.mark.parametrize("c", BUDGETS)
def test_inverses_are_accurate_and_round_outward(q, c):
    with mpmath.workdps(60):
        upper, lower = mpmath.mpf(float(kl_inverse_upper(q, c))), mpmath.mpf(float(kl_inverse_lower(q, c)))
        true_upper, true_lower = reference_inverse(q, c, 1), reference_inverse(q, c, 0)
        assert 0 <= upper - true_upper <= 1e-12
        assert 0 <= true_lower - lower <= 1e-12


def test_exact_at_the_ends():
    for c in BUDGETS:
        assert kl_inverse_upper(1.0, c) == 1.0
        assert kl_inverse_lower(0.0, c) == 0.0
        assert kl_inverse_upper(0.0, c) == pytest.approx(-np.expm1(-c), rel=1e-15)
        assert kl_inverse_lower(1.0, c) == pytest.approx(np.exp(-c), rel=1e-15)
    assert kl_inverse_upper(0.3, 0.0) == kl_inverse_lower(0.3, 0.0) == 0.3
    assert kl_inverse_upper(0.3, np.inf) == 1.0
    assert kl_inverse_lower(0.3, np.inf) == 0.0


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.2, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.2, 0.200001, 0.7, 1.0])
def test_kl_matches_reference(q, p):
    with mpmath.workdps(60):
        assert float(binary_kl(q, p)) == pytest.approx(
            float(reference_kl(mpmath.mpf(q), mpmath.mpf(p))), rel=1e-9
        )


@given(st.floats(0, 1), st.floats(1e-12, 50), st.floats(1e-6, 10))
def test_inverses_mirror_each_other_grow_with_the_budget_and_stay_within_pinskers(q, c, more):
    lower, upper = float(kl_inverse_lower(q, c)), float(kl_inverse_upper(q, c))
    assert upper == pytest.approx(1 - float(kl_inverse_lower(1 - q, c)), abs=1e-12)
    assert kl_inverse_lower(q, c + more) <= lower
    assert upper <= kl_inverse_upper(q, c + more)
    assert max(q - np.sqrt(c / 2), 0) - 1e-12 <= lower
    assert upper <= min(q + np.sqrt(c / 2), 1) + 1e-12


def test_inverses_never_round_inward():
    """On a grid in the logarithms of both arguments, against 50 digits."""
    rng = np.random.default_rng(0)
    points = np.vstack([[4.005926125045114e-17, 2.1164986391381837e-17], 10 ** rng.uniform(-20, 0, (400, 2))])
    with mpmath.workdps(50):
        for q, c in points.tolist():
            lower, upper = float(kl_inverse_lower(q, c)), float(kl_inverse_upper(q, c))
            assert lower == 0 or reference_kl(mpmath.mpf(q), mpmath.mpf(lower)) >= c
            assert upper == 1 or reference_kl(mpmath.mpf(q), mpmath.mpf(upper)) >= c
            assert lower <= q <= upper


def test_arrays_broadcast():
    table = kl_inverse_upper(np.linspace(0, 1, 5)[:, None], np.array([0.1, 1.0]))
    assert table.shape == (5, 2)
    assert table[2, 1] == kl_inverse_upper(0.5, 1.0)
