"""Two policies with predicted costs: bets are fair for any predictors, good ones save trials."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from benchmarks.predicted_limits import draw, first

import boundwatch as bw
from boundwatch.bounds.predicted_mean import Luck, luck_of
from boundwatch.comparison.predicted_pairs import GoalBets
from boundwatch.comparison.region import find_region
from boundwatch.errors import InvalidCost, InvalidSetting

SHARE, RATES = 0.3, (0.2, 0.7)  # of scene 1, and of failures in scenes 0 and 1: alike for both policies
LOG_20 = np.log(20)
PREDICTORS = [(0.2, 0.7), (0.7, 0.2), (0.5, 0.5), (0.0, 1.0)]


def chance(scenes):
    return float(np.prod([SHARE if scene else 1 - SHARE for scene in scenes]))


PLACES = {  # of the scene that was run, and of the others: of A and of B
    "paired": ((0, 1), (0, 1)),
    "paired, others of their own": ((0, 1), (0, 2)),
    "apart": ((0, 1), (2, 3)),
    "others shared": ((0, 2, 3), (1, 2, 3)),
}


def rounds(which):
    """Every outcome of a round: its probability, costs, scenes and unrun scenes."""
    places = PLACES[which]
    for scenes in itertools.product((0, 1), repeat=1 + max(max(each) for each in places)):
        a, b = (tuple(scenes[place] for place in each) for each in places)
        for costs in itertools.product((0, 1), repeat=2):
            rates = [RATES[each[0]] for each in (a, b)]
            odds = [rate if cost else 1 - rate for rate, cost in zip(rates, costs, strict=True)]
            yield chance(scenes) * odds[0] * odds[1], costs, a, b


def expected(which, of_a, of_b, *, known=None):
    """The expected capital after a round, of both sides, where earlier rounds taught a strong coefficient."""
    total = np.zeros(2)
    for probability, costs, a, b in rounds(which):
        paired = which.startswith("paired")
        test = bw.PolicyComparison(1e-9, binary=False, paired=paired, predictions=True)
        for difference in (0.0, 1.0) * 6:
            test._goals.past.add(difference, Luck(difference - 0.5, 0.5, -0.5))
        one, other = ([of[scene] for scene in scenes] for of, scenes in ((of_a, a), (of_b, b)))
        given = {"predicted_a": one[0], "unlabeled_a": one[1:] if known is None else [known]}
        test.update(*costs, **given, predicted_b=other[0], unlabeled_b=other[1:])
        total += probability * np.sum(test._goals.capital, axis=1)
    return total


@pytest.mark.parametrize("which", list(PLACES))
@pytest.mark.parametrize(("of_a", "of_b"), list(itertools.product(PREDICTORS, repeat=2)))
def test_every_bet_is_fair_for_any_two_predictors(which, of_a, of_b):
    assert expected(which, of_a, of_b) == pytest.approx([1, 1], abs=1e-9)


def test_predictions_for_scenes_of_another_world_win_by_themselves():
    assert expected("apart", PREDICTORS[0], PREDICTORS[0], known=0.7).max() > 1.02


@pytest.mark.parametrize("k", [1, 3])
def test_no_outcome_turns_a_bet_into_debt(k):
    rng, bets = np.random.default_rng(2), GoalBets(0.05)
    for step in range(60):
        costs = (rng.random(2) < 0.5).astype(float)
        scenes = costs if step < 30 else 1 - costs  # an adversary, who is trusted by then
        a, b = (luck_of(float(scene), rng.integers(0, 2, k)) for scene in scenes)
        halves = Luck(-a.value / 2, -a.least / 2, -a.most / 2), Luck(*(x / 2 for x in b))
        bets.add(float(1 + costs[1] - costs[0]) / 2, halves)
        assert min(capital.min() for capital in bets.capital) > 0


def test_without_predictions_bets_alarm_about_where_the_region_does():
    rng, region, found = np.random.default_rng(0), find_region(0.05, paired=True), []
    for _ in range(60):
        bets, failures, first_of = GoalBets(0.05), 0, {}
        for tossed in range(1, 400):
            only_b = rng.random() < 0.72
            failures += only_b
            bets.add(float(only_b), (Luck(), Luck()))
            for name, alarms in (
                ("region", failures >= region.needed[tossed]),
                ("bets", bets.evidence[0] >= LOG_20),
            ):
                if alarms:
                    first_of.setdefault(name, tossed)
            if len(first_of) == 2:
                break
        found.append([first_of["region"], first_of["bets"]])
    region_, bets_ = np.mean(found, axis=0)
    assert bets_ <= 1.07 * region_


def test_small_differences_are_found_long_after_the_table_of_sizes():
    bets, rng = GoalBets(0.05), np.random.default_rng(3)
    while bets.evidence[0] < LOG_20:
        assert bets.past.n < 6000
        bets.add(float(rng.random() < 0.53), (Luck(), Luck()))
    assert bets.past.n > 400


@pytest.mark.parametrize("kind", ["calibrated", "inverted"])
def test_predictions_of_either_sign_save_trials(kind):
    rng, found = np.random.default_rng(8), []
    for _ in range(12):
        a, b = (draw(rng, rate, kind, 0.95, 300) for rate in (0.2, 0.4))
        found.append([first(a, b, predictions=helped) for helped in (False, True)])
    alone, helped = np.mean(found, axis=0)
    assert helped < 0.8 * alone


def test_it_continues_where_it_stood_and_says_what_was_saved():
    (costs_a, scenes_a, rest_a), (costs_b, scenes_b, rest_b) = (
        draw(np.random.default_rng(seed), 0.3, "calibrated", 0.95, 80) for seed in (1, 2)
    )
    test = bw.PolicyComparison(binary=True, paired=False, predictions=True)
    for row in range(80):
        a = {"predicted_a": scenes_a[row], "unlabeled_a": rest_a[row]}
        test.update(costs_a[row], **a)
        if row == 40:
            test = bw.PolicyComparison.from_state_dict(json.loads(json.dumps(test.state_dict())))
        finding = test.update(cost_b=costs_b[row], predicted_b=scenes_b[row], unlabeled_b=rest_b[row])
    again = bw.PolicyComparison.from_state_dict(test.state_dict()).finding()
    assert again == finding
    assert again.difference_upper == finding.difference_upper < finding.limits_alone(1)
    assert finding.to_dict()["saved_trials"] == finding.saved_trials > 0
    decisive = test._goals.capital[0].sum()  # no p-value of outcomes alone beside a verdict of bets
    assert finding.e_a_better == pytest.approx(decisive)
    assert (finding.p_a_better <= 0.05) == (finding.verdict.name == "A_BETTER")


@pytest.mark.parametrize(("kind", "least", "most"), [("useless", -60, 10), ("calibrated", 40, 1000)])
def test_worthless_predictions_saved_nothing(kind, least, most):
    trials = [draw(np.random.default_rng(seed), 0.3, kind, 0.95, 150) for seed in (11, 12)]
    test = bw.PolicyComparison(binary=True, paired=False, predictions=True)
    for row in range(150):
        (a, scene_a, rest_a), (b, scene_b, rest_b) = ([each[row] for each in of] for of in trials)
        said = {"predicted_a": scene_a, "unlabeled_a": rest_a, "predicted_b": scene_b, "unlabeled_b": rest_b}
        finding = test.update(a, b, **said)
    assert least <= finding.saved_trials <= most


def test_what_does_not_go_together_is_refused():
    test = bw.PolicyComparison(binary=True, paired=False, predictions=True)
    with pytest.raises(InvalidCost, match=r"predicted = 2 is outside \[0, 1\]; give predicted costs"):
        test.update(0, 1, predicted_a=2, unlabeled_a=[0.2], predicted_b=0.1, unlabeled_b=[0.2])
    with pytest.raises(InvalidSetting, match="made for it"):
        bw.PolicyComparison(binary=True, paired=False).update(0, 1, predicted_a=0.1, unlabeled_a=[0.2])
    for others in ({"tasks": 2}, {"finished": True}, {"horizon": 90}):
        with pytest.raises(InvalidSetting, match="one task"):
            bw.PolicyComparison(binary=True, paired=False, predictions=True, **others)


def test_on_the_command_line(tmp_path, run):
    for name, rate in (("a", 0.2), ("b", 0.6)):
        costs, scenes, rest = draw(np.random.default_rng(3), rate, "calibrated", 0.9, 60)
        rows = zip(costs, scenes, rest, strict=True)
        lines = [f"{cost:g},{scene},{' '.join(map(str, others))}" for cost, scene, others in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["failed,sim,unrun", *lines]))
    words = ("--cost", "failed", "--binary", "--predicted", "sim", "--unlabeled", "unrun")
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.code == 0
    assert "A_BETTER" in done.out or "a is better" in done.out
    assert "predictions" in done.out
    assert "more trials of each without predictions" in done.out
    assert json.loads(run("compare", "a.csv", "b.csv", *words, "--json").out)["predictions"] is True
    for wrong in ("--once", "--finished"):
        assert run("compare", "a.csv", "b.csv", *words, wrong).code == 2
    assert run("compare", "a.csv", *words, "--policy", "sim").code == 2
