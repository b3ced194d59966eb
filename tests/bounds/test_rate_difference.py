"""The exact test of two failure rates: level for every pair of rates, power, and its limits."""

from bisect import bisect_left

import numpy as np
import pytest
from scipy.stats import binom, boschloo_exact, fisher_exact

import boundwatch as bw
from boundwatch.bounds import binary_kl, rate_difference
from boundwatch.bounds.rate_difference import is_computable, rate_difference_lower, rate_difference_p_value

N0, N1 = 15, 6


def chance(where: np.ndarray, p0: float, p1: float) -> float:
    """The probability of a set of outcomes, k0 in rows and k1 in columns."""
    return float(binom.pmf(np.arange(N0 + 1), N0, p0) @ where @ binom.pmf(np.arange(N1 + 1), N1, p1))


def table(value) -> np.ndarray:
    return np.array([[value(N0, k0, N1, k1) for k1 in range(N1 + 1)] for k0 in range(N0 + 1)])


@pytest.mark.parametrize("margin", [0.0, 0.1, -0.15])
def test_the_level_holds_on_the_line_and_below_it(margin):
    p_values = table(lambda *counts: rate_difference_p_value(*counts, margin=margin))
    rates = np.linspace(max(0.0, -margin), min(1.0, 1 - margin), 101)
    for alpha in (0.01, 0.05, 0.2):
        on_line = [chance(p_values <= alpha, p0, p0 + margin) for p0 in rates]
        assert 0.4 * alpha < max(on_line) <= alpha
        assert max(chance(p_values <= alpha, p0, max(p0 + margin - 0.1, 0)) for p0 in rates) <= max(on_line)
    assert chance(p_values <= 0.05, 0.2, 0.9) > 0.8
    # More failures in the new trials are more evidence, more in the old ones less.
    assert (np.diff(p_values, axis=1) <= 1e-9).all()
    assert (np.diff(p_values, axis=0) >= -1e-9).all()


@pytest.mark.parametrize("margin", [1e-17, -1e-17, 5e-324, -5e-324])
def test_a_margin_that_rounds_to_none_is_as_none(margin):
    assert 1 - abs(margin) == 1
    found = table(lambda *counts: rate_difference_p_value(*counts, margin=margin))
    assert found == pytest.approx(table(rate_difference_p_value), rel=1e-9)


@pytest.mark.parametrize("counts", [(50, 4, 10, 5), (200, 20, 50, 10), (30, 0, 5, 2)])
def test_it_is_boschloos_test(counts):
    n0, k0, n1, k1 = counts
    reference = boschloo_exact([[k1, k0], [n1 - k1, n0 - k0]], alternative="greater", n=64).pvalue
    assert reference * (1 - 1e-4) <= rate_difference_p_value(*counts) <= reference * 1.03


def test_a_fixed_limit_on_the_first_rate_is_no_such_test():
    # Broken on purpose: the observed rate is taken for the truth.
    p_values = table(lambda n0, k0, n1, k1: binom.sf(k1 - 1, n1, k0 / n0))
    assert max(chance(p_values <= 0.05, p0, p0) for p0 in np.linspace(0.05, 0.95, 19)) > 0.09


def test_the_lower_limit_covers_every_difference():
    alpha = 0.1
    limits = table(lambda *counts: rate_difference_lower(*counts, alpha=alpha))
    rates = np.linspace(0, 1, 21)
    missed = [chance(limits > p1 - p0, p0, p1) for p0 in rates for p1 in rates]
    assert 0.4 * alpha < max(missed) <= alpha
    # A limit of 0 or more is, but for a few outcomes, the verdict of the test.
    p_values = table(rate_difference_p_value)
    assert ((limits >= 0) == (p_values <= alpha)).mean() > 0.95
    assert limits[2, 6] > 0.3


@pytest.fixture
def too_large(monkeypatch):
    """Judge the small series of these tests as too large ones are judged."""
    monkeypatch.setattr(rate_difference, "MOST_CELLS", 0)
    for cached in (rate_difference_p_value, rate_difference_lower):
        cached.cache_clear()
    yield
    for cached in (rate_difference_p_value, rate_difference_lower):
        cached.cache_clear()


@pytest.mark.usefixtures("too_large")
def test_large_series_are_judged_by_fishers_test_and_limits_on_intervals():
    n0, k0, n1, k1 = 17, 3, 12, 6
    reference = fisher_exact([[k1, k0], [n1 - k1, n0 - k0]], alternative="greater").pvalue
    assert rate_difference_p_value(n0, k0, n1, k1) == pytest.approx(reference, rel=2e-6)
    alpha, rates = 0.1, np.linspace(0, 1, 21)
    p_values = table(rate_difference_p_value)
    highest = max(chance(p_values <= alpha, p0, p0) for p0 in rates)
    assert 0.3 * alpha < highest <= alpha
    assert max(chance(table(less_than_seen) <= alpha, p0, p0) for p0 in rates) > 1.2 * alpha  # broken
    limits = table(lambda *counts: rate_difference_lower(*counts, alpha=alpha))
    assert 0.5 * alpha < max(chance(limits > p1 - p0, p0, p1) for p0 in rates for p1 in rates) <= alpha
    assert limits[2, 6] > 0.3


