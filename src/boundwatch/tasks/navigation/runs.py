"""A training as a folder: what was asked for, what came out, and how to load it again."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch import bounds
from boundwatch._support.files import make_folder, read_bytes, sha256_file, write_bytes, write_text
from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.tasks.navigation.distributions import distribution
from boundwatch.tasks.navigation.drone import DroneSettings, Primitive
from boundwatch.tasks.navigation.policy import Policy, logits_of
from boundwatch.tasks.navigation.recipe import Draw, Recipe
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Scene
from boundwatch.tasks.navigation.task import Navigation
from boundwatch.tasks.navigation.world import Environments, World
from boundwatch.training import GaussianPosterior, load_policy

CHECKPOINTS = "checkpoints"  # inside the folder, while it trains


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

    def task(self, name: str | None = None) -> Navigation:
        """Return the task in the distribution of that name; by default the one that was trained in."""
        return Navigation(self.world, distribution(name or self.recipe.distribution), self.recipe.d_thresh)

    def deploy(
        self, name: str, n: int, *, seed: int | tuple[int, ...] = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fly n new environments; return costs (n,) and logits (n, primitives).

        They are independent of the training's, whatever the seed.
        """
        seeds = (seed,) if isinstance(seed, int) else seed
        return self.task(name).deploy(self.policy, n, seed=(self.recipe.seed, Draw.DEPLOYMENT, *seeds))


def claim(folder: Path, recipe: Recipe, world: World) -> None:
    """Refuse a folder with another training before minutes are spent; write down what this one will be.

    Checkpoints stay if they are of the same training, so that it continues.
    """
    path = folder / "settings.json"
    text = json.dumps(_settings(recipe, world), indent=2) + "\n"
    same = path.exists() and read_bytes(path) == text.encode()
    drawn = (folder / "draw.json").exists()  # before that, another training may start anew
    if drawn and not same:
        raise InvalidSetting(f"{folder} already holds a training with other settings; choose another folder")
    checkpoints = folder / CHECKPOINTS
    if checkpoints.exists() and not same:
        shutil.rmtree(checkpoints)
    make_folder(checkpoints)
    write_text(path, text)
    if world.drone is None:
        world.recordings.save(folder / "recordings.npz")


def finish(
    folder: Path, recipe: Recipe, world: World, posterior: GaussianPosterior, training_set: Environments
) -> Run:
    """Write what deployment, the baselines and a reader need besides the certificate; drop checkpoints."""
    policy = load_policy(folder / "policy.safetensors", network(recipe, world))
    certificate = Certificate.load(folder / "certificate.json")
    logits = logits_of(policy, training_set.images).astype(np.float32)
    # The draw is a stream of its own: comparing with it tells nothing about the certified one.
    rng = np.random.default_rng([recipe.seed, len(Draw)])
    untrained = posterior.prior_mean + posterior.prior_variance.sqrt() * torch.from_numpy(
        rng.standard_normal(posterior.dim)
    )
    task = Navigation(world, distribution(recipe.distribution), recipe.d_thresh)
    prior_cost = float(task.rollout(posterior.policy(untrained), training_set).mean())
    drawn = _adapter_weights(policy)
    summary = {
        "trained": _summary(
            recipe,
            cost=float(certificate.mean_cost or 0.0),
            renyi=posterior.renyi_divergence(),
            log_ratio=posterior.log_density_ratio(drawn),
        ),
        "prior_draw": _summary(recipe, cost=prior_cost, renyi=0.0, log_ratio=0.0),
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    buffer = io.BytesIO()
    np.save(buffer, logits, allow_pickle=False)
    write_bytes(folder / "logits.npy", buffer.getvalue())
    shutil.rmtree(folder / CHECKPOINTS)
    return Run(recipe, world, policy, certificate, logits, summary)


def load_run(folder: str | Path) -> Run:
    """Load a training that `train` wrote.

    Raises
    ------
    SchemaMismatch
        If the folder does not hold a whole training of this task.
    ProvenanceMismatch
        If its policy is not the one that its certificate speaks of.

    Examples
    --------
    >>> load_run("no/such/folder")
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: no/such/folder holds no settings.json; give the folder that ...
    """
    folder = Path(folder)
    if not (folder / "settings.json").is_file():
        raise SchemaMismatch(
            f"{folder} holds no settings.json; give the folder that `boundwatch train` wrote"
        )
    try:
        settings = json.loads(read_bytes(folder / "settings.json"))
        if settings["task"] != "navigation":
            raise SchemaMismatch(f"{folder} holds a training of {settings['task']!r}, not of navigation")
        recipe = Recipe(**settings["recipe"])
        world = _world(settings, folder)
        summary = json.loads(read_bytes(folder / "summary.json"))
        logits = np.load(io.BytesIO(read_bytes(folder / "logits.npy")), allow_pickle=False)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidSetting):
            raise
        raise SchemaMismatch(
            f"{folder} is not a whole training of navigation ({error}); train again"
        ) from error
    certificate = Certificate.load(folder / "certificate.json")
    policy_file = folder / "policy.safetensors"
    policy = load_policy(policy_file, network(recipe, world))
    if certificate.provenance.policy_sha256 != sha256_file(policy_file):
        raise ProvenanceMismatch(
            f"{policy_file} is not the policy that {folder / 'certificate.json'} certifies"
        )
    return Run(recipe, world, policy, certificate, logits, summary)


def _settings(recipe: Recipe, world: World) -> dict[str, Any]:
    """Return everything that determines a training, as plain JSON values."""
    return {
        "boundwatch": __version__,
        "task": "navigation",
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


def _summary(recipe: Recipe, *, cost: float, renyi: float, log_ratio: float) -> dict[str, float]:
    """Return all three bounds beside each other. Only the one that was chosen beforehand is certified."""
    m, delta = recipe.environments, recipe.delta
    return {
        "cost": cost,
        "renyi": renyi,
        "log_ratio": log_ratio,
        "upper_pinsker": float(bounds.pac_bayes_upper(cost, m, delta, renyi, "pinsker")),
        "upper_kl": float(bounds.pac_bayes_upper(cost, m, delta, renyi, "kl")),
        "upper_pointwise": float(bounds.pointwise_upper(cost, m, delta, log_ratio)),
    }
