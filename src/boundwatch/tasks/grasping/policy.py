"""The policy: a depth image and a latent vector to a grasp; the autoencoder that teaches it; its costs.

There are two networks. The paper's, whose convolutions see a part of the latent vector, finds points in the
image. In the other, plain one the latent vector enters after the image features, so that the features of an
environment are computed once and serve every policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from boundwatch._support.parallel import Backend, in_parallel
from boundwatch.tasks.grasping.attempt import Outcome, attempt
from boundwatch.tasks.grasping.camera import PIXELS, Image, photograph
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.scenes import CENTER, Scene, draw_scenes
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import GaussianPosterior, environment_hash
from boundwatch.training.determinism import single_thread
from boundwatch.training.policies import draw_first_weights

Costs = NDArray[np.float64]

LATENT = 10
"""Length of the latent vector z."""
FEATURES = 20
LATENT_CHANNELS = 2
"""How many latent numbers the convolutions of the paper's network see."""
POINTS = 20
"""How many points the paper's network finds."""
SHARPNESS = 20.0
"""What its maps are multiplied by before their softmax. With 1 all points of an untrained network lie in the
middle of the image and hardly move; with 150 they jump from pixel to pixel, and learn more slowly."""
ACTIONS = 5
"""x, y, z, and cosine and sine of the yaw."""
SCALE = 0.1
"""Meters in one unit of the network's outputs."""
FLOOR, CEILING = 0.005, 0.25
"""Heights, meters, to which the fingertips are sent at least and at most, whatever the network says."""
RECONSTRUCTION = 0.1
"""Standard deviation of an output given image and latent vector: 1 cm, or 0.1 rad."""


class GraspNetwork(nn.Module):
    """Maps depth images (n, 128, 128) and a latent vector (10,), or one for each image, to grasps (n, 5)."""

    features: Callable[[Tensor], Tensor]
    """What does not depend on the latent vector, for images (n, 128, 128)."""
    decode: Callable[[Tensor, Tensor], Tensor]
    """Outputs (n, 5) for such features and latent vectors."""

    def forward(self, images: Tensor, latent: Tensor) -> Tensor:
        """Return outputs (n, 5) for images and latent vectors."""
        return self.decode(self.features(images), latent)


class FeatureNetwork(GraspNetwork):
    """The plain network: 20 features of the image, joined by the latent vector."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2d(1, 16, 8, stride=8),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 8 * 8, FEATURES),
        ).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast here
        self.hand = nn.Sequential(
            nn.Linear(FEATURES + LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS)
        )

    def features(self, images: Tensor) -> Tensor:
        """Return the features (n, 20)."""
        found: Tensor = self.eye(images[:, None].float() / 255.0)
        return found

    def decode(self, features: Tensor, latent: Tensor) -> Tensor:
        """Return outputs for features and latent vectors."""
        latent = latent.expand(len(features), LATENT)
        outputs: Tensor = self.hand(torch.cat([features, latent], dim=1))
        return outputs


class PointNetwork(GraspNetwork):
    """The paper's network: each channel of the convolutions is a point in the image, its spatial softmax.

    The first two latent numbers are two more channels of the image, the other eight join the points.
    """

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(1 + LATENT_CHANNELS, POINTS // 2, 5, stride=2, padding=2)
        self.eye = nn.Sequential(nn.ReLU(), nn.Conv2d(POINTS // 2, POINTS, 3, padding=1), nn.ReLU())
        inputs, width = 2 * POINTS + LATENT - LATENT_CHANNELS, 4 * POINTS
        self.hand = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, ACTIONS)
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # an eighth faster here

    def features(self, images: Tensor) -> Tensor:
        """Return the image's part of the first convolution."""
        seen = images[:, None].float() / 255.0
        return functional.conv2d(seen, self.look.weight[:, :1], self.look.bias, stride=2, padding=2)

    def decode(self, features: Tensor, latent: Tensor) -> Tensor:
        """Return outputs for features and latent vectors."""
        latent = latent.expand(len(features), LATENT)
        channels, rest = latent[:, :LATENT_CHANNELS], latent[:, LATENT_CHANNELS:]
        # A latent channel is constant over the image, so its part of the convolution is that of a white
        # image times the number: this makes a step of training a third shorter.
        weights = self.look.weight[:, 1:].transpose(0, 1).reshape(-1, 1, *self.look.kernel_size)
        white = functional.conv2d(torch.ones(1, 1, PIXELS, PIXELS), weights, stride=2, padding=2)
        planes = white.reshape(LATENT_CHANNELS, *features.shape[1:])
        maps = self.eye(features + torch.einsum("nk,kchw->nchw", channels, planes))
        outputs: Tensor = self.hand(torch.cat([spatial_softmax(SHARPNESS * maps), rest], dim=1))
        return outputs


