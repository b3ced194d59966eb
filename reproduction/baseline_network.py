"""What input detectors read: the policy's outputs and features, and those of a network of the authors' shape.

That one has four convolutions of 64 filters (4 x 4 with stride 3, then 3 x 3 with strides 2, 1 and 1), each
followed by a batch normalization, then the mean over the image and two linear layers: 117,000 parameters. The
authors share one batch normalization among the four convolutions and leave it in training mode, so that what
the network says of one environment depends on the others in its batch. Here the statistics are frozen after
training, and each convolution has its own: one set for four layers would describe none of them. The same
network is also asked with the statistics of the setting that it is shown, as the authors' code has it.

It learns what the policy's prior learns, from the prior's environments: a softmax of the primitives'
clearances, by cross-entropy.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch.tasks.navigation.train import Draw, Run, soft_labels
from boundwatch.tasks.navigation.world import Environments, distribution
from boundwatch.training import load_policy, save_policy, train_prior
from boundwatch.training.determinism import single_thread
from reproduction.artifacts import Artifact, Cache, load_array, save_array
from reproduction.navigation import NavigationPolicy

FILTERS = 64
CONVOLUTIONS = ((4, 3), (3, 2), (3, 1), (3, 1))
"""Width and stride of each."""
BATCH = 64  # a larger one leaves the processor's cache, and takes twice the time
POLICY, AUTHORS, BY_SETTING = "policy", "authors", "authors-by-setting"
NETWORKS = (POLICY, AUTHORS)
STATISTICS = 2048
"""Environments that the statistics of a setting are taken over: they do not change visibly with more."""
FIELDS = ("logits", "features")


class Network(nn.Module):
    """Depth images in meters, shape (n, pixels, pixels), to logits, shape (n, primitives).

    Examples
    --------
    >>> network = Network(primitives=7, depth_range=7.0).eval()
    >>> network(torch.full((2, 50, 50), 7.0)).shape, sum(p.numel() for p in network.parameters())
    (torch.Size([2, 7]), 116999)
    """

    def __init__(self, *, primitives: int, depth_range: float) -> None:
        super().__init__()
        self.depth_range = depth_range
        layers: list[nn.Module] = []
        channels = (1, *[FILTERS] * len(CONVOLUTIONS))
        for (before, after), (width, stride) in zip(pairwise(channels), CONVOLUTIONS, strict=True):
            layers += [nn.Conv2d(before, after, width, stride), nn.BatchNorm2d(after), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.hidden = nn.Sequential(nn.Linear(FILTERS, FILTERS), nn.ReLU())
        self.head = nn.Linear(FILTERS, primitives)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        seen = self.convolutions(1.0 - images[:, None] / self.depth_range)  # far is 0, near is 1
        logits: Tensor = self.head(self.hidden(seen.mean(dim=(2, 3))))
        return logits


@dataclass(frozen=True)
class Outputs:
    """What a network says of environments."""

    logits: NDArray[Any]
    """Shape (..., primitives)."""
    features: NDArray[Any]
    """What its last layer reads, shape (..., features)."""

    @classmethod
    def of(cls, network: Any, images: NDArray[np.float32]) -> Outputs:
        """Show images to a network whose last layer is its ``head``.

        Examples
        --------
        >>> seen = Outputs.of(Network(primitives=7, depth_range=7.0).eval(), np.ones((3, 50, 50), np.float32))
        >>> seen.logits.shape, seen.features.shape
        ((3, 7), (3, 64))
        """
        read: list[Tensor] = []
        hook = network.head.register_forward_pre_hook(lambda _layer, inputs: read.append(inputs[0]))
        try:
            with torch.inference_mode(), single_thread():
                logits = [network(part) for part in torch.split(torch.from_numpy(images), BATCH)]
        finally:
            hook.remove()
        return cls(torch.cat(logits).numpy(), torch.cat(read).numpy())

    @classmethod
    def join(cls, parts: Sequence[Outputs]) -> Outputs:
        """Put blocks together."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))

    @classmethod
    def load(cls, folder: Path, network: str) -> Outputs:
        """Read what was saved."""
        return cls(*(load_array(folder / f"{network}-{name}.npy") for name in FIELDS))

    def save(self, folder: Path, network: str) -> None:
        """Write it to a folder."""
        for name in FIELDS:
            save_array(folder / f"{network}-{name}.npy", getattr(self, name))

    def part(self, numbers: slice) -> Outputs:
        """Return what is said of some of the environments."""
        return Outputs(self.logits[numbers], self.features[numbers])


