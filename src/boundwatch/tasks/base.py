"""What a task is: something that can be trained and certified, and deployed in new environments.

Nothing inherits from these protocols; whatever has their members is a task, a module with three functions
too. They import neither torch nor a simulator. An entry point of the group ``boundwatch.tasks`` makes a task
known to the command line: ``boundwatch train NAME`` and ``boundwatch rollout NAME`` are built from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.certificate import Certificate

ENTRY_POINTS = "boundwatch.tasks"

Environment = TypeVar("Environment")
Rollout = Callable[[Any, Environment, np.random.Generator], float]
"""``rollout(policy, environment, rng)``, a simulator of one environment, returns the policy's cost;
``rng`` is the environment's own randomness. `boundwatch.training.Rollouts` takes it."""


class Deployment(Protocol):
    """What happened in new environments, one entry each."""

    @property
    def costs(self) -> NDArray[np.float64]:
        """Costs in [0, 1], higher is worse."""

    @property
    def columns(self) -> Mapping[str, Sequence[object]]:
        """What else there is to say of each, by name; these become columns beside the cost."""


class Run(Protocol):
    """A finished training."""

    @property
    def certificate(self) -> Certificate:
        """What the policy was certified for."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Numbers of the training, as plain JSON values."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences to read beside the certificate."""


class Task(Protocol):
    """What an entry point names.

    The keyword-only parameters of `train` and `deploy` become options of the commands, the docstrings their
    help; below a heading ``Options`` they have an entry ``name METAVAR: help`` for each.
    """

    @property
    def train(self) -> Callable[..., Run]:
        """``train(folder, *, ...)`` trains and certifies a policy, or loads what the folder holds already."""

    @property
    def load(self) -> Callable[..., Run]:
        """``load(folder)`` loads what `train` wrote."""

    @property
    def deploy(self) -> Callable[..., Deployment]:
        """``deploy(run, n, *, seed, ...)`` tries the policy in n new environments.

        They are drawn independently of each other and of the training's, whatever the seed.
        """