def spatial_softmax(maps: Tensor) -> Tensor:
    """Return for each channel of maps (n, c, h, w) the mean place under its softmax: (n, 2 c), -1 to 1."""
    weights = maps.flatten(2).softmax(2).reshape(maps.shape)
    down, right = (torch.linspace(-1.0, 1.0, side) for side in maps.shape[2:])
    return torch.cat([weights.sum(3) @ down, weights.sum(2) @ right], dim=1)


NETWORKS: dict[str, Callable[[], GraspNetwork]] = {"features": FeatureNetwork, "points": PointNetwork}
"""By the names that a recipe gives them."""


class GraspAutoencoder(nn.Module):
    """The network with an encoder, which guesses the latent vector from how the expert grasped the rim.

    The encoder sees the angle in the object's frame, how far off an unsteady expert was (``manners`` = 3
    numbers in all), and nothing else. From the grasp itself the latent vector would learn a direction in the
    room: a ring, with a hole in the middle of the latent space where policies fail.
    """

    def __init__(self, generator: torch.Generator, network: str = "features", manners: int = 1) -> None:
        super().__init__()
        self.network = NETWORKS[network]()
        self.encoder = nn.Sequential(nn.Linear(manners, 32), nn.ReLU(), nn.Linear(32, 2 * LATENT))
        draw_first_weights(self, generator)

    def loss(self, images: Tensor, actions: Tensor, manner: Tensor, generator: torch.Generator) -> Tensor:
        """Return the negative evidence lower bound of each demonstration."""
        features = self.network.features(images)
        mean, log_variance = self.encoder(manner.reshape(len(manner), -1)).chunk(2, dim=1)
        noise = torch.randn(mean.shape, generator=generator)
        latent = mean + torch.exp(0.5 * log_variance) * noise
        error = self.network.decode(features, latent) - actions
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(1)
        bound: Tensor = (error**2).sum(1) / (2.0 * RECONSTRUCTION**2) + divergence
        return bound


def to_action(grasp: Grasp) -> list[float]:
    """Return a grasp in the units of the network's outputs."""
    x, y = ((value - middle) / SCALE for value, middle in zip((grasp.x, grasp.y), CENTER, strict=True))
    return [round(x, 9), round(y, 9), grasp.z / SCALE, math.cos(grasp.yaw), math.sin(grasp.yaw)]


def to_grasp(output: Tensor) -> Grasp:
    """Return the grasp that one output (5,) of the network means."""
    x, y, z, cos, sin = output.double().tolist()
    height = min(max(SCALE * z, FLOOR), CEILING)
    return Grasp(CENTER[0] + SCALE * x, CENTER[1] + SCALE * y, height, math.atan2(sin, cos))


def choose(policy: nn.Module, image: Image) -> Grasp:
    """Return the grasp that a policy chooses for one depth image.

    One image at a time: in a batch, the last bits of an output may depend on the other images, and the cost
    in one environment must not.
    """
    with torch.no_grad():
        return to_grasp(policy(torch.from_numpy(np.ascontiguousarray(image))[None])[0])


@dataclass(frozen=True)
class Grasping:
    """Lift an object: which objects, where they stand, and the physics."""

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
        return self._each(see, [(scene,) for scene in scenes], "depth images")

    def grasps(self, policy: nn.Module, images: Sequence[Image]) -> list[Grasp]:
        """Return the grasps that a policy chooses."""
        with single_thread():
            return [choose(policy, image) for image in images]

    def attempts(
        self, scenes: Sequence[Scene], grasps: Sequence[Grasp], *, label: str = "grasps"
    ) -> list[Outcome]:
        """Simulate one grasp in each scene; the progress bar has the label, if there is one."""
        work = [(scene, grasp, self.physics) for scene, grasp in zip(scenes, grasps, strict=True)]
        return self._each(attempt, work, label)

    def _each(self, function: Callable[..., Any], work: Sequence[tuple[Any, ...]], label: str) -> list[Any]:
        return in_parallel(function, work, jobs=self.jobs, backend=self.backend, label=label)


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
