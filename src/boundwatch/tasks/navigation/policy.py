"""The policy, a small convolutional network from one depth image to a score for each primitive; its costs.

It is a function of one observation: no layer looks at the rest of a batch. Rows of the image (elevations) are
merged quickly, columns (azimuths) slowly, because vertical cylinders look the same in every row.

What training may change after the prior is chosen is the `Adapter` alone: one offset per primitive and, if
asked for, a linear correction in the leading principal components of the network's features. These are few
directions, scaled alike, so that one prior variance fits them all and moving along them costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.world import TRAINING, Distribution, Environments, World
from boundwatch.training.determinism import single_thread

CHANNELS = 16
HIDDEN = 64
BATCH = 256
"""Images at a time: their feature maps stay in the processor's cache, which larger batches overflow."""


class Adapter(nn.Module):
    """A correction of the network's scores, linear in a constant and in `directions` coordinates."""

    def __init__(self, directions: int, primitives: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(directions + 1, primitives))

    def forward(self, scores: Tensor, coordinates: Tensor) -> Tensor:
        """Return the corrected scores: (n, primitives) from (n, primitives) and (n, directions)."""
        return scores + self.weight[0] + coordinates @ self.weight[1:]


class Policy(nn.Module):
    """Depth images in meters, shape (n, pixels, pixels), to logits, shape (n, primitives).

    ``directions`` principal components of the features are what the adapter can use; with 0 it has offsets
    only.
    """

    centre: Tensor
    basis: Tensor

    def __init__(
        self, primitives: int, pixels: int = 50, depth_range: float = 7.0, directions: int = 0
    ) -> None:
        super().__init__()
        if not 0 <= directions <= HIDDEN:
            raise InvalidSetting(f"directions = {directions} is outside [0, {HIDDEN}]")
        self.depth_range = depth_range
        convolutions = nn.Sequential(
            nn.Conv2d(1, CHANNELS, (7, 3), stride=(4, 1), padding=(3, 1)),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, CHANNELS, (5, 3), stride=(4, 1), padding=(2, 1)),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, stride=(4, 2), padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        flat = convolutions(torch.zeros(1, 1, pixels, pixels)).shape[1]
        self.features = nn.Sequential(convolutions, nn.Linear(flat, HIDDEN), nn.ReLU())
        self.head = nn.Linear(HIDDEN, primitives)
        self.adapter = Adapter(directions, primitives)
        self.register_buffer("centre", torch.zeros(HIDDEN))  # a name in files, and so in certificates' hashes
        self.register_buffer("basis", torch.zeros(HIDDEN, directions))

    def embed(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the adapter takes: the uncorrected scores, and the coordinates of the features."""
        features = self._see(images)
        return self.head(features), (features - self.centre) @ self.basis

    def _see(self, images: Tensor) -> Tensor:
        features: Tensor = self.features(1.0 - images[:, None] / self.depth_range)  # far is 0, near is 1
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.adapter(*self.embed(images))
        return logits

    def choose_directions(self, images: Tensor) -> None:
        """Take the principal components of the features of these images, each scaled to unit variance.

        The images must be the prior's: the bound does not pay for a choice with the training environments.
        """
        with torch.no_grad(), single_thread():
            features = torch.cat([self._see(part) for part in torch.split(images, BATCH)])
            values, vectors = torch.linalg.eigh(torch.cov(features.double().T))
            leading = values.argsort(descending=True)[: self.basis.shape[1]]
            # Units that never fire leave components without variance; they get no weight instead of infinite.
            scale = values[leading].clamp(min=0).sqrt()
            inverse = torch.where(scale > 1e-6, 1.0 / scale.clamp(min=1e-6), torch.zeros_like(scale))
            self.centre.copy_(features.mean(dim=0))
            self.basis.copy_(vectors[:, leading] * inverse)


def logits_of(policy: nn.Module, images: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return a policy's logits for depth images, shape (n, primitives).

    One thread, and batches of one size, the last one padded: the same numbers to the last bit on every
    machine of a kind, however many are asked. Sums over few rows would be rounded differently.
    """
    parts = []
    with torch.inference_mode(), single_thread():
        for start in range(0, len(images), BATCH):
            batch = torch.from_numpy(images[start : start + BATCH])
            padding = batch.new_zeros(BATCH - len(batch), *batch.shape[1:])
            parts.append(policy(torch.cat([batch, padding]))[: len(batch)])
    return torch.cat(parts).double().numpy()


@dataclass(frozen=True)
class Navigation:
    """Fly through obstacle fields: a world, a distribution over environments, and the cost's threshold."""

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
