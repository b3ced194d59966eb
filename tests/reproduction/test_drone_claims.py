"""Every rule on what the drone's detectors declare: numbers made up for it give yes, and others give no."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from reproduction.baseline_network import Outputs
from reproduction.certification import Limits
from reproduction.judging import Tally
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

from doctored.made_up import SHIFTS, change, filled, judged, row
from reproduction import baselines, difficulty, irrelevant_shift, rates, stronger_baselines


def rows(detectors: tuple[str, ...], counts: dict[str, int], **options: float) -> list[Tally]:
    """Return what detectors declare with 10 and 50 trials: ADVERSE so often, else nothing."""
    return [
        row(setting, detector, n, adverse=counts.get(setting, 0), **options)
        for setting in SHIFTS
        for detector in detectors
        for n in (10, 50)
    ]


@pytest.fixture
def varied() -> difficulty.Results:
    tallies = rows(difficulty.DETECTORS, {"harder": 500, "hardest": 950})
    change(tallies, to={"benign": 950}, setting="easiest")
    change(tallies, to={"adverse": 520}, setting="harder", detector="hypothesis-test")
    limits = filled(Limits, kind="pointwise", lower=0.27)
    return difficulty.Results(tallies, limits, expected_cost=0.3, benign_margin={"10": 0.2, "50": 0.1})


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
    tallies = []
    for (positive, negative), found in DECLARED.items():
        both = {"false_positive_rate": positive, "false_negative_rate": negative}
        tallies += rows(("confidence-interval",), {s: k for s, k in found.items() if SHIFTS[s] >= 0}, **both)
        for setting in ("easiest", "easy"):
            change(tallies, to={"benign": found.get(setting, 0)}, setting=setting, **both)
    usual, *others = DECLARED
    return filled(rates.Results, usual=usual, rates=tuple(others), tallies=tallies)


@pytest.fixture
def compared() -> baselines.Results:
    theirs = {"training": 100, "easiest": 700, "easy": 300, "hard": 300, "harder": 500, "hardest": 1000}
    return filled(
        baselines.Results,
        alpha=0.05,
        tallies=rows(baselines.OURS, {"harder": 100, "hardest": 950}),
        baselines=rows(baselines.THEIRS, theirs),
    )


@pytest.fixture
def calibrated() -> stronger_baselines.Results:
    theirs = {"training": 50, "easiest": 900, "easy": 300, "harder": 300, "hardest": 990}
    return filled(
        stronger_baselines.Results,
        alpha=0.05,
        tallies=rows(("confidence-interval",), {"harder": 400, "hardest": 990}),
        baselines=rows(tuple(stronger_baselines.BASELINES), theirs),
    )


def test_every_claim_can_hold(varied, permitted, compared, calibrated):
    claims = [difficulty.claims(varied), rates.claims(permitted), stronger_baselines.claims(calibrated)]
    claims.append(baselines.claims(compared))
    assert [len(each) for each in claims] == [7, 6, 2, 7]
    for claim in itertools.chain(*claims):
        judged(claim, "yes")
    assert all(claim.beyond for claim in claims[2])


def test_baselines_are_judged_with_the_papers_number_of_trials(compared):
    change(compared.baselines, to={"adverse": 0}, n=10)
    for claim in baselines.claims(compared):
        judged(claim, "yes")


@pytest.mark.parametrize(
    ("claim", "setting", "detector", "verdict", "answers"),
    [
        (0, "easy", "confidence-interval", "adverse", {1: "partly", 100: "no"}),
        (0, "training", "confidence-interval", "adverse", {100: "no"}),
        (0, "hard", "confidence-interval", "benign", {100: "no"}),
        (1, "easy", "confidence-interval", "adverse", {40: "yes", 100: "no"}),
        (1, "hard", "confidence-interval", "benign", {100: "no"}),
        (2, "hard", "hypothesis-test", "benign", {1: "partly", 100: "no"}),
        (3, "harder", "hypothesis-test", "adverse", {620: "partly", 1000: "no"}),
        # No better is not marginally better, nor is much better.
        (4, "harder", "hypothesis-test", "adverse", {500: "no", 400: "no", 1000: "partly"}),
        (5, "easiest", "hypothesis-test", "benign", {890: "partly"}),
        (5, "hardest", "hypothesis-test", "adverse", {890: "partly"}),
        (6, "training", "hypothesis-test", "adverse", {499: "yes", 500: "no"}),
    ],
)
def test_over_difficulty_numbers_decide(varied, claim, setting, detector, verdict, answers):
    for count, holds in answers.items():
        change(varied.tallies, to={verdict: count}, setting=setting, detector=detector)
        judged(difficulty.claims(varied)[claim], holds)


def test_settings_that_are_plain_do_not_make_detectors_similar(varied):
    # Two detectors that differ wherever they can: the other settings are no excuse.
    change(varied.tallies, to={"adverse": 0}, detector="hypothesis-test", setting="hardest")
    change(varied.tallies, to={"benign": 0}, detector="hypothesis-test", setting="easiest")
    judged(difficulty.claims(varied)[3], "no")


def test_detectors_that_say_nothing_are_neither_confident_nor_similar(varied):
    change(varied.tallies, to={"adverse": 0, "benign": 0}, n=10)
    judged(difficulty.claims(varied)[5], "yes")  # the paper's own number of trials counts
    change(varied.tallies, to={"adverse": 0, "benign": 0}, n=50)
    judged(difficulty.claims(varied)[5], "no")
    for claim in (3, 4):
        judged(difficulty.claims(varied)[claim], "not checkable here")
    varied.tallies[:] = [each for each in varied.tallies if abs(each.shift) > 0.05]
    judged(difficulty.claims(varied)[6], "not checkable here")


def test_datasets_are_counted_once(varied, compared):
    # Two detectors, n = 10 and 50, six settings: one of them with a shift of either sign.
    change(varied.tallies, to={"shift_error": 0.1}, setting="hard")
    assert "0 false declarations in 12,000 datasets (14 checks)" in difficulty.claims(varied)[0].ours
    assert "0 of 12,000 verdicts" in baselines.claims(compared)[1].ours


NEAR, ALL = ("training", "easy", "hard"), tuple(SHIFTS)


@pytest.mark.parametrize(
    ("where", "settings", "to", "claim", "holds"),
    [
        # One dataset fewer is not "replaced", and far from zero does not count.
        (EVEN | {"n": 50}, NEAR, {"adverse": 1, "benign": 0}, 0, "partly"),
        (EVEN, NEAR, {"adverse": 0, "benign": 0}, 0, "no"),
        (EVEN, ("easiest", "easy"), {"benign": 0}, 1, "partly"),
        (EVEN, ("hard", "harder"), {"adverse": 0}, 1, "partly"),
        (EVEN, ALL, {"adverse": 0, "benign": 0}, 1, "no"),
        (LOW, ("easiest",), {"benign": 400}, 2, "yes"),
        (LOW, ("easiest",), {"benign": 590}, 2, "partly"),  # less than 5 % fewer
        (LOW | {"n": 50}, ("hard",), {"adverse": 501}, 2, "no"),
        (LOW, ("harder",), {"adverse": 800}, 2, "no"),
        (LOW, ALL, {"adverse": 0, "benign": 0}, 2, "not checkable here"),
        (SKEWED, ("hard",), {"adverse": 500}, 3, "partly"),
        (SKEWED | {"n": 10}, ("hard",), {"adverse": 500}, 3, "yes"),
        (SKEWED, ("hard", "harder"), {"adverse": 500}, 3, "no"),
        (SKEWED, ("easiest",), {"benign": 1}, 4, "yes"),
        (SKEWED, ("easy",), {"benign": 1}, 4, "partly"),
        (SKEWED, ("easy", "training"), {"adverse": 0, "benign": 49}, 4, "partly"),
        (SKEWED | {"n": 50}, ("easy",), {"benign": 50}, 4, "no"),
        (SKEWED | {"n": 50}, ("hard",), {"adverse": 0, "benign": 50}, 4, "no"),
        (SKEWED, ALL, {"benign": 0}, 4, "not checkable here"),
        (EVEN, ("training",), {"adverse": 400}, 5, "yes"),
        (EVEN, ("training",), {"adverse": 401}, 5, "no"),
        (SKEWED, ("hard",), {"adverse": 0, "benign": 101}, 5, "no"),
    ],
)
def test_of_rates_numbers_decide(permitted, where, settings, to, claim, holds):
    for setting in settings:
        change(permitted.tallies, to=to, setting=setting, **where)
    judged(rates.claims(permitted)[claim], holds)


@pytest.mark.parametrize(
    ("claim", "setting", "detector", "answers"),
    [
        (0, "easy", "hypothesis-test", {49: "yes", 50: "no"}),
        (0, "training", "confidence-interval", {50: "no"}),
        (1, "easy", "confidence-interval", {1: "partly", 100: "no"}),
        (2, "training", "msp", {60: "partly"}),
        (2, "training", "max-logit", {50: "partly"}),
        (3, "easiest", "msp", {499: "partly"}),
        (3, "easy", "confidence-interval", {50: "no"}),
        (4, "easiest", "max-logit", {500: "partly"}),
        (5, "harder", "msp", {0: "yes"}),  # the mean counts: 300 where the detectors have none
        (5, "harder", "hypothesis-test", {800: "no", 720: "partly"}),  # the latter is less than 5 % more
        (6, "hardest", "msp", {700: "partly"}),
        # Baselines that do not alarm do not do what the paper says.
        (2, "training", "both", {50: "no"}),
        (4, "easiest", "both", {0: "no"}),
        (6, "hardest", "both", {0: "no"}),
    ],
)
def test_beside_baselines_numbers_decide(compared, claim, setting, detector, answers):
    tallies = compared.tallies if detector in baselines.OURS else compared.baselines
    where = {"setting": setting} | ({} if detector == "both" else {"detector": detector, "n": 50})
    for alarms, holds in answers.items():
        change(tallies, to={"adverse": alarms}, **where)
        judged(baselines.claims(compared)[claim], holds)


def test_baselines_are_compared_at_all_their_settings(compared):
    change(compared.baselines, to={"adverse": 0}, detector="msp", setting="harder")
    change(compared.tallies, to={"adverse": 700}, detector="hypothesis-test", setting="harder", n=50)
    judged(baselines.claims(compared)[5], "partly")  # one of the two is worse, the other not
    for settings, claim in ((("easiest", "easy"), 3), (("hard", "harder"), 5)):
        for setting in settings:
            change(compared.baselines, to={"adverse": 0}, setting=setting)
        judged(baselines.claims(compared)[claim], "no")


def test_a_baseline_that_is_above_with_another_number_of_trials_is_so_in_part(compared):
    change(compared.baselines, to={"adverse": 50}, setting="training")
    for alarms, holds in ((100, "partly"), (70, "no")):  # alone 70 would be above: four rates are looked at
        change(compared.baselines, to={"adverse": alarms}, setting="training", detector="max-logit", n=10)
        judged(baselines.claims(compared)[2], holds)


@pytest.mark.parametrize(
    ("low", "high", "claim"), [(-0.05, 1.0, 3), (-0.15, 1.0, 4), (-1.0, 0.05, 5), (-1.0, 0.25, 6)]
)
def test_without_such_settings_or_any_alarm_nothing_is_claimed(compared, low, high, claim):
    for tallies in (compared.tallies, compared.baselines):
        tallies[:] = [each for each in tallies if low < each.shift <= high]
    judged(baselines.claims(compared)[claim], "not checkable here")
    change(compared.tallies, to={"adverse": 0})
    judged(baselines.claims(compared)[1], "not checkable here")


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
    judged(stronger_baselines.claims(calibrated)[claim], holds)


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
