"""Reference and stream judged jointly: levels over the draw of both, by exact enumeration, and power."""

import itertools

import numpy as np
import pytest
from benchmarks import joint
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds import clopper_pearson_upper
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.joint_region import alarm_line, joint_region
from boundwatch.bounds.rate_difference import fewest_that_differ
from boundwatch.bounds.two_sample import bernstein_upper, bernstein_values, log_choose
from boundwatch.detectors.mixture import alarm_counts, exact_threshold
from rates import assert_rate_at_most, min_trials

ALPHA, DELTA = 0.04, 0.005
TOTAL = ALPHA + DELTA
HORIZON = 250


def alarm_coefficients(paths: np.ndarray, n: int) -> np.ndarray:
    """The share of the orders of S failures in n trials that alarm, from the number of those that do not.

    Rows of `paths` are failures in the first series, columns in the second.
    """
    failures = np.add.outer(*map(np.arange, paths.shape))
    with np.errstate(divide="ignore"):
        shares = np.exp(np.log(paths) - log_choose(n, failures))
    return np.clip(1 - np.bincount(failures.ravel(), weights=shares.ravel(), minlength=n + 1), 0, 1)


def test_coefficients_are_the_shares_of_orders_that_alarm():
    # Alarm when two of the three trials of the second series failed and none of the two of the first did.
    paths, orders, alarms = np.zeros((3, 4)), np.zeros(6), np.zeros(6)
    for order in itertools.product((0, 1), repeat=5):
        k0, k1 = sum(order[:2]), sum(order[2:])
        alarmed = k0 == 0 and k1 >= 2
        orders[sum(order)] += 1
        alarms[sum(order)] += alarmed
        paths[k0, k1] += not alarmed
    coefficients = alarm_coefficients(paths, 5)
    assert coefficients == pytest.approx(alarms / orders, abs=1e-12)
    rates = np.linspace(0, 1, 9)
    direct = binom.pmf(0, 2, rates) * binom.sf(1, 3, rates)
    assert bernstein_values(coefficients, rates) == pytest.approx(direct, abs=1e-12)


def joint_lines(n: int) -> np.ndarray:
    """The failures that alarm after each trial, for each number of failures in the reference."""
    return np.array([alarm_line(n, k, TOTAL).needed(HORIZON)[: HORIZON + 1] for k in range(n + 1)])


def old_lines(n: int) -> np.ndarray:
    """The same for a test against the certificate's upper limit."""
    bets = Bets.for_costs(binary=True)
    uppers = clopper_pearson_upper(np.arange(n + 1), n, DELTA)
    return np.array(
        [alarm_counts(bets, u, np.log(exact_threshold(u, ALPHA)), HORIZON) for u in uppers.tolist()]
    )


def coefficients(lines: np.ndarray) -> np.ndarray:
    """Count the orders of reference and stream that do not alarm, and return the shares that do."""
    n = lines.shape[0] - 1
    paths = np.zeros((n + 1, HORIZON + 2))
    paths[:, 0] = [np.exp(value) for value in binom.logpmf(np.arange(n + 1), n, 0.5) + n * np.log(2)]
    rows = np.arange(n + 1)
    for t in range(1, HORIZON + 1):
        paths[:, 1 : t + 1] += paths[:, :t].copy()
        alarmed = np.minimum(lines[:, t], t + 1)
        paths[rows, alarmed] = 0.0
    return alarm_coefficients(paths[:, : HORIZON + 1], n + HORIZON)


@pytest.mark.parametrize("n", [20, 50, 100, 400])
def test_the_level_holds_for_every_rate_at_once(n):
    lines = joint_lines(n)
    found = coefficients(lines)
    fine = bernstein_values(found, np.linspace(0, 1, 1001))
    # On a fine grid, for every rate by the Bernstein form, and with all that may come after the horizon.
    assert fine.max() <= bernstein_upper(found) <= TOTAL
    assert joint_region(n, TOTAL).bound <= TOTAL
    # Nearly all of it is spent, where the rate is neither next to 0 nor next to 1.
    assert fine[200:800].min() > 0.7 * TOTAL
    # Broken on purpose: one failure fewer suffices.
    broken = coefficients(np.maximum(lines - 1, 1))
    assert bernstein_values(broken, np.linspace(0, 1, 101)).max() > 1.3 * TOTAL


