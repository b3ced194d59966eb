"""The recorded trials give the paper's numbers, and what is said of them follows from the costs."""

from __future__ import annotations

import dataclasses
import math

import pytest
from reproduction.artifacts import Cache
from scipy.stats import binom

from doctored.made_up import judged
from reproduction import hardware, recorded

CLAIMS = ("calm", "easier", "harder", "wind", "placements", "only 50", "bowls", "mugs")
CLAIMS += ("simulated bowls", "simulated mugs", "sequential")


def results(**costs: tuple[float, ...]) -> hardware.Results:
    """Replay the recordings with other costs in some settings, named by their first word."""
    trials = [
        dataclasses.replace(t, costs=costs.get(t.setting.replace(" ", "_").split(":")[0], t.costs))
        for t in recorded.hardware() + recorded.simulated()
    ]
    replays = [hardware._replay(0.05, trial) for trial in trials]
    return dataclasses.replace(hardware.run(hardware.FULL, Cache(None)), replays=replays)


@pytest.fixture(scope="module")
def replayed() -> hardware.Results:
    return hardware.run(hardware.FULL, Cache(None))


def test_the_papers_numbers_come_out(replayed):
    harder, windy = replayed.of(hardware.HARDER, "wind 100 %")
    assert (round(harder.test, 3), round(harder.interval, 3)) == (0.814, -0.111)
    assert (round(windy.test, 3), round(windy.interval, 3)) == (0.996, 0.126)
    assert len({replay.setting for replay in replayed.replays}) == 16


def test_the_replay_agrees_with_formulas_written_out_here(replayed):
    every = recorded.hardware() + recorded.simulated()
    for trials, replay in zip(every, replayed.replays, strict=True):
        bound, lower = {"drone": (0.22216, 0.156846), "arm": (0.1, 0.0)}[trials.robot]
        mean = sum(trials.costs) / 10
        assert replay.test == pytest.approx(1 - math.exp(-20 * max(mean - bound, 0) ** 2))
        assert replay.interval == pytest.approx(mean - bound - math.sqrt(math.log(1 / 0.04) / 20))
        # BENIGN, which ten trials cannot show: the margin is above the lower limit.
        margin = math.sqrt(math.log(1 / 0.04) / 20)
        assert margin > lower
        assert replay.benign_interval == pytest.approx(lower - mean - margin)
        assert replay.benign_test == pytest.approx(1 - math.exp(-20 * max(lower - mean, 0) ** 2))
        if trials.robot == "arm":
            exact = binom.sf(sum(trials.costs) - 1, 10, bound)
            assert (replay.verdicts["sharper test"] == "adverse") == (exact <= 0.05)
            assert (replay.verdicts["sharper interval"] == "adverse") == (exact <= 0.04)


def test_what_the_recordings_say_of_the_papers_sentences(replayed):
    answers = {name: claim.holds for name, claim in zip(CLAIMS, hardware.claims(replayed), strict=True)}
    assert {name for name, holds in answers.items() if holds != "yes"} == {"placements", "bowls"}
    assert answers["placements"] == answers["bowls"] == "partly"
    assert replayed.of("bowls, simulated")[0].crossed == dict.fromkeys(replayed.replays[0].crossed, 4)
    bowls = hardware.claims(replayed)[CLAIMS.index("bowls")]
    assert "crosses its threshold at trial 2" in bowls.ours


def failures(n: int) -> tuple[float, ...]:
    return (1.0,) * n + (0.0,) * (10 - n)


LOW, HIGH = failures(0), failures(10)


@pytest.mark.parametrize(
    ("costs", "claim", "holds"),
    [
        ({"no_wind": HIGH}, "calm", "no"),
        ({"easier": HIGH}, "easier", "no"),
        ({"harder": HIGH}, "harder", "no"),
        ({"harder": LOW}, "harder", "no"),
        ({"wind_50_%": LOW}, "wind", "partly"),
        ({"wind_100_%": LOW}, "wind", "no"),
        ({"30_cm": LOW}, "placements", "no"),
        ({"30_cm": failures(4), "40_cm": failures(5)}, "placements", "yes"),
        ({"40_cm": HIGH}, "only 50", "partly"),
        ({"50_cm": LOW}, "only 50", "no"),
        ({"bowls": (0.0,) + (1.0,) * 9}, "bowls", "no"),
        ({"bowls": LOW}, "bowls", "no"),
        ({"mugs": failures(2)}, "mugs", "no"),  # read after every trial, as the figure does
        ({"bowls,_simulated": HIGH}, "simulated bowls", "partly"),
        ({"bowls,_simulated": LOW}, "simulated bowls", "no"),
        ({"mugs,_simulated": failures(2)}, "simulated mugs", "no"),
    ],
)
def test_each_rule_can_fail_and_says_why(costs, claim, holds):
    judged(hardware.claims(results(**costs))[CLAIMS.index(claim)], holds)


def test_an_alarm_that_the_sequential_test_misses_is_said():
    late = results(mugs=(0.0,) * 10)
    replays = [dataclasses.replace(r, crossed=r.crossed | {"sequential-test": 0}) for r in late.replays]
    claim = hardware.claims(dataclasses.replace(late, replays=replays))[-1]
    judged(claim, "no")
    assert "bowls" in claim.why
