"""A simulated twin: the same policy, rolled out in a simulator of the scene that was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.parallel import Backend, check_workers
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.base import Rollout

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Twin:
    """Predicts the cost of a scene as the mean cost of simulated rollouts of the same policy in it.

    **Assumes**: the simulator's randomness has nothing to do with the real trial's. To try it out where the
    "real" trial is simulated, too, give the two different seeds; the twin would know the outcome otherwise.

    It simulates ``repeats`` times per scene; all else is as for `boundwatch.training.Rollouts`.

    Examples
    --------
    >>> from torch import nn
    >>> def rollout(policy, scene, rng):  # clutter makes it fail
    ...     return float(rng.random() < scene["clutter"] / 10)
    >>> twin = Twin(rollout, nn.Identity(), repeats=50)
    >>> twin([{"clutter": 0}, {"clutter": 10}]).round(1).tolist()
    [0.0, 1.0]
    """

    rollout: Rollout[Any]
    policy: nn.Module
    repeats: int = 10
    seed: int = 0
    jobs: int = 1
    backend: Backend = "loky"

    def __post_init__(self) -> None:
        check_workers(self.jobs, self.backend)
        if self.repeats < 1:
            raise InvalidSetting(f"repeats = {self.repeats} is below 1; simulate each scene at least once")

    def __repr__(self) -> str:
        return one_line(self, vars(self))

    def __str__(self) -> str:
        return f"Twin that simulates {type(self.policy).__name__} {self.repeats} times in each scene"

    def __call__(self, scenes: Sequence[Any]) -> NDArray[np.float64]:
        """Return the predicted costs of some scenes, one each."""
        from boundwatch.training import Rollouts

        # Equal environments of one set have generators of their own, so repeats are simply more environments.
        repeated = [scene for scene in scenes for _ in range(self.repeats)]
        rollouts = Rollouts(self.rollout, repeated, seed=self.seed, jobs=self.jobs, backend=self.backend)
        means: NDArray[np.float64] = rollouts(self.policy).reshape(len(scenes), self.repeats).mean(axis=1)
        return means
