"""Policies in a simulator, on one core, many, or a Ray cluster, with the same costs everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra
from boundwatch.tasks.base import Rollout
from boundwatch.training.environments import environment_hash
from boundwatch.training.posterior import GaussianPosterior
from boundwatch.training.run import progress_bar
from boundwatch.training.seeds import Stream, generator
from boundwatch.training.threads import single_thread

Environment = TypeVar("Environment")
Costs = NDArray[np.float64]
Indices = NDArray[np.intp]
_ROUNDS = 20  # a progress bar moves about this many times


class TrainingCosts(Protocol):
    """What Algorithm 4 needs of a simulator: costs of many policies in the m training environments.

    `Rollouts` is one. A simulator that takes many policies or environments at once can be another.
    """

    @property
    def fingerprint(self) -> str:
        """Tells one set of training environments from another, for checkpoints."""
        ...

    def __len__(self) -> int:
        """Return the number m of training environments."""
        ...

    def costs(self, posterior: GaussianPosterior, weights: Tensor, indices: Indices) -> Costs:
        """Return costs (n, b): those of policy ``weights[i]`` in the environments ``indices[i]``."""
        ...


class Rollouts(Generic[Environment]):
    """A simulator and the training environments, ready to be run in parallel.

    **Guarantee**: the same costs whatever ``jobs`` and ``backend``, if the simulator is deterministic given
    its generator.

    Parameters
    ----------
    rollout
        ``rollout(policy, environment, rng)`` returns the policy's cost in [0, 1]. The policy is a torch
        module in evaluation mode; gradients are off.
    environments
        The m training environments, in any form that the simulator understands.
    seed
        Each environment has its own generator, made from this seed and its number. The randomness belongs to
        the environment: every policy meets the same.
    jobs
        Processes.
    backend
        ``"loky"`` (processes on this machine) or ``"ray"`` (a Ray cluster, extra ``ray``; one that is already
        connected, else a local one).

    Examples
    --------
    >>> def rollout(policy, environment, rng):
    ...     return float(policy(torch.tensor([environment])).sigmoid())
    >>> rollouts = Rollouts(rollout, [0.0, 1.0, 2.0])
    >>> rollouts(nn.Linear(1, 1)).shape
    (3,)
    """

    def __init__(
        self,
        rollout: Rollout[Environment],
        environments: Sequence[Environment],
        *,
        seed: int = 0,
        jobs: int = 1,
        backend: str = "loky",
    ) -> None:
        if jobs < 1:
            raise InvalidSetting(f"jobs = {jobs} is below 1; give the number of processes")
        if backend not in ("loky", "ray"):
            raise InvalidSetting(f"backend = {backend!r} is unknown; choose loky or ray")
        if len(environments) == 0:
            raise InvalidSetting("environments is empty; draw some")
        self._rollout = rollout
        self._environments = environments
        self._seed = seed
        self._jobs = jobs
        self._backend = backend

    def __len__(self) -> int:
        return len(self._environments)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the environments and the seed."""
        return environment_hash([[*self._environments], self._seed])

    def __call__(self, policy: nn.Module) -> Costs:
        """Return the policy's costs in all m environments, with a progress bar on a terminal."""
        indices = np.arange(len(self))
        pieces = np.array_split(indices, min(len(self), _ROUNDS * self._jobs))
        with progress_bar("rollouts") as progress:
            task = progress.add_task("", total=len(self), note="")
            costs: list[Costs] = []
            # A round at a time where somebody watches: not every backend hands results out one by one.
            size = self._jobs if not progress.disable else len(pieces)
            for start in range(0, len(pieces), size):
                done = self._run(None, [(policy, piece) for piece in pieces[start : start + size]])
                costs += done
                progress.update(task, advance=sum(map(len, done)))
        return np.concatenate(costs)

    def costs(self, posterior: GaussianPosterior, weights: Tensor, indices: Indices) -> Costs:
        """Return costs (n, b): those of policy ``weights[i]`` in the environments ``indices[i]``."""
        return np.stack(self._run(posterior, list(zip(weights.detach(), indices, strict=True))))

    def _run(self, posterior: GaussianPosterior | None, work: list[tuple[Any, Indices]]) -> list[Costs]:
        """Return the costs of each (policy, environments) pair, in their order; see `_roll_out`."""
        shares = np.array_split(np.arange(len(work)), min(len(work), 4 * self._jobs))
        tasks = [
            [(work[i][0], [(int(j), self._environments[j]) for j in work[i][1]]) for i in share]
            for share in shares
        ]
        if self._jobs == 1 and self._backend == "loky":
            done = [_roll_out(self._rollout, posterior, task, self._seed) for task in tasks]
        else:
            if self._backend == "ray":
                _connect_ray()
            with parallel_config(backend=self._backend, n_jobs=self._jobs):
                done = Parallel()(
                    delayed(_roll_out)(self._rollout, posterior, task, self._seed) for task in tasks
                )
        return [costs for share in done for costs in share]


def _roll_out(
    rollout: Rollout[Any],
    posterior: GaussianPosterior | None,
    work: list[tuple[Any, list[tuple[int, Any]]]],
    seed: int,
) -> list[Costs]:
    """Run a share of the work, in whichever process this is.

    With a posterior, policies come as weights and are built here: a thousand of them travel as one matrix.
    """
    with single_thread(), torch.no_grad():
        results = []
        for item, environments in work:
            policy = item if posterior is None else posterior.policy(item)
            results.append(np.array([_cost(rollout, policy, e, index, seed) for index, e in environments]))
        return results


def _cost(rollout: Rollout[Any], policy: nn.Module, environment: Any, index: int, seed: int) -> float:
    cost = float(rollout(policy, environment, generator(seed, Stream.ENVIRONMENTS, index)))
    if not 0 <= cost <= 1:
        raise InvalidCost(
            f"the cost in environment {index} is {cost}; a rollout returns costs in [0, 1]: rescale"
        )
    return cost


def _connect_ray() -> None:
    try:
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise MissingExtra("backend='ray'", "ray") from error
    register_ray()  # type: ignore[no-untyped-call]  # ray has no types here
