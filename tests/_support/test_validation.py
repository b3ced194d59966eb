"""Costs and levels: what is accepted comes back unchanged, what is not is named."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch._support.validation import check_costs, check_flag, check_level, check_margin, shortest
from boundwatch.errors import NOTHING, Argument, InvalidCost, InvalidLevel, InvalidSetting

BAD_COSTS = [
    ([0.2] * 17 + [1.4], "costs[17]", 1.4, "is outside [0, 1]"),
    ([0.2, -0.5], "costs[1]", -0.5, "is outside [0, 1]"),
    ([1.0000000000000002], "costs[0]", 1.0000000000000002, "is outside [0, 1]"),
    ([0.1, float("nan")], "costs[1]", pytest.approx(float("nan"), nan_ok=True), "is not a finite number"),
    ([float("inf")], "costs[0]", float("inf"), "is not a finite number"),
    ([], "costs", NOTHING, "is empty"),
    ([[0.1, 0.2]], "costs", NOTHING, "has shape (1, 2)"),
    (0.3, "costs", NOTHING, "has shape ()"),
    (["0.1", "0.2"], "costs[0]", "0.1", "is not a number"),
    ([0.1, None], "costs[1]", "None", "is not a number"),
    ([0.1, 1j], "costs[0]", "(0.1+0j)", "is not a number"),
    ([[0.1], [0.1, 0.2]], "costs", NOTHING, "is not an array of numbers"),
    ([10**400], "costs", NOTHING, "is not an array of numbers"),
    ({"cost": 0.1}, "costs", NOTHING, "is a dict"),
    ("costs.csv", "costs", NOTHING, "is a str"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), "costs[0]", "2020-01-01", "is not a number"),
    (np.array([3], dtype="timedelta64[s]"), "costs", NOTHING, "holds durations"),
    (np.ma.masked_array([0.1, 0.2], mask=[False, True]), "costs", NOTHING, "has masked entries"),
    ([True, False], "costs", NOTHING, "holds True and False"),
    (np.array([True, False], dtype=object), "costs", NOTHING, "holds True and False"),
]


@pytest.mark.parametrize(("costs", "name", "value", "problem"), BAD_COSTS)
def test_bad_costs_are_refused_on_one_line(costs, name, value, problem):
    with pytest.raises(InvalidCost) as refused:
        check_costs(costs)
    assert (refused.value.name, refused.value.value) == (name, value)
    assert refused.value.problem.startswith(problem)
    assert any(refused.value.remedy)
    assert "\n" not in str(refused.value)


def test_the_remedy_names_an_argument():
    for costs, argument in (([2.0], "cost_range"), ([True, False], "successes")):
        with pytest.raises(InvalidCost) as refused:
            check_costs(costs)
        assert Argument(argument) in refused.value.remedy


@pytest.mark.parametrize(
    "costs",
    [[0, 1, 1], [0, True, 0.0], (0.0, 1.0), np.array([1], dtype=np.int8), np.ones(3, dtype=np.float32)],
)
def test_binary_costs_of_any_type_pass(costs):
    checked = check_costs(costs, binary=True)
    assert checked.dtype == np.float64
    assert checked.tolist() == [float(c) for c in costs]


@pytest.mark.parametrize(("costs", "name"), [([0, 1, 0, 0.4, 0.5], "costs[3]"), ([0, 0.5, 2], "costs[2]")])
def test_a_broken_binary_promise_names_the_first_and_the_range_comes_before_it(costs, name):
    with pytest.raises(InvalidCost) as refused:
        check_costs(costs, binary=True)
    assert refused.value.name == name


def test_two_dimensions_and_the_name():
    assert check_costs([[0.1, 0.2], [Fraction(3, 4), 0.4]], ndim=2).tolist() == [[0.1, 0.2], [0.75, 0.4]]
    with pytest.raises(InvalidCost) as refused:
        check_costs([[0.1, 0.2], [3, 0.4]], ndim=2, name="new")
    assert refused.value.name == "new[1, 0]"
    with pytest.raises(InvalidCost, match="shape"):
        check_costs([0.1, 0.2], ndim=2)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_costs_in_range_come_back_unchanged(costs):
    assert check_costs(costs).tolist() == costs


@given(st.lists(st.floats(0, 1)), st.floats().filter(lambda x: not 0 <= x <= 1))
def test_one_cost_out_of_range_is_found_wherever_it_is(good, bad):
    with pytest.raises(InvalidCost) as refused:
        check_costs([*good, bad, *good])
    assert refused.value.name == f"costs[{len(good)}]"


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, 1e-301, float("inf"), True, "0.05", None, 1j])
def test_bad_levels_are_refused(value):
    with pytest.raises(InvalidLevel) as refused:
        check_level(value, "alpha")
    assert (refused.value.name, refused.value.value) == ("alpha", value)


@given(st.floats(1e-300, 1, exclude_max=True))
def test_levels_come_back_as_floats(value):
    assert check_level(np.float64(value), "alpha") == value
    assert type(check_level(np.float64(value), "alpha")) is float


def test_bad_margins_and_flags_are_refused():
    assert check_margin(0, zero=True) == 0
    for margin in (0, 1, True, "0.1", float("nan")):
        with pytest.raises(InvalidSetting, match="margin"):
            check_margin(margin)
    with pytest.raises(InvalidSetting) as refused:
        check_flag("no", "binary")
    assert (refused.value.name, refused.value.value) == ("binary", "no")


@given(st.floats(allow_nan=False))
def test_shortest_text_reads_back_exactly(value):
    assert float(shortest(value)) == value
