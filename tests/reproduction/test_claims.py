"""What the page says must follow from the numbers: doctored numbers must change the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reproduction.figure import percent
from reproduction.judging import (
    SIGNIFICANT,
    Shift,
    Tally,
    false_declarations,
    no_false_declaration,
    split,
    tally,
)

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from doctored.made_up import filled
from rates import FALSE_FAIL
from reproduction import (
    power,
    theorem_3,
)

CERTIFICATE = bw.Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01, binary=True)


def tallies(rate: float, shift: Shift, *, upper: float = 0.3, datasets: int = 4000) -> list[Tally]:
    """Judge streams that fail at a rate, with a detector whose certificate may be wrong."""
    certificate = bw.Certificate.from_bounds(lower=min(0.2, upper), upper=upper, delta=0.01, binary=True)
    costs = (np.random.default_rng(5).random((datasets, 50)) < rate).astype(float)
    return [tally(bw.HypothesisTest(certificate, tail="exact"), costs, "x", shift)]


def test_a_valid_detector_passes_and_a_broken_one_is_caught():
    no_shift = Shift(0.0, 0.0)
    (valid,) = [c for c in false_declarations(tallies(0.3, no_shift)) if c.verdict == "adverse"]
    assert valid.p_value >= FALSE_FAIL
    assert valid.false > 0  # it does declare, so that passing means something
    (broken,) = [c for c in false_declarations(tallies(0.3, no_shift, upper=0.2)) if c.verdict == "adverse"]
    assert broken.p_value < FALSE_FAIL


@pytest.mark.parametrize(
    ("shift", "verdicts"),
    [
        (Shift(0.2, 0.01), ["benign"]),
        (Shift(-0.2, 0.01), ["adverse"]),
        (Shift(0.01, 0.01), ["adverse", "benign"]),
        (Shift(0.0, 0.0), ["adverse"]),  # exactly no shift: BENIGN, "not higher", is then true
    ],
)
def test_an_uncertain_sign_counts_against_both_verdicts(shift, verdicts):
    assert [check.verdict for check in false_declarations(tallies(0.3, shift, datasets=10))] == verdicts


def test_a_limit_that_is_too_high_is_reported():
    rows = [theorem_3.LowerLimits(n, max=0.2, percentile_90=0.0, too_high=500) for n in (1, 2)]
    series = [theorem_3.Series("training", 0.0, 0.0, rows)]
    results = filled(theorem_3.Results, datasets=10_000, rate=0.1, series=series)
    assert theorem_3.claims(results)[0].holds == "yes"
    rows[1] = replace(rows[1], too_high=1500)
    assert theorem_3.claims(results)[0].holds == "no"


def powers(ratios: list[float]) -> power.Results:
    """Return results in which the paper's method needs so many times the trials of ours."""
    trials = [
        filled(
            power.Trials,
            certificate=label,
            tail=tail,
            setting=str(place),
            shift=0.1 * place,
            verdict="adverse",
            trials=round(10 * ratio) if label == power.THEOREM_1 else 10,
        )
        for place, ratio in enumerate(ratios)
        for label, tail in (
            (power.THEOREM_1, "hoeffding"),
            (power.POINTWISE, "betting"),
            (power.POINTWISE, "mixture"),
            (power.HELD_OUT, "mixture"),
        )
    ]
    return filled(power.Results, trials=trials)


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [([2.0, 1.5], "yes"), ([2.0, 0.9], "partly"), ([2.0, 1.0], "partly"), ([0.9, 0.5], "no")],
)
def test_fewer_trials_means_in_every_setting(ratios, holds):
    assert power._fewer_trials(powers(ratios)).holds == holds


def test_what_only_additional_environments_reach_does_not_count():
    results = powers([2.0])
    results.trials[:] = [
        replace(row, trials=None) if row.certificate == power.POINTWISE else row for row in results.trials
    ]
    assert power._fewer_trials(results).holds == "no"


def test_too_few_environments_are_refused():
    with pytest.raises(InvalidSetting, match="3 datasets of 4 need 12 environments; there are 10"):
        split(np.zeros(10), 4, 3)


def test_a_guarantee_is_exceeded_at_one_level_everywhere():
    for corrected, partly in ((SIGNIFICANT + 1e-9, True), (SIGNIFICANT, False)):
        why, in_part = no_false_declaration(1, corrected)
        assert (bool(why), in_part) == (True, partly)


def test_certificates_of_one_figure_can_be_told_apart():
    row = tallies(0.3, Shift(0.0, 0.0), datasets=10)[0]
    rows = [replace(row, d_thresh=0.3), replace(row, certificate="held-out"), row]
    assert [check.tally.certified_by for check in false_declarations(rows)] == [
        "d_thresh = 300 mm",
        "held-out",
        "",
    ]


def test_shares_never_read_as_never_or_always_unless_they_are():
    expected = {
        0.0: "0 %",
        1.0: "100 %",
        0.0005: "0.05 %",
        0.9995: "99.95 %",
        0.05: "5 %",
        1 / 42_000: "0.002 %",
        1 - 3 / 500_000: "99.999 %",
        3e-12: "3e-10 %",
        1 - 1e-9: "99.9999999 %",
    }
    assert {share: percent(share) for share in expected} == expected
