"""The sequential test's promises, by exact enumeration for binary costs and by simulation for others."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds import clopper_pearson_upper
from boundwatch.bounds.bets import Bets
from boundwatch.detectors.mixture import (
    alarm_counts,
    alarm_distribution,
    crossing_probability,
    exact_threshold,
)
from rates import assert_rate_at_most, min_trials

ALPHA = 0.04
HORIZON = 2000


def log_wealth(test: bw.SequentialTest, bound: float, failures: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Log wealth after n episodes with so many failures, from the definition."""
    b, log_shares = test.bets.sizes, np.log(test.bets.shares)
    failures, successes = failures[..., None], (n - failures)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        won, lost = failures * np.log(1 - b + b / bound), np.where(successes, successes * np.log1p(-b), 0.0)
    return np.logaddexp.reduce(won + lost + log_shares, axis=-1)


def alarm_regions(test: bw.SequentialTest, bound: float, threshold: float) -> list[np.ndarray]:
    """Where it alarms: from some number of failures on, since a failure gains and a success loses."""
    n = np.arange(1, HORIZON + 1)
    needed, more = np.zeros_like(n), 1 << HORIZON.bit_length()
    while more := more >> 1:  # bisect, for all n at once
        tried = needed + more
        few = (tried <= n + 1) & ~(log_wealth(test, bound, np.minimum(tried - 1, n), n) >= np.log(threshold))
        needed[few] = tried[few]
    whole = log_wealth(test, bound, np.arange(HORIZON + 1), HORIZON) >= np.log(threshold)
    regions = [np.arange(each + 1) >= least for each, least in zip(n, needed, strict=True)]
    assert (regions[-1] == whole).all()
    return regions


def false_alarm_probability(regions: list[np.ndarray], *rates: float) -> list[float]:
    """The dynamic program over (episodes, failures), written anew so that it checks the library's."""
    rate = np.array(rates)[:, None]
    alive, alarmed = np.ones((len(rates), 1)), np.zeros(len(rates))
    for region in regions:
        moved = np.zeros((len(rates), region.size))
        moved[:, :-1] += alive * (1 - rate)
        moved[:, 1:] += alive * rate
        alarmed += moved[:, region].sum(axis=1)
        moved[:, region] = 0.0
        alive = moved
    return alarmed.tolist()


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
    *rates, power = false_alarm_probability(regions, bound / 2, bound * 0.9, bound, (1 + bound) / 2)
    assert max(rates) <= ALPHA
    assert rates == sorted(rates)
    # Not vacuous: at the bound itself the exact threshold spends most of alpha within the horizon.
    assert rates[-1] >= (0.85 if binary and bound < 0.8 else 0.5) * ALPHA
    # Power: against a rate halfway to 1, all but certain to alarm.
    assert power > 0.999


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
    assert false_alarm_probability(regions, 0.2)[0] > ALPHA


def test_a_fixed_sample_test_read_after_every_episode_breaks_the_promise():
    regions = [binom.sf(np.arange(n + 1) - 1, n, 0.2) <= ALPHA for n in range(1, HORIZON + 1)]
    assert false_alarm_probability(regions, 0.2)[0] > 3 * ALPHA


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


def refuting_regions(mean: float, alpha: float, *, below: bool, horizon: int) -> list[np.ndarray]:
    """Where the test's own limit excludes a mean, for every count of costs on its side, episode by episode.

    A limit depends on the counts alone, and grows with the number of costs on its side.
    """
    cert = bw.Certificate.from_bounds(lower=0.0, upper=1.0, delta=0.01, binary=True)
    test = bw.SequentialTest(cert, alpha_adverse=alpha, alpha_benign=alpha)
    kind = 1.0 if below else 0.0

    def excludes(count: int, n: int) -> bool:
        test.reset()
        finding = test.update_many([kind] * count + [1 - kind] * (n - count))
        # lower = 0 and upper = 1, so the limits on the shift are those on the mean, less 1 below.
        return finding.shift_lower + 1 > mean if below else finding.shift_upper < mean

    regions, needed = [], 0
    for n in range(1, horizon + 1):
        while needed <= n and not excludes(needed, n):
            needed += 1
        regions.append(np.arange(n + 1) >= needed)
    return regions


