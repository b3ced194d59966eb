"""One finished episode, what it costs, and how the steps of many sub-environments become episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.validation import shortest
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra, shown

try:
    from gymnasium import Env
    from gymnasium.vector import AutoresetMode, VectorEnv
except ImportError as error:
    raise MissingExtra("boundwatch.gym", "gym") from error


@dataclass(frozen=True)
class Episode:
    """A finished episode, as a cost function sees it."""

    index: int
    """Its number, counted from 0 in the order in which episodes began."""
    seed: int | None
    """The seed it was reset with; None where the environment is not ours to reset."""
    rewards: NDArray[np.float64]
    """One reward per step."""
    infos: Sequence[dict[str, Any]]
    """One info per step. If a cost needs observations or actions, have a wrapper write them into it."""
    terminated: bool
    """Whether the task ended it."""
    truncated: bool
    """Whether something else ended it, such as a time limit."""

    def __repr__(self) -> str:
        ended = {"terminated": self.terminated, "truncated": self.truncated}
        counted = {"steps": len(self.rewards), "total": float(self.rewards.sum())}
        return one_line(self, {"index": self.index, "seed": self.seed} | ended | counted)

    def __str__(self) -> str:
        ended = "truncated" if self.truncated and not self.terminated else "terminated"
        total = f"a return of {self.rewards.sum():.6g}"
        return f"{_name(self)}: {ended} after {len(self.rewards)} steps with {total}"


CostRule = str | tuple[float, float] | Callable[[Episode], float]
"""How an episode becomes a cost: see `boundwatch.gym.rollout`."""


def cost_function(rule: CostRule) -> Callable[[Episode], float]:
    """Return the function of an episode that a cost rule stands for; every cost is checked."""
    if isinstance(rule, str):
        return lambda episode: _from_success(episode, rule)
    if callable(rule):
        return lambda episode: _from_function(episode, rule)
    low, high = math.nan, math.nan
    with suppress(TypeError, ValueError):
        low, high = (float(end) for end in rule)
    if not -math.inf < low < high < math.inf:
        raise InvalidSetting(
            f"cost = {shown(rule)} is not a cost; give (low, high), the range of the return with low < high, "
            "the name of a success in info such as 'is_success', or a function of the episode"
        )
    return lambda episode: _from_return(episode, low, high)


def _from_return(episode: Episode, low: float, high: float) -> float:
    total = float(episode.rewards.sum())
    if not low <= total <= high:
        raise InvalidCost(
            f"{_name(episode)}: return = {shortest(total)} is outside [{shortest(low)}, {shortest(high)}]; "
            "declare the range that a return can have, not the one seen so far"
        )
    return (high - total) / (high - low)


def _from_success(episode: Episode, key: str) -> float:
    info = episode.infos[-1]
    if key not in info:
        known = ", ".join(sorted(info)) or "nothing"
        raise InvalidCost(
            f"{_name(episode)}: info[{key!r}] is missing at the last step, which has {known}; name another"
        )
    value = np.asarray(info[key])
    if value.size != 1 or value.item() not in (0, 1):
        raise InvalidCost(f"{_name(episode)}: info[{key!r}] = {shown(info[key])} is not true, false, 0 or 1")
    return 1.0 - float(value.item())


def _from_function(episode: Episode, function: Callable[[Episode], float]) -> float:
    value = function(episode)
    try:
        cost = float(value)
    except (TypeError, ValueError) as error:
        raise InvalidCost(f"{_name(episode)}: cost = {shown(value)} is not a number; return one") from error
    if not 0 <= cost <= 1:
        raise InvalidCost(f"{_name(episode)}: cost = {shortest(cost)} is outside [0, 1]; rescale it")
    return cost


def _name(episode: Episode) -> str:
    return f"episode {episode.index}" + ("" if episode.seed is None else f" (seed {episode.seed})")


class Recorder:
    """Turns the steps of a vector environment into finished episodes, by sub-environment.

    Knows the three autoreset modes: the reset in a step of its own, whose reward belongs to nothing
    (NEXT_STEP); the reset within the last step, which moves that step's info (SAME_STEP); none (DISABLED).
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.mode = env.metadata.get("autoreset_mode")
        if not isinstance(self.mode, AutoresetMode):
            raise InvalidSetting(
                f"env.metadata['autoreset_mode'] = {shown(self.mode)} is not a gymnasium.vector."
                "AutoresetMode; set it to the mode in which the environment resets finished episodes"
            )
        self._steps: list[list[tuple[float, dict[str, Any]]]] = [[] for _ in range(env.num_envs)]
        self._running = np.zeros(env.num_envs, dtype=bool)
        self._ended = np.zeros(env.num_envs, dtype=int)

    def start(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin an episode in every sub-environment, or in those of the mask: they have just been reset."""
        for number in range(len(self._steps)) if mask is None else np.flatnonzero(mask):
            self._steps[number].clear()
            self._running[number] = True

    def lengths(self) -> list[int]:
        """Return the number of steps of each episode that has not ended; 0 elsewhere."""
        return [len(steps) for steps in self._steps]

    def step(
        self, rewards: Any, terminated: Any, truncated: Any, infos: dict[str, Any]
    ) -> dict[int, Episode]:
        """Count one step and return the episodes that it ended, by sub-environment.

        They are numbered whatever their lengths: the first of each sub-environment, then the second of each.
        """
        rewards, terminated, truncated = (np.asarray(part) for part in (rewards, terminated, truncated))
        episodes = {}
        for number, steps in enumerate(self._steps):
            if not self._running[number]:
                # NEXT_STEP: this step was the reset. DISABLED: nothing runs until somebody calls reset.
                self._running[number] = self.mode is AutoresetMode.NEXT_STEP
                continue
            done = bool(terminated[number] or truncated[number])
            source = infos["final_info"] if done and self.mode is AutoresetMode.SAME_STEP else infos
            steps.append((float(rewards[number]), unbatch(source, number, len(self._steps))))
            if done:
                index = int(self._ended[number]) * len(self._steps) + number
                rewards_of, infos_of = zip(*steps, strict=True)
                ends = bool(terminated[number]), bool(truncated[number])
                episodes[number] = Episode(index, None, np.array(rewards_of), list(infos_of), *ends)
                steps.clear()
                self._ended[number] += 1
                self._running[number] = self.mode is AutoresetMode.SAME_STEP
        return episodes


def unbatch(infos: dict[str, Any], number: int, count: int) -> dict[str, Any]:
    """Return the info of one sub-environment: its entries only, where a mask ``_key`` says whose they are."""
    info = {}
    for key, value in infos.items():
        is_mask = key.startswith("_") and key[1:] in infos
        if is_mask or not infos.get(f"_{key}", np.ones(count, dtype=bool))[number]:
            continue
        if isinstance(value, dict):
            info[key] = unbatch(value, number, count)
        else:  # a vector environment of its own kind may report one value for all
            info[key] = value[number] if np.ndim(value) and len(value) == count else value
    return info


def check_env(env: object) -> None:
    """Refuse what is not an environment of Gymnasium's, such as a vector environment of another library."""
    if not isinstance(env, Env | VectorEnv):
        raise InvalidSetting(
            f"env = {env!r:.80} is not a Gymnasium environment; pass gymnasium.make(...), one of "
            "gymnasium.vector, or one of the environments inside yours"
        )
