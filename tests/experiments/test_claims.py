"""What the page says must follow from the numbers: doctored numbers must change the answer."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from boundwatch.experiments import difficulty, mugs_and_bowls, theorem_3, wind
from boundwatch.experiments.figure import percent
from boundwatch.experiments.judging import Shift, false_declarations, split, tally
from rates import FALSE_FAIL

CERTIFICATE = bw.Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01, binary=True)


def tallies(rate: float, shift: Shift, *, upper: float = 0.3, datasets: int = 4000) -> list[dict]:
    """Judge streams that fail at a rate, with a detector whose certificate may be wrong."""
    certificate = bw.Certificate.from_bounds(lower=min(0.2, upper), upper=upper, delta=0.01, binary=True)
    costs = (np.random.default_rng(5).random((datasets, 50)) < rate).astype(float)
    return [tally(bw.HypothesisTest(certificate, tail="exact"), costs, "x", shift)]


def test_a_valid_detector_passes_and_a_broken_one_is_caught():
    no_shift = Shift(0.0, 0.0)
    (valid,) = [c for c in false_declarations(tallies(0.3, no_shift)) if c["verdict"] == "adverse"]
    assert valid["p_value"] >= FALSE_FAIL
    assert valid["false"] > 0  # it does declare, so that passing means something
    (broken,) = [
        c for c in false_declarations(tallies(0.3, no_shift, upper=0.2)) if c["verdict"] == "adverse"
    ]
    assert broken["p_value"] < FALSE_FAIL


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
    assert [check["verdict"] for check in false_declarations(tallies(0.3, shift, datasets=10))] == verdicts


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


@pytest.mark.parametrize(("bound", "expected"), [(0.5, 0.093), (0.25, 0.069)])
def test_looking_after_every_trial_breaks_the_level_of_a_fixed_sample(bound, expected):
    alarms = mugs_and_bowls._looking(bound, 0.05, 500)["false_alarms"]
    assert round(alarms["hoeffding"][-1], 3) == expected
    assert alarms["exact"][-1] > alarms["hoeffding"][-1]
    assert 0.0 < alarms["sequential"][-1] <= 0.05


def test_recorded_costs_are_read_and_judged(tmp_path):
    file = tmp_path / "flights.csv"
    file.write_text("cost\n" + "0.9\n" * 10)
    settings = wind.with_recorded(wind.FULL, [f"windy:5={file}"])
    assert settings.recorded == (wind.Recorded("windy:5", (0.9,) * 10),)
    judged = wind._judge_recorded(CERTIFICATE, 0.05, [1.0] * 10)
    assert judged["verdict"] == "adverse"
    for wrong in ("storm=x.csv", "windy:5"):
        with pytest.raises(InvalidSetting, match="write SETTING=FILE with one of windy:0"):
            wind.with_recorded(wind.FULL, [wrong])


def test_too_few_environments_are_refused():
    with pytest.raises(InvalidSetting, match="3 datasets of 4 need 12 environments; there are 10"):
        split(np.zeros(10), 4, 3)


def test_shares_never_read_as_never_or_always_unless_they_are():
    assert [percent(x) for x in (0.0, 1.0, 0.0005, 0.9995, 0.05)] == [
        "0 %",
        "100 %",
        "0.05 %",
        "99.95 %",
        "5 %",
    ]