def alarm_chances(needed, n, old, new, times):
    """P[alarm within so many trials] over reference and stream, one recursion over (trials, failures).

    `needed` returns the line of a reference with so many failures. Those that a rate of `old` gives with a
    chance below 1e-12 are left out.
    """
    likely = np.flatnonzero(binom.pmf(np.arange(n + 1), n, old) > 1e-12)
    lines, last = np.array([needed(int(k)) for k in likely]), max(times)
    alive = np.zeros((likely.size, last + 2))
    alive[:, 0] = 1.0
    found = []
    for t in range(1, last + 1):
        alive[:, 1 : t + 1] = (1 - new) * alive[:, 1 : t + 1] + new * alive[:, :t]
        alive[:, 0] *= 1 - new
        alive[np.arange(likely.size), np.minimum(lines[:, t], t + 1)] = 0.0
        if t in times:
            found.append(float(1 - binom.pmf(likely, n, old) @ alive.sum(axis=1)))
    return found


def test_a_large_reference_keeps_the_level_and_sees_far():
    """Beyond 1,000 trials the line is exact for longer, computed at fewer looks, and scaled."""
    n, trials = 1250, 1500
    region = joint_region(n, TOTAL)
    assert (region.horizon, region.bound <= TOTAL) == (trials, True)

    def line(k, fewer=0):
        return region.line(k).needed(trials)[: trials + 1] - fewer

    for rate in (0.004, 0.1, 0.5, 0.93):
        (spent,) = alarm_chances(line, n, rate, rate, [trials])
        assert 0.35 * TOTAL < spent <= region.bound - region.later
    # Broken on purpose: two failures fewer suffice.
    (broken,) = alarm_chances(lambda k: line(k, 2), n, 0.1, 0.1, [trials])
    assert broken > 1.1 * TOTAL
    # A rise by four points: after 1,000 trials the stream still learns.
    early, late = alarm_chances(line, n, 0.1, 0.14, [1000, trials])
    assert early > 0.5
    assert late > early + 0.08


def test_nothing_jumps_where_references_become_large():
    found = []
    for n in (1000, 1001):
        region = joint_region(n, TOTAL)
        found.append(
            alarm_chances(lambda k, line=region.line: line(k).needed(1000)[:1001], n, 0.1, 0.15, [300, 1000])
        )
    assert found[1] == pytest.approx(found[0], abs=0.02)
    assert found[0][1] > 0.7


def test_a_test_against_the_limit_spends_a_fraction_of_the_same_promise():
    fine = bernstein_values(coefficients(old_lines(10)), np.linspace(0, 1, 101))
    assert fine.max() < 0.3 * TOTAL


@pytest.mark.parametrize(
    ("n", "old", "new", "at_most"), [(50, 0.08, 0.3, 80), (50, 0.08, 0.5, 8), (100, 0.05, 0.3, 17)]
)
def test_a_third_of_the_trials(n, old, new, at_most):
    assert joint.mean_trials(joint.joint_lines(n, np.arange(n + 1)), n, old, new) <= at_most


@pytest.mark.parametrize("side", ["adverse", "benign"])
def test_the_test_itself_alarms_at_the_line(side):
    certificate = bw.Certificate.from_held_out((np.arange(20) < 8).astype(float), binary=True)
    test = bw.SequentialTest(certificate, alpha_adverse=ALPHA, alpha_benign=ALPHA)
    rng = np.random.default_rng(5)
    needed = alarm_line(20, 8 if side == "adverse" else 12, TOTAL).needed(60)
    for rate in (0.1, 0.4, 0.8):
        costs = (rng.random(60) < rate).astype(float)
        hits = np.cumsum(costs if side == "adverse" else 1 - costs)
        crossed = np.flatnonzero(hits >= needed[1:61])
        test.reset()
        verdicts = [test.update(cost).verdict for cost in costs.tolist()]
        first = verdicts.index(bw.Verdict(side)) if bw.Verdict(side) in verdicts else None
        assert first == (crossed[0] if crossed.size else None)


def test_e_values_have_an_expected_value_of_at_most_one_over_the_joint_draw():
    n, trials = 12, 12
    e_values = np.array(
        [
            [
                bw.SequentialTest(
                    bw.Certificate.from_held_out((np.arange(n) < k0).astype(float), binary=True)
                )
                ._evidence.sides[0]
                .log_e_value(np.array([0.0, 1.0]), np.array([trials - k1, k1], dtype=float))
                for k1 in range(trials + 1)
            ]
            for k0 in range(n + 1)
        ]
    )
    for rate in np.linspace(0.05, 0.95, 19):
        chances = (binom.pmf(np.arange(m + 1), m, p) for m, p in ((n, rate), (trials, rate)))
        assert np.einsum("i,ij,j->", next(chances), np.exp(e_values), next(chances)) <= 1
    shifted = binom.pmf(np.arange(n + 1), n, 0.1) @ e_values @ binom.pmf(np.arange(trials + 1), trials, 0.7)
    assert shifted > np.log(1 / TOTAL)


