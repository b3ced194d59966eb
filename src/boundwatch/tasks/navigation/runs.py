"""A finished training of the drone: what came out, how to load it again and deploy its policy."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from boundwatch._support.describing import one_line
from boundwatch._support.files import read_bytes, write_bytes
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import SchemaMismatch
from boundwatch.tasks import folder as folders
from boundwatch.tasks.navigation.distributions import distribution
from boundwatch.tasks.navigation.drone import DroneSettings, Primitive
from boundwatch.tasks.navigation.policy import Navigation, Policy
from boundwatch.tasks.navigation.recipe import Draw, Recipe
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Scene
from boundwatch.tasks.navigation.world import World
from boundwatch.training import load_policy

NAME, _LOGITS = "navigation", "logits.npy"


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
        """Fly n new environments of a distribution, independent of the training's whatever the seed."""
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


def save_logits(folder: Path, logits: NDArray[np.float64]) -> None:
    """Write the certified policy's outputs on the training environments."""
    buffer = io.BytesIO()
    np.save(buffer, logits.astype(np.float32), allow_pickle=False)
    write_bytes(folder / _LOGITS, buffer.getvalue())


def load_run(folder: str | Path) -> Run:
    """Load a training that `boundwatch.tasks.navigation.train` wrote; see `boundwatch.tasks.folder.load`."""
    folder = Path(folder)
    saved = folders.load(folder, NAME)
    with folders.whole(folder, NAME):
        recipe = Recipe(**saved.settings["recipe"])
        world = _world(saved.settings, folder)
        logits = np.load(io.BytesIO(read_bytes(folder / _LOGITS)), allow_pickle=False)
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
    pixels, depth_range = world.scene.pixels, world.scene.depth_range
    return Policy(
        primitives=world.primitives, pixels=pixels, depth_range=depth_range, directions=recipe.directions
    )
