"""Every rule on certificates, Theorem 3 and power: numbers made up for it give yes, and others give no."""

from __future__ import annotations

import dataclasses

import pytest

from doctored.made_up import filled, judged, row
from reproduction import certificates, cost_function, gradients, power, theorem_3


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


def limits(side: str, **wrong: tuple[int, ...]) -> theorem_3.Results:
    """Return results in which so many limits are ``too_high`` or ``too_low``, by setting and trials."""
    series = [
        filled(
            theorem_3.Series,
            setting=setting,
            rows=[filled(theorem_3.Limited, n=n, **{side: count}) for n, count in enumerate(counts, 1)],
        )
        for setting, counts in wrong.items()
    ]
    return filled(theorem_3.Results, datasets=10_000, rate=0.1, series=series)


@pytest.mark.parametrize(("place", "side"), list(enumerate(theorem_3.WRONG)))
@pytest.mark.parametrize(("wrong", "holds"), [(0, "yes"), (999, "yes"), (1000, "no"), (1500, "no")])
def test_the_worst_number_of_trials_decides_on_theorem_3(wrong, holds, place, side):
    claims = theorem_3.claims(limits(side, training=(0, 5), hard=(0, wrong)))
    assert [claim.beyond for claim in claims] == [False, True]
    judged(claims[place], holds)
    judged(claims[1 - place], "yes")


@pytest.mark.parametrize(("failures", "holds"), [(0, "yes"), (200, "yes"), (215, "yes"), (260, "no")])
def test_certificates_fail_at_most_as_often_as_promised(failures, holds):
    counts = dict.fromkeys("abc", min(failures, 10)) | {"d": failures}
    rows = [filled(certificates.Repeated, n=100, method=k, failures=count) for k, count in counts.items()]
    (claim,) = certificates.claims(certificates.Results(0.1, 2000, rows))
    judged(claim, holds)
    assert claim.beyond


FURTHER = ("hardest", 950)


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
    judged(power._smaller_shifts(results), holds)
    # Without trials that the paper's method can do with, there is nothing to compare.
    judged(power._fewer_trials(results), "not checkable here")


def needed(paper: list[int], ours: int | None = 10, mixture: int | None = None) -> power.Results:
    """Return the trials that each method needs in some settings; ours as many in all of them."""
    kinds = [(power.POINTWISE, "betting", ours), (power.POINTWISE, "mixture", mixture or ours)]
    kinds.append((power.HELD_OUT, "mixture", 10))
    return filled(
        power.Results,
        trials=[
            power.Trials(label, str(place), 0.1 * place, tail, "adverse", n, None)
            for place, trials in enumerate(paper)
            for label, tail, n in [(power.THEOREM_1, "hoeffding", trials), *kinds]
        ],
    )


@pytest.mark.parametrize(
    ("results", "holds"),
    [
        (needed([20, 15]), "yes"),
        (needed([20, 9]), "partly"),
        (needed([20, 10]), "partly"),
        (needed([20], mixture=30), "partly"),
        (needed([9, 5]), "no"),
        (needed([20], ours=None), "no"),  # what only additional environments reach
    ],
)
def test_fewer_trials_means_in_every_setting(results, holds):
    judged(power._fewer_trials(results), holds)


@pytest.mark.parametrize(
    ("mixed", "arm", "holds"),
    [
        (0.25, 0.35, "yes"),
        (0.25, 0.2, "partly"),
        (0.2, 0.35, "partly"),
        (0.21, 0.2, "partly"),
        (0.203, 0.2, "no"),
        (0.1, 0.2, "no"),
    ],
)
def test_mixed_gradients_must_gain_visibly_less_to_converge_poorly(mixed, arm, holds):
    ends = {"same samples": (0.3, 0.2), "mixed": (0.3, mixed)}
    descents = {kind: [0.5, *[0.3] * 5] for kind in gradients.KINDS} | {"mixed": [0.5, *[0.1 + arm] * 5]}
    series = [
        gradients.Series(kind, rate, [[0.6, *[end] * 10]])
        for kind, found in ends.items()
        for rate, end in zip((0.02, 0.05), found, strict=True)
    ]
    judged(gradients.claims(gradients.Results(10, series, descents))[0], holds)


def test_both_kinds_of_gradients_descend():
    settings = dataclasses.replace(gradients.QUICK, repetitions=1)
    for series in gradients.on_toy(settings):
        (bounds,) = series.bounds
        assert bounds[-1] < bounds[0] - 0.05, series.kind
