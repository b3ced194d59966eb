"""The self-test: keeps quiet when promises are kept, and cries when one is broken."""

import dataclasses

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidLevel, InvalidSetting
from boundwatch.planning import promises as selftest
from boundwatch.planning.promises import simulate_promises

BOUNDED = bw.Certificate.from_bounds(lower=0.6, upper=0.7, delta=0.01)


def test_our_promises_are_kept_and_not_vacuous():
    promises = simulate_promises(
        bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True), runs=300
    )
    assert all(promise.kept for promise in promises)
    assert all(promise.low <= promise.rate <= promise.high for promise in promises)
    spent = max(promise.rate / promise.promised for promise in promises)
    assert spent > 0.5


def test_its_own_costs_are_simulated_too():
    costs = np.random.default_rng(1).beta(2, 6, 300)
    certificate = bw.Certificate.from_held_out(costs)
    promises = simulate_promises(certificate, costs=costs, detectors=[], runs=2)
    assert sum("own costs" in promise.world for promise in promises) == 7
    with pytest.raises(InvalidSetting, match="not the certificate's own"):
        simulate_promises(certificate, costs=costs[:-1], runs=10)


def test_worlds_between_the_points():
    worlds = {world.name for world in selftest._worlds(BOUNDED, None)}
    assert {"0.2 or 1, mean 0.6", "0 or 0.735, mean 0.7", "0.58 or 1, mean 0.6"} <= worlds
    low = bw.Certificate.from_bounds(lower=0.05, upper=0.1, delta=0.01)
    assert "0 or 0.105, mean 0.1" in {world.name for world in selftest._worlds(low, None)}


CLAIMED = (
    "hypothesis-test, betting, n = 5",
    "hypothesis-test, exact, n = 100",
    "confidence-interval, exact, lower shift limit",
    "hypothesis-test, kl, upper shift limit",
    "fleet, read 200 times",
    "discoveries in 5 streams",
    "change-detector, run length <= 200",
    "hypothesis-test, total, n = 50",
    "hypothesis-test, margin 0.1, n = 50",
    "fleet, total, 200 times",
)


def test_a_rate_of_one_and_a_half_times_any_promise_is_noticed():
    held_out = bw.Certificate.from_held_out([0, 0, 0, 1] * 20, binary=True)
    levels = {bw.Verdict.ADVERSE: 0.04, bw.Verdict.BENIGN: 0.04}
    claims = list(selftest._claims(held_out, None, None, levels))
    assert set(CLAIMED) <= {claim.detector for claim in claims}
    rng = np.random.default_rng(71)
    for claim in claims:
        if claim.detector.startswith("sequential-test"):  # its streams are few; a fleet's are many
            continue
        broken = dataclasses.replace(
            claim, count=lambda rng, runs, rate=1.5 * claim.promised: int(rng.binomial(runs, rate))
        )
        found = selftest._judge(broken, rng, selftest.RUNS)
        assert found.sees <= 1.5 * claim.promised, claim
        assert not found.kept, claim
        exact = dataclasses.replace(
            claim, count=lambda rng, runs, rate=claim.promised: int(rng.binomial(runs, rate))
        )
        assert selftest._judge(exact, rng, selftest.RUNS).kept


def test_the_totals_are_tried_over_the_draw_of_the_lab_too(monkeypatch):
    held_out = bw.Certificate.from_held_out([0, 0, 0, 1] * 10, binary=True)

    class Careless(bw.HypothesisTest):
        """Takes the mean of the lab's costs for the truth."""

        def __init__(self, certificate, **levels):
            mean = certificate.mean_cost
            bound = bw.Certificate.from_bounds(lower=mean, upper=mean, delta=0.01, binary=True)
            super().__init__(bound, tail="exact", **levels)

    levels = {bw.Verdict.ADVERSE: 0.04, bw.Verdict.BENIGN: 0.04}
    claims = [c for c in selftest._joint_claims(held_out, levels) if c.detector.startswith("hypothesis")]
    rng = np.random.default_rng(72)
    assert all(selftest._judge(claim, rng, 400).kept for claim in claims)
    monkeypatch.setattr(selftest, "HypothesisTest", Careless)
    assert not all(selftest._judge(claim, rng, 400).kept for claim in claims)


def test_the_worlds_lie_on_the_side_where_the_verdict_is_wrong():
    class Fixed:
        """Draws just below the mean and at it, so that the rounding of the chance decides."""

        def random(self, shape):
            return np.full(shape, [np.nextafter(0.2, 0), 0.2])

    for verdict, mean in ((bw.Verdict.ADVERSE, 0.0), (bw.Verdict.BENIGN, 1.0)):
        assert selftest._two_point(verdict, 0.0, 1.0, 0.2, Fixed(), (3, 2)).mean() == mean


def test_each_verdict_of_the_change_detector_has_its_own_level(monkeypatch):
    class Uneven(bw.ChangeDetector):
        def __init__(self, certificate):
            super().__init__(certificate, alpha_adverse=0.0001, alpha_benign=0.002)

    monkeypatch.setattr(selftest, "ChangeDetector", Uneven)
    promises = simulate_promises(BOUNDED, detectors=[], runs=20)
    promised = {p.verdict: p.promised for p in promises if p.detector.startswith("change-detector")}
    assert promised == {bw.Verdict.ADVERSE: pytest.approx(0.02), bw.Verdict.BENIGN: pytest.approx(0.4)}


def test_a_detector_that_errs_more_often_is_found_out():
    careless = bw.Certificate.from_bounds(lower=0.1, upper=0.5, delta=0.01)
    detector = bw.HypothesisTest(careless, tail="kl")  # at a mean of 0.7 it alarms, and should not
    promises = simulate_promises(BOUNDED, detectors=[detector], runs=60)
    broken = [promise for promise in promises if not promise.kept]
    assert broken
    assert all(promise.detector.startswith("hypothesis-test") for promise in broken)


def test_a_fleet_with_too_low_a_threshold_is_found_out(monkeypatch):
    class Hasty(bw.Fleet):
        def __init__(self, certificate, *, alpha_adverse=0.04, alpha_benign=0.04):
            super().__init__(certificate, alpha_adverse=8 * alpha_adverse, alpha_benign=8 * alpha_benign)

    monkeypatch.setattr(selftest, "Fleet", Hasty)
    promises = simulate_promises(BOUNDED, detectors=[], runs=120)
    assert {promise.detector for promise in promises if not promise.kept} == {"fleet, read 200 times"}


def test_a_sequential_test_that_alarms_too_soon_is_found_out(monkeypatch):
    class Hasty(bw.SequentialTest):
        def __init__(self, certificate, *, alpha_adverse, alpha_benign):
            super().__init__(certificate, alpha_adverse=8 * alpha_adverse, alpha_benign=8 * alpha_benign)

    monkeypatch.setattr(selftest, "SequentialTest", Hasty)
    promises = simulate_promises(BOUNDED, detectors=[], runs=120)
    assert {promise.detector for promise in promises if not promise.kept} == {
        "sequential-test, read 200 times"
    }


def test_bad_input():
    with pytest.raises(InvalidSetting):
        simulate_promises(BOUNDED, runs=0)
    with pytest.raises(InvalidLevel):
        simulate_promises(BOUNDED, alpha_adverse=0.995)
