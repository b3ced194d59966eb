"""Feed a detector while an environment runs, and call back when it raises an alarm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray

import gymnasium
from boundwatch._support.describing import one_line
from boundwatch._support.text import shown
from boundwatch._support.validation import check_flag
from boundwatch.detectors.anytime import AnytimeDetector
from boundwatch.detectors.base import Verdict
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.gymnasium.episode import CostRule, Episode, Recorder, check_env, cost_function

OnAlarm = Callable[[Any], object]


def watch(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    detector: AnytimeDetector[Any],
    *,
    cost: CostRule,
    on_alarm: OnAlarm | None = None,
    within_episode: bool = False,
    predict: Callable[[Any], ArrayLike] | None = None,
    unrun: Callable[[], Sequence[Any] | NDArray[Any]] | None = None,
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
    within_episode
        Also ask `SequentialTest.peek` after every step, so that ADVERSE may come in the middle of an episode.
        The cost must only grow along it: with a range of the return no reward may be positive, and a function
        of the episode is called after every step and must never fall. For a single environment.
    predict, unrun
        For a `boundwatch.PredictedTest`, both: a predictor of `boundwatch.prediction` or any function from
        observations to costs in [0, 1], and a function that returns first observations of the same world in
        which no episode will be run. They are asked once per episode, when it begins, and see all
        observations in one array, that of the episode first. For a single environment.

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
    if check_flag(within_episode, "within_episode"):
        counter.allow_peeking(env)
    counter.allow_predictions(env, predict, unrun)
    return WatchedVectorEnv(env, counter) if isinstance(env, VectorEnv) else WatchedEnv(env, counter)


class _Counter:
    """Feeds episodes to a detector in the order of their numbers."""

    def __init__(self, detector: AnytimeDetector[Any], cost: CostRule, on_alarm: OnAlarm | None) -> None:
        if not isinstance(detector, AnytimeDetector):
            raise InvalidSetting(
                f"detector = {type(detector).__name__} may not be read after every episode; "
                "use SequentialTest or ChangeDetector"
            )
        self.detector = detector
        self.finding: Any = None
        self.count = 0
        self._cost = cost_function(cost)
        self._on_alarm = on_alarm
        self._rule = cost
        self._waiting: dict[int, float] = {}
        self.peeking: SequentialTest | None = None
        self._least = 0.0  # what the running episode has cost so far, and whether that was an alarm
        self._alarmed = False
        self._predict: Callable[[Any], ArrayLike] | None = None
        self._unrun: Callable[[], Sequence[Any] | NDArray[Any]] | None = None
        self._predictions: dict[str, Any] = {}

    def line(self, watched: WatchedEnv | WatchedVectorEnv) -> str:
        """Describe a wrapped environment on one line."""
        detector, env = self.detector, _name_of(watched)
        fields = {
            "env": env,
            "detector": type(detector).__name__,
            "n": detector.n,
            "verdict": detector.verdict,
        }
        return one_line(watched, fields)

    def words(self, watched: WatchedEnv | WatchedVectorEnv) -> str:
        """Describe it in words."""
        return f"{_name_of(watched)}, watched by {self.detector}"

    def allow_predictions(
        self,
        env: object,
        predict: Callable[[Any], ArrayLike] | None,
        unrun: Callable[[], Sequence[Any] | NDArray[Any]] | None,
    ) -> None:
        """Refuse what cannot be predicted."""
        if predict is None and unrun is None:
            return
        if predict is None or unrun is None:
            raise InvalidSetting(
                "predict and unrun go together: a prediction for the episode, and for scenes that are not run"
            )
        if not isinstance(self.detector, PredictedTest):
            raise InvalidSetting(f"predict needs a PredictedTest, not {type(self.detector).__name__}")
        if isinstance(env, VectorEnv):
            raise InvalidSetting("predict takes a single environment; watch each one on its own")
        self._predict, self._unrun = predict, unrun

    def begin(self, observation: Any) -> None:
        """Predict what the episode that begins here will cost."""
        if self._predict is not None and self._unrun is not None:
            scenes = np.stack([np.asarray(scene) for scene in [observation, *self._unrun()]])
            predicted, *others = np.asarray(self._predict(scenes), dtype=np.float64).ravel().tolist()
            self._predictions = {"predicted": predicted, "unlabelled": others}

    def allow_peeking(self, env: object) -> None:
        """Refuse what cannot alarm within an episode."""
        if not isinstance(self.detector, SequentialTest):
            raise InvalidSetting(
                f"within_episode needs a SequentialTest, which can peek, not {type(self.detector).__name__}"
            )
        if isinstance(env, VectorEnv):
            raise InvalidSetting("within_episode takes a single environment; watch each one on its own")
        if isinstance(self._rule, str):
            raise InvalidSetting(
                f"cost = {shown(self._rule)} is known only when an episode ends; for within_episode give the "
                "range of a return whose rewards are never positive, or a function that never falls"
            )
        self.peeking = self.detector

    def look(self, episode: Episode) -> None:
        """Alarm if the episode so far is evidence enough."""
        reward = float(episode.rewards[-1])
        if not callable(self._rule) and reward > 0:
            raise InvalidSetting(
                f"episode {episode.index}, step {len(episode.rewards)}: reward = {reward:g} lowers the cost "
                "again, so nothing follows from a part of an episode; use within_episode=False"
            )
        least = self._cost(episode)
        self._refuse_fall(episode, least)
        self._least = least
        if self.peeking is None or self._alarmed or self.detector.verdict is Verdict.ADVERSE:
            return
        finding = self.peeking.peek(least)
        if finding.verdict is Verdict.ADVERSE:
            self._alarmed, self.finding = True, finding
            if self._on_alarm is not None:
                self._on_alarm(finding)

    def _refuse_fall(self, episode: Episode, cost: float) -> None:
        if cost < self._least - 1e-9:
            raise InvalidCost(
                f"episode {episode.index}, step {len(episode.rewards)}: cost = {cost:g} is below "
                f"{self._least:g}, which it had reached; give a cost that never falls, or use "
                "within_episode=False"
            )

    def add(self, episode: Episode) -> None:
        cost = self._cost(episode)
        self._refuse_fall(episode, cost)
        self._waiting[episode.index] = cost
        known, self._least, self._alarmed = self._alarmed, 0.0, False
        while self.count in self._waiting:
            before = self.detector.verdict
            self.finding = self.detector.update(self._waiting.pop(self.count), **self._predictions)
            self.count += 1
            if self._on_alarm is not None and self.detector.verdict is not before and not known:
                self._on_alarm(self.finding)


class WatchedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A single environment that `watch` has wrapped."""

    def __init__(self, env: gymnasium.Env[Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter = counter
        self._rewards: list[float] = []
        self._infos: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        return self._counter.line(self)

    def __str__(self) -> str:
        return self._counter.words(self)

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


class WatchedVectorEnv(VectorWrapper):
    """A vector environment that `watch` has wrapped."""

    def __init__(self, env: VectorEnv[Any, Any, Any], counter: _Counter) -> None:
        super().__init__(env)
        self._counter = counter
        self._recorder = Recorder(env)

    def __repr__(self) -> str:
        return self._counter.line(self)

    def __str__(self) -> str:
        return self._counter.words(self)

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


def _name_of(watched: WatchedEnv | WatchedVectorEnv) -> str:
    return type(watched.unwrapped).__name__ if watched.spec is None else watched.spec.id


def _abandoned(where: str, length: int) -> InvalidSetting:
    return InvalidSetting(
        f"reset() abandons an episode{where} after {length} steps, and its cost is unknown; "
        "let it end (terminated or truncated) first"
    )