def first_alarms(draw_reference, draw_new, *, n, runs, episodes, rng):
    """How many of the runs alarm ADVERSE, each with a certificate of its own."""
    alarms = 0
    for _ in range(runs):
        test = bw.SequentialTest(bw.Certificate.from_held_out(draw_reference(rng, n)))
        test.update_many(draw_new(rng, episodes))
        alarms += test.verdict is bw.Verdict.ADVERSE
    return alarms


def test_bounded_costs_keep_the_level_over_the_joint_draw():
    def beta(rng, size):
        return np.round(rng.beta(0.5, 2.0, size) * 64) / 64  # on the grid: fewer points, quicker

    runs, rng = 400, np.random.default_rng(8)
    assert runs >= min_trials(limit=TOTAL, broken=0.2)
    alarms = first_alarms(beta, beta, n=20, runs=runs, episodes=60, rng=rng)
    assert_rate_at_most(alarms, runs, TOTAL)
    # Power, which a test that never alarms does not have; and the negative control: a reference that is
    # better than what it stands for.
    worse = first_alarms(
        beta, lambda rng, size: np.minimum(beta(rng, size) + 0.5, 1), n=20, runs=20, episodes=60, rng=rng
    )
    assert worse == 20
    broken = first_alarms(lambda rng, size: beta(rng, size) / 4, beta, n=100, runs=30, episodes=60, rng=rng)
    with pytest.raises(AssertionError):
        assert_rate_at_most(broken, 30, TOTAL)


@pytest.mark.parametrize("margin", [0.1, 0.25])
def test_no_worse_is_wrongly_shown_at_most_as_often_as_promised(margin):
    """The sequential test on every path of 40 trials: the margin lies on the line, over the joint draw."""
    n, trials, rate = 20, 40, 0.2
    chances = binom.pmf(np.arange(n + 1), n, rate)
    shown, better = 0.0, 0.0
    for k0 in np.flatnonzero(chances > 1e-4).tolist():
        evidence = bw.SequentialTest(
            bw.Certificate.from_held_out((np.arange(n) < k0).astype(float), binary=True), margin=margin
        )._evidence
        crossing = np.full(trials + 1, -1)  # the most failures with which it is shown, after each trial
        for t in range(1, trials + 1):
            while crossing[t] < t:
                evidence.rows.begin(slice(0, 1))  # or it would not look again so soon
                failures = np.array([crossing[t] + 1.0])
                if not evidence._shows_no_worse(slice(0, 1), np.array([t]), failures)[0]:
                    break
                crossing[t] += 1
        shown += chances[k0] * ever_at_most(crossing, rate + margin)
        better += chances[k0] * ever_at_most(crossing, 0.02)
    assert shown <= TOTAL
    assert better > (0.05 if margin < 0.2 else 0.6)


def ever_at_most(line: np.ndarray, rate: float) -> float:
    """P[the failures are ever at most the line]."""
    alive = np.zeros(line.size + 1)
    alive[0] = 1.0
    for t in range(1, line.size):
        alive[1:] = (1 - rate) * alive[1:] + rate * alive[:-1]
        alive[0] *= 1 - rate
        alive[: line[t] + 1] = 0.0
    return float(1 - alive.sum())


def test_a_number_of_new_trials_that_the_labs_costs_chose_breaks_the_promise():
    """The broken twin of "fixed beforehand": for each lab, the number that alarms most easily."""
    n, rates, sizes = 10, np.linspace(0.05, 0.95, 19), range(1, 60, 3)
    alarms = np.array(
        [
            [binom.sf(fewest_that_differ(n, k, size, TOTAL) - 1, size, rates) for size in sizes]
            for k in range(n + 1)
        ]
    )
    of_labs = binom.pmf(np.arange(n + 1)[:, None], n, rates)
    fixed = np.einsum("kr,ksr->sr", of_labs, alarms).max()
    chosen = (of_labs * alarms.max(axis=1)).sum(axis=0).max()
    assert fixed <= TOTAL < 1.5 * TOTAL < chosen
