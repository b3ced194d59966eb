"""Pieces of detectors, each against what its definition says, where their promises are tested as a whole."""

import math

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds.multiple import OVERALL_SHARE
from boundwatch.detectors.family_test import Weighed
from boundwatch.detectors.joint import joint_levels, sides_of
from boundwatch.detectors.predicted import BINS, Design, _nearest_null
from boundwatch.detectors.run_length import Lattice, run_length
from boundwatch.detectors.strata import StrataTest

TASKS = "mug", "bowl"


def stratified(n, delta=0.1):
    costs = np.arange(2 * n) % 5 == 0
    known = bw.Episodes(costs.astype(float), strata=np.repeat(TASKS, n), binary=True)
    return bw.Certificate.from_held_out(known, delta=delta)


@pytest.mark.parametrize("bound", [0.02, 0.2, 0.6, 0.8, 0.9])
@pytest.mark.parametrize("odds", [2.0, 3.0, 8.0])
def test_the_steps_of_a_lattice_are_close_to_those_of_the_best_bet(bound, odds):
    rate = odds * bound / (1 - bound + odds * bound)
    ratio = math.log(rate / bound) / math.log((1 - bound) / (1 - rate))
    lattice = Lattice.against(bound, odds, 1.0)
    assert lattice.up / lattice.down / ratio == pytest.approx(1, abs=1 / 15)
    fair = bound * math.exp(lattice.up * lattice.unit) + (1 - bound) * math.exp(-lattice.down * lattice.unit)
    assert fair == pytest.approx(1, abs=1e-12)


def test_a_capital_that_rounding_may_lift_to_the_threshold_is_counted_as_an_alarm():
    bet = Lattice.against(0.1, 3.0, 1.0)
    capital = math.exp(20 * bet.unit)
    below, close, above = (run_length((bet,), 0.1, capital * (1 + off)) for off in (-5e-10, 5e-10, 1e-6))
    assert below == pytest.approx(close, rel=1e-12)
    assert close < 0.999 * above


@pytest.mark.parametrize("bound", [0.05, 0.5, 0.9])
def test_every_bet_on_predictions_is_against_the_nearest_world_at_the_bound(bound):
    weights = np.random.default_rng(3).dirichlet(np.ones(BINS))
    sizes = np.array([0.05, 0.3, 0.9])
    design = Design.of(bound, sizes, weights)
    # Slope 0 stakes what a bet on costs alone does, which no prediction enters.
    assert design.nu[0] * bound == pytest.approx(sizes, rel=1e-12)
    assert design.control[0] == pytest.approx(np.repeat(design.control[0][:, :1], BINS, axis=1))
    rates = np.random.default_rng(4).uniform(bound, 1, (3, 2, BINS))
    rates[0] = rates[0][:, :1]
    _, nearest = _nearest_null(rates, weights, bound)
    assert nearest @ weights == pytest.approx(np.full((3, 2), bound), abs=2e-6)


def test_trials_with_predictions_are_counted():
    test = bw.PredictedTest(bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01, binary=True))
    test.update(1.0, 0.7, [0.2, 0.4])
    test.update(0.0)
    test.update(0.0, 0.1, [0.3])
    assert test.predicted == 2


def test_a_fleet_shows_the_evidence_of_both_sides():
    certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    fleet, test = bw.Fleet(certificate), bw.SequentialTest(certificate)
    costs = [0.0, 0.3, 0.05, 0.1]
    fleet.update(["a"] * len(costs), costs)
    finding = test.update_many(costs)
    assert fleet.e_adverse == pytest.approx([finding.e_adverse])
    assert fleet.e_benign == pytest.approx([finding.e_benign])


def test_evidence_from_bounded_costs_alarms_soon_after_it_suffices():
    """The e-value is computed at some episodes only: never early, and at most one late."""
    rng = np.random.default_rng(1)
    alarms = 0
    for trials, old, new in ((60, 0.2, 0.28), (60, 0.3, 0.42), (30, 0.2, 0.35)):
        certificate = bw.Certificate.from_held_out(rng.beta(2, 2 / old - 2, trials))
        test = bw.SequentialTest(certificate)
        level, due = test.alpha_adverse + certificate.delta_upper, None
        for n, cost in enumerate(rng.beta(2, 2 / new - 2, 300)[:50].tolist(), 1):
            finding = test.update(cost)
            if due is None and finding.e_adverse >= 1 / level:
                due = n
            if finding.first_alarm is not None or (due is not None and n > due):
                break
        assert (due is None) == (finding.first_alarm is None)
        if due is not None:
            assert due <= finding.first_alarm <= due + 1
            alarms += 1
    assert alarms == 2


