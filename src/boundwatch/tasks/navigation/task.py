"""Navigation: flies policies through any number of environments, returns costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import nn

from boundwatch.tasks.navigation.distributions import TRAINING, Distribution
from boundwatch.tasks.navigation.policy import logits_of
from boundwatch.tasks.navigation.world import Environments, World


@dataclass(frozen=True)
class Navigation:
    """Fly through obstacle fields: a world, a distribution over its environments, and the cost's threshold.

    Examples
    --------
    >>> from boundwatch.tasks.navigation.policy import Policy
    >>> costs, logits = Navigation().deploy(Policy(primitives=7), 20, seed=1)
    >>> costs.shape, logits.shape
    ((20,), (20, 7))
    """

    world: World = field(default_factory=World)
    distribution: Distribution = TRAINING
    d_thresh: float = 0.5
    """Clearance from which a flight costs nothing, meters."""

    def rollout(self, policy: nn.Module, environments: Environments) -> NDArray[np.float64]:
        """Return the cost of the primitive that the policy scores highest, in each environment."""
        return self.costs(logits_of(policy, environments.images), environments)

    def costs(self, logits: NDArray[np.float64], environments: Environments) -> NDArray[np.float64]:
        """Return the cost of the primitive with the largest logit, in each environment."""
        table, chosen = environments.costs(self.d_thresh), logits.argmax(axis=1, keepdims=True)
        return np.take_along_axis(table, chosen, axis=1)[:, 0]

    def deploy(
        self, policy: nn.Module, n: int, *, seed: int | Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fly n new environments block by block; return costs (n,) and logits (n, primitives)."""
        costs, logits = [], []
        for environments in self.world.stream(self.distribution, n, seed=seed):
            logits.append(logits_of(policy, environments.images))
            costs.append(self.costs(logits[-1], environments))
        return np.concatenate(costs), np.concatenate(logits)
