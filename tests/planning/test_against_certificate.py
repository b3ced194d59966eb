"""Planning: exact powers against enumeration, simulated ones against exact ones."""

import inspect
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.detectors import base
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting
from boundwatch.planning import power
from boundwatch.planning.curves import p_value_of_counts

BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


def powers(answer):
    return {(power.detector, power.tail): power for power in answer.powers}


@given(st.integers(1, 40), st.floats(0.02, 0.98), st.sampled_from(sorted(TAILS)))
def test_p_values_of_counts_are_those_of_the_tails(n, null_mean, tail):
    rows = np.tri(n + 1, n, -1)
    counted = p_value_of_counts(tail, np.full(n + 1, n), null_mean)(np.arange(n + 1.0))
    np.testing.assert_allclose(counted, TAILS[tail].p_value(rows, null_mean), rtol=1e-9)


@pytest.mark.parametrize("tail", sorted(TAILS))
@pytest.mark.parametrize("cost", [0.5, 0.01])
def test_powers_are_the_probabilities_that_the_detector_declares(tail, cost):
    power = powers(bw.plan(BINARY, cost=cost, sizes=[10]))["hypothesis-test", tail]
    detector = bw.HypothesisTest(BINARY, tail=tail)
    verdict = bw.Verdict.ADVERSE if cost > 0.2 else bw.Verdict.BENIGN
    for n in (5, 30, 77):
        if n <= power.n.size:
            declared = detector.decide_many(np.tri(n + 1, n, -1)).verdict == verdict
            exact = binom.pmf(np.arange(n + 1), n, cost)[declared].sum()
            assert power.power[n - 1] == pytest.approx(exact, abs=1e-12)
    for target, n in power.trials.items():
        assert power.power[n - 1] >= target
        assert (power.power[: n - 1] < target).all()


def test_the_paper_needs_39_trials_where_the_limit_is_14():
    answer = bw.plan(BINARY, cost=0.5, alpha=0.04)
    assert powers(answer)["hypothesis-test", "hoeffding"].trials[0.9] == 39
    assert 14 < answer.information_limit < 15
    assert powers(answer)["hypothesis-test", "exact"].trials[0.9] < 30
    assert answer.powers[-1].mean_trials < 1.2 * answer.information_limit


@pytest.mark.parametrize("certificate", [BINARY, BOUNDED], ids=["binary", "bounded"])
@pytest.mark.parametrize("cost", [0.5, 0.01])
def test_the_sequential_test_takes_as_long_as_planned(certificate, cost):
    sequential = bw.plan(certificate, cost=cost, sizes=[10]).powers[-1]
    rng = np.random.default_rng(3)
    alarms = []
    for _ in range(300):
        test = bw.SequentialTest(certificate)
        while test.first_alarm is None:
            test.update_many((rng.random(25) < cost).astype(float))
        alarms.append(test.first_alarm)
    error = np.std(alarms) / np.sqrt(len(alarms))
    assert abs(np.mean(alarms) - sequential.mean_trials) < 5 * error
    assert abs(np.median(alarms) - sequential.median_trials) < 8 * error
    assert np.mean(np.array(alarms) <= sequential.trials[0.9]) == pytest.approx(0.9, abs=0.09)


def test_a_sample_gives_what_its_distribution_gives():
    sample = np.array([0.0] * 50 + [1.0] * 50)
    simulated, exact = bw.plan(BOUNDED, costs=sample, sizes=[10]), bw.plan(BOUNDED, cost=0.5, sizes=[10])
    assert bw.plan(BINARY, costs=sample, sizes=[10]).exact  # draws of 0 and 1 are known by their mean
    assert not simulated.exact
    assert simulated.standard_error < 0.012
    assert simulated.information_limit == pytest.approx(exact.information_limit, rel=1e-6)
    assert simulated.powers[-1].mean_trials == pytest.approx(exact.powers[-1].mean_trials, rel=0.1)
    for one, other in zip(simulated.powers[:-1], exact.powers[:-1], strict=True):
        assert (one.detector, one.tail, one.level) == (other.detector, other.tail, other.level)
        index = one.n.astype(int) - 1
        kept = index < other.power.size
        np.testing.assert_allclose(one.power[kept], other.power[index[kept]], atol=5 * 0.0112)


def test_a_held_out_certificate_is_planned_as_it_is_judged():
    lab = bw.Certificate.from_held_out([0] * 46 + [1] * 4, binary=True)
    for rate, verdict, first in ((0.4, "adverse", 1), (0.01, "benign", 0)):
        answer = bw.plan(lab, cost=rate, sizes=[15])
        found = powers(answer)
        assert (answer.joint, answer.verdict) == (True, verdict)
        look, watch = found["hypothesis-test", "joint"], found["sequential-test", "joint"]
        assert (look.level, watch.level) == (0.055, 0.045)
        # The power of 15 trials, by the detector itself on every number of failures.
        index = int(np.searchsorted(look.n, 15 if rate == 0.4 else look.n[-1]))
        n = int(look.n[index])
        counts = np.arange(n + 1)
        said = bw.HypothesisTest(lab).decide_many((np.arange(n) < counts[:, None]).astype(float)).verdict
        assert look.power[index] == pytest.approx(binom.pmf(counts, n, rate)[said == verdict].sum())
        assert (look.trials[0.9] or 9e9) <= (found["hypothesis-test", "exact"].trials[0.9] or 9e9)
        line = alarm_line(50, 4 if first else 46, 0.045).needed(30)
        chance = rate if first else 1 - rate
        assert watch.power[29] == pytest.approx(alarm_distribution(line[:31], chance)[0].sum())
    assert bw.plan(lab, cost=0.1, sizes=[10]).verdict == "adverse"  # within the limits, above the lab's 8 %
    with pytest.raises(InvalidSetting, match="is what was certified"):
        bw.plan(lab, cost=0.08)


