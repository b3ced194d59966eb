"""The fleet: equal to one sequential test per stream, whatever the order and repetition of ids."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.bounds.multiple import e_bh_rows
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch

BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
episodes = st.lists(
    st.tuples(st.sampled_from(["a", "b", 3, 4, 50]), st.floats(0, 1)), min_size=1, max_size=150
)


def through_json(state):
    return json.loads(json.dumps(state, allow_nan=False))


@given(episodes, st.integers(1, 40))
def test_streams_are_told_apart_in_any_order(stream, size):
    fleet, tests = bw.Fleet(BOUNDED), {}
    for start in range(0, len(stream), size):
        part = stream[start : start + size]
        fleet.update([name for name, _ in part], [cost for _, cost in part])
    for name, cost in stream:
        tests.setdefault(name, bw.SequentialTest(BOUNDED)).update(cost)
    assert fleet.ids == list(tests)
    for name, test in tests.items():
        finding = test.finding()
        assert fleet.finding(name).e_adverse == finding.e_adverse
        assert fleet.finding(name).first_alarm == finding.first_alarm


def test_a_stream_far_beyond_its_line_and_a_new_one_are_counted_at_once():
    lab = bw.Certificate.from_held_out([0, 0, 1, 0, 0], binary=True)
    old = np.zeros(2500)
    fleet, test = bw.Fleet(lab), bw.SequentialTest(lab)
    fleet.update(["old"] * old.size, old)
    alarm_line.cache_clear()  # as after a restart, where no line is known that far
    fleet = bw.Fleet.from_state_dict(through_json(fleet.state_dict()), lab)
    fleet.update(["new", "old"], [1.0, 1.0])
    alone = test.update_many([*old, 1.0]).to_dict()
    assert fleet.finding("old").to_dict() == alone | {"detector": "fleet"}
    assert fleet.finding("new").n == 1


@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_each_stream_is_a_sequential_test(binary, held_out, margin):
    """To the last bit, after every round and over hundreds: one stream is one row."""
    rng = np.random.default_rng(6)
    certificate = BINARY if binary else BOUNDED
    if held_out:
        lab = rng.random(60) < 0.2 if binary else rng.beta(2, 8, 60)
        certificate = bw.Certificate.from_held_out(lab.astype(float), binary=binary)
    costs = (
        rng.random((400, 4)) < [0.15, 0.6, 0.0, 1.0]
        if binary
        else rng.beta([2, 5, 1, 9], [8, 5, 40, 1], (400, 4))
    )
    fleet = bw.Fleet(certificate, margin=margin)
    tests = [bw.SequentialTest(certificate, margin=margin) for _ in range(4)]
    for n, row in enumerate(costs.astype(float)):
        fleet.update(np.arange(4), row)
        findings = [test.update(cost) for test, cost in zip(tests, row, strict=True)]
        if n in (0, 7, 60, 399):
            found = [fleet.finding(name).to_dict() for name in range(4)]
            expected = [each.to_dict() for each in findings]
            for one, other in zip(found, expected, strict=True):
                assert {name: one[name] for name in other if name != "detector"} == {
                    name: other[name] for name in other if name != "detector"
                }
    assert [each.verdict.value for each in findings] == ["within", "adverse", "benign", "adverse"]
    assert margin is None or [each.no_worse for each in findings][2:] == [True, False]


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


def test_whole_numbers_of_any_kind_are_one_name():
    fleet = bw.Fleet(BOUNDED)
    fleet.update([1, np.int64(2), np.uint8(1), np.str_("a")], [0.1, 0.2, 0.3, 0.4])
    fleet.update(np.array([2, 1], dtype=np.int32), [0.1, 0.2])
    assert fleet.ids == [1, 2, "a"]
    assert [type(name) for name in fleet.ids] == [int, int, str]
    assert fleet.n.tolist() == [3, 2, 1]
    assert fleet.finding(np.int64(2)) == fleet.finding(2)
    json.dumps(fleet.state_dict())


@pytest.mark.parametrize("known", [[], [0, 1]], ids=["new", "known"])
@pytest.mark.parametrize("name", [True, np.True_, 1.0, np.float64(1), None, [1], b"1"], ids=repr)
def test_what_is_neither_text_nor_a_whole_number_is_no_name(name, known):
    fleet = bw.Fleet(BOUNDED)
    if known:
        fleet.update(known, [0.1] * len(known))
    with pytest.raises(InvalidSetting, match=r"^ids\[1\] = .* is not a name; use text or whole numbers$"):
        fleet.update([0, name], [0.1, 0.2])
    with pytest.raises(InvalidSetting, match=r"^stream = .* is not a name; use text or whole numbers$"):
        fleet.finding(name)
    assert fleet.ids == known
    assert fleet.n.tolist() == [1] * len(known)


def test_bad_input_is_refused_and_nothing_counted():
    fleet = bw.Fleet(BOUNDED)
    with pytest.raises(InvalidCost):
        fleet.update(["a", "b"], [0.1, 1.2])
    with pytest.raises(InvalidSetting, match="one per cost"):
        fleet.update(["a", "b"], [0.1])
    for ids in (np.array([True, False]), np.array([0.0, 1.0])):
        with pytest.raises(InvalidSetting, match="not a name"):
            fleet.update(ids, [0.1, 0.2])
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
    for change in (
        {"ids": ["a", "a"]},
        {"ids": 3},
        {"ids": ["a", True]},
        {"evidence": None},
        {"evidence": state["evidence"] | {"log": [1.0]}},
        {"evidence": state["evidence"] | {"reached": [0, 1, 0, 1]}},
        {"alarms": {"first_alarm": [0, -1], "verdict": [0, 0]}},
        {"alarms": {"first_alarm": [0, 1], "verdict": [0, 7]}},
        {"settings": {"alpha_adverse": 7}},
        {"settings": {"beta": 0.1}},
        {"kind": "x"},
    ):
        with pytest.raises(SchemaMismatch):
            bw.Fleet.from_state_dict(state | change)


def test_a_finding_names_its_detector_and_is_a_table():
    fleet = bw.Fleet(BOUNDED)
    fleet.update(["<arm>"] * 5, [0.9] * 5)
    finding = fleet.finding("<arm>")
    assert finding.detector == "fleet"
    assert finding.to_frame()["e_adverse"].item() == finding.e_adverse
    assert "ADVERSE" in finding._repr_html_()


def test_no_worse_is_known_of_all_streams_at_once():
    fleet = bw.Fleet(BINARY, margin=0.3)
    assert bw.Fleet(BINARY).no_worse is None
    for cost in [0.0] * 30:
        fleet.update(["good", "bad"], [cost, 1.0])
    assert fleet.no_worse == [fleet.finding(name).no_worse for name in fleet.ids] == [True, False]


def test_joint_lists_need_only_the_e_values_that_could_be_listed():
    fleet = bw.Fleet(bw.Certificate.from_held_out([0, 0, 0, 1] * 20, binary=True))
    failing = np.random.default_rng(4).random((40, 30)) < np.linspace(0.2, 0.9, 30)
    for row in failing.astype(float):
        fleet.update(np.arange(30), row)
    expected = e_bh_rows(np.log(fleet.e_adverse), DiscoveryShares().look(30), 0.05).tolist()
    assert 3 < len(expected) < 27
    assert fleet.discoveries(0.05) == expected
