"""Grasping: draws objects, lets policies grasp them, and is the simulator of Algorithm 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.parallel import Backend, in_parallel
from boundwatch.tasks.grasping.attempt import Outcome, attempt
from boundwatch.tasks.grasping.camera import Image, photograph
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.policy import GraspNetwork, choose, to_grasp
from boundwatch.tasks.grasping.scenes import Scene, check_distribution, draw_scenes
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import GaussianPosterior, environment_hash
from boundwatch.training.determinism import single_thread

Costs = NDArray[np.float64]


@dataclass(frozen=True)
class Grasping:
    """Lift an object: which objects, where they stand, and the physics.

    Examples
    --------
    >>> task = Grasping(objects="bowls", placement=4)
    >>> scenes = task.draw(2, np.random.default_rng(0))
    >>> policy = lambda image: torch.zeros(1, 5)    # grasps the middle of the table, whatever it sees
    >>> task.rollout(policy, scenes)
    array([1., 1.])
    """

    objects: str = "mugs"
    """As in `boundwatch.tasks.grasping.draw_scenes`, like the placement."""
    placement: int = 1
    physics: Physics = field(default_factory=Physics)
    jobs: int = 1
    """Processes."""
    backend: Backend = "loky"
    """Where they run: ``"loky"``, on this machine, or ``"ray"``, on a Ray cluster (extra ``ray``)."""
    depth_noise: bool = False
    """Whether the camera sees as a real sensor does, with noise."""

    def __post_init__(self) -> None:
        check_distribution(self.objects, self.placement)

    @property
    def _workers(self) -> dict[str, Any]:
        return {"jobs": self.jobs, "backend": self.backend}

    def draw(self, n: int, rng: np.random.Generator) -> list[Scene]:
        """Draw n environments, independently of each other."""
        return draw_scenes(n, rng, objects=self.objects, placement=self.placement)

    def rollout(self, policy: nn.Module, environments: Sequence[Scene]) -> Costs:
        """Return the policy's cost in each environment: 0 if it lifted the object, else 1."""
        return self.costs(environments, self.grasps(policy, self.photographs(environments)))

    def costs(self, scenes: Sequence[Scene], grasps: Sequence[Grasp], *, label: str = "grasps") -> Costs:
        """Return the costs of one grasp in each scene."""
        return np.array([outcome.cost for outcome in self.attempts(scenes, grasps, label=label)])

    def photographs(self, scenes: Sequence[Scene]) -> list[Image]:
        """Return the depth images of scenes."""
        see = partial(photograph, noisy=self.depth_noise)
        return in_parallel(see, [(scene,) for scene in scenes], **self._workers, label="depth images")

    def grasps(self, policy: nn.Module, images: Sequence[Image]) -> list[Grasp]:
        """Return the grasps that a policy chooses."""
        with single_thread():
            return [choose(policy, image) for image in images]

    def attempts(
        self, scenes: Sequence[Scene], grasps: Sequence[Grasp], *, label: str = "grasps"
    ) -> list[Outcome]:
        """Simulate one grasp in each scene; the progress bar has the label, if there is one."""
        work = [(scene, grasp, self.physics) for scene, grasp in zip(scenes, grasps, strict=True)]
        return in_parallel(attempt, work, **self._workers, label=label)


class LatentCosts:
    """The training environments, as `train_evolution` runs them; the images' features are computed once."""

    def __init__(
        self, task: Grasping, network: GraspNetwork, scenes: Sequence[Scene], images: Sequence[Image]
    ) -> None:
        self._task, self._network, self._scenes, self._images = task, network, scenes, images
        world = [list(scenes), task.physics]
        self.fingerprint = environment_hash([*world, "noisy"] if task.depth_noise else world)
        with torch.no_grad(), single_thread():
            self._features = [network.features(torch.from_numpy(image)[None]) for image in images]

    def __len__(self) -> int:
        return len(self._scenes)

    def __call__(self, policy: nn.Module) -> Costs:
        """Return one policy's costs in all training environments."""
        return self._task.costs(self._scenes, self._task.grasps(policy, self._images))

    def costs(self, _posterior: GaussianPosterior, weights: Tensor, indices: NDArray[np.intp]) -> Costs:
        """Return costs (n, b): those of latent vector ``weights[i]`` in the environments ``indices[i]``."""
        with torch.no_grad(), single_thread():
            grasps = [
                to_grasp(self._network.decode(self._features[j], latent)[0])
                for latent, row in zip(weights.float(), indices, strict=True)
                for j in row
            ]
        scenes = [self._scenes[j] for j in indices.ravel().tolist()]
        # Without a label: the training shows a bar already.
        return self._task.costs(scenes, grasps, label="").reshape(indices.shape)