@dataclass(frozen=True)
class BaselineNetwork(Artifact):
    """The authors' shape, trained on a policy's labels; what networks say of the training environments."""

    kind: ClassVar[str] = "baseline-network"
    policy: NavigationPolicy
    steps: int = 1500
    """The last third of them at a tenth of the learning rate."""
    batch: int = 64
    rate: float = 2e-3

    def make(self, folder: Path, cache: Cache) -> None:
        """Train it."""
        run = self.policy.load(cache)
        taught, environments = (training_environments(run, draw) for draw in (Draw.PRIOR, Draw.TRAINING))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.recipe.seed)
            network = _network(run)
        labels = soft_labels(run.recipe, taught.clearances)
        slow = self.steps // 3
        for name, steps, rate in (("fast", self.steps - slow, self.rate), ("slow", slow, 0.1 * self.rate)):
            train_prior(
                network,
                lambda net, images, labels: nn.functional.cross_entropy(net(images), labels),
                (torch.from_numpy(taught.images), labels),
                disjoint_from=(),  # nothing is certified with this network
                steps=max(steps, 1),
                batch_size=self.batch,
                learning_rate=rate,
                seed=run.recipe.seed,
                checkpoint=folder / f"{name}.safetensors",
            )
        save_policy(folder / "network.safetensors", network)
        save_array(folder / "classes.npy", environments.clearances.argmax(axis=1))
        asked = {POLICY: run.policy, AUTHORS: network.eval()}
        asked[BY_SETTING] = in_setting(network, environments.images)
        for kind, seen_by in asked.items():
            Outputs.of(seen_by, environments.images).save(folder, kind)

    def load(self, cache: Cache) -> dict[str, nn.Module]:
        """Return both networks, their statistics frozen."""
        run = self.policy.load(cache)
        path = cache.folder(self) / "network.safetensors"
        return {POLICY: run.policy, AUTHORS: load_policy(path, _network(run))}

    def training(self, cache: Cache, network: str) -> tuple[Outputs, NDArray[np.intp]]:
        """Return what a network says of the training environments, and the best primitive in each."""
        folder = cache.folder(self)
        classes: NDArray[np.intp] = np.load(folder / "classes.npy", allow_pickle=False)
        return Outputs.load(folder, network), classes


@dataclass(frozen=True)
class Seen(Artifact):
    """What all networks say of new environments: the first ones of the policy's flights."""

    kind: ClassVar[str] = "baseline-outputs"
    network: BaselineNetwork
    distribution: str
    environments: int
    seed: int
    """Of the flights."""

    def make(self, folder: Path, cache: Cache) -> None:
        """Look."""
        run = self.network.policy.load(cache)
        # As `Flights` and `Run.deploy` draw them.
        seed = (run.recipe.seed, Draw.DEPLOYMENT, self.seed, *self.distribution.encode())
        where = distribution(self.distribution)
        networks = self.network.load(cache)
        first = run.world.draw(where, min(STATISTICS, self.environments), seed=seed).images
        networks[BY_SETTING] = in_setting(networks[AUTHORS], first)
        found: dict[str, list[Outputs]] = {name: [] for name in networks}
        for block in run.world.stream(where, self.environments, seed=seed):
            for name, network in networks.items():
                found[name].append(Outputs.of(network, block.images))
        for name, parts in found.items():
            Outputs.join(parts).save(folder, name)

    def outputs(self, cache: Cache, network: str) -> Outputs:
        """Return what one of them says."""
        return Outputs.load(cache.folder(self), network)


def in_setting(network: nn.Module, images: NDArray[np.float32]) -> nn.Module:
    """Return a network whose batch statistics are those of some images of a setting."""
    adapted = copy.deepcopy(network).train()
    for layer in adapted.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0  # the statistics of this one batch, and of none before
    with torch.no_grad(), single_thread():
        adapted(torch.from_numpy(images[:STATISTICS]))
    return adapted.eval()


def training_environments(run: Run, draw: Draw = Draw.TRAINING) -> Environments:
    """Draw the environments of a training, or of its prior, once more: a training does not keep them."""
    names = {Draw.PRIOR: run.recipe.prior_distribution, Draw.TRAINING: run.recipe.distribution}
    sizes = {Draw.PRIOR: run.recipe.prior_environments, Draw.TRAINING: run.recipe.environments}
    return run.world.draw(distribution(names[draw]), sizes[draw], seed=(run.recipe.seed, draw))


def _network(run: Run) -> Network:
    return Network(primitives=run.world.primitives, depth_range=run.world.scene.depth_range)
