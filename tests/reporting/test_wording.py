"""What is read is never more than what is promised."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.reporting import compared, wording


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


def test_shares_are_rounded_as_asked_and_without_the_dust_of_binary_fractions():
    assert [wording.percent(share, "down") for share in (1 - 0.055, 0.945, 0.9459)] == ["94.5 %"] * 3
    assert (wording.percent(0.1425, "up"), wording.percent(2 / 3)) == ("14.3 %", "66.7 %")
    assert wording.signed_points(-0.0001, 0.0999) == "-0.1 to +10 points"


@given(st.floats(0, 1e-300, exclude_max=True))
def test_tiny_p_values_are_never_called_zero(value):
    assert wording.at_most(value) == "below 1e-300"


def test_a_vacuous_limit_rules_a_verdict_out_only_if_costs_are_not_judged_jointly():
    few = bw.Certificate.from_held_out([0.5, 0.4, 0.6], method="hoeffding")
    elsewhere = bw.Certificate.from_bounds(lower=0.1, upper=1.0, delta=0.01)
    for certificate, verdict in ((few, "adverse"), (elsewhere, "within")):
        finding = bw.HypothesisTest(certificate).decide([1.0] * 200)
        assert certificate.upper == 1
        assert finding.verdict == verdict
        said = wording.vacuous_limits(certificate, finding)[0]
        assert ("no shift can be called ADVERSE" in said) == (verdict == "within")


def test_a_comparison_whose_limits_fell_back_says_since_when():
    test = bw.PolicyComparison(0.05, binary=True, paired=False)
    early = test.update_many([1] * 12, [0] * 12)
    assert ("since" in compared.comparison_headline(early), early.difference_upper < 0) == (False, True)
    late = test.update_many([0, 1] * 75, [1, 0] * 75)
    assert late.difference_lower < 0 < late.difference_upper
    said = f"B_BETTER: evidence that B fails less often than A, since pair {late.first_alarm}"
    assert compared.comparison_headline(late) == said
    stands = f"The verdict at pair {late.first_alarm} stands; limits"
    assert sum(note.startswith(stands) for note in compared.comparison_notes(late)) == 1
