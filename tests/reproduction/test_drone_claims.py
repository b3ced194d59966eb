"""Every rule on what the drone's detectors declare: numbers made up for it give yes, and others give no."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from reproduction.baseline_network import Outputs
from reproduction.certification import Limits
from reproduction.judging import Tally
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

from doctored.made_up import SHIFTS, change, filled, judged, row
from reproduction import baselines, difficulty, irrelevant_shift, rates, stronger_baselines

# Difficulty


@pytest.fixture
def varied() -> difficulty.Results:
    declared = {"easiest": {"benign": 950}, "harder": {"adverse": 500}, "hardest": {"adverse": 950}}
    tallies = [
        row(setting, detector, n, **declared.get(setting, {}))
        for setting in SHIFTS
        for detector in difficulty.DETECTORS
        for n in (10, 50)
    ]
    change(tallies, to={"adverse": 520}, setting="harder", detector="hypothesis-test")
    limits = filled(Limits, kind="pointwise", lower=0.27)
    return difficulty.Results(tallies, limits, expected_cost=0.3, benign_margin={"10": 0.2, "50": 0.1})


def all_hold(claims, number):
    assert len(claims) == number
    for claim in claims:
        judged(claim, "yes")


def test_over_difficulty_every_claim_can_hold(varied):
    all_hold(difficulty.claims(varied), 7)


@pytest.mark.parametrize(
    ("setting", "detector", "to", "claim", "holds"),
    [
        ("easy", "confidence-interval", {"adverse": 1}, 0, "partly"),
        ("easy", "confidence-interval", {"adverse": 100}, 0, "no"),
        ("training", "confidence-interval", {"adverse": 100}, 0, "no"),
        ("hard", "confidence-interval", {"benign": 100}, 0, "no"),
        ("easy", "confidence-interval", {"adverse": 40}, 1, "yes"),
        ("easy", "confidence-interval", {"adverse": 100}, 1, "no"),
        ("hard", "confidence-interval", {"benign": 100}, 1, "no"),
        ("hard", "hypothesis-test", {"benign": 1}, 2, "partly"),
        ("hard", "hypothesis-test", {"benign": 100}, 2, "no"),
        ("harder", "hypothesis-test", {"adverse": 620}, 3, "partly"),
        ("harder", "hypothesis-test", {"adverse": 1000}, 3, "no"),
        ("harder", "hypothesis-test", {"adverse": 500}, 4, "no"),  # no better is not marginally better
        ("harder", "hypothesis-test", {"adverse": 400}, 4, "no"),
        ("harder", "hypothesis-test", {"adverse": 1000}, 4, "partly"),  # by more than marginally
        ("easiest", "hypothesis-test", {"benign": 890}, 5, "partly"),
        ("hardest", "hypothesis-test", {"adverse": 890}, 5, "partly"),
        ("training", "hypothesis-test", {"adverse": 499}, 6, "yes"),
        ("training", "hypothesis-test", {"adverse": 500}, 6, "no"),
    ],
)
def test_over_difficulty_numbers_decide(varied, setting, detector, to, claim, holds):
    change(varied.tallies, to=to, setting=setting, detector=detector)
    judged(difficulty.claims(varied)[claim], holds)


def test_reasons_name_what_differs(varied, compared):
    change(varied.tallies, to={"adverse": 620}, setting="harder", detector="hypothesis-test", n=50)
    assert "; 1 of 3 differ by more" in difficulty.claims(varied)[3].why
    change(compared.baselines, to={"adverse": 50}, setting="training", detector="msp")
    claim = baselines.claims(compared)[2]
    assert claim.ours.endswith("(corrected p at most 0.01): MaxLogit with n = 10, MaxLogit with n = 50.")
    assert "Not so: MSP. " in claim.why


def test_a_baseline_that_is_above_with_another_number_of_trials_is_so_in_part(compared):
    change(compared.baselines, to={"adverse": 50}, setting="training")
    change(compared.baselines, to={"adverse": 100}, setting="training", detector="max-logit", n=10)
    claim = baselines.claims(compared)[2]
    judged(claim, "partly")
    assert claim.ours.endswith("(corrected p at most 0.01): MaxLogit with n = 10.")
    assert "Not so: MSP, MaxLogit. " in claim.why
    # Alone it would be above: four rates are looked at.
    change(compared.baselines, to={"adverse": 70}, setting="training", detector="max-logit", n=10)
    judged(baselines.claims(compared)[2], "no")


def test_datasets_are_counted_once(varied, compared):
    # Two detectors, n = 10 and 50, six settings: one of them with a shift of either sign.
    change(varied.tallies, to={"shift_error": 0.1}, setting="hard")
    assert difficulty.claims(varied)[0].ours.startswith(
        "0 false declarations in 12,000 datasets (14 checks);"
    )
    assert "0 of 12,000 verdicts" in (found := baselines.claims(compared)[1].ours)
    assert "(2 detectors, 6,000 datasets each)" in found
    assert "In hard the sign of the shift is unsure" in difficulty.caption(varied).see


def test_what_never_happens_has_no_place(varied, permitted, compared):
    claims = difficulty.claims(varied)
    assert claims[1].ours.startswith("All 12 rates are 0 %; the guarantee is 5 %;")
    assert claims[6].ours == "For shifts below 0.05 in size all datasets are WITHIN."
    assert baselines.claims(compared)[0].ours.startswith("Never in the training distribution")
    change(varied.tallies, to={"adverse": 1}, setting="training", detector="confidence-interval", n=50)
    change(compared.tallies, to={"adverse": 1}, setting="easy", detector="hypothesis-test", n=50)
    claims = difficulty.claims(varied)
    assert "0.1 % (ADVERSE, training, n = 50)" in claims[1].ours
    assert "at least 99.9 % of the datasets are WITHIN (confidence interval, n = 50," in claims[6].ours
    assert baselines.claims(compared)[0].ours.startswith("At most 0.1 % (easy, hypothesis test, n = 50)")
    assert (
        "the closest is 40 %, where 90 % are permitted (ADVERSE, training, n = 10)"
        in rates._kept(permitted).ours
    )
    change(permitted.tallies, to={"adverse": 0, "benign": 0})
    assert rates._kept(permitted).ours.endswith("checks; all rates are 0 %.")


def test_from_a_shift_on_means_at_all_larger_ones(varied):
    change(varied.tallies, to={"adverse": 950}, setting="hard", n=50)
    assert "n = 50: ADVERSE from a shift of +0.50 on" in difficulty.claims(varied)[5].ours
    change(varied.tallies, to={"adverse": 950}, setting="harder", n=50)
    assert "n = 50: ADVERSE from a shift of +0.08 on" in difficulty.claims(varied)[5].ours
    change(varied.tallies, to={"adverse": 890}, setting="hardest", n=50)
    judged(claim := difficulty.claims(varied)[5], "partly")
    assert "ADVERSE is declared in 89 % of the datasets at the largest shift, +0.50." in claim.why


def test_settings_that_are_plain_do_not_make_detectors_similar(varied):
    # Two detectors that differ wherever they can: the other settings are no excuse.
    change(varied.tallies, to={"adverse": 0}, detector="hypothesis-test", setting="hardest")
    change(varied.tallies, to={"benign": 0}, detector="hypothesis-test", setting="easiest")
    judged(difficulty.claims(varied)[3], "no")


def test_neither_side_with_confidence_is_a_no(varied):
    change(varied.tallies, to={"adverse": 0, "benign": 0}, n=10)
    judged(difficulty.claims(varied)[5], "yes")  # the paper's own number of trials counts
    change(varied.tallies, to={"adverse": 0, "benign": 0}, n=50)
    judged(difficulty.claims(varied)[5], "no")
    varied.benign_margin["50"] = 0.4
    assert "BENIGN is impossible with n = 50" in difficulty.claims(varied)[5].why


def test_detectors_that_say_nothing_are_not_similar_and_none_is_within_nowhere(varied):
    change(varied.tallies, to={"adverse": 0, "benign": 0})
    judged(difficulty.claims(varied)[3], "not checkable here")
    judged(difficulty.claims(varied)[4], "not checkable here")
    varied.tallies[:] = [each for each in varied.tallies if abs(each.shift) > 0.05]
    judged(difficulty.claims(varied)[6], "not checkable here")


# Rates: usual, 40 % of either, 90 % and 10 %, 2 % of either

DECLARED = {
    (0.05, 0.05): {"easiest": 400, "easy": 0, "hard": 0, "harder": 400, "hardest": 990},
    (0.4, 0.4): {"training": 60, "easiest": 900, "easy": 200, "hard": 300, "harder": 900, "hardest": 1000},
    (0.9, 0.1): {"training": 400, "easiest": 600, "hard": 700, "harder": 990, "hardest": 1000},
    (0.02, 0.02): {"easiest": 200, "easy": 0, "hard": 0, "harder": 200, "hardest": 980},
}
EVEN, SKEWED, LOW = ({"false_positive_rate": a, "false_negative_rate": b} for a, b in list(DECLARED)[1:])


@pytest.fixture
def permitted() -> rates.Results:
    tallies = [
        row(
            setting,
            n=n,
            false_positive_rate=positive,
            false_negative_rate=negative,
            **{"benign" if shift < 0 else "adverse": found.get(setting, 0)},
        )
        for (positive, negative), found in DECLARED.items()
        for setting, shift in SHIFTS.items()
        for n in (10, 50)
    ]
    usual, *others = DECLARED
    return filled(rates.Results, usual=usual, rates=tuple(others), tallies=tallies)


def test_of_rates_every_claim_can_hold(permitted):
    all_hold(rates.claims(permitted), 6)


@pytest.mark.parametrize(
    ("where", "to", "claim", "holds"),
    [
        # One dataset fewer is not "replaced", and far from zero does not count.
        (EVEN | {"n": 50, "setting": ("training", "easy", "hard")}, {"adverse": 1, "benign": 0}, 0, "partly"),
        (EVEN | {"setting": ("training", "easy", "hard")}, {"adverse": 0, "benign": 0}, 0, "no"),
        (EVEN | {"setting": ("easiest", "easy")}, {"benign": 0}, 1, "partly"),
        (EVEN | {"setting": ("hard", "harder")}, {"adverse": 0}, 1, "partly"),
        (EVEN | {"setting": tuple(SHIFTS)}, {"adverse": 0, "benign": 0}, 1, "no"),
        (LOW | {"setting": ("easiest",)}, {"benign": 400}, 2, "yes"),
        (LOW | {"setting": ("easiest",)}, {"benign": 590}, 2, "partly"),  # less than 5 % fewer
        (LOW | {"setting": ("hard",), "n": 50}, {"adverse": 501}, 2, "no"),
        (LOW | {"setting": ("harder",)}, {"adverse": 800}, 2, "no"),
        (LOW | {"setting": tuple(SHIFTS)}, {"adverse": 0, "benign": 0}, 2, "not checkable here"),
        (SKEWED | {"setting": ("hard",)}, {"adverse": 500}, 3, "partly"),
        (SKEWED | {"setting": ("hard",), "n": 10}, {"adverse": 500}, 3, "yes"),
        (SKEWED | {"setting": ("hard", "harder")}, {"adverse": 500}, 3, "no"),
        (SKEWED | {"setting": ("easiest",)}, {"benign": 1}, 4, "yes"),
        (SKEWED | {"setting": ("easy",)}, {"benign": 1}, 4, "partly"),
        (SKEWED | {"setting": ("easy", "training")}, {"adverse": 0, "benign": 49}, 4, "partly"),
        (SKEWED | {"setting": ("easy",), "n": 50}, {"benign": 50}, 4, "no"),
        (SKEWED | {"setting": ("hard",), "n": 50}, {"adverse": 0, "benign": 50}, 4, "no"),
        (SKEWED | {"setting": tuple(SHIFTS)}, {"benign": 0}, 4, "not checkable here"),
        (EVEN | {"setting": ("training",)}, {"adverse": 400}, 5, "yes"),
        (EVEN | {"setting": ("training",)}, {"adverse": 401}, 5, "no"),
        (SKEWED | {"setting": ("hard",)}, {"adverse": 0, "benign": 101}, 5, "no"),
    ],
)
def test_of_rates_numbers_decide(permitted, where, to, claim, holds):
    for setting in where["setting"]:
        change(permitted.tallies, to=to, **where | {"setting": setting})
    judged(rates.claims(permitted)[claim], holds)


def test_where_benign_begins_is_told(permitted):
    assert rates.claims(permitted)[4].ours.endswith("most datasets are BENIGN from -0.300 down.")
    change(permitted.tallies, to={"benign": 500}, setting="easiest", n=50, **SKEWED)
    assert rates.claims(permitted)[4].ours.endswith("most datasets are BENIGN nowhere.")


def test_how_far_within_falls_is_told(permitted):
    for setting in ("training", "easy", "hard"):
        change(permitted.tallies, to={"adverse": 10, "benign": 0}, setting=setting, n=50, **EVEN)
    assert rates.claims(permitted)[0].why.endswith("(in part: if it falls at all). Here it falls by 1 point.")


# Baselines


@pytest.fixture
def compared() -> baselines.Results:
    ours = {"harder": {"adverse": 100}, "hardest": {"adverse": 950}}
    theirs = {"training": 100, "easiest": 700, "easy": 300, "hard": 300, "harder": 500, "hardest": 1000}
    return filled(
        baselines.Results,
        alpha=0.05,
        tallies=[
            row(setting, detector, n, **ours.get(setting, {}))
            for setting in SHIFTS
            for detector in baselines.OURS
            for n in (10, 50)
        ],
        baselines=[
            row(setting, detector, n, adverse=theirs[setting])
            for setting in SHIFTS
            for detector in baselines.THEIRS
            for n in (10, 50)
        ],
    )


def test_beside_baselines_every_claim_can_hold(compared):
    all_hold(baselines.claims(compared), 7)


@pytest.mark.parametrize(
    ("detector", "setting", "alarms", "claim", "holds"),
    [
        ("hypothesis-test", "easy", 49, 0, "yes"),
        ("hypothesis-test", "easy", 50, 0, "no"),
        ("confidence-interval", "training", 50, 0, "no"),
        ("confidence-interval", "easy", 1, 1, "partly"),
        ("confidence-interval", "easy", 100, 1, "no"),
        ("msp", "training", 60, 2, "partly"),
        ("max-logit", "training", 50, 2, "partly"),
        ("msp", "easiest", 499, 3, "partly"),
        ("confidence-interval", "easy", 50, 3, "no"),
        ("max-logit", "easiest", 500, 4, "partly"),
        ("msp", "harder", 0, 5, "yes"),  # the mean counts: 300 where the detectors have none
        ("hypothesis-test", "harder", 800, 5, "no"),
        ("hypothesis-test", "harder", 720, 5, "partly"),  # less than 5 % more
        ("hypothesis-test", "harder", 700, 5, "partly"),
        ("msp", "hardest", 700, 6, "partly"),
    ],
)
def test_beside_baselines_numbers_decide(compared, detector, setting, alarms, claim, holds):
    rows = compared.tallies if detector in baselines.OURS else compared.baselines
    if (claim, alarms) == (5, 700):  # one of the two is worse, the other not
        change(compared.baselines, to={"adverse": 0}, detector="msp", setting="harder")
    change(rows, to={"adverse": alarms}, detector=detector, setting=setting, n=50)
    judged(baselines.claims(compared)[claim], holds)


@pytest.mark.parametrize(
    ("settings", "alarms", "claim"),
    [
        (("training",), 50, 2),
        (("easiest", "easy"), 0, 3),
        (("easiest",), 0, 4),
        (("hard", "harder"), 0, 5),
        (("hardest",), 0, 6),
    ],
)
def test_baselines_that_do_not_alarm_do_not_do_what_the_paper_says(compared, settings, alarms, claim):
    for setting in settings:
        change(compared.baselines, to={"adverse": alarms}, setting=setting)
    judged(baselines.claims(compared)[claim], "no")


def test_baselines_are_judged_with_the_papers_number_of_trials(compared):
    change(compared.baselines, to={"adverse": 0}, n=10)
    all_hold(baselines.claims(compared), 7)


@pytest.mark.parametrize(
    ("low", "high", "claim"), [(-0.05, 1.0, 3), (-0.15, 1.0, 4), (-1.0, 0.05, 5), (-1.0, 0.25, 6)]
)
def test_without_such_settings_nothing_is_claimed(compared, low, high, claim):
    for rows in (compared.tallies, compared.baselines):
        rows[:] = [each for each in rows if low < each.shift <= high]
    judged(baselines.claims(compared)[claim], "not checkable here")


def test_detectors_that_never_alarm_do_not_alarm_only_with_reason(compared):
    change(compared.tallies, to={"adverse": 0}, n=10)
    change(compared.tallies, to={"adverse": 0}, n=50)
    judged(baselines.claims(compared)[1], "not checkable here")


# A shift that does not matter


def irrelevant(shift: float, msp: int, logit: int, ours: int, with_10: int = 0) -> baselines.Results:
    def found(detector: str, alarms: int) -> list[Tally]:
        counts = ((50, alarms), (10, with_10))
        return [row("easy", detector, n, adverse=count, shift=shift) for n, count in counts]

    tallies = [each for name in baselines.OURS for each in found(name, ours)]
    theirs = found("msp", msp) + found("max-logit", logit)
    return filled(baselines.Results, tallies=tallies, alpha=0.05, baselines=theirs)


@pytest.mark.parametrize(
    ("results", "answers"),
    [
        (irrelevant(-0.02, 1000, 986, 1), ["yes", "yes", "yes"]),
        (irrelevant(-0.02, 1000, 986, 1, with_10=500), ["yes", "yes", "yes"]),  # the paper's n counts
        (irrelevant(-0.06, 1000, 900, 6), ["partly", "partly", "no"]),
        (irrelevant(0.11, 500, 400, 5), ["no", "no", "yes"]),
        (irrelevant(-0.02, 501, 0, 1), ["yes", "partly", "yes"]),
    ],
)
def test_of_the_irrelevant_shift_numbers_decide(results, answers):
    for claim, holds in zip(irrelevant_shift.claims(results), answers, strict=True):
        judged(claim, holds)


# Stronger baselines


@pytest.fixture
def calibrated() -> stronger_baselines.Results:
    ours = {"harder": 400, "hardest": 990}
    theirs = {"training": 50, "easiest": 900, "easy": 300, "hard": 100, "harder": 300, "hardest": 990}
    return filled(
        stronger_baselines.Results,
        alpha=0.05,
        tallies=[row(setting, n=n, adverse=ours.get(setting, 0)) for setting in SHIFTS for n in (10, 50)],
        baselines=[
            row(setting, name, n, adverse=0 if setting == "hard" else theirs[setting])
            for setting in SHIFTS
            for name in stronger_baselines.BASELINES
            for n in (10, 50)
        ],
    )


def test_what_is_said_of_stronger_baselines_can_hold(calibrated):
    for claim in stronger_baselines.claims(calibrated):
        judged(claim, "yes")
        assert claim.beyond


@pytest.mark.parametrize(
    ("kind", "where", "alarms", "claim", "holds"),
    [
        ("baselines", {"detector": "policy:knn", "setting": "easiest"}, 400, 0, "partly"),
        ("tallies", {"setting": "easy"}, 51, 0, "no"),
        ("baselines", {"detector": "authors:ks", "setting": "harder", "n": 10}, 600, 1, "no"),
        ("baselines", {"detector": "authors:ks", "setting": "hard", "n": 10}, 60, 1, "partly"),
        ("baselines", {"detector": "authors:ks", "setting": "hard", "n": 10}, 40, 1, "yes"),
    ],
)
def test_of_stronger_baselines_numbers_decide(calibrated, kind, where, alarms, claim, holds):
    change(getattr(calibrated, kind), to={"adverse": alarms}, **where)
    found = stronger_baselines.claims(calibrated)[claim]
    judged(found, holds)
    if claim == 1 and holds != "yes":
        assert "two-sample, KS (the authors' shape)" in found.why


def test_thresholds_give_every_baseline_the_same_false_alarm_rate():
    """The control: a threshold from the wrong data is nowhere near the level."""
    rng = np.random.default_rng(3)

    def seen(*shape: int, shift: float = 0.0) -> Outputs:
        features = np.maximum(rng.normal(size=(*shape, 4)) + shift, 0.0)  # as after a ReLU: many are 0
        return Outputs(features @ np.diag([3.0, 2.0, 1.0, 0.5]), features)

    classes = rng.integers(4, size=2000)
    settings = dataclasses.replace(stronger_baselines.QUICK, references=500)
    statistics = stronger_baselines.statistics_of(seen(2000), classes, settings)
    usual, fresh = seen(2000, 20), seen(2000, 20)
    smaller, larger = seen(2000, 20, shift=-1.0), seen(2000, 20, shift=1.0)
    for name, statistic in statistics.items():
        calibrated, judged = statistic(usual), statistic(fresh)
        threshold = np.quantile(calibrated, 0.95)
        assert 0.02 < (judged > threshold).mean() < 0.09, name
        # Those of the logits ask how sure the network is: larger ones never alarm.
        other = smaller if name in ("msp", "max-logit", "energy") else larger
        assert (statistic(other) > threshold).mean() > 0.9, name
        assert (judged > np.quantile(calibrated, 0.5)).mean() > 0.3


def test_statistics_are_the_published_ones():
    """Nearest neighbors and distances by hand, and Kolmogorov and Smirnov's by scipy, with ties."""
    rng = np.random.default_rng(4)
    training, classes = np.maximum(rng.normal(size=(300, 3)), 0.0), rng.integers(2, size=300)
    settings = dataclasses.replace(stronger_baselines.QUICK, references=300, neighbors=5)
    statistics = stronger_baselines.statistics_of(Outputs(training, training), classes, settings)
    new = np.maximum(rng.normal(size=(6, 20, 3)) + 0.2, 0.0)
    seen = Outputs(new, new)
    largest = [max(ks_2samp(one[:, i], training[:, i]).statistic for i in range(3)) for one in new]
    assert statistics["ks"](seen) == pytest.approx(largest, abs=1e-12)

    centers = [training[classes == each].mean(axis=0) for each in (0, 1)]
    spread = sum(np.cov(training[classes == each].T, bias=True) * (classes == each).mean() for each in (0, 1))
    distances = [cdist(new[0], [center], "mahalanobis", VI=np.linalg.inv(spread)) ** 2 for center in centers]
    assert statistics["mahalanobis"](seen)[0] == pytest.approx(np.min(distances, axis=0).mean())

    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    fifth = np.sort(cdist(unit(new[0]), unit(training)), axis=1)[:, 4]
    assert statistics["knn"](seen)[0] == pytest.approx(fifth.mean(), abs=1e-6)
