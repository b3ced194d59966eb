"""Feed a detector while an environment runs, and call back when it raises an alarm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_flag
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.verdicts import Verdict
from boundwatch.errors import InvalidCost, InvalidSetting, shown
from boundwatch.gym.episode import CostRule, Episode, Recorder, check_env, cost_function

OnAlarm = Callable[[Any], object]
Predict = Callable[[Any], ArrayLike]
Unrun = Callable[[], Sequence[Any] | NDArray[Any]]


def watch(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    detector: AnytimeDetector[Any],
    *,
    cost: CostRule,
    on_alarm: OnAlarm | None = None,
    within_episode: bool = False,
    predict: Predict | None = None,
    unrun: Unrun | None = None,
) -> WatchedEnv | WatchedVectorEnv:
    """Wrap an environment so that every finished episode is counted by a detector.

    Use the result in place of the environment. Its ``finding`` is the latest finding, None before the first
    finished episode. Episodes of a vector environment are counted in a fixed order, the first of each
    sub-environment, then the second of each: in the order of their ends, the guarantee would be lost.

    **Guarantee**: that of the detector. **Assumes**: no episode is abandoned; `reset` in the middle of one
    raises `InvalidSetting`, because its cost is unknown and leaving it out would bias the rest.

    Parameters
    ----------
    env, cost
        As for `boundwatch.gym.rollout`.
    detector
        One that may be read after every episode, such as `boundwatch.SequentialTest`.
    on_alarm
        Called with the finding whenever the verdict changes, which may be to BENIGN and later to ADVERSE.
    within_episode
        Also ask `SequentialTest.peek` after every step, so that ADVERSE may come in the middle of an episode.
        The cost must never fall along it: with a range of the return no reward may be positive, and a
        function of the episode is called after every step. For a single environment.
    predict, unrun
        For a `boundwatch.PredictedTest`, both: a predictor of `boundwatch.prediction` or any function from
        observations to costs in [0, 1], and a function that returns first observations of the same world in
        which no episode will be run. They are asked when an episode begins, for all observations in one
        array, that of the episode first. For a single environment.

    Examples
    --------
    >>> import gymnasium, boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=0.01)
    >>> env = bw.gym.watch(
    ...     gymnasium.make("CartPole-v1"),
    ...     bw.SequentialTest(certificate),
    ...     cost=(0, 500),
    ...     on_alarm=lambda finding: print(f"{finding.verdict.value} after {finding.n} episodes"),
    ... )
    >>> for episode in range(5):  # a policy that always pushes to the left
    ...     _ = env.reset(seed=episode)
    ...     while not any(env.step(0)[2:4]):
    ...         pass
    adverse after 4 episodes
    """
    check_env(env)
    if not isinstance(detector, AnytimeDetector):
        raise InvalidSetting(f"detector = {type(detector).__name__} may not be read after every episode")
    if (predict is None) != (unrun is None):
        raise InvalidSetting("predict and unrun go together: a prediction, and scenes that are not run")
    asked = {"within_episode": check_flag(within_episode, "within_episode"), "predict": predict is not None}
    for name, kind in (("within_episode", SequentialTest), ("predict", PredictedTest)):
        if asked[name] and not isinstance(detector, kind):
            raise InvalidSetting(f"{name} needs a {kind.__name__}, not {type(detector).__name__}")
        if asked[name] and isinstance(env, VectorEnv):
            raise InvalidSetting(f"{name} takes a single environment; watch each one on its own")
    if within_episode and isinstance(cost, str):
        raise InvalidSetting(
            f"cost = {shown(cost)} is known only when an episode ends; give within_episode the "
            "range of a return whose rewards are never positive, or a function that never falls"
        )
    scenes = None if predict is None or unrun is None else (predict, unrun)
    counter = _Counter(detector, cost, on_alarm, within_episode, scenes)
    return WatchedVectorEnv(env, counter) if isinstance(env, VectorEnv) else WatchedEnv(env, counter)


class _Counter:
    """Feeds episodes to a detector in the order of their numbers."""

    def __init__(
        self,
        detector: AnytimeDetector[Any],
        cost: CostRule,
        on_alarm: OnAlarm | None,
        within_episode: bool,
        scenes: tuple[Predict, Unrun] | None,
    ) -> None:
        self.detector = detector
        self.finding: Any = None
        self.count = 0
        self.peeking = detector if within_episode and isinstance(detector, SequentialTest) else None
        self._cost, self._rule = cost_function(cost), cost
        self._on_alarm = on_alarm or (lambda _: None)
        self._waiting: dict[int, float] = {}
        self._least = 0.0  # what the running episode has cost so far, and whether that was an alarm
        self._alarmed = False
        self._scenes = scenes
        self._predictions: dict[str, Any] = {}

    def begin(self, observation: Any) -> None:
        """Predict what the episode that begins here will cost."""
        if self._scenes is not None:
            predict, unrun = self._scenes
            scenes = np.stack([np.asarray(scene) for scene in [observation, *unrun()]])
            predicted, *others = np.asarray(predict(scenes), dtype=np.float64).ravel().tolist()
            self._predictions = {"predicted": predicted, "unlabeled": others}

    def look(self, episode: Episode) -> None:
        """Alarm if the episode so far is evidence enough."""
        reward = float(episode.rewards[-1])
        if not callable(self._rule) and reward > 0:
            raise InvalidSetting(
                f"episode {episode.index}, step {len(episode.rewards)}: reward = {reward:g} lowers the cost "
                "again, so nothing follows from a part of an episode; use within_episode=False"
            )
        least = self._least = self._risen(episode)
        if self.peeking is None or self._alarmed or self.detector.verdict is Verdict.ADVERSE:
            return
        finding = self.peeking.peek(least)
        if finding.verdict is Verdict.ADVERSE:
            self._alarmed, self.finding = True, finding
            self._on_alarm(finding)

    def _risen(self, episode: Episode) -> float:
        """Return the cost of an episode; refuse one that has fallen along it."""
        cost = self._cost(episode)
        if cost < self._least - 1e-9:
            raise InvalidCost(
                f"episode {episode.index}, step {len(episode.rewards)}: cost = {cost:g} is below the "
                f"{self._least:g} reached before; give a cost that never falls, or use within_episode=False"
            )
        return cost

    def add(self, episode: Episode) -> None:
        """Count a finished episode, and those that waited for it."""
        self._waiting[episode.index] = self._risen(episode)
        known, self._least, self._alarmed = self._alarmed, 0.0, False
        while self.count in self._waiting:
            before = self.detector.verdict
            self.finding = self.detector.update(self._waiting.pop(self.count), **self._predictions)
            self.count += 1
            if self.detector.verdict is not before and not known:
                self._on_alarm(self.finding)


class _Watched:
    """What both kinds of watched environments show."""

    _counter: _Counter
    unwrapped: Any

    def __repr__(self) -> str:
        detector = self._counter.detector
        fields = {"detector": type(detector).__name__, "n": detector.n, "verdict": detector.verdict}
        return one_line(self, {"env": type(self.unwrapped).__name__} | fields)

    def __str__(self) -> str:
        return f"{type(self.unwrapped).__name__}, watched by {self._counter.detector}"

    @property
    def finding(self) -> Any:
        """The latest finding, or None before the first finished episode."""
        return self._counter.finding


class WatchedEnv(_Watched, gymnasium.Wrapper[Any, Any, Any, Any]):
    """A single environment that `watch` has wrapped."""

    def __init__(self, env: gymnasium.Env[Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter = counter
        self._rewards: list[float] = []
        self._infos: list[dict[str, Any]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset; the episode before must have ended."""
        if self._rewards:
            raise _abandoned("", len(self._rewards))
        observation, info = self.env.reset(seed=seed, options=options)
        self._counter.begin(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step; at the end of an episode, count its cost."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._rewards.append(float(reward))
        self._infos.append(info)
        ended = terminated or truncated
        if ended or self._counter.peeking is not None:
            rewards, infos = np.array(self._rewards), self._infos
            episode = Episode(self._counter.count, None, rewards, infos, bool(terminated), bool(truncated))
            if ended:
                self._rewards, self._infos = [], []
                self._counter.add(episode)
            else:
                self._counter.look(episode)
        return observation, reward, terminated, truncated, info


class WatchedVectorEnv(_Watched, VectorWrapper):
    """A vector environment that `watch` has wrapped."""

    def __init__(self, env: VectorEnv[Any, Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter, self._recorder = counter, Recorder(env)

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
