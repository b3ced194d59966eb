"""The change detector: statistics from their definitions, latching, state."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.errors import InvalidCost, ProvenanceMismatch, SchemaMismatch

BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.05, upper=0.12, delta=0.01, binary=True)
costs_lists = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def starts(costs, bound):
    """Each bet's capital when it starts at each episode: (starts, bets), before shares."""
    bets = bw.SequentialTest(BOUNDED).bets
    factors = 1 - bets.sizes + np.outer(np.asarray(costs) / bound, bets.sizes)
    return np.cumprod(factors[::-1], axis=0)[::-1], bets.shares


@given(costs_lists)
def test_statistics_are_those_of_the_definition(costs):
    capitals, shares = starts(costs, 0.2)
    roberts = bw.ChangeDetector(BOUNDED).update_many(costs)
    assert roberts.statistic_adverse == pytest.approx(capitals.sum(axis=0) @ shares, rel=1e-9)
    capitals, shares = starts(1 - np.array(costs), 0.9)
    assert roberts.statistic_benign == pytest.approx(capitals.sum(axis=0) @ shares, rel=1e-9)


@pytest.mark.parametrize("certificate", [BINARY, BOUNDED])
def test_a_late_change_is_found_and_dated(certificate):
    rng = np.random.default_rng(2)
    began = []
    for _ in range(40):
        detector = bw.ChangeDetector(certificate)
        costs = (rng.random(400) < np.where(np.arange(400) < 150, 0.08, 0.6)).astype(float)
        finding = detector.update_many(costs)
        assert finding.verdict is bw.Verdict.ADVERSE
        began.append(finding.change_began)
    assert abs(np.median(began) - 151) <= 3


@pytest.mark.parametrize("certificate", [BINARY, BOUNDED])
@given(before=costs_lists, after=costs_lists)
def test_state_continues_bit_by_bit(certificate, before, after):
    if certificate.binary:
        before, after = np.round(before), np.round(after)
    detector = bw.ChangeDetector(certificate, alpha_adverse=0.1)
    detector.update_many(before)
    state = json.loads(json.dumps(detector.state_dict(), allow_nan=False))
    again = bw.ChangeDetector.from_state_dict(state, certificate)
    assert again.update_many(after) == detector.update_many(after)
    assert again.state_dict() == detector.state_dict()


def test_alarms_latch_until_reset():
    detector = bw.ChangeDetector(BINARY)
    finding = detector.update_many([1] * 10)
    assert (finding.verdict, finding.first_alarm, finding.change_began) == (bw.Verdict.ADVERSE, 4, 1)
    assert detector.update_many([0] * 500).verdict is bw.Verdict.ADVERSE
    detector.reset()
    finding = detector.update_many([0] * 500)
    assert finding.verdict is bw.Verdict.BENIGN
    assert finding.first_alarm is not None


def test_a_long_run_stays_finite():
    detector = bw.ChangeDetector(BOUNDED)
    finding = detector.update_many(np.ones(30_000))
    finding = detector.update_many(np.zeros(30_000))
    assert all(math.isfinite(v) for v in finding.to_dict().values() if isinstance(v, float))


def test_the_printed_probability_follows_from_the_run_length():
    detector = bw.ChangeDetector(BOUNDED, alpha_adverse=0.002)
    finding = detector.update_many([0.1] * 20)
    assert finding.mean_run_length_adverse == 500
    assert finding.false_alarm_probability == pytest.approx(20 * 0.002 + 0.01)  # delta is included
    assert finding.false_alarm_probability == detector.false_alarm_probability(20)
    assert detector.false_alarm_probability(1000) == 1.0


def test_bad_input():
    detector = bw.ChangeDetector(BOUNDED)
    with pytest.raises(InvalidCost):
        detector.update(math.nan)
    with pytest.raises(InvalidCost, match="no cost"):
        detector.finding()
    detector.update(0.5)
    state = detector.state_dict()
    with pytest.raises(ProvenanceMismatch):
        bw.ChangeDetector.from_state_dict(state, BINARY)
    for change in (
        {"settings": {"method": "page"}},
        {"kind": "Fleet"},
        {"evidence": state["evidence"] | {"began": [1]}},
    ):
        with pytest.raises(SchemaMismatch):
            bw.ChangeDetector.from_state_dict(state | change)


def test_a_finding_names_its_detector_and_is_a_table():
    finding = bw.ChangeDetector(BOUNDED).update_many([0.4, 0.9])
    assert finding.detector == "change-detector"
    assert finding.to_frame()["statistic_adverse"].item() == finding.statistic_adverse
    assert "WITHIN" in finding._repr_html_()
    assert (finding.shift_lower, finding.shift_upper) == (-0.2, 0.9), "no one shift: what no cost exceeds"
