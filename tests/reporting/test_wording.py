"""What is read is never more than what is promised."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.reporting import wording


@given(st.floats(-1, 1))
def test_limits_are_rounded_outward_and_by_less_than_one_step(value):
    exact, low, high = Decimal(repr(value)), Decimal(wording.floor(value)), Decimal(wording.ceiling(value))
    assert low <= exact <= high
    assert high - low <= Decimal("0.0001")


@given(st.floats(1e-300, 1))
def test_p_values_are_rounded_up_and_by_less_than_one_per_cent(value):
    text = wording.at_most(value)
    shown = Decimal(text.removeprefix("at most "))
    assert Decimal(repr(value)) <= shown <= Decimal(repr(value)) * Decimal("1.01")


@given(st.floats(0, 1e-300, exclude_max=True))
def test_tiny_p_values_are_never_called_zero(value):
    assert wording.at_most(value) == "below 1e-300"


@pytest.mark.parametrize(("n", "tail"), [(100, "joint"), (1100, "exact")])
def test_a_fall_back_to_the_limits_is_said(n, tail):
    test = bw.HypothesisTest(bw.Certificate.from_held_out([0] * 45 + [1] * 5, binary=True))
    finding = test.decide([0] * (n - n // 10) + [1] * (n // 10))
    assert finding.tail == tail
    said = any("too many trials to judge jointly" in line for line in wording.caveats(test, finding))
    assert said == (tail != "joint")
