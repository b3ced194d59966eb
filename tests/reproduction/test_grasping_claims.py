"""What is said of the arm must follow from the numbers: each rule can say yes, and no."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.artifacts import Cache
from reproduction.judging import Shift, both_tails, split, tally
from reproduction.rereading import first_alarms, looking

from boundwatch import Certificate
from doctored.made_up import change, filled, indicated, judged, tallied
from reproduction import mug_placement, mugs_and_bowls

DETECTORS = ("hypothesis-test", "confidence-interval")


def made(bound: float = 0.02, mugs: float = 0.01, bowls: float = 0.9) -> mugs_and_bowls.Results:
    """Run the detectors on made-up grasps with these failure rates."""
    certificate = Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=True)
    rng = np.random.default_rng(3)
    tallies, streams = [], {}
    for name, rate in (("mugs", mugs), ("bowls", bowls), ("wide-bowls", bowls)):
        costs = (rng.random(1000) < rate).astype(float)
        shift = Shift(0.0, 0.0) if name == "mugs" else Shift(bowls - mugs, 0.01)
        for n in (4, 5, 10):
            rows = split(costs, n, 1000 // n)
            detectors = both_tails(certificate, 0.05)
            tallies += [tally(detector, rows, name, shift) for detector in detectors]
        alarms = first_alarms(certificate, 0.05, split(costs, 10, 100))
        streams[name] = mugs_and_bowls.Stream(rate, shift.difference, {}, alarms)
    return filled(
        mugs_and_bowls.Results,
        tallies=tallies,
        alpha=0.05,
        trials=10,
        certificate=filled(mugs_and_bowls.OneSided, upper=bound, delta_upper=0.01),
        streams=streams,
        looking=[looking(b, 0.05, 0.01, 500) for b in (bound, 0.1, 0.5)],
    )


@pytest.fixture(scope="module")
def whole() -> mugs_and_bowls.Results:
    return made()


@pytest.fixture
def results(whole) -> mugs_and_bowls.Results:
    return copy.deepcopy(whole)


def test_everything_holds_where_it_should(results):
    claims = mugs_and_bowls.claims(results)
    assert [(claim.holds, claim.beyond) for claim in claims] == [("yes", False)] * 3 + [("yes", True)] * 2
    # 3 of 5 failures at a rate of 0.02 (7.7e-5), more probable than 3 of 4 or 5 of 10.
    assert "it would be triggered in 0.01 %" in claims[2].ours


@pytest.mark.parametrize(("four", "five", "holds"), [(51, 51, "yes"), (50, 51, "partly"), (10, 50, "no")])
def test_bowls_are_judged_at_a_fixed_size_read_once_by_both(results, four, five, holds):
    for n, adverse in ((4, four), (5, five), (10, 100)):
        where = {"setting": "bowls", "detector": DETECTORS[1], "tail": "hoeffding", "n": n}
        change(results.tallies, to={"datasets": 100, "adverse": adverse, "benign": 0}, **where)
    claim = mugs_and_bowls._bowls(results)
    assert claim.holds == holds
    assert ("needs 3 failures of 4 and 3 failures of 5" in claim.why) == (holds != "yes")
    # What rereading finds is shown beside, and decides nothing.
    results.streams["bowls"].alarms.update({"hoeffding": [0] * 100, "interval": [0] * 100})
    assert mugs_and_bowls._bowls(results).holds == holds


@pytest.mark.parametrize(("alarms", "holds"), [(5, "yes"), (6, "no")])
@pytest.mark.parametrize("reader", ["hoeffding", "interval"])
def test_mugs_may_trigger_neither_detector(results, reader, alarms, holds):
    results.streams["mugs"].alarms[reader] = [3] * alarms + [0] * (100 - alarms)
    judged(mugs_and_bowls._mugs(results), holds)


@pytest.mark.parametrize(("false", "holds"), [(5, "yes"), (7, "partly"), (30, "no")])
def test_false_positives_are_compared_with_what_the_interval_promises(results, false, holds):
    to = {"datasets": 100, "adverse": false, "benign": 0}
    change(results.tallies, to=to, setting="mugs", detector=DETECTORS[1], n=10)
    judged(mugs_and_bowls._false_positives(results), holds)


def test_detectors_that_cannot_declare_anything_prove_nothing():
    results = made(bound=0.9, mugs=0.5)
    answers = [claim.holds for claim in mugs_and_bowls.claims(results)]
    assert answers[:3] == ["no", "not checkable here", "not checkable here"]


@pytest.mark.parametrize(
    ("bound", "reader", "alarms", "holds"),
    [
        (0, "hoeffding", 0.05, "yes"),
        (0, "hoeffding", 0.051, "no"),
        (1, "interval", 0.04, "yes"),
        (1, "interval", 0.045, "no"),
        (2, "hoeffding", 0.5, "yes"),  # not the paper's bound
    ],
)
def test_rereading_is_judged_in_the_papers_setting(results, bound, reader, alarms, holds):
    series = results.looking[bound].false_alarms[reader]
    series[9:] = [alarms] * (len(series) - 9)
    claim = mugs_and_bowls._ten_looks(results)
    assert claim.holds == holds
    assert ("slack covers 10 looks" in claim.ours) == (holds == "yes")


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, "yes"),
        ({"hoeffding": 0.05}, "partly"),
        ({"hoeffding": 0.05, "exact": 0.05}, "no"),
        ({"sequential": 0.041}, "no"),
    ],
)
def test_beyond_the_paper_both_tests_must_break_and_the_sequential_one_hold(results, changes, holds):
    for reader, alarms in changes.items():
        results.looking[-1].false_alarms[reader][-1] = alarms
    claim = mugs_and_bowls._many_looks(results)
    judged(claim, holds)


@pytest.mark.parametrize(("bound", "expected"), [(0.5, 0.093), (0.25, 0.069)])
def test_looking_after_every_trial_breaks_the_level_of_a_fixed_sample(bound, expected):
    alarms = looking(bound, 0.05, 0.01, 500).false_alarms
    assert round(alarms["hoeffding"][-1], 3) == expected
    assert alarms["exact"][-1] > alarms["hoeffding"][-1] > alarms["interval"][-1]
    assert 0.0 < alarms["sequential"][-1] <= 0.04  # with delta, 5 % in all


def placements(means: list[float], *, upper: float = 0.02, printed: float = 0.09) -> mug_placement.Results:
    """Return results with these means of both indicators, in the order of the shift."""
    rows = [indicated(f"placement:{n}", 0.1 * n, mean, mean, 0.1) for n, mean in enumerate(means, 1)]
    tallies = [
        tallied(setting=f"placement:{n}", detector=name, adverse=adverse, datasets=20)
        for n, adverse in enumerate((0, 2, 9, 18, 20), 1)
        for name in DETECTORS
    ]
    limits = mug_placement.MugLimits("pointwise", 0.0, upper, 0.01, printed, upper, n=500, mean_cost=0.0)
    return mug_placement.Results(tallies, limits, alpha=0.05, environments=800, placements=rows)


@pytest.mark.parametrize(
    ("means", "upper", "answers"),
    [
        ([0.0, 0.2, 0.196, 0.9], 0.1, ["yes", "yes"]),  # what no figure shows is no fall
        ([0.0, 0.2, 0.194, 0.9], 0.1, ["yes", "partly"]),
        ([0.0, 0.2, 0.14, 0.9], 0.1, ["yes", "partly"]),  # within two standard errors, 0.063
        ([0.0, 0.2, 0.13, 0.9], 0.1, ["yes", "no"]),
        ([0.0, 0.3, 0.2, 0.9], 0.1, ["yes", "no"]),
        ([0.0, 0.0, 0.0, 0.0], 0.1, ["yes", "no"]),  # nothing rises
    ],
)
def test_the_bound_and_the_rise_with_the_shift(means, upper, answers):
    claims = mug_placement.claims(placements(means, upper=upper))
    assert [claim.holds for claim in claims[:2]] == answers
    assert [claim.holds for claim in claims[2:]] == ["yes", "yes", "not checkable here"]
    assert ("Not so" in claims[1].why) == (answers[1] != "yes")
    assert bool(claims[0].why) == (answers[0] != "yes")


def shares(test: tuple[float, ...], interval: tuple[float, ...]) -> dict[tuple[str, str], float]:
    return {
        (f"placement:{n}", name): share
        for name, row in zip(DETECTORS, (test, interval), strict=True)
        for n, share in enumerate(row, 1)
    }


@pytest.mark.parametrize(
    ("test", "interval", "holds"),
    [
        ((0, 0.5, 1), (0, 0.45, 1), "yes"),
        ((0, 0.5, 0.6, 1), (0, 0.35, 0.6, 1), "partly"),
        ((0, 0, 0, 0, 0.5, 1), (0, 0, 0, 0, 0.3, 1), "no"),  # where both never alarm, they tell nothing
        ((0, 1), (0, 0), "no"),
        ((0, 0, 1), (0, 0, 1), "not checkable here"),
    ],
)
def test_detectors_are_compared_where_they_can_differ(test, interval, holds):
    # With a bound of 0.1 the test needs 5 failures of 10, the interval 6.
    claim = mug_placement._similar(placements([0.0, 1.0], upper=0.1), shares(test, interval))
    judged(claim, holds)
    # With 0.02 both need 5, and are one detector: that shows nothing.
    same = mug_placement._similar(placements([0.0, 1.0], upper=0.02), shares(test, interval))
    assert (same.holds, "from 5 failures of 10" in same.ours) == ("not checkable here", True)


@pytest.mark.parametrize(
    ("upper", "printed", "holds"), [(0.1, 0.1, "yes"), (0.02, 0.14, "partly"), (0.101, 0.14, "no")]
)
def test_the_papers_bound_must_come_from_the_papers_theorem(upper, printed, holds):
    claim = mug_placement.claims(placements([0.0, 1.0], upper=upper, printed=printed))[0]
    judged(claim, holds)


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ((0, 0.1, 0.4, 0.9, 1), "yes"),
        ((0, 0.1, 0.6, 0.9, 1), "partly"),
        ((0.05, 0.1, 0.4, 0.9, 1), "partly"),
        ((0, 0.1, 0.4, 0.4, 1), "no"),
        ((0, 0.1, 0.4, 0.9, 0.5), "no"),
        ((0, 0, 0, 0, 0), "no"),
        ((0, 0.1, 0.4), "not checkable here"),
    ],
)
def test_placements_are_compared_on_both_sides(found, holds):
    judged(mug_placement._declared_at(shares(found, found)), holds)


def test_both_detectors_must_declare_a_placement():
    assert mug_placement._declared_at(shares((0, 0, 0, 1, 1), (0, 0, 0, 1, 0.4))).holds == "no"
    # And neither may declare one where the paper's do not.
    assert mug_placement._declared_at(shares((0, 0, 0.6, 1, 1), (0, 0, 0.4, 1, 1))).holds == "partly"


def test_the_true_shift_comes_from_grasps_that_no_dataset_has(monkeypatch):
    settings = dataclasses.replace(mug_placement.FULL, placements=(1, 2), environments=300)
    made = {1: np.zeros(300), 2: np.r_[np.ones(200), np.zeros(50), np.ones(50)]}
    monkeypatch.setattr(mug_placement.Grasps, "costs", lambda grasps, _cache: made[grasps.placement])

    certificate = Certificate.from_held_out(np.zeros(500), binary=True)
    bounds = {"upper_pinsker": 0.14, "upper_pointwise": 0.02}
    trained = SimpleNamespace(certificate=certificate, summary=bounds)
    monkeypatch.setattr(mug_placement.GraspingPolicy, "load", lambda _policy, _cache: trained)
    results = mug_placement.run(settings, Cache(Path("unused")))
    assert results.environments == 100
    assert [row.mean_cost for row in results.placements] == [0.0, 0.5]
    assert results.placements[1].shift == 0.5
