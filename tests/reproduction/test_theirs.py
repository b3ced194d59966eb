"""What the authors published, judged by our rules: where it fails them, the rule is strict, not our drone."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.certification import AUTHORS
from reproduction.cost_function import authors_cost
from reproduction.judging import margin
from reproduction.runner import EXPERIMENTS, judge

from doctored.made_up import judged
from reproduction import labels, recorded, theirs

NOT_YES = {
    "difficulty": {},
    "rates": {2: "not checkable here", 4: "partly"},  # no curve below 5 %; BENIGN at -0.068 in 8 of 2000
    "baselines": {},
    "cost-function": {0: "no"},  # at 300 mm their cost is above their upper limit
    "mug-placement": {0: "partly", 2: "no", 4: "not checkable here"},
}


@pytest.mark.parametrize("name", NOT_YES)
def test_what_holds_of_their_own_data(name):
    (results,) = theirs.results(name)
    claims = [claim for claim in EXPERIMENTS[name].claims(results) if not claim.beyond]
    assert {i: claim.holds for i, claim in enumerate(claims) if claim.holds != "yes"} == NOT_YES[name]


def test_their_simulated_arm_is_judged_as_the_paper_says():
    (results,) = theirs.results("mug-placement")
    *_, similar, declared, _ = EXPERIMENTS["mug-placement"].claims(results)
    judged(similar, "no")
    assert "differ by at most 25 %" in similar.ours
    judged(declared, "yes")
    assert "40 cm 90 % and 75 %; 50 cm 100 % and 100 %" in declared.ours


def test_their_votes_stand_in_a_column_of_their_own_beside_the_papers_claims_alone():
    experiment = EXPERIMENTS["cost-function"]
    (results,) = theirs.results("cost-function")
    paper, ours = judge(experiment, {"pointwise": [results] * 2}, [results])
    assert paper.votes == {"pointwise": ["no", "no"], AUTHORS: ["no"]}
    assert list(ours.votes) == ["pointwise"]


def test_their_adverse_curve_fits_the_cost_that_their_easiest_setting_implies():
    """At 500 mm most datasets are ADVERSE exactly where implied cost and shift exceed the threshold."""
    threshold = recorded.thresholds()["500"]["upper"] + margin(50, 0.05)
    curve = recorded.published("figure_4_difficulty").values()
    found = {p.shift: p.share("hypothesis-test") for p in curve}
    assert all((authors_cost() + shift > threshold) == (share > 0.5) for shift, share in found.items())


def test_their_benign_curves_do_not_fit_their_lower_limits():
    """Errata: at 300 mm BENIGN in all datasets, with a lower limit below the margin of 50 trials."""
    limits = recorded.thresholds()["300"]
    easiest = recorded.published("figure_4_difficulty", "300")["difficulty:-9"]
    for detector, level in (("hypothesis-test", 0.05), ("confidence-interval", 0.04)):
        assert limits["lower"] < margin(50, level)
        assert easiest.share(detector, "benign") == 1.0
    assert authors_cost("300") > limits["upper"]


@pytest.mark.parametrize("name", ["500", "750", "1000"])
def test_their_benign_curves_fit_the_training_cost(name):
    """Errata: half of the datasets are BENIGN where cost and margin add up to it, not to the lower limit."""
    curve = recorded.published("figure_4_difficulty", name).values()
    points = sorted((p.share("confidence-interval", "benign"), p.shift) for p in curve if -0.3 < p.shift < 0)
    limit = np.interp(0.5, *zip(*points, strict=True)) + authors_cost(name) + margin(50, 0.04)
    theirs = recorded.thresholds()[name]
    assert abs(limit - theirs["training_cost"]) < 0.006 < 0.02 < limit - theirs["lower"]


def made(**apart: float) -> labels.Results:
    """Return results in which every share is so far from the authors' curve; in training as given."""
    rows = []
    for network in labels.NETWORKS:
        for name in labels.BASELINES:
            curve = recorded.published("figure_6_baselines")
            for setting, point in curve.items():
                share = abs(point.share(labels.PUBLISHED[name]) - apart.get(network, 0.0))
                rows.append(labels.Alarms(network, name, setting, point.shift, 400, round(400 * share)))
            usual = round(400 * apart.get(f"{network}_training", 0.05))
            rows.append(labels.Alarms(network, name, "training", 0.0, 400, usual))
    return labels.Results(0.05, 50, rows)


@pytest.mark.parametrize(
    ("results", "answers"),
    [
        (made(policy=0.1, clipped=0.5, **{"authors-by-setting_training": 0.12}), ["yes", "yes"]),
        (made(policy=0.5, clipped=0.1), ["no", "no"]),
        (
            made(clipped=0.1, **{"authors-by-setting_training": 0.12, "authors_training": 0.12}),
            ["yes", "partly"],
        ),
    ],
)
def test_what_decides_when_baselines_alarm(results, answers):
    for claim, holds in zip(labels.claims(results), answers, strict=True):
        judged(claim, holds)
        assert claim.beyond


def test_the_authors_max_logit_is_the_smallest_log_odds():
    """Errata: low where one output stands out, high where all are alike; the largest logit is the reverse."""
    sure, unsure = np.array([[8.0, 0.0, 0.0]]), np.array([[0.1, 0.0, 0.0]])
    odds = np.exp(unsure - np.log(np.exp(unsure).sum()))
    odds = np.log(odds / (1 - odds))
    assert labels.SmallestLogOdds.scores(unsure) == pytest.approx(-odds.min(axis=1))
    assert labels.SmallestLogOdds.scores(sure) > labels.SmallestLogOdds.scores(unsure)
