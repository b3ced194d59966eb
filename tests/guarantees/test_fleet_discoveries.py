"""The false discovery rate over a fleet, by simulation, with the uncorrected list as the broken twin."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.multiple import e_bh
from boundwatch.detectors.discovery import DiscoveryShares
from rates import assert_rate_at_most, min_trials

RATE = 0.1


def test_discoveries_keep_the_false_discovery_rate():
    cert = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    rng = np.random.default_rng(41)
    streams, shifted, runs = 100, 4, 150
    means = np.where(np.arange(streams) < shifted, 0.6, 0.2)
    kept, uncorrected, found = [], [], []
    for _ in range(runs):
        fleet = bw.Fleet(cert, alpha_adverse=RATE)
        for _ in range(60):
            fleet.update(np.arange(streams), (rng.random(streams) < means).astype(float))
        listed = fleet.discoveries(RATE)
        alarmed = [i for i, v in enumerate(fleet.verdicts) if v is bw.Verdict.ADVERSE]
        for rates, names in ((kept, listed), (uncorrected, alarmed)):
            rates.append(sum(name >= shifted for name in names) / max(len(names), 1))
        found.append(sum(name < shifted for name in listed) / shifted)

    def too_high(rates):
        error = np.std(rates, ddof=1) / np.sqrt(runs)
        return np.mean(rates) - 4.9 * error > RATE

    assert not too_high(kept)
    assert too_high(uncorrected)
    assert np.mean(found) > 0.9


def test_restarting_those_that_look_fine_does_not_break_the_rate():
    cert = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    rng = np.random.default_rng(42)
    runs, streams, rate = 40, np.arange(40), 0.05
    held, broken = 0, 0
    for _ in range(runs):
        fleet, listed, listed_by_number = bw.Fleet(cert), False, False
        for _ in range(150):
            fleet.update(streams, (rng.random(40) < 0.2).astype(float))
            listed |= bool(fleet.discoveries(rate))
            # The twin divides by the number of streams, as if each had been tested once.
            listed_by_number |= bool((e_bh(np.log(fleet.e_adverse)) <= rate).any())
            for stream in np.flatnonzero(fleet.e_adverse < 0.7):
                fleet.reset(int(stream))
        held += listed
        broken += listed_by_number
    assert_rate_at_most(held, runs, rate)
    with pytest.raises(AssertionError):
        assert_rate_at_most(broken, runs, rate)


def test_robots_that_come_one_by_one_do_not_break_the_rate():
    # A new robot comes when the one before has lost its evidence; somebody looks after every episode.
    runs, robots, rate, bound = 4000, 40, 0.05, 0.5
    assert runs >= min_trials(rate, 0.1)
    roll = DiscoveryShares()
    roll.look(1)
    roll.add(1, robots)
    shares, numbers = roll.look(robots), -np.log(np.arange(1, robots + 1))
    bets, rng = Bets.for_costs(binary=False), np.random.default_rng(43)
    held, broken = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    run, robot, n = np.arange(runs), np.zeros(runs, dtype=int), np.zeros(runs, dtype=int)
    capitals = np.tile(bets.shares, (runs, 1))
    while run.size:
        costs = (rng.random(run.size) < bound).astype(float)
        capitals *= (1 - bets.sizes) + np.outer(costs / bound, bets.sizes)
        wealth, n = np.log(capitals.sum(axis=1)), n + 1
        held[run[wealth + shares[robot] >= -np.log(rate)]] = True
        broken[run[wealth + numbers[robot] >= -np.log(rate)]] = True
        gone = (wealth < np.log(0.3)) | (n == 60)
        capitals[gone], n[gone], robot[gone] = bets.shares, 0, robot[gone] + 1
        left = robot < robots
        run, robot, n, capitals = run[left], robot[left], n[left], capitals[left]
    assert_rate_at_most(int(held.sum()), runs, rate)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int(broken.sum()), runs, rate)


@given(st.integers(1, 50), st.integers(1, 400))
def test_the_shares_never_add_up_to_more_than_one(first, later):
    roll = DiscoveryShares()
    roll.restart(0)
    total = np.exp(roll.look(first)).sum()
    roll.add(first, first + later)
    total += np.exp(roll.look(first + later)[first:]).sum()
    assert total <= 1 + 1e-12


def test_a_stream_after_the_first_look_has_a_smaller_share():
    cert = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    fleet = bw.Fleet(cert)
    assert fleet.discoveries(RATE) == []  # nothing to look at: no look
    fleet.update(["early"], [0.2])
    assert fleet.discoveries(RATE) == []
    for n in range(1, 12):
        fleet.update(["early", "late"], [0.9, 0.9])
        state = json.loads(json.dumps(fleet.state_dict()))
        listed = fleet.discoveries(RATE)
        assert listed == bw.Fleet.from_state_dict(state).discoveries(RATE)
        needed = {1: 6 / RATE, 2: 3 / RATE}[len(listed) or 1]
        assert ("late" in listed) == (fleet.e_adverse[1] >= needed), n
    assert listed == ["early", "late"]
