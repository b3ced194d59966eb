"""Planning: exact powers against enumeration and the detectors, simulated ones against exact ones."""

import inspect
import json

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.detectors import verdicts
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.errors import InvalidLevel, InvalidSetting
from boundwatch.planning import power, time_to_alarm

BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


@pytest.mark.parametrize("tail", sorted(TAILS))
@pytest.mark.parametrize("cost", [0.5, 0.01])
def test_powers_are_the_probabilities_that_the_detector_declares(tail, cost):
    look = bw.plan(BINARY, cost=cost, sizes=[], tail=tail).powers[0]
    detector = bw.HypothesisTest(BINARY, tail=tail)
    verdict = bw.Verdict.ADVERSE if cost > 0.2 else bw.Verdict.BENIGN

    def exact(n):
        declared = detector.decide_many(np.tri(n + 1, n, -1)).verdict == verdict
        return binom.pmf(np.arange(n + 1), n, cost)[declared].sum()

    for n, planned in list(zip(look.n.astype(int), look.power, strict=True))[::5]:
        assert planned == pytest.approx(exact(n), abs=1e-12)
    for target, n in look.trials.items():
        assert exact(n) + 1e-12 >= target > exact(n - 1) - 1e-12


def test_the_paper_needs_39_trials_where_ours_takes_fewer_than_30():
    assert bw.plan(BINARY, cost=0.5, alpha=0.04, tail="hoeffding").powers[0].trials[0.9] == 39
    look, watch = bw.plan(BINARY, cost=0.5, alpha=0.04).powers
    assert look.trials[0.9] < 30
    assert watch.mean_trials < 1.2 * np.log(1 / 0.04) / bw.bounds.binary_kl(0.5, 0.2)


@pytest.mark.parametrize("certificate", [BINARY, BOUNDED], ids=["binary", "bounded"])
@pytest.mark.parametrize("cost", [0.5, 0.01])
def test_the_sequential_test_takes_as_long_as_planned(certificate, cost):
    sequential = time_to_alarm(certificate, cost=cost)
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


def test_a_held_out_certificate_is_planned_as_it_is_judged():
    lab = bw.Certificate.from_held_out([0] * 46 + [1] * 4, binary=True)
    for rate, verdict, first in ((0.4, "adverse", 1), (0.01, "benign", 0)):
        answer = bw.plan(lab, cost=rate, sizes=[15])
        assert (answer.joint, answer.verdict) == (True, verdict)
        look, watch = answer.powers
        assert (look.tail, look.level, watch.tail, watch.level) == ("joint", 0.055, "joint", 0.045)
        # The power of some trials, by the detector itself on every number of failures.
        n = int(look.n[min(8, look.n.size - 1)])
        counts = np.arange(n + 1)
        said = bw.HypothesisTest(lab).decide_many((np.arange(n) < counts[:, None]).astype(float)).verdict
        found = binom.pmf(counts, n, rate)[said == verdict].sum()
        planned = look.power[list(look.n).index(n)]
        assert planned == pytest.approx(found)
        alone = bw.plan(lab, cost=rate, sizes=[], tail="exact").powers[0]
        assert (look.trials[0.9] or 9e9) <= (alone.trials[0.9] or 9e9)
        line = alarm_line(50, 4 if first else 46, 0.045).needed(30)
        chance = rate if first else 1 - rate
        assert watch.power[29] == pytest.approx(alarm_distribution(line[:31], chance)[0].sum())
    assert bw.plan(lab, cost=0.1, sizes=[10]).verdict == "adverse"  # within the limits, above the lab's 8 %
    with pytest.raises(InvalidSetting, match="is what was certified"):
        bw.plan(lab, cost=lab.mean_cost)


def test_a_bounded_certificate_is_planned_by_its_limits_and_says_so():
    answer, alone = bw.plan(BOUNDED, cost=0.5), time_to_alarm(BOUNDED, cost=0.5)
    assert "may need more" in answer.caveat
    assert bw.plan(BINARY, cost=0.5).caveat is None
    assert [power.tail for power in answer.powers] == ["betting", "mixture"]
    assert answer.powers[1].trials == alone.trials
    exact = bw.plan(BINARY, cost=0.5, tail="betting").powers[0]
    assert answer.powers[0].trials == exact.trials
    lab = bw.Certificate.from_held_out(np.random.default_rng(5).beta(2, 20, 50))
    assert not bw.plan(lab, cost=0.5).joint


