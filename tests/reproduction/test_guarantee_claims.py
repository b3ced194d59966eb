"""Every rule on certificates, Theorem 3 and power: numbers made up for it give yes, and others give no."""

from __future__ import annotations

import dataclasses

import pytest

from doctored.made_up import filled, judged, row
from reproduction import certificates, cost_function, gradients, power, theorem_3

# Cost functions


def certified(upper: float, printed: float, false: int, hits: int = 900) -> cost_function.Results:
    limits = {"lower": 0.27, "upper": upper, "bounds": {"upper_pinsker": printed}}
    rows = [
        filled(cost_function.Threshold, d_thresh=threshold, expected_cost=0.3, **limits)
        for threshold in (0.3, 0.5)
    ]
    tallies = [row("easy", adverse=false), row("hardest", adverse=hits)]
    return filled(cost_function.Results, certificates=rows, tallies=tallies)


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


def limits(**wrong: tuple[int, ...]) -> theorem_3.Results:
    """Return results in which so many limits are too high, by setting and number of trials."""
    series = [
        filled(
            theorem_3.Series,
            setting=setting,
            rows=[filled(theorem_3.LowerLimits, n=n, too_high=count) for n, count in enumerate(counts, 1)],
        )
        for setting, counts in wrong.items()
    ]
    return filled(theorem_3.Results, datasets=10_000, rate=0.1, series=series)


@pytest.mark.parametrize(("wrong", "holds"), [(0, "yes"), (999, "yes"), (1000, "no"), (1500, "no")])
def test_the_worst_number_of_trials_decides_on_theorem_3(wrong, holds):
    (claim,) = theorem_3.claims(limits(training=(0, 5), hard=(0, wrong)))
    judged(claim, holds)
    assert claim.paper.endswith("90 % of the time.")


def test_what_is_never_wrong_is_not_wrong_most_often_somewhere():
    for wrong, begins in ((0, "It is never wrong, in 10,000"), (1, "Of all n and distributions")):
        (claim,) = theorem_3.claims(limits(training=(wrong,)))
        assert claim.ours.startswith(begins)


# Ours


@pytest.mark.parametrize(("failures", "holds"), [(0, "yes"), (200, "yes"), (215, "yes"), (260, "no")])
def test_certificates_fail_at_most_as_often_as_promised(failures, holds):
    counts = dict.fromkeys("abc", min(failures, 10)) | {"d": failures}
    rows = [filled(certificates.Repeated, n=100, method=k, failures=count) for k, count in counts.items()]
    (claim,) = certificates.claims(certificates.Results(0.1, 2000, rows))
    judged(claim, holds)
    assert ("none fails" in claim.ours) == (failures == 0)
    assert claim.beyond


def powers(**shares: int) -> power.Results:
    """Return power in two settings with n = 10 and 50: 950 in the further, this much in the nearer."""
    kinds = {"paper": (power.THEOREM_1, "hoeffding"), "ours": (power.POINTWISE, "betting")}
    kinds["extra"] = (power.HELD_OUT, "betting")
    rows = [
        row(setting, n=n, adverse=adverse, certificate=label, tail=tail)
        for name, (label, tail) in kinds.items()
        for n in (10, 50)
        for setting, adverse in (
            ("hard", 0),
            ("harder", shares.get(f"{name}_{n}", shares[name])),
            ("hardest", 950),
        )
    ]
    return filled(power.Results, tallies=rows, held_out=1000)


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
        power.Trials(label, "hard", 0.1, tail, "adverse", n, None) for (label, tail), n in needed.items()
    ]
    claim = power._fewer_trials(filled(power.Results, trials=trials))
    judged(claim, "partly")
    assert "Not so in 1 of 2 comparisons." in claim.why


# Gradients


@pytest.mark.parametrize(("mixed", "holds"), [(0.25, "yes"), (0.21, "partly"), (0.203, "no"), (0.1, "no")])
def test_mixed_gradients_must_gain_visibly_less_to_converge_poorly(mixed, holds):
    ends = {"same samples": (0.3, 0.2), "mixed": (0.3, mixed)}
    series = [
        gradients.Series(kind, rate, [[0.6, *[end] * 10]])
        for kind, found in ends.items()
        for rate, end in zip((0.02, 0.05), found, strict=True)
    ]
    judged(gradients.claims(gradients.Results(10, series))[0], holds)


def test_both_kinds_of_gradients_descend():
    settings = dataclasses.replace(gradients.QUICK, repetitions=1)
    for series in gradients.run(settings, None).series:
        (bounds,) = series.bounds
        assert bounds[-1] < bounds[0] - 0.05, series.kind
