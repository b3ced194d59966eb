"""Every rule on certificates, Theorem 3 and power: numbers made up for it give yes, and others give no."""

from __future__ import annotations

import dataclasses

import pytest

from doctored.made_up import judged, row
from reproduction import certificates, cost_function, gradients, power, theorem_3

# Cost functions


def certified(upper: float, printed: float, false: int, hits: int = 900) -> dict:
    rows = [
        {
            "d_thresh": threshold,
            "lower": 0.27,
            "upper": upper,
            "expected_cost": 0.3,
            "bounds": {"upper_pinsker": printed},
        }
        for threshold in (0.3, 0.5)
    ]
    tallies = [row("easy", adverse=false), row("hardest", adverse=hits)]
    return {"certificates": rows, "tallies": tallies}


@pytest.mark.parametrize(
    ("results", "answers"),
    [
        (certified(0.32, 0.34, 0), ["yes", "yes"]),
        (certified(0.32, 0.36, 2), ["partly", "partly"]),
        (certified(0.36, 0.36, 100), ["no", "no"]),
        (certified(0.29, 0.34, 0), ["no", "yes"]),  # tight, and wrong
        (certified(0.32, 0.34, 0, hits=0), ["yes", "not checkable here"]),
    ],
)
def test_of_cost_functions_numbers_decide(results, answers):
    claims = cost_function.claims(results)
    for claim, holds in zip(claims, answers, strict=True):
        judged(claim, holds)
    assert [claim.beyond for claim in claims] == [False, True]


# Theorem 3


@pytest.mark.parametrize(("wrong", "holds"), [(0, "yes"), (999, "yes"), (1000, "no"), (1500, "no")])
def test_the_worst_number_of_trials_decides_on_theorem_3(wrong, holds):
    series = [
        {"setting": "training", "rows": [{"n": 1, "too_high": 0}, {"n": 2, "too_high": 5}]},
        {"setting": "hard", "rows": [{"n": 1, "too_high": 0}, {"n": 2, "too_high": wrong}]},
    ]
    (claim,) = theorem_3.claims({"datasets": 10_000, "rate": 0.1, "series": series})
    judged(claim, holds)
    assert claim.paper.endswith("90 % of the time.")


def test_what_is_never_wrong_is_not_wrong_most_often_somewhere():
    results = {"datasets": 10_000, "rate": 0.1}
    for wrong, begins in ((0, "It is never wrong, in 10,000"), (1, "Of all n and distributions")):
        series = [{"setting": "training", "rows": [{"n": 1, "too_high": wrong}]}]
        (claim,) = theorem_3.claims(results | {"series": series})
        assert claim.ours.startswith(begins)


# Ours


@pytest.mark.parametrize(("failures", "holds"), [(0, "yes"), (200, "yes"), (215, "yes"), (260, "no")])
def test_certificates_fail_at_most_as_often_as_promised(failures, holds):
    rows = [{"n": 100, "method": name, "failures": min(failures, 10)} for name in "abc"]
    rows.append({"n": 100, "method": "d", "failures": failures})
    (claim,) = certificates.claims({"delta": 0.1, "repetitions": 2000, "rows": rows})
    judged(claim, holds)
    assert ("none fails" in claim.ours) == (failures == 0)
    assert claim.beyond


def powers(**shares: int) -> dict:
    """Return power in two settings with n = 10 and 50: 950 in the further, this much in the nearer."""
    kinds = {"paper": (power.THEOREM_1, "hoeffding"), "ours": (power.POINTWISE, "betting")}
    kinds["extra"] = (power.HELD_OUT, "betting")
    rows = [
        row(setting, n=n, adverse=adverse) | {"certificate": label, "tail": tail}
        for name, (label, tail) in kinds.items()
        for n in (10, 50)
        for setting, adverse in (
            ("hard", 0),
            ("harder", shares.get(f"{name}_{n}", shares[name])),
            ("hardest", 950),
        )
    ]
    return {"tallies": rows, "trials": [], "held_out": 1000}


@pytest.mark.parametrize(
    ("shares", "holds"),
    [
        ({"paper": 500, "ours": 600, "extra": 0}, "yes"),
        ({"paper": 500, "ours": 600, "ours_10": 400, "extra": 0}, "partly"),
        ({"paper": 500, "ours": 500, "extra": 900}, "no"),  # additional environments do not count
        ({"paper": 500, "ours": 400, "extra": 0}, "no"),
    ],
)
def test_smaller_shifts_means_for_every_number_of_trials(shares, holds):
    results = powers(**shares)
    claim = power._smaller_shifts(results)
    judged(claim, holds)
    # Without trials that the paper's method can do with, there is nothing to compare.
    nothing = power._fewer_trials(results)
    judged(nothing, "not checkable here")
    assert claim.beyond
    assert nothing.beyond


def test_a_worse_number_of_trials_is_counted():
    needed = {(power.THEOREM_1, "hoeffding"): 10, (power.POINTWISE, "betting"): 5}
    needed[power.POINTWISE, "mixture"] = 20
    trials = [
        {
            "setting": "hard",
            "shift": 0.1,
            "verdict": "adverse",
            "certificate": label,
            "tail": tail,
            "trials": n,
        }
        for (label, tail), n in needed.items()
    ]
    claim = power._fewer_trials({"trials": trials, "held_out": 1000})
    judged(claim, "partly")
    assert "Not so in 1 of 2 comparisons." in claim.why


# Gradients


@pytest.mark.parametrize(("mixed", "holds"), [(0.25, "yes"), (0.21, "partly"), (0.203, "no"), (0.1, "no")])
def test_mixed_gradients_must_gain_visibly_less_to_converge_poorly(mixed, holds):
    ends = {"same samples": (0.3, 0.2), "mixed": (0.3, mixed)}
    series = [
        {"kind": kind, "rate": rate, "bounds": [[0.6, *[end] * 10]]}
        for kind, found in ends.items()
        for rate, end in zip((0.02, 0.05), found, strict=True)
    ]
    judged(gradients.claims({"series": series})[0], holds)


def test_both_kinds_of_gradients_descend():
    settings = dataclasses.replace(gradients.QUICK, repetitions=1)
    for series in gradients.run(settings, None)["series"]:
        (bounds,) = series["bounds"]
        assert bounds[-1] < bounds[0] - 0.05, series["kind"]
