"""The sequential test: arithmetic, latching, state."""

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.bounds.joint_region import alarm_line, joint_region
from boundwatch.detectors import mixture
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch

BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
costs_lists = st.lists(st.floats(0, 1), min_size=1, max_size=200)


def through_json(state):
    return json.loads(json.dumps(state, allow_nan=False))


def log_wealth(test, costs, bound):
    with np.errstate(divide="ignore"):
        logs = np.log(1 - test.bets.sizes + np.outer(np.asarray(costs) / bound, test.bets.sizes)).sum(axis=0)
    logs = logs + np.log(test.bets.shares)
    return logs.max() + np.log(np.exp(logs - logs.max()).sum())


@given(costs_lists)
def test_e_values_are_the_mixture_of_the_definition(costs):
    test = bw.SequentialTest(BOUNDED)
    finding = test.update_many(costs)
    assert math.log(finding.e_adverse) == pytest.approx(log_wealth(test, costs, 0.2), abs=1e-9)
    benign = log_wealth(test, 1 - np.array(costs), 0.9)
    assert math.log(finding.e_benign) == pytest.approx(benign, abs=1e-9)


@given(costs_lists)
def test_one_by_one_equals_all_at_once(costs):
    one, many = bw.SequentialTest(BOUNDED), bw.SequentialTest(BOUNDED)
    for cost in costs:
        finding = one.update(cost)
    assert finding.to_dict() == many.update_many(costs).to_dict()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("margin", [None, 0.1])
def test_findings_that_are_held_say_what_was_known_then(binary, margin):
    rng = np.random.default_rng(5)
    draws = (rng.random((2, 80)) < 0.3).astype(float) if binary else rng.beta(2, 6, (2, 80))
    certificate = bw.Certificate.from_held_out(draws[0], binary=binary)
    alone, held = (bw.SequentialTest(certificate, margin=margin) for _ in range(2))
    numbers = ("e_adverse", "p_adverse", "e_benign", "p_benign")
    expected = []
    for cost in draws[1].tolist():
        finding = alone.update(cost)
        expected.append([getattr(finding, name) for name in numbers])
    findings = [held.update(cost) for cost in draws[1].tolist()]
    again = pickle.loads(pickle.dumps(findings[40]))  # noqa: S301  (made here, before anything is computed)
    assert [[getattr(one, name) for name in numbers] for one in findings[::-1]] == expected[::-1]
    assert [getattr(again, name) for name in numbers] == expected[40]


@given(costs_lists, costs_lists)
def test_state_continues_bit_by_bit(before, after):
    test = bw.SequentialTest(BOUNDED, alpha_adverse=0.1)
    test.update_many(before)
    again = bw.SequentialTest.from_state_dict(through_json(test.state_dict()), BOUNDED)
    assert again.update_many(after).to_dict() == test.update_many(after).to_dict()
    assert again.state_dict() == test.state_dict()


@given(costs_lists)
def test_the_interval_is_outside_what_the_exact_costs_give(costs):
    test = bw.SequentialTest(BOUNDED)
    finding = test.update_many(costs)
    lower = finding.shift_lower + BOUNDED.upper
    assert 0 <= lower <= finding.mean_cost + 1e-12
    assert finding.mean_cost <= finding.shift_upper + BOUNDED.lower + 1e-12
    if lower > BOUNDED.upper:
        assert log_wealth(test, costs, lower) >= math.log(1 / 0.04) - 1e-9


def test_the_grid_costs_little():
    costs = np.random.default_rng(1).beta(2.0, 6.0, 400)
    test = bw.SequentialTest(BOUNDED)
    lower = test.update_many(costs).shift_lower + BOUNDED.upper
    assert log_wealth(test, costs, lower + 0.002) < math.log(1 / 0.04)


