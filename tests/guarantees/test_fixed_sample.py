"""Algorithms 1 and 2: level and power by exact enumeration over Bernoulli costs, with negative controls."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.detectors.fixed_sample import TAILS
from rates import assert_rate_at_most, min_trials

SIZES = [1, 2, 5, 10, 25, 50, 100, 200]
INTERVALS = [(0.02, 0.05), (0.15, 0.2), (0.28, 0.33), (0.5, 0.5), (0.85, 0.95)]


def certificate(lower, upper, tail, delta=0.01):
    return bw.Certificate.from_bounds(lower=lower, upper=upper, delta=delta, binary=tail == "exact")


def bernoulli_rows(n):
    """One dataset for each number of failures from 0 to n."""
    return (np.arange(n)[None] < np.arange(n + 1)[:, None]).astype(float)


def declaration_rates(detector, n, means):
    """Exact probabilities of ADVERSE and of BENIGN at each mean."""
    verdict = detector.decide_many(bernoulli_rows(n)).verdict
    probability = binom.pmf(np.arange(n + 1)[None], n, np.asarray(means)[:, None])
    return probability @ (verdict == bw.Verdict.ADVERSE), probability @ (verdict == bw.Verdict.BENIGN)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
def test_false_declarations_stay_below_the_level(tail, n, lower, upper):
    """While the certificate holds, all means on its wrong side: a wrong verdict at most at its own level."""
    cert = certificate(lower, upper, tail)
    not_worse, worse = np.linspace(0, upper, 40), np.linspace(lower, 1, 40)
    for a, b in [(0.05, 0.05), (0.01, 0.3), (0.89, 0.09)]:
        test = bw.HypothesisTest(cert, alpha_adverse=a, alpha_benign=b, tail=tail)
        assert declaration_rates(test, n, not_worse)[0].max() <= a
        assert declaration_rates(test, n, worse)[1].max() <= b
        interval = bw.ConfidenceInterval(
            cert, false_positive_rate=a + 0.01, false_negative_rate=b + 0.01, tail=tail
        )
        assert declaration_rates(interval, n, not_worse)[0].max() <= a + 1e-15
        assert declaration_rates(interval, n, worse)[1].max() <= b + 1e-15


@pytest.mark.parametrize("tail", TAILS)
def test_a_certificate_that_is_off_fails_this_test(tail):
    """The bound moved by 0.05 toward the truth breaks the level, on both sides."""
    broken = certificate(0.25, 0.25, tail)
    adverse, _ = declaration_rates(bw.HypothesisTest(broken, tail=tail), 200, [0.30])
    _, benign = declaration_rates(bw.HypothesisTest(broken, tail=tail), 200, [0.20])
    assert adverse[0] > 0.05
    assert benign[0] > 0.05


@pytest.mark.parametrize("method", ["exact", "kl", "hoeffding", "betting"])
@pytest.mark.parametrize("detector", [bw.HypothesisTest, bw.ConfidenceInterval])
def test_totals_hold_over_the_draw_of_certificate_and_test_data(method, detector):
    """Certificate and test costs from one world: enumerate both counts, compare with the finding's totals."""
    m, n = 40, 25
    means = np.linspace(0.02, 0.98, 49)
    adverse, benign = np.zeros((49, m + 1)), np.zeros((49, m + 1))
    for failures, row in enumerate(bernoulli_rows(m)):
        cert = bw.Certificate.from_held_out(row, delta=0.08, method=method, binary=True)
        judge = detector(cert, tail="exact")
        adverse[:, failures], benign[:, failures] = declaration_rates(judge, n, means)
    weight = binom.pmf(np.arange(m + 1)[None], m, means[:, None])
    finding = judge.decide(bernoulli_rows(n)[0])
    assert (weight * adverse).sum(1).max() <= finding.false_positive_rate
    assert (weight * benign).sum(1).max() <= finding.false_negative_rate
    # The sample mean in place of a bound is the negative control.
    broken = np.zeros((49, m + 1))
    for failures in range(m + 1):
        plug_in = certificate(failures / m, failures / m, "exact", delta=0.04)
        broken[:, failures] = declaration_rates(detector(plug_in, tail="exact"), n, means)[0]
    assert (weight * broken).sum(1).max() > finding.false_positive_rate


