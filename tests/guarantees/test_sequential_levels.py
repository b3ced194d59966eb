"""The sequential test's promises, by exact enumeration for binary costs and by simulation for others."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

import boundwatch as bw
from boundwatch.detectors.mixture import (
    Bets,
    alarm_counts,
    alarm_distribution,
    crossing_probability,
    exact_threshold,
)
from rates import assert_rate_at_most, min_trials

ALPHA = 0.04
HORIZON = 2000


def wealth_rows(test: bw.SequentialTest, bound: float, horizon: int):
    """Log wealth for every number of failures, episode by episode, from the definition."""
    b, log_shares = test.bets.sizes, np.log(test.bets.shares)
    failures = np.arange(horizon + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        won = failures * np.log(1 - b + b / bound)
        for n in range(1, horizon + 1):
            lost = np.where(failures[: n + 1] == n, 0.0, (n - failures[: n + 1]) * np.log1p(-b))
            yield logsumexp(won[: n + 1] + lost + log_shares, axis=1)


def alarm_regions(test: bw.SequentialTest, bound: float, threshold: float) -> list[np.ndarray]:
    return [row >= np.log(threshold) for row in wealth_rows(test, bound, HORIZON)]


def false_alarm_probability(regions: list[np.ndarray], rate: float) -> float:
    """The dynamic programme over (episodes, failures), written anew so that it checks the library's."""
    alive, alarmed = np.array([1.0]), 0.0
    for region in regions:
        moved = np.zeros(alive.size + 1)
        moved[:-1] += alive * (1 - rate)
        moved[1:] += alive * rate
        alarmed += moved[region].sum()
        alive = np.where(region, 0.0, moved)
    return alarmed


def certificate(bound: float, *, side: str, binary: bool = True) -> bw.Certificate:
    limits = {"lower": 0.0, "upper": bound} if side == "adverse" else {"lower": 1 - bound, "upper": 1.0}
    return bw.Certificate.from_bounds(**limits, delta=0.01, binary=binary)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("side", ["adverse", "benign"])
@pytest.mark.parametrize("bound", [0.1, 0.33, 0.8])
def test_false_alarms_never_exceed_alpha(bound, side, binary):
    # On the benign side a "failure" is a success and the bound is one on the rate of successes.
    test = bw.SequentialTest(
        certificate(bound, side=side, binary=binary), alpha_adverse=ALPHA, alpha_benign=ALPHA
    )
    regions = alarm_regions(test, bound, test.thresholds[side == "benign"])
    rates = [false_alarm_probability(regions, rate) for rate in (bound / 2, bound * 0.9, bound)]
    assert max(rates) <= ALPHA
    assert rates == sorted(rates)
    # Not vacuous: at the bound itself the exact threshold spends most of alpha within the horizon.
    assert rates[-1] >= (0.85 if binary and bound < 0.8 else 0.5) * ALPHA
    # Power: against a rate halfway to 1, all but certain to alarm.
    assert false_alarm_probability(regions, (1 + bound) / 2) > 0.999


@pytest.mark.parametrize("bound", [0.02, 0.2, 0.9])
def test_the_exact_threshold_holds_far_beyond_its_horizon(bound):
    # The part after 2,000 episodes is bounded, not computed; here it is computed to 20,000.
    bets, log_threshold = Bets.for_costs(binary=True), np.log(exact_threshold(bound, ALPHA))
    alarms, _, _ = alarm_distribution(alarm_counts(bets, bound, log_threshold, 20_000), bound)
    assert alarms.sum() <= crossing_probability(bets, bound, log_threshold) <= ALPHA
    assert alarms[2001:].sum() > 0


def test_a_lower_threshold_than_the_exact_one_breaks_the_promise():
    test = bw.SequentialTest(certificate(0.2, side="adverse"), alpha_adverse=ALPHA)
    regions = alarm_regions(test, 0.2, 0.8 * test.thresholds[0])
    assert false_alarm_probability(regions, 0.2) > ALPHA


def test_a_fixed_sample_test_read_after_every_episode_breaks_the_promise():
    regions = [binom.sf(np.arange(n + 1) - 1, n, 0.2) <= ALPHA for n in range(1, HORIZON + 1)]
    assert false_alarm_probability(regions, 0.2) > 3 * ALPHA


COSTS = {
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
    "beta": (lambda rng, shape: rng.beta(0.5, 2.0, shape), 0.2),
    "inflated": (lambda rng, shape: np.where(rng.random(shape) < 0.6, 0.0, rng.random(shape)), 0.2),
}


def simulated_alarms(draw, bound: float, threshold: float, *, runs: int, episodes: int) -> int:
    """Runs in which the wealth against `bound` ever reaches the threshold."""
    bets = bw.SequentialTest(certificate(bound, side="adverse", binary=False)).bets
    rng = np.random.default_rng(20)
    capitals = np.tile(bets.shares, (runs, 1))
    alarmed = np.zeros(runs, dtype=bool)
    for _ in range(episodes):
        capitals *= 1 - bets.sizes + np.outer(draw(rng, runs) / bound, bets.sizes)
        alarmed |= capitals.sum(axis=1) >= threshold
    return int(alarmed.sum())


@pytest.mark.parametrize("name", COSTS)
def test_continuous_costs_keep_the_level(name):
    draw, mean = COSTS[name]
    runs = 9000
    assert runs >= min_trials(limit=ALPHA, broken=0.065)
    assert_rate_at_most(simulated_alarms(draw, mean, 1 / ALPHA, runs=runs, episodes=300), runs, ALPHA)
    with pytest.raises(AssertionError):  # the certificate's bound is below the true mean
        assert_rate_at_most(
            simulated_alarms(draw, 0.8 * mean, 1 / ALPHA, runs=runs, episodes=300), runs, ALPHA
        )


def test_the_confidence_sequence_covers_at_all_times_at_once():
    rng = np.random.default_rng(21)
    runs, looks = 250, (3, 10, 30, 100)
    cert = bw.Certificate.from_bounds(lower=0.0, upper=1.0, delta=0.01)
    missed = narrower_missed = 0
    for _ in range(runs):
        test = bw.SequentialTest(cert, alpha_adverse=0.1, alpha_benign=0.1)
        costs = rng.beta(1.0, 3.0, looks[-1])
        limits = [test.update_many(part) for part in np.split(costs, looks[:-1])]
        # lower = 0 and upper = 1, so the limits on the shift are those on the mean, less 1 below.
        below = [finding.shift_lower + 1 for finding in limits]
        above = [finding.shift_upper for finding in limits]
        missed += any(low > 0.25 for low in below) or any(high < 0.25 for high in above)
        half = [(low + high) / 2 for low, high in zip(below, above, strict=True)]
        narrower_missed += any(
            abs(0.25 - middle) > (high - low) / 8
            for middle, low, high in zip(half, below, above, strict=True)
        )
    assert_rate_at_most(missed, runs, 0.2)
    assert above[-1] - below[-1] < 0.3
    with pytest.raises(AssertionError):  # a quarter of the width misses far too often
        assert_rate_at_most(narrower_missed, runs, 0.2)
