"""Costs from Gymnasium environments: the right episodes, the right order, the right numbers."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from scipy.stats import binom
from stable_baselines3.common.vec_env import DummyVecEnv

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting
from rates import assert_rate_at_most, min_trials

MODES = list(AutoresetMode)
SHORT, LONG = 1, 12


class Coin(gymnasium.Env):
    """Half of the episodes take one step, half of them twelve; the kind decides about success."""

    observation_space = gymnasium.spaces.Box(0, LONG, (2,), dtype=np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, short_succeeds=True):
        self.short_succeeds = short_succeeds

    def reset(self, *, seed=None, options=None):  # noqa: ARG002  (Gymnasium's signature)
        super().reset(seed=seed)
        self.short = bool(self.np_random.random() < 0.5)
        self.clearance = self.np_random.random(LONG)
        self.steps = 0
        return self._observe(), {"phase": "reset", "secret": float(self.clearance[0])}

    def step(self, action):
        self.steps += 1
        done = self.steps == (SHORT if self.short else LONG)
        info = {"clearance": float(self.clearance[self.steps - 1])}
        if done:
            info["is_success"] = self.short is self.short_succeeds
        return self._observe(), float(action) + 0.25, done and self.short, done and not self.short, info

    def _observe(self):
        return np.array([self.steps, self.short], dtype=np.float32)


def vector(count, mode=AutoresetMode.NEXT_STEP, kind=SyncVectorEnv, **settings):
    return kind([lambda: Coin(**settings) for _ in range(count)], autoreset_mode=mode)


def act(observation):
    """Return 1 in even steps; from one observation or from a batch of them."""
    return (np.asarray(observation)[..., 0] % 2 == 0).astype(int)


def closest(episode):
    """Return a cost that looks at every step, at how it ended, and at nothing of other episodes."""
    assert len(episode.infos) == len(episode.rewards) == (SHORT if episode.terminated else LONG)
    assert episode.terminated != episode.truncated
    assert "is_success" not in episode.infos[0] or len(episode.infos) == 1
    assert all(set(info) <= {"clearance", "is_success"} for info in episode.infos)
    return min(info["clearance"] for info in episode.infos)


def failed(episode):
    closest(episode)  # every step, and none of another episode or of a reset
    assert episode.rewards.tolist() == [1.25, 0.25] * (len(episode.rewards) // 2) or episode.terminated
    return 0.0 if episode.infos[-1]["is_success"] else 1.0


RULES = {"return": (0, 10), "success": "is_success", "function": closest}


@pytest.fixture(scope="module", params=RULES)
def reference(request):
    rule = RULES[request.param]
    costs = bw.gym.rollout(Coin(), act, 23, cost=rule, seed=5)
    assert np.unique(costs).size > 1
    return rule, costs


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("count", [1, 4, 23, 30])
def test_vector_environments_give_the_costs_of_a_single_one(reference, mode, count):
    rule, costs = reference
    assert bw.gym.rollout(vector(count, mode), act, 23, cost=rule, seed=5).tolist() == costs.tolist()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_other_processes_give_them_too(mode):
    env = vector(3, mode, AsyncVectorEnv)
    try:
        costs = bw.gym.rollout(env, act, 7, cost=closest, seed=5)
    finally:
        env.close()
    assert costs.tolist() == bw.gym.rollout(Coin(), act, 7, cost=closest, seed=5).tolist()


def test_the_values_themselves():
    costs = bw.gym.rollout(Coin(), act, 40, cost="is_success", seed=1)
    returns = bw.gym.rollout(Coin(), act, 40, cost=(0, 10), seed=1)
    assert set(costs.tolist()) == {0.0, 1.0}
    # A short episode collects 1.25; a long one 12 times 0.25 and 1 in every other step.
    assert returns.tolist() == [0.875 if cost == 0 else 0.1 for cost in costs]


def test_episode_i_has_seed_i_whatever_the_number_of_episodes():
    many = bw.gym.rollout(Coin(), act, 30, cost=closest, seed=3)
    few = bw.gym.rollout(vector(4), act, 9, cost=closest, seed=3)
    other = bw.gym.rollout(Coin(), act, 30, cost=closest, seed=4)
    assert many[:9].tolist() == few.tolist()
    assert not set(many) & set(other)
    assert np.unique(many).size == 30


def test_a_fault_of_the_environment_is_not_taken_for_one_of_the_seeds():
    class Broken(gymnasium.vector.SyncVectorEnv):
        def reset(self, *, seed=None, options=None):
            if isinstance(seed, list):
                raise ValueError("no simulator at this port")
            return super().reset(seed=seed, options=options)

    with pytest.raises(ValueError, match="no simulator"):
        bw.gym.rollout(Broken([Coin] * 2), act, 4, cost="is_success")


def test_a_vector_environment_with_one_seed_for_all_is_seeded_by_batch():
    env = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    lean = lambda observation: (observation[:, 2] > 0).astype(int)  # noqa: E731
    first, again, other = (bw.gym.rollout(env, lean, 7, cost=(0, 500), seed=seed) for seed in (1, 1, 2))
    assert first.size == 7
    assert np.unique(first).size > 3
    assert first.tolist() == again.tolist() != other.tolist()


def first_to_finish(env, n):
    """Return the costs of the first n episodes that end: the mistake that `rollout` avoids."""
    costs = []
    observation, _ = env.reset(seed=11)
    while len(costs) < n:
        observation, _, terminated, truncated, infos = env.step(act(observation))
        costs += finished_costs(terminated | truncated, infos)
    return np.array(costs[:n])


def finished_costs(done, infos):
    return (1.0 - infos["is_success"][done]).tolist() if done.any() else []


def looks_like_half(costs):
    """Tell whether so many failures, or so few, occur with probability 1e-6 or more at one half."""
    failures = int(costs.sum())
    return min(binom.cdf(failures, costs.size, 0.5), binom.sf(failures - 1, costs.size, 0.5)) > 1e-6


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_short_episodes_are_not_favored_as_by_who_takes_the_first_to_finish(mode):
    assert looks_like_half(bw.gym.rollout(vector(100, mode), act, 80, cost="is_success", seed=11))
    first = first_to_finish(vector(100), 80)
    assert not looks_like_half(first)
    assert first.mean() < 0.3


def test_policy_with_memory_is_reset_when_episodes_begin():
    class Counting:
        def __init__(self):
            self.resets = 0
            self.calls = 0

        def reset(self):
            self.resets += 1
            self.calls = 0

        def __call__(self, observation):
            assert (np.atleast_2d(observation)[:, 0] == self.calls).any()
            self.calls += 1
            return act(observation)

    for env, resets in ((Coin(), 6), (vector(4), 2)):
        policy = Counting()
        bw.gym.rollout(env, policy, 6, cost="is_success")
        assert policy.resets == resets


@pytest.mark.parametrize(
    ("settings", "error", "named"),
    [
        ({"cost": (0, 1)}, InvalidCost, r"episode 0 \(seed \d+\): return = \S+ is outside \[0, 1\]"),
        ({"cost": "success"}, InvalidCost, r"info\['success'\] .* has clearance, is_success"),
        ({"cost": "clearance"}, InvalidCost, r"info\['clearance'\] = 0\.\d+"),
        *(({"cost": lambda _, c=c: c}, InvalidCost, f"cost = {c}") for c in (1.5, float("nan"), None)),
        *(({"cost": c}, InvalidSetting, "cost = ") for c in ((1, 0), (0, float("inf")), 3)),
        *(({"n": n}, InvalidSetting, f"n = {n}") for n in (0, 2.5, None)),
        ({"seeds": [1]}, InvalidSetting, "n = 3"),
        ({"n": None, "seeds": []}, InvalidSetting, "seeds is empty"),
        ({"n": None, "seeds": [1, 0.5]}, InvalidSetting, r"seeds\[1\] = 0.5"),
        ({"n": None, "seeds": [-1]}, InvalidSetting, r"seeds\[0\] = -1"),
        ({"n": None, "seeds": [4, 7, 4]}, InvalidSetting, r"seeds\[2\] = 4 repeats seeds\[0\]"),
    ],
)
def test_what_cannot_be_a_cost_is_refused(settings, error, named):
    with pytest.raises(error, match=named):
        bw.gym.rollout(Coin(), act, **{"n": 3, "cost": "is_success", "seed": 1} | settings)


@pytest.mark.parametrize("count", [1, 4])
def test_the_same_seeds_give_matched_pairs(count):
    seeds = np.random.default_rng(6).choice(10_000, 9, replace=False)
    seen = []

    def remember(episode):
        seen.append(episode.seed)
        return closest(episode)

    one = bw.gym.rollout(Coin(), act, cost=remember, seeds=seeds)
    other = bw.gym.rollout(vector(count), act, cost=remember, seeds=seeds.tolist())
    assert seen == [*seeds, *seeds]
    assert one.tolist() == other.tolist()
    assert np.unique(one).size > 1
    assert bw.gym.rollout(Coin(), act, cost=closest, seeds=seeds[::-1]).tolist() == one[::-1].tolist()


def test_vector_environments_of_another_kind_are_refused():
    env = vector(2)
    env.metadata = {}
    for stranger, named in ((env, "autoreset_mode"), (DummyVecEnv([Coin]), "DummyVecEnv")):
        with pytest.raises(InvalidSetting, match=named):
            bw.gym.rollout(stranger, act, 3, cost="is_success")
    with pytest.raises(InvalidSetting, match="DummyVecEnv"):
        bw.gym.watch(DummyVecEnv([Coin]), Log(), cost="is_success")


CERTIFICATE = bw.Certificate.from_bounds(lower=0.4, upper=0.5, delta=0.01, binary=True)


class Log(bw.SequentialTest):
    """A test that remembers what it was fed."""

    def __init__(self, certificate=CERTIFICATE):
        self.costs = []
        super().__init__(certificate)

    def update(self, cost):
        self.costs.append(cost)
        return super().update(cost)


def run_single(env, episodes, seed):
    for number in range(episodes):
        observation, _ = env.reset(seed=seed + number)
        done = False
        while not done:
            observation, _, terminated, truncated, _ = env.step(act(observation))
            done = terminated or truncated


def run_vector(env, steps, seed):
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(act(observation))
        done = terminated | truncated
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and done.any():
            observation, _ = env.reset(options={"reset_mask": done})


def test_watching_a_single_environment():
    test = Log()
    env = bw.gym.watch(Coin(), test, cost="is_success")
    assert env.finding is None
    run_single(env, 20, seed=1)
    seeds = iter(range(1, 21))
    alone = [1.0 - float(Coin().reset(seed=next(seeds))[0][1]) for _ in range(20)]
    assert test.costs == alone
    assert env.finding.n == 20
    assert env.finding.mean_cost == np.mean(alone)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_watching_a_vector_environment_counts_in_the_order_of_beginnings(mode):
    """Each sub-environment draws from a generator of its own: its k-th episode is known in advance."""
    test = Log()
    run_vector(bw.gym.watch(vector(3, mode), test, cost=failed), 80, seed=2)
    kinds = []
    for number in range(3):
        alone = Coin()
        first, _ = alone.reset(seed=2 + number)
        kinds.append([1.0 - first[1], *(1.0 - alone.reset()[0][1] for _ in range(60))])
    expected = np.array(kinds).T.ravel().tolist()
    assert len(test.costs) > 15
    assert test.costs == expected[: len(test.costs)]


class ByEnd(Log):
    """The mistake that `watch` avoids: it counts episodes as they end."""

    def run(self, env, steps, seed):
        observation, _ = env.reset(seed=seed)
        for _ in range(steps):
            observation, _, terminated, truncated, infos = env.step(act(observation))
            for cost in finished_costs(terminated | truncated, infos):
                self.update(cost)


def test_early_failures_do_not_raise_false_alarms():
    """Failures come early and half of all episodes fail, as certified: nothing has shifted."""
    runs = 40
    assert runs >= min_trials(CERTIFICATE.delta + 0.04, broken=0.9)
    alarms = by_end = 0
    for seed in range(runs):
        test, broken = Log(), ByEnd()
        env = bw.gym.watch(vector(32, short_succeeds=False), test, cost="is_success")
        run_vector(env, 26, seed=1000 * seed)
        broken.run(vector(32, short_succeeds=False), 8, seed=1000 * seed)
        assert test.n >= 32
        alarms += test.verdict is bw.Verdict.ADVERSE
        by_end += broken.verdict is bw.Verdict.ADVERSE
    assert_rate_at_most(alarms, runs, CERTIFICATE.delta + 0.04)
    with pytest.raises(AssertionError):
        assert_rate_at_most(by_end, runs, CERTIFICATE.delta + 0.04)


@pytest.mark.parametrize("count", [None, 4])
def test_alarm_calls_back_once(count):
    strict = bw.Certificate.from_bounds(lower=0.0, upper=0.05, delta=0.01, binary=True)
    heard = []
    env = Coin() if count is None else vector(count)
    env = bw.gym.watch(env, bw.SequentialTest(strict), cost="is_success", on_alarm=heard.append)
    run_single(env, 60, seed=1) if count is None else run_vector(env, 200, seed=1)
    (finding,) = heard
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.n == finding.first_alarm < env.finding.n
    assert env.finding.verdict is bw.Verdict.ADVERSE


@pytest.mark.parametrize("count", [None, 2])
def test_an_episode_must_not_be_abandoned(count):
    env = Coin() if count is None else vector(count)
    env = bw.gym.watch(env, Log(), cost="is_success")
    seed = next(seed for seed in range(99) if not Coin().reset(seed=seed)[0][1])
    env.reset(seed=seed if count is None else [seed] * count)
    env.reset(seed=seed if count is None else [seed] * count)  # nothing has been done yet
    env.step(0 if count is None else np.zeros(count, dtype=int))
    with pytest.raises(InvalidSetting, match=r"reset\(\) abandons an episode.* after 1 steps"):
        env.reset()


def test_watch_refuses_detectors_that_look_once():
    with pytest.raises(InvalidSetting, match="detector = HypothesisTest may not be read after every episode"):
        bw.gym.watch(Coin(), bw.HypothesisTest(CERTIFICATE), cost="is_success")


def test_a_model_that_samples_is_asked_not_to():
    """Sampled actions of the same weights cost another amount: what is deployed is what must be certified."""
    from stable_baselines3 import PPO

    env = gymnasium.make("CartPole-v1")
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=3, device="cpu")
    found = bw.gym.rollout(env, model.predict, 5, cost=(0, 500))
    greedy = lambda observation: model.predict(observation, deterministic=True)[0]  # noqa: E731
    assert found.tolist() == bw.gym.rollout(env, greedy, 5, cost=(0, 500)).tolist()
    sampled = lambda observation: model.predict(observation)[0]  # noqa: E731
    assert found.tolist() != bw.gym.rollout(env, sampled, 5, cost=(0, 500)).tolist()