def test_the_first_alarm_latches_until_reset():
    test = bw.SequentialTest(BOUNDED)
    assert test.update(1.0).verdict is bw.Verdict.WITHIN
    finding = test.update_many([1.0] * 5)
    assert (finding.verdict, finding.first_alarm) == (bw.Verdict.ADVERSE, 3)
    finding = test.update_many([0.0] * 400)
    assert (finding.verdict, finding.first_alarm) == (bw.Verdict.ADVERSE, 3)
    assert finding.e_adverse < 1
    assert finding.e_benign > 1 / 0.04
    assert finding.p_adverse <= 0.04
    test.reset()
    assert test.n == 0
    finding = test.update_many([0.0] * 400)
    assert finding.verdict is bw.Verdict.BENIGN
    assert finding.p_adverse == 1.0


@pytest.mark.parametrize("detector", [bw.SequentialTest, bw.ChangeDetector])
@pytest.mark.parametrize("certificate", [BOUNDED, BINARY])
def test_a_benign_verdict_does_not_silence_an_adverse_one(detector, certificate):
    """A world that was better for long and then fails: the second alarm replaces the first."""
    judge = detector(certificate)
    before = judge.update_many([0.0] * 300)
    assert before.verdict is bw.Verdict.BENIGN
    again = detector.from_state_dict(through_json(judge.state_dict()))
    after = again.update_many([1.0] * 300)
    assert after.verdict is bw.Verdict.ADVERSE
    assert before.first_alarm < 300 < after.first_alarm
    assert again.update_many([0.0] * 2000).verdict is bw.Verdict.ADVERSE
    fleet = bw.Fleet(certificate)
    fleet.update(["robot"] * 300, [0.0] * 300)
    if detector is bw.SequentialTest:
        assert fleet.update(["robot"] * 300, [1.0] * 300) == ["robot"]
        assert fleet.finding("robot").first_alarm == after.first_alarm


def test_an_alarm_at_one_over_alpha_means_a_shift_limit_of_at_least_zero():
    test = bw.SequentialTest(BOUNDED)
    finding = test.update_many([0.3, 0.7, 0.9, 0.8, 0.2, 0.6])
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.shift_lower >= 0
    assert test.update_many([0.0] * 300).shift_lower >= 0


def test_many_updates_neither_overflow_nor_underflow():
    # Capitals of single bets reach exp(57,000) and exp(-150,000): far outside the floats.
    test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01))
    finding = test.update_many(np.tile([1.0, 0.9], 25_000))
    finding = test.update_many(np.zeros(50_000))
    values = [v for v in finding.to_dict().values() if isinstance(v, float)]
    assert all(math.isfinite(v) for v in values)
    json.dumps(test.state_dict(), allow_nan=False)


@pytest.mark.parametrize(("upper", "lead"), [(0.3, 38_000), (1e-4, 27_000)])
def test_a_wiped_out_leader_leaves_the_others(upper, lead):
    """After so many failures the bet of everything leads by more than a float's range; then it loses all."""
    test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.9 * upper, upper=upper, delta=0.01))
    costs = np.concatenate([np.ones(lead), np.zeros(1), np.ones(2000), np.zeros(6000), np.full(100, 1e-9)])
    assert test.update_many(costs).e_adverse > 1e300
    found = test.state_dict()["evidence"]["log"]  # the e-values are at the largest float
    expected = [log_wealth(test, costs, upper), log_wealth(test, 1 - costs, 1 - 0.9 * upper)]
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-9)


def test_binary_thresholds_are_exact_and_bounded_ones_are_villes():
    assert bw.SequentialTest(BOUNDED).thresholds == (25.0, 25.0)
    adverse, benign = bw.SequentialTest(BINARY).thresholds
    assert 10 < adverse < 20
    assert 20 < benign < 25


def test_thresholds_are_computed_only_when_a_wealth_comes_near(monkeypatch):
    computed = []

    def recorded(bound, alpha):
        computed.append((bound, alpha))
        return 10.0

    monkeypatch.setattr(mixture, "exact_threshold", recorded)
    tests = [bw.SequentialTest(BINARY, alpha_adverse=0.04 / (task + 1)) for task in range(20)]
    findings = [test.update_many([0, 1, 0, 0, 0, 0]) for test in tests]
    fleet = bw.Fleet(BINARY)
    fleet.update(["a"] * 3, [0, 1, 0])
    assert fleet.finding("a").verdict is bw.Verdict.WITHIN
    assert len({finding.e_adverse for finding in findings}) == 1
    assert computed == []
    assert tests[0].update_many([1] * 8).first_alarm is not None
    assert computed == [(0.2, 0.04)]  # not that of the other side


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60))
def test_p_value_and_verdict_agree(costs):
    finding = bw.SequentialTest(BINARY).update_many(costs)
    assert (finding.verdict is not bw.Verdict.WITHIN) == (min(finding.p_adverse, finding.p_benign) <= 0.04)