def test_looks_leave_the_tightest_limits():
    first, second = (
        Weighed(np.full((3, 2), 0.5), np.array(low), np.array(high))
        for low, high in (([-0.3, 0.1], [0.4, 0.6]), ([-0.1, 0.0], [0.5, 0.2]))
    )
    both = first.with_look(second, 0.5)
    assert both.lower.tolist() == [-0.1, 0.1]
    assert both.upper.tolist() == [0.4, 0.2]


def test_the_totals_of_a_mean_over_tasks_are_those_that_are_spent():
    joint = StrataTest(stratified(4), (0.05, 0.1), None)
    assert joint.joint
    assert joint.totals == pytest.approx({"false_positive_rate": 0.1, "false_negative_rate": 0.15})
    assert StrataTest(stratified(4, delta=0.9), (0.9, 0.9), None).totals["false_positive_rate"] == 1.0
    for sharing in (1, 4):  # against limits, as adverse totals are too large: they all fail together
        apart = StrataTest(stratified(4, delta=0.3), (0.97, 0.05), None, sharing)
        assert apart.totals["false_negative_rate"] == pytest.approx(0.05 + 0.15 * (2 - OVERALL_SHARE))


@pytest.mark.parametrize("sharing", [1, 4])
def test_limits_of_tasks_fail_once_however_many_streams_share_them(sharing):
    """So many trials are not judged jointly: all streams read the same limits."""
    certificate = stratified(5001)
    test = StrataTest(certificate, (0.05, 0.05), None, sharing)
    assert not test.joint
    limits = test._of_each(1.0).family.values()
    spent = sum(each.delta_upper for each in limits)
    assert spent == pytest.approx((1 - OVERALL_SHARE) * certificate.delta_upper)
    assert test.totals["false_positive_rate"] == pytest.approx(
        0.05 + (2 - OVERALL_SHARE) * certificate.delta_upper
    )


def test_each_side_spends_its_own_level():
    certificate = bw.Certificate.from_held_out([0.0, 1.0] * 10, binary=True, delta=0.04)
    assert joint_levels(certificate, (0.05, 0.1), 2) == pytest.approx((0.06, 0.11))
    audit = bw.HypothesisTest(certificate, alpha_adverse=0.05, alpha_benign=0.1)
    assert audit.decide([0.0, 1.0]).false_negative_rate == pytest.approx(0.12)
    change = bw.ChangeDetector(certificate, alpha_adverse=0.001, alpha_benign=0.002)
    finding = change.update_many([1.0, 0.0, 0.0])
    assert finding.false_positive_rate == pytest.approx(3 * 0.001 + 0.02)
    assert finding.false_negative_rate == pytest.approx(3 * 0.002 + 0.02)


def test_a_judged_watch_bets_against_the_certified_limits():
    certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    assert bw.JudgedTest(certificate, seed=1)._means[:2] == pytest.approx([0.2, 0.1])


def test_no_worse_is_shown_exactly_when_joint_evidence_suffices():
    """The e-value is computed at some episodes only, and those at which it suffices are among them."""
    rng = np.random.default_rng(2)
    certificate = bw.Certificate.from_held_out([1.0] * 4 + [0.0] * 26, binary=True)
    side = None
    for _ in range(8):
        test = bw.SequentialTest(certificate, margin=0.2)
        levels = joint_levels(certificate, (test.alpha_adverse, test.alpha_benign), 1)
        side = side or sides_of(certificate, levels, 0.2)[2]
        shown, failed = False, 0
        for n, cost in enumerate((rng.random(150) < 0.12).astype(float).tolist(), 1):
            failed += int(cost)
            log = side.log_e_value(np.array([0.0, 1.0]), np.array([n - failed, failed]))
            shown = shown or log >= side.target
            assert test.update(cost).no_worse == shown
            if shown:
                break
        assert shown
