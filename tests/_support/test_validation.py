"""Costs and levels: what is accepted comes back unchanged, what is not is named."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch._support.validation import check_costs, check_level, shortest
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidLevel

BAD_COSTS = [
    (
        [0.2] * 17 + [1.4],
        r"costs[17] = 1.4 is outside [0, 1]; rescale, or pass cost_range=(low, high) to read_costs",
    ),
    (
        [0.2, -0.5],
        r"costs[1] = -0.5 is outside [0, 1]; rescale, or pass cost_range=(low, high) to read_costs",
    ),
    ([1.0000000000000002], r"costs[0] = 1.0000000000000002 is outside [0, 1]"),
    ([0.1, float("nan")], "costs[1] = nan is not a finite number"),
    ([float("inf")], "costs[0] = inf is not a finite number"),
    ([], "costs is empty"),
    ([[0.1, 0.2]], "costs has shape (1, 2); it must be (n,)"),
    (0.3, "costs has shape (); it must be (n,)"),
    (["0.1", "0.2"], "costs[0] = '0.1' is not a number"),
    ([0.1, None], "costs[1] = 'None' is not a number"),
    ([0.1, 1j], "costs[0] = '(0.1+0j)' is not a number"),
    ([[0.1], [0.1, 0.2]], "costs is not an array of numbers"),
    ([10**400], "costs is not an array of numbers"),
    ({"cost": 0.1}, "costs is a dict"),
    ("costs.csv", "costs is a str"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), "costs[0] = '2020-01-01' is not a number"),
    (np.ma.masked_array([0.1, 0.2], mask=[False, True]), "costs has masked entries"),
]


@pytest.mark.parametrize(("costs", "message"), BAD_COSTS, ids=[message[:30] for _, message in BAD_COSTS])
def test_bad_costs_are_refused_on_one_line(costs, message):
    with pytest.raises(InvalidCost) as caught:
        check_costs(costs)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_error_is_a_value_error_too():
    assert issubclass(InvalidCost, ValueError)
    assert issubclass(InvalidCost, BoundwatchError)


@pytest.mark.parametrize(
    "costs",
    [[0, 1, 1], [0, True, 0.0], (0.0, 1.0), np.array([1], dtype=np.int8), np.ones(3, dtype=np.float32)],
)
def test_binary_costs_of_any_type_pass(costs):
    checked = check_costs(costs, binary=True)
    assert checked.dtype == np.float64
    assert checked.tolist() == [float(c) for c in costs]


def test_broken_binary_promise_names_the_first():
    with pytest.raises(InvalidCost, match=r"costs\[3\] = 0\.4 is not 0 or 1"):
        check_costs([0, 1, 0, 0.4, 0.5], binary=True)


def test_range_is_reported_before_the_binary_promise():
    with pytest.raises(InvalidCost, match=r"costs\[2\] = 2 is outside"):
        check_costs([0, 0.5, 2], binary=True)


def test_two_dimensions_and_the_name():
    assert check_costs([[0.1, 0.2], [0.3, 0.4]], ndim=2).shape == (2, 2)
    with pytest.raises(InvalidCost, match=r"new\[1, 0\] = 3 is outside"):
        check_costs([[0.1, 0.2], [3, 0.4]], ndim=2, name="new")
    with pytest.raises(InvalidCost, match=r"costs has shape \(2,\); it must be \(datasets, n\)"):
        check_costs([0.1, 0.2], ndim=2)


def test_exact_fractions_are_numbers():
    assert check_costs([Fraction(1, 4)]).tolist() == [0.25]


@given(st.lists(st.floats(0, 1), min_size=1))
def test_costs_in_range_come_back_unchanged(costs):
    assert check_costs(costs).tolist() == costs


@given(
    st.lists(st.floats(0, 1)),
    st.floats(allow_nan=True, allow_infinity=True).filter(lambda x: not 0 <= x <= 1),
)
def test_one_cost_out_of_range_is_found_wherever_it_is(good, bad):
    with pytest.raises(InvalidCost, match=rf"^costs\[{len(good)}\] = "):
        check_costs([*good, bad, *good])


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, float("nan"), float("inf"), True, "0.05", None, 1j])
def test_bad_levels_are_refused(value):
    with pytest.raises(InvalidLevel, match=r"^alpha = .*choose a probability such as 0\.05$"):
        check_level(value, "alpha")


@given(st.floats(1e-300, 1, exclude_max=True))
def test_levels_come_back_as_floats(value):
    assert check_level(np.float64(value), "alpha") == value
    assert type(check_level(np.float64(value), "alpha")) is float


@given(st.floats(allow_nan=False))
def test_shortest_text_reads_back_exactly(value):
    assert float(shortest(value)) == value


@pytest.mark.parametrize("costs", [[True, False], np.array([True]), np.array([True, False], dtype=object)])
def test_truths_are_refused_with_the_remedy(costs):
    with pytest.raises(InvalidCost, match=r"holds True and False.*successes=\[\.\.\.\]"):
        check_costs(costs)
