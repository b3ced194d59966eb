"""Roll a policy out for a fixed number of seeded episodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from types import MethodType
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from boundwatch.errors import InvalidSetting, shown
from boundwatch.gym.episode import CostRule, Episode, Recorder, check_env, cost_function

Policy = Callable[[Any], Any]


def rollout(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    policy: Policy,
    n: int | None = None,
    *,
    cost: CostRule,
    seed: int = 0,
    seeds: Iterable[int] | None = None,
) -> NDArray[np.float64]:
    """Run n seeded episodes and return one cost per episode, in [0, 1], in the order of their seeds.

    Episode i is reset with the i-th word of ``SeedSequence(seed)``, whatever the lengths, the costs and the
    number of sub-environments. A vector environment runs them in batches and waits for the slowest of each;
    collecting whichever end first would favor short episodes, early failures or early successes.

    **Guarantee**: the costs are i.i.d. over the draw of seeds, as a certificate needs. **Assumes**: `reset`
    with a seed draws a new environment independently of earlier episodes; every episode ends; `seeds`, if
    given, were drawn at random and not chosen by what they cost.

    Two policies that are rolled out with the same `seeds` (or `n` and `seed`) give matched pairs: episode i
    of both is reset with the same seed. Compare them with ``PolicyComparison(..., paired=True)``.

    Parameters
    ----------
    env
        A Gymnasium environment, or a vector environment in any autoreset mode. One whose sub-environments
        cannot be seeded apart gets the seed of the first episode of each batch.
    policy
        Takes an observation and returns an action; with a vector environment, batches of them. If it has a
        method ``reset()``, that is called whenever episodes begin, all of them anew. ``model.predict`` of
        Stable-Baselines3 samples its actions unless asked otherwise; here it is called with
        ``deterministic=True``, as that library's own evaluation does. To sample, give a function.
    n
        Number of episodes, fixed in advance; leave it out with `seeds`.
    cost
        ``(low, high)``: the range that the return (sum of rewards) can have, declared in advance; cost =
        (high - return) / (high - low). A string: the key of a success in the last step's info, such as
        ``"is_success"``; cost = 1 - success. Or a function of an `Episode`, with values in [0, 1].
    seed, seeds
        What decides all episodes: one seed, or one per episode, each different, such as those that another
        policy was tried with.

    Examples
    --------
    >>> import gymnasium, boundwatch as bw
    >>> balance = lambda observation: int(observation[2] + 0.5 * observation[3] > 0)
    >>> env = gymnasium.make("CartPole-v1")
    >>> bw.gym.rollout(env, balance, 3, cost=(0, 500), seed=7)
    array([0., 0., 0.])
    >>> hasty = lambda observation: int(observation[2] > 0)
    >>> pairs = [bw.gym.rollout(env, p, cost=(0, 500), seeds=range(20)) for p in (balance, hasty)]
    >>> bw.PolicyComparison(binary=False, paired=True).update_many(*pairs).verdict.name
    'A_BETTER'
    """
    check_env(env)
    price = cost_function(cost)
    chosen = _drawn(n, seed) if seeds is None else _given(seeds, n)
    restart = getattr(policy, "reset", lambda: None)
    if isinstance(policy, MethodType) and "deterministic" in inspect.signature(policy).parameters:
        policy = partial(policy, deterministic=True)
    if isinstance(env, VectorEnv):
        run = _run_batches(env, policy, restart, chosen)
    else:
        run = _run_one_by_one(env, policy, restart, chosen)
    return np.array([price(episode) for episode in run])


def first_observations(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any], n: int, *, seed: int = 0
) -> NDArray[Any]:
    """Return the first observations of the episodes that `rollout` with the same seed would run.

    They are the scenes that a predictor of `boundwatch.prediction` sees. Nothing is run: the environment, a
    single one whose observations are arrays, is reset n times. Scenes that are not run need another seed.

    Examples
    --------
    >>> import gymnasium, boundwatch as bw
    >>> bw.gym.first_observations(gymnasium.make("CartPole-v1"), 3).shape
    (3, 4)
    """
    check_env(env)
    if isinstance(env, VectorEnv):
        raise InvalidSetting("first_observations takes a single environment; give one of those inside")
    return np.stack([np.asarray(env.reset(seed=word)[0]) for word in _drawn(n, seed)])


def _run_one_by_one(
    env: gymnasium.Env[Any, Any], policy: Policy, restart: Callable[[], object], seeds: list[int]
) -> Iterator[Episode]:
    for index, seed in enumerate(seeds):
        rewards, infos = [], []
        observation, _ = env.reset(seed=seed)
        restart()
        terminated = truncated = False
        while not (terminated or truncated):
            observation, reward, terminated, truncated, info = env.step(_action(policy(observation)))
            rewards.append(float(reward))
            infos.append(info)
        yield Episode(index, seed, np.array(rewards), infos, bool(terminated), bool(truncated))


def _run_batches(
    env: VectorEnv[Any, Any, Any], policy: Policy, restart: Callable[[], object], seeds: list[int]
) -> Iterator[Episode]:
    recorder = Recorder(env)
    for first in range(0, len(seeds), env.num_envs):
        batch = seeds[first : first + env.num_envs]
        # The last batch may be smaller than the environment: the rest of it runs along and is not counted.
        observations = _reset(env, batch + batch[-1:] * (env.num_envs - len(batch)))
        restart()
        recorder.start()
        finished: dict[int, Episode] = {}
        while len(finished) < len(batch):
            observations, rewards, terminated, truncated, infos = env.step(_action(policy(observations)))
            for number, episode in recorder.step(rewards, terminated, truncated, infos).items():
                # Only the first episode after the reset has a seed of ours; what follows is not counted.
                if number < len(batch):
                    mine = replace(episode, index=first + number, seed=batch[number])
                    finished.setdefault(number, mine)
            done = np.logical_or(terminated, truncated)
            if recorder.mode is AutoresetMode.DISABLED and done.any():  # what has ended must not be stepped
                observations, _ = env.reset(options={"reset_mask": done})
        yield from (finished[number] for number in range(len(batch)))


def _action(chosen: Any) -> Any:
    """Return the action alone; ``model.predict`` of Stable-Baselines3 returns it with a state, None."""
    return chosen[0] if isinstance(chosen, tuple) and len(chosen) == 2 and chosen[1] is None else chosen


def _reset(env: VectorEnv[Any, Any, Any], seeds: list[int]) -> Any:
    reset: Any = env.reset  # the base class announces one seed; those of Gymnasium take one for each
    try:
        observations, _ = reset(seed=seeds)
    except gymnasium.error.Error:  # what Gymnasium's own generator says to a list; other faults are the env's
        observations, _ = reset(seed=seeds[0])  # one generator for all sub-environments
    return observations


def _drawn(n: int | None, seed: int) -> list[int]:
    if not _is_whole(n) or n < 1:
        raise InvalidSetting(
            f"n = {shown(n)} is not a number of episodes; give a whole number of at least 1, or their seeds"
        )
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(int(n))]


def _given(seeds: Iterable[int], n: int | None) -> list[int]:
    if n is not None:
        raise InvalidSetting(f"n = {shown(n)} is given beside seeds; leave it out: every seed is one episode")
    chosen: dict[int, int] = {}
    for index, seed in enumerate(seeds):
        if not _is_whole(seed) or seed < 0:
            raise InvalidSetting(
                f"seeds[{index}] = {shown(seed)} is not a whole number >= 0; give such numbers"
            )
        if chosen.setdefault(int(seed), index) != index:
            raise InvalidSetting(
                f"seeds[{index}] = {seed} repeats seeds[{chosen[seed]}]; give each a seed of its own"
            )
    if not chosen:
        raise InvalidSetting("seeds is empty; give at least one")
    return list(chosen)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer)
