"""The policy: a depth image and a latent vector to a grasp; and the variational autoencoder that teaches it.

The latent vector enters after the image features, so that the features of an environment are computed once
and serve every policy.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from boundwatch.tasks.grasping.camera import Image
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.scenes import CENTER

LATENT = 10
"""Length of the latent vector z."""
FEATURES = 20
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
        """Return the features (n, 20) of images (n, 128, 128)."""
        found: Tensor = self.eye(images[:, None].float() / 255.0)
        return found

    def decode(self, features: Tensor, latent: Tensor) -> Tensor:
        """Return outputs (n, 5) for features and latent vectors."""
        latent = latent.expand(len(features), LATENT)
        outputs: Tensor = self.hand(torch.cat([features, latent], dim=1))
        return outputs

    def forward(self, images: Tensor, latent: Tensor) -> Tensor:
        """Return outputs (n, 5) for images and latent vectors."""
        return self.decode(self.features(images), latent)


class GraspAutoencoder(nn.Module):
    """The network with an encoder, which guesses the latent vector from where the expert grasped the rim.

    The encoder sees that angle in the object's frame, and nothing else. If it saw the grasp itself, the
    latent vector would learn its direction in the room: a ring, with a hole in the middle of the latent
    space where policies fail.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.network = GraspNetwork()
        self.encoder = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2 * LATENT))
        for layer in self.modules():  # torch's layers draw their first weights from the global generator
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def loss(self, images: Tensor, actions: Tensor, angles: Tensor, generator: torch.Generator) -> Tensor:
        """Return the negative evidence lower bound of each demonstration."""
        features = self.network.features(images)
        mean, log_variance = self.encoder(angles[:, None]).chunk(2, dim=1)
        noise = torch.randn(mean.shape, generator=generator)
        latent = mean + torch.exp(0.5 * log_variance) * noise
        error = self.network.decode(features, latent) - actions
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(1)
        bound: Tensor = (error**2).sum(1) / (2.0 * RECONSTRUCTION**2) + divergence
        return bound


def to_action(grasp: Grasp) -> list[float]:
    """Return a grasp in the units of the network's outputs.

    Examples
    --------
    >>> to_action(Grasp(0.6, -0.1, 0.05, 0.0))
    [1.0, -1.0, 0.5, 1.0, 0.0]
    """
    x, y = ((value - middle) / SCALE for value, middle in zip((grasp.x, grasp.y), CENTER, strict=True))
    return [round(x, 9), round(y, 9), grasp.z / SCALE, math.cos(grasp.yaw), math.sin(grasp.yaw)]


def to_grasp(output: Tensor) -> Grasp:
    """Return the grasp that one output (5,) of the network means.

    Examples
    --------
    >>> to_grasp(torch.tensor([1.0, -1.0, -9.0, 0.0, 2.0]))
    Grasp(x=0.6, y=-0.1, z=0.005, yaw=1.57...)
    """
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