@given(costs_lists, st.sampled_from([BOUNDED, BINARY]))
def test_a_larger_level_never_alarms_later(costs, certificate):
    costs = np.round(costs) if certificate.binary else costs
    strict, loose = (bw.SequentialTest(certificate, alpha_adverse=a, alpha_benign=a) for a in (0.01, 0.1))
    late, early = strict.update_many(costs).first_alarm, loose.update_many(costs).first_alarm
    assert late is None or early <= late


@pytest.mark.parametrize("cost", [1.5, -0.1, math.nan, "0.3", None, [0.1]])
def test_a_bad_cost_is_refused_and_not_counted(cost):
    test = bw.SequentialTest(BOUNDED)
    with pytest.raises(InvalidCost):
        test.update(cost)
    with pytest.raises(InvalidCost):
        test.update_many([0.5, cost])
    assert test.n == 0


def test_binary_certificates_take_only_binary_costs():
    test = bw.SequentialTest(BINARY)
    assert test.update(1).n == 1
    assert test.update(np.float64(0)).n == 2
    with pytest.raises(InvalidCost):
        test.update(0.5)


def test_an_empty_test_has_no_finding():
    with pytest.raises(InvalidCost, match="no cost"):
        bw.SequentialTest(BOUNDED).finding()


def test_findings_are_snapshots():
    test = bw.SequentialTest(BOUNDED)
    early = test.update_many([0.9, 0.9, 0.8])
    later = bw.SequentialTest(BOUNDED).update_many([0.9, 0.9, 0.8]).shift_lower
    test.update_many([0.0] * 50)
    assert early.shift_lower == later
    with pytest.raises(AttributeError):
        early.n = 4


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 1e-12)], ids=str)
@pytest.mark.parametrize("binary", [True, False])
def test_extreme_bounds(lower, upper, binary):
    cert = bw.Certificate.from_bounds(lower=lower, upper=upper, delta=0.01, binary=binary)
    finding = bw.SequentialTest(cert).update_many([0.0, 1.0] * 100)
    assert math.isfinite(finding.e_adverse)
    assert -1 <= finding.shift_lower <= finding.shift_upper <= 1


def damaged(changes, evidence=()):
    test = bw.SequentialTest(BOUNDED)
    test.update_many([0.1, 0.4])
    state = through_json(test.state_dict())
    return state | {"evidence": state["evidence"] | dict(evidence)} | changes


def test_a_state_of_another_certificate():
    with pytest.raises(ProvenanceMismatch, match="belongs to certificate"):
        bw.SequentialTest.from_state_dict(damaged({}), BINARY)
    altered = damaged({})["certificate"] | {"upper": 0.19}
    with pytest.raises((ProvenanceMismatch, SchemaMismatch)):
        bw.SequentialTest.from_state_dict(damaged({"certificate": altered}))


FIELDS = [
    {"kind": "Fleet"},
    {"version": 2},
    {"n": -1},
    {"n": 1.5},
    {"total": None},
    {"n": 1},
    {"evidence": None},
    {"evidence": {"n": [2], "log": [0.0]}},
    {"verdict": "safe"},
    {"verdict": "adverse"},
    {"first_alarm": 2},
    {"verdict": "adverse", "first_alarm": 3},
]
EVIDENCE = [
    *({"grid": wrong} for wrong in ([1], {"300": 1.0}, {"3": "x"})),
    *({"n": wrong} for wrong in ([True], [-2])),
    *({"log": wrong} for wrong in ([1.0, "2"], [1.0, math.inf], [1.0, 10**400])),
    {"reached": [0, 0]},
    {"product": [1.0]},
]


