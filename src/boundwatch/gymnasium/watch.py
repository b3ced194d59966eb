"""Feed a detector while an environment runs, and call back when it raises an alarm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

import gymnasium
from boundwatch.detectors.stream import StreamDetector
from boundwatch.errors import InvalidSetting
from boundwatch.gymnasium.episode import CostRule, Episode, Recorder, check_env, cost_function

OnAlarm = Callable[[Any], object]


def watch(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    detector: StreamDetector[Any],
    *,
    cost: CostRule,
    on_alarm: OnAlarm | None = None,
) -> WatchedEnv | WatchedVectorEnv:
    """Wrap an environment so that every finished episode is counted by a detector.

    Use the result in place of the environment. Its ``finding`` is the latest finding, None before the first
    finished episode. Episodes of a vector environment are counted in a fixed order, the first of each
    sub-environment, then the second of each, and so on: a short one waits for those before it. In the
    order of their ends, short episodes would come first and the guarantee would be lost.

    **Guarantee**: that of the detector. **Assumes**: no episode is abandoned; `reset` in the middle of one
    raises `InvalidSetting`, because its cost is unknown and leaving it out would bias the rest.

    Parameters
    ----------
    env
        A Gymnasium environment, or a vector environment in any autoreset mode.
    detector
        One that may be read after every episode, such as `boundwatch.SequentialTest`.
    cost
        How an episode becomes a cost: see `boundwatch.gymnasium.rollout`.
    on_alarm
        Called with the finding whenever the verdict changes, which may be to BENIGN and later to ADVERSE.

    Examples
    --------
    >>> import gymnasium, boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=0.01)
    >>> env = bw.gymnasium.watch(
    ...     gymnasium.make("CartPole-v1"),
    ...     bw.SequentialTest(certificate),
    ...     cost=(0, 500),
    ...     on_alarm=lambda finding: print(f"{finding.verdict.value} after {finding.n} episodes"),
    ... )
    >>> for episode in range(5):  # a policy that always pushes to the left
    ...     _, done = env.reset(seed=episode), False
    ...     while not done:
    ...         _, _, terminated, truncated, _ = env.step(0)
    ...         done = terminated or truncated
    adverse after 4 episodes
    """
    check_env(env)
    counter = _Counter(detector, cost, on_alarm)
    return WatchedVectorEnv(env, counter) if isinstance(env, VectorEnv) else WatchedEnv(env, counter)


class _Counter:
    """Feeds episodes to a detector in the order of their numbers."""

    def __init__(self, detector: StreamDetector[Any], cost: CostRule, on_alarm: OnAlarm | None) -> None:
        if not isinstance(detector, StreamDetector):
            raise InvalidSetting(
                f"detector = {type(detector).__name__} may not be read after every episode; "
                "use SequentialTest or ChangeDetector"
            )
        self.detector = detector
        self.finding: Any = None
        self.count = 0
        self._cost = cost_function(cost)
        self._on_alarm = on_alarm
        self._waiting: dict[int, float] = {}

    def add(self, episode: Episode) -> None:
        self._waiting[episode.index] = self._cost(episode)
        while self.count in self._waiting:
            before = self.detector.verdict
            self.finding = self.detector.update(self._waiting.pop(self.count))
            self.count += 1
            if self._on_alarm is not None and self.detector.verdict is not before:
                self._on_alarm(self.finding)


class WatchedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A single environment that `watch` has wrapped."""

    def __init__(self, env: gymnasium.Env[Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter = counter
        self._rewards: list[float] = []
        self._infos: list[dict[str, Any]] = []

    @property
    def finding(self) -> Any:
        """The latest finding, or None before the first finished episode."""
        return self._counter.finding

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset; the episode before must have ended."""
        if self._rewards:
            raise _abandoned("", len(self._rewards))
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step; at the end of an episode, count its cost."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._rewards.append(float(reward))
        self._infos.append(info)
        if terminated or truncated:
            rewards, infos = np.array(self._rewards), self._infos
            self._rewards, self._infos = [], []
            self._counter.add(
                Episode(self._counter.count, None, rewards, infos, bool(terminated), bool(truncated))
            )
        return observation, reward, terminated, truncated, info


class WatchedVectorEnv(VectorWrapper):
    """A vector environment that `watch` has wrapped."""

    def __init__(self, env: VectorEnv[Any, Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter = counter
        self._recorder = Recorder(env)

    @property
    def finding(self) -> Any:
        """The latest finding, or None before the first finished episode."""
        return self._counter.finding

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all sub-environments, or those of ``reset_mask``; the episodes before must have ended."""
        mask: NDArray[np.bool_] | None = (options or {}).get("reset_mask")
        for number, length in enumerate(self._recorder.lengths()):
            if length and (mask is None or mask[number]):
                raise _abandoned(f" of sub-environment {number}", length)
        result: tuple[Any, dict[str, Any]] = self.env.reset(seed=seed, options=options)
        self._recorder.start(mask)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step; count the costs of the episodes that end and whose turn it is."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        for episode in self._recorder.step(rewards, terminated, truncated, infos).values():
            self._counter.add(episode)
        return observations, rewards, terminated, truncated, infos


def _abandoned(where: str, length: int) -> InvalidSetting:
    return InvalidSetting(
        f"reset() abandons an episode{where} after {length} steps, and its cost is unknown; "
        "let it end (terminated or truncated) first"
    )
