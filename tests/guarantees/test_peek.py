"""Looking within an episode: the level is that of the updates, by enumeration; and what breaks it."""

from __future__ import annotations

import itertools

import gymnasium
import numpy as np
import pytest
from benchmarks.peek import LEVEL, RATE, STEPS, alarm_chance, alarms

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting

CERTIFICATE = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=1e-9)


def test_an_adverse_peek_is_final_and_the_level_holds():
    """Exactly, over all streams of two episodes of three steps: peeks alarm where updates do."""
    for flat in itertools.product((0, 1), repeat=2 * STEPS):
        found = alarms([flat[:STEPS], flat[STEPS:]])
        assert found["peek"] == found["update"]
    assert 0 < alarm_chance(RATE, "peek") <= LEVEL
    assert alarm_chance(0.9, "peek") > 0.7


def test_a_cost_that_falls_again_breaks_it():
    """The broken twin: the last step takes cost back, so peeks alarm on what never became a cost."""
    assert alarm_chance(0.9, "peek", drop=0.5) > alarm_chance(0.9, "update", drop=0.5) + 0.3


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "bounded"])
def test_peeking_counts_nothing(binary):
    rng = np.random.default_rng(0)
    reference = (rng.random(50) < 0.1).astype(float)
    for certificate in (
        bw.Certificate.from_held_out(reference, binary=binary),
        bw.Certificate.from_bounds(lower=0.02, upper=0.2, delta=0.01, binary=binary),
    ):
        test = bw.SequentialTest(certificate)
        test.update_many([0, 1, 0])
        before = test.state_dict()
        assert test.peek(1).n == 4
        assert test.state_dict() == before
        twin = bw.SequentialTest(certificate)
        twin.update_many([0, 1, 0, 1])
        assert test.peek(1).e_adverse == pytest.approx(twin.finding().e_adverse)


def test_a_peek_does_not_say_benign():
    certificate = bw.Certificate.from_bounds(lower=0.6, upper=0.7, delta=0.01)
    test = bw.SequentialTest(certificate)
    while test.verdict is bw.Verdict.WITHIN:
        assert test.peek(0.0).verdict is bw.Verdict.WITHIN
        test.update(0.0)
    assert test.verdict is bw.Verdict.BENIGN


@pytest.mark.parametrize("held_out", [True, False], ids=["joint", "certified"])
@pytest.mark.parametrize("ended", [0, 40])
def test_a_running_episode_is_no_evidence_for_low_costs(held_out, ended):
    """The episode has cost nothing so far, and may still fail."""
    certificate = (
        bw.Certificate.from_held_out([1, 0] * 40, binary=True)
        if held_out
        else bw.Certificate.from_bounds(lower=0.4, upper=0.6, delta=0.01, binary=True)
    )
    test = bw.SequentialTest(certificate, margin=0.1)
    for i in range(ended):
        test.update(i % 2)
    peek = test.peek(0)
    if ended:
        before = test.finding()
        expected = (before.no_worse, before.e_benign, before.p_benign, before.shift_upper)
    else:
        expected = (False, 1.0, 1.0, 1 - certificate.lower)
    known = peek.to_dict()  # which reads what speaks for a rise before what speaks against it
    assert tuple(known[name] for name in ("no_worse", "e_benign", "p_benign", "shift_upper")) == expected
    test.update(0)
    as_if_ended = test.finding()
    assert as_if_ended.e_benign > peek.e_benign or not ended  # the broken twin: what a step with 0 would say
    assert peek.e_adverse == as_if_ended.e_adverse
    assert peek.shift_lower == as_if_ended.shift_lower


class Walk(gymnasium.Env):
    """Ten steps whose rewards come from a list."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rewards):
        self.rewards = rewards

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.time = 0
        return 0, {}

    def step(self, _action):
        self.time += 1
        return 0, self.rewards[self.time - 1], False, self.time == len(self.rewards), {}


def play(env, episodes):
    for _ in range(episodes):
        env.reset()
        done = False
        while not done:
            *_, done, _ = env.step(0)


def test_an_environment_alarms_in_the_middle_of_an_episode():
    seen = []
    env = Walk([-1.0] * 10)
    watched = bw.gym.watch(
        env,
        bw.SequentialTest(CERTIFICATE),
        cost=(-10, 0),
        on_alarm=lambda finding: seen.append((finding.n, env.time)),
        within_episode=True,
    )
    play(watched, 6)
    assert len(seen) == 1
    assert seen[0][1] < 10
    assert watched.finding.verdict is bw.Verdict.ADVERSE
    later = []
    play(
        bw.gym.watch(Walk([-1.0] * 10), bw.SequentialTest(CERTIFICATE), cost=(-10, 0), on_alarm=later.append),
        6,
    )
    assert later[0].n == seen[0][0]


def test_what_cannot_be_judged_within_an_episode_is_refused():
    test = bw.SequentialTest(CERTIFICATE)
    with pytest.raises(InvalidSetting, match="known only when an episode ends"):
        bw.gym.watch(Walk([-1.0]), test, cost="is_success", within_episode=True)
    with pytest.raises(InvalidSetting, match="within_episode needs a SequentialTest"):
        bw.gym.watch(Walk([-1.0]), bw.ChangeDetector(CERTIFICATE), cost=(-1, 0), within_episode=True)
    with pytest.raises(InvalidSetting, match=r"step 1: reward = 1 lowers the cost again"):
        play(bw.gym.watch(Walk([1.0, -1.0]), test, cost=(-2, 2), within_episode=True), 1)
    falling = bw.gym.watch(
        Walk([0.0] * 3), test, cost=lambda episode: 1 - len(episode.rewards) / 3, within_episode=True
    )
    with pytest.raises(InvalidCost, match="give a cost that never falls"):
        play(falling, 1)