@pytest.mark.parametrize("below", [True, False], ids=["lower limit", "upper limit"])
def test_the_confidence_sequence_covers_at_all_times_at_once(below):
    mean, horizon = 0.3, 150
    rate = mean if below else 1 - mean
    regions = refuting_regions(mean, ALPHA, below=below, horizon=horizon)
    missed, power = false_alarm_probability(regions, rate, rate + 0.3)
    assert 0.3 * ALPHA < missed <= ALPHA
    assert power > 0.99  # of a mean that is 0.3 away, this one is excluded in time
    # Broken on purpose: limits that take 1/(5 alpha) for a refutation.
    broken = refuting_regions(mean, 5 * ALPHA, below=below, horizon=horizon)
    assert false_alarm_probability(broken, rate)[0] > ALPHA


def declared(test: bw.SequentialTest, verdict: bw.Verdict, *rates: float) -> list[float]:
    """P[a verdict is ever declared], by update on every binary sequence up to its first alarm."""
    depth, alarmed = 10, (2,)
    found = np.zeros(depth + 1)  # by the number of failures
    for costs in itertools.product((0, 1), repeat=depth):
        if costs[: len(alarmed)] != alarmed:  # else it begins as the last one did up to its alarm
            test.reset()
            for n, cost in enumerate(costs, 1):
                if test.update(cost).verdict is verdict:
                    alarmed = costs[:n]
                    break
            else:
                continue
        found[sum(costs)] += 1
    k = np.arange(depth + 1)
    return [float(found @ (rate**k * (1 - rate) ** (depth - k))) for rate in rates]


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "bounded"])
@pytest.mark.parametrize("side", ["adverse", "benign"])
def test_the_test_itself_keeps_its_level_on_every_sequence(side, binary):
    cert, verdict = certificate(0.3, side=side, binary=binary), bw.Verdict(side)
    rate, shifted = (0.3, 0.9) if side == "adverse" else (0.7, 0.1)
    test = bw.SequentialTest(cert, alpha_adverse=ALPHA, alpha_benign=ALPHA)
    level, power = declared(test, verdict, rate, shifted)
    assert 0.2 * ALPHA < level <= ALPHA
    assert power > 0.9
    broken = bw.SequentialTest(cert, alpha_adverse=5 * ALPHA, alpha_benign=5 * ALPHA)
    assert declared(broken, verdict, rate)[0] > ALPHA


def test_e_values_promise_nothing_on_average_over_certificates_but_p_values_do():
    # Every certificate from 40 episodes with an expected cost of 0.3, and its probability.
    rate, m, delta = 0.3, 40, 0.005
    chances = binom.pmf(np.arange(m + 1), m, rate)
    uppers = clopper_pearson_upper(np.arange(m + 1), m, delta)
    bets = Bets.for_costs(binary=True)
    # Given a certificate, episodes are independent: the expected capital of a bet is a product.
    expected = [bets.shares @ (1 - bets.sizes + bets.sizes * rate / upper) ** 50 for upper in uppers]
    holds = uppers >= rate
    assert max(np.array(expected)[holds]) <= 1
    assert chances @ expected > 1e11

    def ever(level: float, limits) -> float:
        """P[the p-value is ever within the level], over certificates and 200 episodes."""
        counts = [alarm_counts(bets, max(limit, 1e-9), np.log(1 / level), 200) for limit in limits]
        return sum(
            chance * alarm_distribution(needed, rate)[0].sum()
            for chance, needed in zip(chances, counts, strict=True)
        )

    for level in (0.01, ALPHA, 0.2):
        assert ever(level, uppers) <= level + delta
    assert ever(ALPHA, np.arange(m + 1) / m) > ALPHA + delta  # the mean cost is no limit