@pytest.mark.parametrize("state", [[1, 2], *map(damaged, FIELDS), *(damaged({}, one) for one in EVIDENCE)])
def test_a_state_that_cannot_be(state):
    bw.SequentialTest.from_state_dict(damaged({}))
    with pytest.raises(SchemaMismatch):
        bw.SequentialTest.from_state_dict(state)


def test_a_finding_is_a_frozen_dataclass():
    """Made quickly, with what is computed later, or from its fields: the same."""
    finding = bw.SequentialTest(BOUNDED).update_many([0.3, 0.8, 0.4])
    copy = dataclasses.replace(finding)
    assert copy == finding
    assert hash(copy) == hash(finding)
    for change in ({"e_adverse": 7.0}, {"e_benign": 7.0}, {"first_alarm": 2}, {"shift_lower": 0.5}):
        assert finding != dataclasses.replace(finding, **change)
    assert copy.to_dict() == finding.to_dict()
    assert dataclasses.replace(finding, n=7, shift_lower=0.5).shift_lower == 0.5
    fields = {field.name: getattr(finding, field.name) for field in dataclasses.fields(finding)}
    assert type(finding)(**fields) == finding
    assert pickle.loads(pickle.dumps(copy)) == finding  # noqa: S301 - our own bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.n = 3


@pytest.mark.parametrize("level", [1e-4, 1e-8, 1e-15])
def test_levels_too_small_for_an_exact_line_are_judged_by_the_limits(level):
    certificate = bw.Certificate.from_held_out([1] * 4 + [0] * 46, binary=True, delta=level)
    settings = {"alpha_adverse": level, "alpha_benign": level}
    finding = bw.SequentialTest(certificate, **settings).update_many([1] * 200)
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.tail == ("joint" if level == 1e-4 else "mixture")
    fleet = bw.Fleet(certificate, **settings)
    fleet.update(["a"] * 200, [1] * 200)
    assert fleet.finding("a").first_alarm == finding.first_alarm
    with pytest.raises(ValueError, match="is below 1e-06"):
        joint_region(50, 1e-7)


def test_what_the_joint_limits_refuted_stays_refuted():
    test = bw.SequentialTest(bw.Certificate.from_held_out([0.1, 0.2, 0.3] * 20))
    assert test.update_many([0.9] * 20).shift_lower > 0
    later = test.update_many([0.0] * 40)
    assert later.verdict is bw.Verdict.ADVERSE
    assert later.shift_lower == 0


def test_a_line_that_a_plan_has_made_longer_is_no_obstacle():
    lab = bw.Certificate.from_held_out([1] * 9 + [0] * 21, binary=True)
    alarm_line(30, 9, 0.04 + lab.delta_upper).needed(2000)  # as `plan` does; the other side's line is shorter
    test = bw.SequentialTest(lab)
    assert test.update_many([0, 0, 1] * 200).n == 600


def test_how_many_streams_share_the_delta_is_kept_and_checked():
    test = bw.SequentialTest(BINARY, sharing=3)
    test.update(1)
    state = test.state_dict()
    assert bw.SequentialTest.from_state_dict(state).sharing == 3
    for wrong in (0, True, 1.5):
        with pytest.raises(InvalidSetting, match=r"sharing = .* is not a whole number of at least 1"):
            bw.SequentialTest(BINARY, sharing=wrong)
        with pytest.raises(SchemaMismatch, match="sharing"):
            bw.SequentialTest.from_state_dict(state | {"settings": {"sharing": wrong}})


def test_bounded_evidence_never_looks_stronger_than_its_verdict():
    """E-values of bounded costs are weighed at some episodes only, and until then are below the threshold."""
    for seed in (4, 5):  # with the second, the threshold is crossed between two looks, at episode 25
        rng = np.random.default_rng(seed)
        test = bw.SequentialTest(bw.Certificate.from_held_out(rng.beta(2, 8, 1000), binary=False))
        for cost in rng.beta(2.5, 8, 60):
            found = test.update(cost)
            assert (found.e_adverse >= test.thresholds[0]) <= (found.verdict == "adverse")
            assert (found.p_adverse <= found.false_positive_rate) == (found.verdict == "adverse")