def test_the_smallest_shift_is_noticed_with_90_percent():
    (row,) = bw.plan(BINARY, cost=0.5, sizes=[40]).smallest_shifts
    assert set(row["shift"]) == {"check", "watch"}
    for name, shift in row["shift"].items():
        for factor, enough in ((1.0001, True), (0.99, False)):
            rate = 0.2 + shift * factor
            if name == "watch":
                power = bw.plan(BINARY, cost=rate, sizes=[]).powers[1].power[39]
            else:
                called = bw.HypothesisTest(BINARY).decide_many(np.tri(41, 40, -1)).verdict == "adverse"
                power = binom.pmf(np.arange(41), 40, rate)[called].sum()
            assert (power >= 0.9) == enough
    (row,) = bw.plan(BINARY, cost=0.01, sizes=[10]).smallest_shifts
    assert set(row["shift"].values()) == {None}


def test_a_few_more_trials_may_have_slightly_less_power_and_the_plan_says_so():
    lab = bw.Certificate.from_held_out([1] * 3 + [0] * 97, binary=True)
    answer = bw.plan(lab, cost=0.1, sizes=[])
    powers = {}
    for n in (292, 300, 310, 323):
        counts = np.arange(n + 1)
        said = bw.HypothesisTest(lab).decide_many((np.arange(n) < counts[:, None]).astype(float)).verdict
        powers[n] = binom.pmf(counts, n, 0.1)[said == "adverse"].sum()
    assert answer.powers[0].trials[0.9] == 292
    assert powers[292] >= 0.9
    assert all(0.89 < powers[n] < 0.9 for n in (300, 310, 323))
    assert "90 % after 292 trials (a few more may have slightly less)" in str(answer)


def test_the_sequential_test_is_computed_for_more_trials_than_one_look():
    look, watch = bw.plan(BINARY, cost=0.225, sizes=[]).powers
    assert look.trials[0.9] is None or look.trials[0.9] <= 5000
    assert 5000 < watch.trials[0.9] < 32_000


def test_numbers_of_any_kind_are_numbers():
    plain = bw.plan(BINARY, cost=0.5, sizes=[10])
    assert bw.plan(BINARY, cost=np.float32(0.5), sizes=[np.int64(10)]).to_dict() == plain.to_dict()
    assert bw.plan(BINARY, cost=np.int64(1), sizes=[]).cost == 1


def test_a_tiny_shift_needs_more_than_can_be_counted():
    for certificate in (BINARY, BOUNDED):
        answer = bw.plan(certificate, cost=0.2001, sizes=[10])
        assert answer.powers[-1].mean_trials is None
        assert all(power.trials[0.95] is None for power in answer.powers)
        json.dumps(answer.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("certificate", "settings", "error"),
    [
        *((BOUNDED, wrong, InvalidSetting) for wrong in ({"cost": 0.15}, {"cost": 1.5}, {"cost": True})),
        *((BINARY, {"cost": 0.5, "sizes": [10, size]}, InvalidSetting) for size in (0, -3, 2.5, True, "10")),
        (BINARY, {"cost": 0.5, "alpha": 1.0}, InvalidLevel),
    ],
)
def test_bad_input(certificate, settings, error):
    with pytest.raises(error):
        bw.plan(certificate, **settings)


@pytest.mark.parametrize(
    ("where", "name", "level"),
    [
        (bw.SequentialTest, "alpha_adverse", verdicts.ANYTIME_LEVEL),
        (bw.HypothesisTest, "alpha_adverse", verdicts.LOOK_LEVEL),
        (bw.PolicyComparison, "alpha", verdicts.LOOK_LEVEL),
        (bw.Certificate.from_held_out, "delta", power.DELTA),
    ],
)
def test_plans_take_the_levels_that_are_the_default_elsewhere(where, name, level):
    given = where.__init__ if inspect.isclass(where) else where
    assert inspect.signature(given).parameters[name].default == level
