"""What a task is: it draws environments, rolls policies out in them, and returns costs in [0, 1].

Nothing inherits from these protocols; whatever has their methods is a task. They import neither torch nor a
simulator.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

Environments = TypeVar("Environments", bound=Sized)
_Environment = TypeVar("_Environment", contravariant=True)


class Task(Protocol[Environments]):
    """A distribution over environments, with a policy's cost in each.

    ``Environments`` is whatever suits the task: a list of seeds, arrays with one row for each environment, …

    Examples
    --------
    >>> class Coin:
    ...     binary = True
    ...     def draw(self, n, rng):
    ...         return rng.random(n)
    ...     def rollout(self, policy, environments):
    ...         return (environments < policy) * 1.0
    >>> task: Task = Coin()
    >>> task.rollout(0.5, task.draw(3, np.random.default_rng(0)))
    array([0., 1., 1.])
    """

    binary: bool
    """Whether costs are 0 or 1, which allows the exact methods."""

    def draw(self, n: int, rng: np.random.Generator) -> Environments:
        """Draw n environments, independently of each other."""
        ...

    def rollout(self, policy: Any, environments: Environments) -> ArrayLike:
        """Return the policy's cost in each environment, in [0, 1], higher is worse.

        A cost depends on the policy and on its own environment, not on the others.
        """
        ...


class Rollout(Protocol[_Environment]):
    """A simulator for one environment at a time, as `boundwatch.training.Rollouts` takes it."""

    def __call__(self, policy: Any, environment: _Environment, rng: np.random.Generator, /) -> float:
        """Return the policy's cost in this environment; ``rng`` is the environment's own randomness."""
        ...