def test_small_variance_pays_with_betting():
    answer = powers(bw.plan(BOUNDED, costs=np.random.default_rng(4).beta(4, 4, 200), sizes=[10]))
    betting = answer["hypothesis-test", "betting"].trials[0.9]
    assert betting < answer["hypothesis-test", "kl"].trials[0.9] / 2
    assert answer["sequential-test", "mixture"].trials[0.9] < answer["hypothesis-test", "kl"].trials[0.9] / 2


def test_the_smallest_shift_is_noticed_with_90_percent():
    (row,) = bw.plan(BINARY, cost=0.5, sizes=[40]).smallest_shifts
    for tail, shift in row["shift"].items():
        for factor, enough in ((1.0001, True), (0.99, False)):
            rate = 0.2 + shift * factor
            powered = powers(bw.plan(BINARY, cost=rate, sizes=[1]))
            row = ("sequential-test", "mixture") if tail == "watch" else ("hypothesis-test", tail)
            assert (powered[row].power[39] >= 0.9) == enough
    (row,) = bw.plan(BINARY, cost=0.01, sizes=[10]).smallest_shifts
    assert set(row["shift"].values()) == {None}


def test_other_costs_of_the_same_mean_may_need_more_trials():
    # So a plan from a mean alone is exact for costs of 0 and 1 only, and says so.
    mean, n = 0.7, 10
    answer = bw.plan(BOUNDED, cost=mean, sizes=[n])
    chances = {}
    for high in (1.0, 0.98):
        rows = np.where(np.tri(n + 1, n, -1) > 0, high, 0.0)
        declared = bw.HypothesisTest(BOUNDED, tail="betting").decide_many(rows).verdict == "adverse"
        chances[high] = binom.pmf(np.arange(n + 1), n, mean / high)[declared].sum()
    assert powers(answer)["hypothesis-test", "betting"].power[n - 1] == pytest.approx(chances[1.0])
    assert chances[0.98] < 0.7 < 0.84 < chances[1.0]
    assert "may need more" in answer.caveat
    assert bw.plan(BINARY, cost=mean, sizes=[n]).caveat is None
    assert bw.plan(BOUNDED, costs=[0.0, 0.98, 0.98], sizes=[n]).caveat is None


def test_numbers_of_any_kind_are_numbers():
    plain = bw.plan(BINARY, cost=0.5, sizes=[10])
    assert bw.plan(BINARY, cost=np.float32(0.5), sizes=[np.int64(10)]).to_dict() == plain.to_dict()
    assert bw.plan(BINARY, cost=np.int64(1), sizes=[]).cost == 1


def test_a_tiny_shift_needs_more_than_can_be_counted():
    answer = bw.plan(BOUNDED, cost=0.2001, sizes=[10])
    assert answer.powers[-1].mean_trials is None
    assert all(power.trials[0.95] is None for power in answer.powers)
    json.dumps(answer.to_dict(), allow_nan=False)


WIDE = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.06)


@pytest.mark.parametrize(
    ("certificate", "settings", "error"),
    [
        *((BOUNDED, wrong, InvalidSetting) for wrong in ({}, {"cost": 0.5, "costs": [0.5]}, {"cost": 0.15})),
        *((BOUNDED, {"cost": wrong}, InvalidSetting) for wrong in (1.5, True)),
        *((BINARY, {"cost": 0.5, "sizes": [10, size]}, InvalidSetting) for size in (0, -3, 2.5, True, "10")),
        (BINARY, {"costs": [0.5]}, InvalidCost),
        (BINARY, {"cost": 0.5, "alpha": 1.0}, InvalidLevel),
        (WIDE, {"cost": 0.5}, InvalidSetting),
    ],
)
def test_bad_input(certificate, settings, error):
    with pytest.raises(error):
        bw.plan(certificate, **settings)


def test_a_delta_that_leaves_nothing_of_the_default_needs_a_level():
    assert bw.plan(WIDE, cost=0.5, alpha=0.05).powers[0].level == 0.05


@pytest.mark.parametrize(
    ("where", "name", "level"),
    [
        (bw.SequentialTest, "alpha_adverse", base.ANYTIME_LEVEL),
        (bw.HypothesisTest, "alpha_adverse", base.LOOK_LEVEL),
        (bw.PolicyComparison, "alpha", base.LOOK_LEVEL),
        (bw.Certificate.from_held_out, "delta", power.DELTA),
    ],
)
def test_plans_take_the_levels_that_are_the_default_elsewhere(where, name, level):
    given = where.__init__ if inspect.isclass(where) else where
    assert inspect.signature(given).parameters[name].default == level
