"""A finished training of the drone: what came out, how to load it again and deploy its policy."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.describing import one_line
from boundwatch._support.files import read_bytes, write_bytes
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import SchemaMismatch
from boundwatch.tasks import folder as folders
from boundwatch.tasks.navigation.distributions import distribution
from boundwatch.tasks.navigation.drone import DroneSettings, Primitive
from boundwatch.tasks.navigation.policy import Policy, logits_of
from boundwatch.tasks.navigation.recipe import Draw, Recipe
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Scene
from boundwatch.tasks.navigation.task import Navigation
from boundwatch.tasks.navigation.world import Environments, World
from boundwatch.training import GaussianPosterior, load_policy

NAME = "navigation"


@dataclass(frozen=True)
class Deployment:
    """What happened in new environments, one entry each."""

    costs: NDArray[np.float64]
    """From the clearance of the primitive flown."""
    logits: NDArray[np.float64]
    """The network's outputs, shape (n, primitives)."""
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Nothing: the cost says it all."""

    def __repr__(self) -> str:
        return one_line(self, {"n": self.costs.size, "mean_cost": float(self.costs.mean())})

    def __str__(self) -> str:
        return f"{self.costs.size} flights with a mean cost of {self.costs.mean():.4g}"


@dataclass(frozen=True)
class Run:
    """A finished training."""

    recipe: Recipe
    world: World
    policy: nn.Module
    """The one that was drawn and certified."""
    certificate: Certificate
    logits: NDArray[np.float32]
    """Its outputs on the training environments: what the baselines take their thresholds from."""
    summary: dict[str, dict[str, float]]
    """Training cost, divergences and all three bounds, of the certified policy and of an untrained draw."""

    def __repr__(self) -> str:
        return one_line(self, {"recipe": self.recipe, "certificate": self.certificate})

    def __str__(self) -> str:
        return f"A drone trained in {self.recipe.environments} environments. {self.certificate}"

    def task(self, name: str | None = None) -> Navigation:
        """Return the task in the distribution of that name; by default the one that was trained in."""
        return Navigation(self.world, distribution(name or self.recipe.distribution), self.recipe.d_thresh)

    def deploy(self, name: str, n: int, *, seed: int | tuple[int, ...] = 0) -> Deployment:
        """Fly n new environments of a distribution.

        They are independent of the training's, whatever the seed.
        """
        seeds = (seed,) if isinstance(seed, int) else seed
        stream = (self.recipe.seed, Draw.DEPLOYMENT, *seeds)
        return Deployment(*self.task(name).deploy(self.policy, n, seed=stream))

    @property
    def notes(self) -> Sequence[str]:
        """The other bounds, and what an untrained draw pays."""
        untrained = self.summary["prior_draw"]
        return (
            folders.compare_bounds(self.summary["trained"], self.recipe.bound),
            f"An untrained draw from the prior: training cost {untrained['cost']:.4f}, pointwise limit "
            f"{untrained['upper_pointwise']:.4f}.",
        )


def finish(
    claimed: folders.Claim,
    recipe: Recipe,
    world: World,
    posterior: GaussianPosterior,
    training_set: Environments,
) -> None:
    """Write what deployment, the baselines and a reader need besides the certificate."""
    policy = load_policy(claimed.folder / folders.POLICY, network(recipe, world))
    certificate = Certificate.load(claimed.folder / folders.CERTIFICATE)
    # The draw is a stream of its own: comparing with it tells nothing about the certified one.
    rng = np.random.default_rng([recipe.seed, len(Draw)])
    untrained = posterior.prior_mean + posterior.prior_variance.sqrt() * torch.from_numpy(
        rng.standard_normal(posterior.dim)
    )
    task = Navigation(world, distribution(recipe.distribution), recipe.d_thresh)
    prior_cost = float(task.rollout(posterior.policy(untrained), training_set).mean())
    buffer = io.BytesIO()
    np.save(buffer, logits_of(policy, training_set.images).astype(np.float32), allow_pickle=False)
    write_bytes(claimed.folder / "logits.npy", buffer.getvalue())
    n, delta = recipe.environments, recipe.delta
    claimed.finish(
        {
            "trained": folders.three_bounds(
                float(certificate.mean_cost or 0.0),
                n,
                delta,
                renyi=posterior.renyi_divergence(),
                log_ratio=posterior.log_density_ratio(_adapter_weights(policy)),
            ),
            "prior_draw": folders.three_bounds(prior_cost, n, delta, renyi=0.0, log_ratio=0.0),
        }
    )


def load_run(folder: str | Path) -> Run:
    """Load a training that `boundwatch.tasks.navigation.train` wrote; see `boundwatch.tasks.folder.load`.

    Examples
    --------
    >>> load_run("no/such/folder")
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: no/such/folder holds no settings.json; give the folder that ...
    """
    folder = Path(folder)
    saved = folders.load(folder, NAME)
    with folders.whole(folder, NAME):
        recipe = Recipe(**saved.settings["recipe"])
        world = _world(saved.settings, folder)
        logits = np.load(io.BytesIO(read_bytes(folder / "logits.npy")), allow_pickle=False)
        policy = load_policy(saved.policy, network(recipe, world))
    return Run(recipe, world, policy, saved.certificate, logits, saved.summary)


def settings(recipe: Recipe, world: World) -> dict[str, Any]:
    """Return everything that determines a training, as plain JSON values."""
    return {
        "recipe": dataclasses.asdict(recipe),
        "scene": dataclasses.asdict(world.scene),
        "drone": None if world.drone is None else dataclasses.asdict(world.drone),
        "recordings": world.recordings.sha256(),
    }


def _world(settings: dict[str, Any], folder: Path) -> World:
    ranges = {name: tuple(settings["scene"][name]) for name in ("x_range", "y_range")}
    scene = Scene(**settings["scene"] | ranges)
    if settings["drone"] is None:
        world = World(scene, recordings=Recordings.load(folder / "recordings.npz"))
    else:
        primitives = tuple(Primitive(**primitive) for primitive in settings["drone"]["primitives"])
        world = World(scene, DroneSettings(**settings["drone"] | {"primitives": primitives}))
    if world.recordings.sha256() != settings["recordings"]:
        raise SchemaMismatch(f"the flights in {folder} are not those of the training; train again")
    return world


def network(recipe: Recipe, world: World) -> Policy:
    """Return the policy's network, not yet trained."""
    return Policy(
        primitives=world.primitives,
        pixels=world.scene.pixels,
        depth_range=world.scene.depth_range,
        directions=recipe.directions,
    )


def _adapter_weights(policy: nn.Module) -> Tensor:
    return torch.cat(
        [value.reshape(-1) for name, value in policy.named_parameters() if name.startswith("adapter.")]
    )
