"""Coverage of a campaign at the worst stopping time: one stops as soon as the interval excludes the truth."""

import numpy as np
import pytest
from scipy.special import logit, rel_entr
from scipy.stats import beta, binom

import boundwatch as bw
from boundwatch.bounds import anytime_lower, anytime_upper, clopper_pearson_lower
from boundwatch.bounds.anytime import anytime_log_wealth
from boundwatch.bounds.bets import Bets
from rates import assert_rate_at_most, min_trials

HORIZON = 1000
RATES = (0.001, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99, 0.999)


def miss_probability(excludes, rate: float) -> float:
    """P[at some trial the lower limit exceeds the rate], by a dynamic program over (trials, failures).

    What excludes a rate goes on to exclude it with more failures, so one number per trial says it all.
    """
    n = np.arange(HORIZON + 1)
    low, needed = np.zeros(n.size, dtype=int), n + 1
    while (needed - low > 1).any():
        middle = (low + needed) // 2
        out = excludes(middle, np.maximum(n, 1))
        low, needed = np.where(out, low, middle), np.where(out, middle, needed)
    alive, missed = np.zeros(HORIZON + 2), 0.0
    alive[0] = 1.0
    for limit in needed[1:].tolist():
        alive[1:] = alive[1:] * (1 - rate) + alive[:-1] * rate
        alive[0] *= 1 - rate
        missed += alive[limit:].sum()
        alive[limit:] = 0.0
    return missed


@pytest.mark.parametrize("delta", [0.05, 0.005])
def test_no_stopping_rule_makes_a_limit_fail_more_often(delta):
    spent = []
    for rate in RATES:  # the upper limit at a rate is the lower one at 1 - rate: RATES has both
        missed = miss_probability(
            lambda k, n, rate=rate: anytime_log_wealth(k, n, logit(rate)) >= -np.log(delta), rate
        )
        assert missed <= delta
        spent.append(missed / delta)
    assert np.median(spent) > 0.4  # and not by promising nothing


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_peeking_at_fixed_sample_limits_fails(rate):
    # A limit excludes the rate just when its p-value is at most delta: quicker than 10,000 limits.
    assert float(clopper_pearson_lower(9, 20, 0.005)) == pytest.approx(beta.ppf(0.005, 9, 12))
    assert miss_probability(lambda k, n: binom.sf(k - 1, n, rate) <= 0.005, rate) > 3 * 0.005

    def excluded(k, n):  # by kl-Chernoff: the limits for any bounded cost, which are wider, fail as well
        mean = np.minimum(k / n, 1.0)
        divergence = rel_entr(mean, rate) + rel_entr(1 - mean, 1 - rate)
        return (mean > rate) & (n * divergence >= np.log(1 / 0.05))

    assert miss_probability(excluded, rate) > 1.2 * 0.05


def test_the_limits_are_where_the_wealth_reaches_its_mark():
    k, n = np.array([0, 1, 5, 30, 100]), np.full(5, 100)
    for delta in (0.3, 0.005, 1e-6):
        lower, upper = anytime_lower(k, n, delta), anytime_upper(k, n, delta)
        assert (lower <= k / n).all()
        assert (k / n <= upper).all()
        assert lower[0] == 0
        assert np.allclose(anytime_log_wealth(k[1:], n[1:], logit(lower[1:])), -np.log(delta), atol=1e-8)
        assert np.allclose(upper, 1 - anytime_lower(n - k, n, delta))


def test_campaigns_come_near_to_clopper_pearson():
    for n, most in {20: 1.3, 50: 1.35, 100: 1.38, 200: 1.4, 500: 1.42, 1000: 1.44}.items():
        for k in {0, round(0.05 * n), round(0.1 * n), round(0.5 * n)}:
            fixed = bw.Certificate.from_held_out([1] * k + [0] * (n - k), delta=0.01, binary=True)
            width = bw.Campaign(0.01, binary=True).update_many([1] * k + [0] * (n - k)).width
            assert fixed.upper - fixed.lower < width <= most * (fixed.upper - fixed.lower)


@pytest.mark.parametrize(
    ("values", "chances", "trials"),
    [
        ([0.0, 1.0], [0.9, 0.1], 40),
        pytest.param([0.0, 1.0], [0.5, 0.5], 400, marks=pytest.mark.slow),
        pytest.param([0.0, 0.105], [5 / 105, 100 / 105], 400, marks=pytest.mark.slow),
        pytest.param([0.05, 0.1, 0.9], [0.5, 0.4, 0.1], 400, marks=pytest.mark.slow),
    ],
)
def test_bounded_costs_are_covered_at_the_worst_stopping_time(values, chances, trials):
    runs, delta = 20_000, 0.05
    assert runs >= min_trials(delta, 0.066)
    mean = float(np.dot(values, chances))
    bets, rng = Bets.for_costs(binary=False), np.random.default_rng(51)
    missed = np.zeros((2, runs), dtype=bool)
    low, high = np.tile(bets.shares, (runs, 1)), np.tile(bets.shares, (runs, 1))
    for _ in range(trials):
        costs = rng.choice(values, size=runs, p=chances)
        low *= (1 - bets.sizes) + np.outer(costs / mean, bets.sizes)
        high *= (1 - bets.sizes) + np.outer((1 - costs) / (1 - mean), bets.sizes)
        missed |= np.stack([low.sum(axis=1), high.sum(axis=1)]) >= 1 / delta
    for side in missed:
        assert_rate_at_most(int(side.sum()), runs, delta)


def test_a_bounded_campaign_excludes_what_its_wealth_refutes():
    rng = np.random.default_rng(52)
    bets, mean, decided = Bets.for_costs(binary=False), 0.3, 0
    for _ in range(60):
        campaign = bw.Campaign(0.2).update_many(costs := rng.beta(3, 4, 12))
        wealth = bets.log_wealth(costs, np.ones(12), mean)
        assert (campaign.lower > mean - 1e-9) >= (wealth >= np.log(10))
        assert (campaign.lower > mean + 1e-9) <= (wealth >= np.log(10))
        decided += campaign.lower > mean
    assert 0 < decided < 60
