"""Policies in a simulator, on one core, many, or a Ray cluster, with the same costs everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.describing import one_line
from boundwatch._support.parallel import Backend, check_workers, in_parallel
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.tasks.base import Environment, Rollout
from boundwatch.training.determinism import Stream, generator, single_thread
from boundwatch.training.environments import environment_hash
from boundwatch.training.policies import unchanged
from boundwatch.training.posterior import GaussianPosterior

Costs = NDArray[np.float64]
Indices = NDArray[np.intp]
_PIECES = 80  # for each process, of one policy's environments


class TrainingCosts(Protocol):
    """What Algorithm 4 needs of a simulator: costs of many policies in the m training environments.

    `Rollouts` is one. A simulator that takes many policies or environments at once can be another.
    """

    @property
    def fingerprint(self) -> str:
        """Tells one set of training environments from another, for checkpoints."""

    def __len__(self) -> int: ...

    def costs(self, posterior: GaussianPosterior, weights: Tensor, indices: Indices) -> Costs:
        """Return costs (n, b): those of policy ``weights[i]`` in the environments ``indices[i]``."""


class Rollouts(Generic[Environment]):
    """A simulator and the training environments, ready to be run in parallel.

    **Guarantee**: the same costs whatever ``jobs`` and ``backend``, if the simulator is deterministic given
    its generator. A policy whose ``state_dict`` a rollout changes is refused.
    **Assumes**: an episode starts anew. A policy with a memory outside its ``state_dict`` (the hidden state
    of a recurrent network) is reset by ``rollout`` before the first observation.

    Parameters
    ----------
    rollout
        ``rollout(policy, environment, rng)`` returns the policy's cost in [0, 1]. The policy is a torch
        module in evaluation mode; gradients are off.
    environments
        The m training environments, in any form that the simulator and `environment_hash` understand.
    seed
        Each environment has its own generator, made from this seed and the environment's hash: every policy
        meets the same randomness. Different environments, and equal ones in one set, have independent
        generators; but the same environment in two sets needs two seeds.
    jobs, backend
        Processes: ``"loky"`` on this machine, or ``"ray"`` on a Ray cluster (extra ``ray``; one that is
        already connected, else a local one).

    Examples
    --------
    >>> def rollout(policy, environment, rng):
    ...     return float(policy(torch.tensor([environment])).sigmoid())
    >>> Rollouts(rollout, [0.0, 1.0, 2.0])(nn.Linear(1, 1)).shape
    (3,)
    """

    def __init__(
        self,
        rollout: Rollout[Environment],
        environments: Sequence[Environment],
        *,
        seed: int = 0,
        jobs: int = 1,
        backend: Backend = "loky",
    ) -> None:
        check_workers(jobs, backend)
        if len(environments) == 0:
            raise InvalidSetting("environments is empty; draw some")
        self._rollout, self._environments, self._keys = rollout, environments, _keys(environments)
        self._seed, self._jobs, self._backend = seed, jobs, backend

    def __len__(self) -> int:
        return len(self._environments)

    def __repr__(self) -> str:
        shown = {"environments": len(self), "seed": self._seed, "jobs": self._jobs, "backend": self._backend}
        return one_line(self, {"rollout": self._rollout} | shown)

    def __str__(self) -> str:
        workers = f"{self._jobs} process{'es' * (self._jobs != 1)} ({self._backend})"
        return f"Rollouts in {len(self)} environments, on {workers}"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the environments and the seed."""
        return environment_hash([self._keys, self._seed])

    def __call__(self, policy: nn.Module) -> Costs:
        """Return the policy's costs in all m environments, with a progress bar on a terminal."""
        pieces = np.array_split(np.arange(len(self)), min(len(self), _PIECES * self._jobs))
        return np.concatenate(self._run(None, [(policy, piece) for piece in pieces], "rollouts"))

    def costs(self, posterior: GaussianPosterior, weights: Tensor, indices: Indices) -> Costs:
        """Return costs (n, b): those of policy ``weights[i]`` in the environments ``indices[i]``."""
        return np.stack(self._run(posterior, list(zip(weights.detach(), indices, strict=True)), None))

    def _run(
        self, posterior: GaussianPosterior | None, work: list[tuple[Any, Indices]], label: str | None
    ) -> list[Costs]:
        """Return the costs of each (policy, environments) pair, in their order; see `_roll_out`."""
        calls = []
        for item, indices in work:
            environments = [(j, self._environments[j], self._keys[j]) for j in indices.tolist()]
            calls.append((self._rollout, posterior, item, environments, self._seed))
        return in_parallel(_roll_out, calls, jobs=self._jobs, backend=self._backend, label=label)


def _keys(environments: Sequence[Any]) -> list[tuple[int, int]]:
    """Return what names each environment's randomness: its hash, and how many equal ones came before it."""
    seen: Counter[int] = Counter()
    keys = []
    for environment in environments:
        name = int(environment_hash(environment), 16)
        keys.append((name, seen[name]))
        seen[name] += 1
    return keys


def _roll_out(
    rollout: Rollout[Any],
    posterior: GaussianPosterior | None,
    item: Any,
    environments: list[tuple[int, Any, tuple[int, int]]],
    seed: int,
) -> Costs:
    """Return one policy's costs in some environments, in whichever process this is.

    With a posterior, the policy comes as weights and is built here: a thousand of them travel as one matrix.
    """
    with single_thread(), torch.no_grad():
        policy = item if posterior is None else posterior.policy(item)
        costs = []
        with unchanged(policy):
            for index, environment, key in environments:
                costs.append(float(rollout(policy, environment, generator(seed, Stream.ENVIRONMENTS, *key))))
                if not 0 <= costs[-1] <= 1:
                    raise InvalidCost(f"the cost in environment {index} is {costs[-1]}, outside [0, 1]")
        return np.array(costs)
