"""What the page says must follow from the numbers: doctored numbers must change the answer."""

from __future__ import annotations

import copy
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
from rates import FALSE_FAIL
from reproduction import (
    baselines,
    difficulty,
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


def doctored_difficulty() -> dict:
    rows = []
    for name, shift in (("easy", -0.3), ("same", 0.0), ("hard", 0.4)):
        for n in (10, 50):
            for detector in difficulty.DETECTORS:
                adverse, benign = {"easy": (0, 95), "same": (0, 0), "hard": (95, 0)}[name]
                rows.append(
                    {
                        "setting": name,
                        "detector": detector,
                        "tail": "hoeffding",
                        "n": n,
                        "datasets": 100,
                        "adverse": adverse,
                        "benign": benign,
                        "within": 100 - adverse - benign,
                        "shift": shift,
                        "shift_error": 0.001,
                        "false_positive_rate": 0.05,
                        "false_negative_rate": 0.05,
                    }
                )
    interval = {"lower": 0.27, "upper": 0.32, "delta": 0.01}
    return {
        "certificate": interval,
        "expected_cost": 0.3,
        "benign_margin": {"10": 0.4, "50": 0.18},
        "tallies": rows,
    }


def test_claims_follow_the_numbers():
    good = doctored_difficulty()
    assert {claim.holds for claim in difficulty.claims(good)} == {"yes"}
    bad = copy.deepcopy(good)
    for row in bad["tallies"]:
        if row["setting"] == "easy":
            row |= {"adverse": 60, "benign": 0, "within": 40}
    answers = [claim.holds for claim in difficulty.claims(bad)]
    assert answers[:2] == ["no", "no"]
    assert "partly" in answers  # ADVERSE with confidence, BENIGN never


def test_a_limit_that_is_too_high_is_reported():
    rows = [{"n": n, "max": 0.2, "percentile_90": 0.0, "too_high": 500} for n in (1, 2)]
    results = {
        "datasets": 10_000,
        "rate": 0.1,
        "series": [{"setting": "training", "shift": 0.0, "rows": rows}],
    }
    assert theorem_3.claims(results)[0].holds == "yes"
    rows[1]["too_high"] = 1500
    assert theorem_3.claims(results)[0].holds == "no"


def powers(ratios: list[float]) -> dict:
    """Return results in which the paper's method needs so many times the trials of ours."""
    trials = [
        {
            "certificate": label,
            "tail": tail,
            "setting": str(place),
            "shift": 0.1 * place,
            "verdict": "adverse",
        }
        | {"trials": round(10 * ratio) if label == power.THEOREM_1 else 10}
        for place, ratio in enumerate(ratios)
        for label, tail in (
            (power.THEOREM_1, "hoeffding"),
            (power.POINTWISE, "betting"),
            (power.POINTWISE, "mixture"),
            (power.HELD_OUT, "mixture"),
        )
    ]
    return {"trials": trials, "held_out": 1000}


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [([2.0, 1.5], "yes"), ([2.0, 0.9], "partly"), ([2.0, 1.0], "partly"), ([0.9, 0.5], "no")],
)
def test_fewer_trials_means_in_every_setting(ratios, holds):
    assert power._fewer_trials(powers(ratios)).holds == holds


def test_what_only_additional_environments_reach_does_not_count():
    results = powers([2.0])
    for row in results["trials"]:
        if row["certificate"] == power.POINTWISE:
            row["trials"] = None
    assert power._fewer_trials(results).holds == "no"


@pytest.mark.parametrize(("easy", "holds"), [(1, "yes"), (8, "no")])
def test_every_benign_setting_is_judged_not_only_training(easy, holds):
    results = {"alpha": 0.05, "tallies": [], "baselines": []}
    for setting, shift, adverse in (("training", 0.0, 0), ("easy", -0.2, easy), ("hard", 0.4, 90)):
        for detector in (*baselines.OURS, *baselines.THEIRS):
            row = doctored_difficulty()["tallies"][0] | {"setting": setting, "shift": shift, "n": 10}
            kind = "tallies" if detector in baselines.OURS else "baselines"
            results[kind].append(row | {"detector": detector, "adverse": adverse})
    assert baselines.claims(results)[0].holds == holds


def test_too_few_environments_are_refused():
    with pytest.raises(InvalidSetting, match="3 datasets of 4 need 12 environments; there are 10"):
        split(np.zeros(10), 4, 3)


def test_a_guarantee_is_exceeded_at_one_level_everywhere():
    assert no_false_declaration(1, SIGNIFICANT + 1e-9)[0] == "partly"
    holds, why = no_false_declaration(1, SIGNIFICANT)
    assert (holds, bool(why)) == ("no", True)


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