@pytest.mark.usefixtures("too_large")
@pytest.mark.parametrize("margin", [0.1, -0.15, -0.4])
def test_large_series_keep_the_level_of_a_margin(margin):
    rates = np.linspace(max(0.0, -margin), min(1.0, 1 - margin), 101)

    def highest(alpha, value):
        p_values = table(lambda *counts: value(*counts, margin=margin))
        assert chance(p_values <= alpha, 0.05, 0.95) > 0.9
        return max(chance(p_values <= alpha, p0, p0 + margin) for p0 in rates)

    for alpha in (0.01, 0.05, 0.2):
        assert 0.4 * alpha < highest(alpha, rate_difference_p_value) <= alpha
        assert highest(alpha, less_than_seen) > 1.2 * alpha  # broken


def test_the_likelihood_ratio_is_the_smallest_over_all_rates_and_ranks_all_outcomes():
    rng = np.random.default_rng(5)
    for _ in range(100):
        n0, n1 = (int(n) for n in rng.integers(1, 60, 2))
        k0, k1, margin = int(rng.integers(n0 + 1)), int(rng.integers(n1 + 1)), rng.uniform(-0.9, 0.9)
        p0 = np.linspace(max(0, -margin), min(1, 1 - margin), 20_001)
        p1 = np.clip(p0 + margin, 0, 1)
        each = n0 * np.where(p0 > k0 / n0, binary_kl(k0 / n0, p0), 0)
        each += n1 * np.where(p1 < k1 / n1, binary_kl(k1 / n1, p1), 0)
        assert rate_difference.likelihood_ratio(n0, k0, n1, k1, margin) == pytest.approx(each.min(), rel=1e-3)


@pytest.mark.parametrize(
    ("n0", "n1", "margin", "p0", "p1"),
    [(300, 280, -0.1, 0.9, 0.9), (40, 300, -0.1, 0.8, 0.8), (300, 40, -0.15, 0.95, 0.95)],
)
def test_no_power_is_lost_where_the_tables_end(n0, n1, margin, p0, p1, monkeypatch):
    """The same trials with tables and without, by enumeration of what is likely."""
    alpha, likely = 0.055, binom.pmf(np.arange(n0 + 1), n0, p0)

    def power():
        rate_difference_p_value.cache_clear()
        found = 0.0
        for k0 in np.flatnonzero(likely > 1e-3)[::2].tolist():
            fewest = bisect_left(
                range(n1 + 1), True, key=lambda k1: rate_difference_p_value(n0, k0, n1, k1, margin) <= alpha
            )
            found += likely[k0] * binom.sf(fewest - 1, n1, p1)
        return found / likely[np.flatnonzero(likely > 1e-3)[::2]].sum()

    exact = power()
    monkeypatch.setattr(rate_difference, "MOST_CELLS", 0)
    assert power() >= exact - 0.015
    rate_difference_p_value.cache_clear()


def less_than_seen(n0, k0, n1, k1, margin=0.0):
    """Leave out of the p-value what was seen itself."""
    return rate_difference_p_value(n0, k0 - 1, n1, k1 + 1, margin) if k0 > 0 and k1 < n1 else 0.0


def test_a_look_at_very_many_trials_loses_nothing():
    assert is_computable(400, 100)
    assert not is_computable(2000, 10)
    counts = (1040, 83, 1040, 120)
    assert 1 < rate_difference._fisher(*counts) / rate_difference_p_value(*counts) < 1.15
    lab = bw.Certificate.from_held_out([0] * 1840 + [1] * 160, binary=True)
    found = bw.HypothesisTest(lab, margin=0.1).decide([1] * 240 + [0] * 1760)
    assert (found.verdict, found.tail, found.no_worse) == ("adverse", "joint", True)
    assert found.shift_lower > 0
    against_limits = bw.HypothesisTest(lab, tail="exact").decide([1] * 216 + [0] * 1784)
    jointly = bw.HypothesisTest(lab).decide([1] * 216 + [0] * 1784)
    assert (against_limits.verdict, jointly.verdict) == ("within", "adverse")


def test_a_first_guess_changes_no_limit(monkeypatch):
    cases = [(15, 2, 6, 4, 0.05), (15, 12, 6, 1, 0.05), (40, 4, 25, 9, 0.01), (7, 0, 30, 3, 0.2)]
    cases.append((3, 1, 2, 1, 0.1))
    guessed = [rate_difference_lower(*case) for case in cases]
    rate_difference_lower.cache_clear()
    monkeypatch.setattr(rate_difference, "_chance_at_some", lambda *_: 0.0)
    assert [rate_difference_lower(*case) for case in cases] == guessed
    rate_difference_lower.cache_clear()
