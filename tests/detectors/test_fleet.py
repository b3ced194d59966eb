"""The fleet: equal to one sequential test per stream, whatever the order and repetition of ids."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch

BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
episodes = st.lists(
    st.tuples(st.sampled_from(["a", "b", 3, 4, 50]), st.floats(0, 1)), min_size=1, max_size=150
)


def through_json(state):
    return json.loads(json.dumps(state, allow_nan=False))


def assert_same(stream: bw.StreamFinding, test: bw.SequentialFinding) -> None:
    assert (stream.n, stream.verdict, stream.first_alarm) == (test.n, test.verdict, test.first_alarm)
    for name in ("mean_cost", "p_adverse", "p_benign", "e_adverse", "e_benign"):
        assert getattr(stream, name) == pytest.approx(getattr(test, name), rel=1e-9)
    assert stream.false_positive_rate == test.false_positive_rate


@given(episodes, st.integers(1, 40))
def test_each_stream_is_a_sequential_test(stream, size):
    fleet, tests = bw.Fleet(BOUNDED), {}
    for start in range(0, len(stream), size):
        part = stream[start : start + size]
        fleet.update([name for name, _ in part], [cost for _, cost in part])
    for name, cost in stream:
        tests.setdefault(name, bw.SequentialTest(BOUNDED)).update(cost)
    assert fleet.ids == list(tests)
    for name, test in tests.items():
        assert_same(fleet.finding(name), test.finding())


def test_long_streams_agree_too():
    rng = np.random.default_rng(5)
    costs = (rng.random((3000, 3)) < [0.1, 0.2, 0.6]).astype(float)
    fleet, tests = bw.Fleet(BINARY), [bw.SequentialTest(BINARY) for _ in range(3)]
    for row in costs:
        fleet.update(np.arange(3), row)
    for name, test in enumerate(tests):
        assert_same(fleet.finding(name), test.update_many(costs[:, name]))


def test_numbered_streams_in_any_order_and_block():
    rng = np.random.default_rng(6)
    ids = rng.integers(0, 300, 5000)
    costs = rng.random(5000)
    by_array, by_list = bw.Fleet(BOUNDED), bw.Fleet(BOUNDED)
    for start in range(0, 5000, 500):
        by_array.update(ids[start : start + 500], costs[start : start + 500])
    for name, cost in zip(ids.tolist(), costs.tolist(), strict=True):
        by_list.update([name], [cost])
    order = np.argsort(by_array.ids), np.argsort(by_list.ids)
    np.testing.assert_allclose(by_array.e_adverse[order[0]], by_list.e_adverse[order[1]], rtol=1e-9)
    np.testing.assert_array_equal(by_array.n[order[0]], np.bincount(ids))


def test_update_names_the_new_alarms_once():
    fleet = bw.Fleet(BOUNDED)
    assert fleet.update(["x", "y"], [0.9, 0.1]) == []
    assert fleet.update(["x", "y", "x", "x"], [0.9, 0.1, 0.9, 0.9]) == ["x"]
    assert fleet.update(["x", "y"], [0.9, 0.1]) == []
    assert fleet.verdicts == [bw.Verdict.ADVERSE, bw.Verdict.WITHIN]
    fleet.reset("x")
    with pytest.raises(InvalidSetting, match="since its reset"):
        fleet.finding("x")
    assert fleet.update(["x"], [0.5]) == []
    assert fleet.finding("x").n == 1


@given(episodes, episodes)
def test_state_continues_bit_by_bit(before, after):
    fleet = bw.Fleet(BOUNDED, alpha_adverse=0.1)
    fleet.update(*map(list, zip(*before, strict=True)))
    again = bw.Fleet.from_state_dict(through_json(fleet.state_dict()), BOUNDED)
    for each in (fleet, again):
        each.update(*map(list, zip(*after, strict=True)))
    assert again.state_dict() == fleet.state_dict()


def test_endless_success_and_failure_stay_finite():
    fleet = bw.Fleet(BOUNDED)
    for _ in range(20):
        fleet.update([1] * 1000 + [2] * 1000, [1.0] * 1000 + [0.0] * 1000)
    fleet.update([1], [0.0])
    json.dumps(fleet.state_dict(), allow_nan=False)
    for name in (1, 2):
        assert all(math.isfinite(v) for v in fleet.finding(name).to_dict().values() if isinstance(v, float))


def test_bad_input_is_refused_and_nothing_counted():
    fleet = bw.Fleet(BOUNDED)
    with pytest.raises(InvalidCost):
        fleet.update(["a", "b"], [0.1, 1.2])
    with pytest.raises(InvalidSetting, match="one per cost"):
        fleet.update(["a", "b"], [0.1])
    with pytest.raises(InvalidSetting, match="not a name"):
        fleet.update(["a", 1.5], [0.1, 0.2])
    with pytest.raises(InvalidSetting, match="no costs yet"):
        fleet.finding("a")
    with pytest.raises(InvalidSetting, match="no costs yet"):
        fleet.reset("a")
    assert fleet.ids == []
    assert fleet.discoveries() == []


def test_damaged_states():
    fleet = bw.Fleet(BOUNDED)
    fleet.update(["a", 2], [0.1, 0.2])
    state = through_json(fleet.state_dict())
    with pytest.raises(ProvenanceMismatch):
        bw.Fleet.from_state_dict(state, BINARY)
    for change in ({"ids": ["a", "a"]}, {"ids": 3}, {"book": [1.0]}, {"verdict": [0, 7]}, {"kind": "x"}):
        with pytest.raises(SchemaMismatch):
            bw.Fleet.from_state_dict(state | change)