@pytest.mark.parametrize("tail", ["hoeffding", "kl", "betting"])
def test_level_for_a_continuous_cost(tail):
    trials, n, alpha = 20_000, 30, 0.05
    assert trials >= min_trials(limit=alpha, broken=0.07)
    costs = np.random.default_rng(5).beta(0.3, 0.6, (trials, n))  # mean 1/3
    verdict = bw.HypothesisTest(certificate(1 / 3, 1 / 3, tail), tail=tail).decide_many(costs).verdict
    assert_rate_at_most(int(np.sum(verdict == bw.Verdict.ADVERSE)), trials, alpha)
    assert_rate_at_most(int(np.sum(verdict == bw.Verdict.BENIGN)), trials, alpha)
    broken = bw.HypothesisTest(certificate(0.2, 0.2, tail), tail=tail).decide_many(costs).verdict
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(int(np.sum(broken == bw.Verdict.ADVERSE)), trials, alpha)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
def test_power_is_ordered_by_tail(n, lower, upper):
    """On binary costs kl is nowhere weaker than Hoeffding, and exact nowhere weaker than kl."""
    means = np.linspace(0, 1, 41)
    powers = {
        tail: declaration_rates(bw.HypothesisTest(certificate(lower, upper, tail), tail=tail), n, means)
        for tail in ("hoeffding", "kl", "exact")
    }
    for weaker, stronger in itertools.pairwise(powers.values()):
        assert np.all(stronger[0] >= weaker[0] - 1e-12)
        assert np.all(stronger[1] >= weaker[1] - 1e-12)


@pytest.mark.parametrize(("tail", "trials"), [("hoeffding", 39), ("kl", 33), ("exact", 24), ("betting", 39)])
def test_trials_for_ninety_percent_power(tail, trials):
    """A bound of 0.2 and a true cost of 0.5: the smallest n with 90 % power at alpha = 0.04."""
    test = bw.HypothesisTest(certificate(0.15, 0.2, tail), alpha_adverse=0.04, tail=tail)
    power = [declaration_rates(test, n, [0.5])[0][0] for n in range(1, 61)]
    assert 1 + int(np.argmax(np.array(power) >= 0.9)) == trials


def test_betting_sees_a_shift_of_low_variance_that_kl_misses():
    costs = np.random.default_rng(3).beta(8, 24, (4000, 25))  # mean 0.25, standard deviation 0.075
    rates = {
        tail: np.mean(
            bw.HypothesisTest(certificate(0.1, 0.2, tail), tail=tail).decide_many(costs).verdict
            == bw.Verdict.ADVERSE
        )
        for tail in ("kl", "betting")
    }
    assert rates["kl"] < 0.01
    assert rates["betting"] > 0.3


def test_reading_again_and_again_breaks_the_guarantee_of_one_reading():
    """A 5 % Hoeffding test at a bound of 0.5, read after each of 500 episodes: exactly 9.3 % false alarms."""
    test = bw.HypothesisTest(certificate(0.5, 0.5, "hoeffding"), tail="hoeffding")
    alive, alarmed = np.array([1.0]), 0.0
    for n in range(1, 501):
        alive = 0.5 * (np.append(alive, 0.0) + np.append(0.0, alive))
        # p-values of all counts at once; the row of costs is not needed
        p_values = bw.bounds.hoeffding_p_value(np.arange(n + 1) / n, n, test.certificate.upper)
        alarm = p_values <= test.alpha_adverse
        alarmed += alive[alarm].sum()
        alive[alarm] = 0.0
    assert round(alarmed, 3) == 0.093
    assert alarmed > test.alpha_adverse + test.certificate.delta_upper
