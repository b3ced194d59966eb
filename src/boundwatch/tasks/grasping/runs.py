"""A training as a folder: what was asked for, what came out, how to load it again and deploy its policy."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from boundwatch import bounds
from boundwatch._support.files import make_folder, read_bytes, sha256_file, write_text
from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.tasks.grasping.attempt import Outcome
from boundwatch.tasks.grasping.camera import Image
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.policy import GraspNetwork
from boundwatch.tasks.grasping.recipe import Draw, Recipe
from boundwatch.tasks.grasping.scenes import Scene
from boundwatch.tasks.grasping.task import Grasping
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import GaussianPosterior, LatentPolicy, load_policy

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Deployment:
    """What happened in new environments, one entry each."""

    physics: Physics
    scenes: list[Scene]
    images: list[Image]
    grasps: list[Grasp]
    outcomes: list[Outcome]

    @property
    def costs(self) -> NDArray[np.float64]:
        """0 where the object was lifted, else 1."""
        return np.array([outcome.cost for outcome in self.outcomes])

    def draw(self, folder: str | Path, title: str, most: int) -> list[Path]:
        """Draw films of the first grasps, at most so many, into a folder; return their paths."""
        from boundwatch.tasks.grasping.pictures import film

        folder = Path(folder)
        make_folder(folder)
        paths = [folder / f"{number:02d}.gif" for number in range(1, min(most, len(self.scenes)) + 1)]
        for path, scene, image, grasp in zip(paths, self.scenes, self.images, self.grasps, strict=False):
            film(scene, image, grasp, self.physics, path, f"{title}, number {path.stem}: ")
        return paths


@dataclass(frozen=True)
class Run:
    """A finished training."""

    recipe: Recipe
    physics: Physics
    policy: nn.Module
    """The one that was drawn and certified."""
    certificate: Certificate
    summary: dict[str, float]
    """Rates of success and failure along the way, divergences, and all three bounds. Only the one that the
    recipe names is certified."""

    def deploy(
        self,
        n: int,
        *,
        objects: str = "mugs",
        placement: int = 1,
        physics: Physics | None = None,
        seed: int = 0,
        jobs: int = 1,
        backend: str = "loky",
    ) -> Deployment:
        """Try the policy on n new objects.

        They are independent of the training's, and of those of other objects and placements, whatever the
        seed. With another ``physics`` they are the same objects.
        """
        task = Grasping(objects, placement, self.physics if physics is None else physics, jobs, backend)
        rng = self.recipe.generator(Draw.DEPLOYMENT, seed, placement, *objects.encode())
        scenes = task.draw(n, rng)
        images = task.photographs(scenes)
        grasps = task.grasps(self.policy, images)
        return Deployment(task.physics, scenes, images, grasps, task.attempts(scenes, grasps))


def claim(folder: Path, recipe: Recipe, physics: Physics) -> bool:
    """Write down what this training will be; return whether the folder holds it already, finished.

    A folder with another training is refused before minutes are spent, unless that one has not come to draw
    its policy. Checkpoints stay if they are of the same training, so that it continues.
    """
    path = folder / "settings.json"
    settings = {
        "boundwatch": __version__,
        "task": "grasping",
        "recipe": dataclasses.asdict(recipe),
        "physics": dataclasses.asdict(physics),
    }
    text = json.dumps(settings, indent=2) + "\n"
    same = path.exists() and read_bytes(path) == text.encode()
    if (folder / "draw.json").exists() and not same:
        raise InvalidSetting(f"{folder} already holds a training with other settings; choose another folder")
    if (folder / "summary.json").exists():
        return True
    if not same:
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    make_folder(folder / CHECKPOINTS)
    write_text(path, text)
    return False


def finish(
    folder: Path,
    recipe: Recipe,
    physics: Physics,
    posterior: GaussianPosterior,
    *,
    prior_cost: float,
    expert_success: float,
) -> Run:
    """Write the summary, remove the checkpoints."""
    certificate = Certificate.load(folder / "certificate.json")
    policy = load_policy(folder / "policy.safetensors", GraspNetwork())
    if not isinstance(policy, LatentPolicy):
        raise SchemaMismatch(f"{folder / 'policy.safetensors'} has no latent vector; train again")
    m, delta, cost = recipe.environments, recipe.delta, float(certificate.mean_cost or 0.0)
    renyi, log_ratio = (
        posterior.renyi_divergence(),
        posterior.log_density_ratio(policy.latent.detach().double()),
    )
    summary = {
        "expert_success": expert_success,
        "prior_cost": prior_cost,
        "cost": cost,
        "renyi": renyi,
        "log_ratio": log_ratio,
        "upper_pinsker": float(bounds.pac_bayes_upper(cost, m, delta, renyi, "pinsker")),
        "upper_kl": float(bounds.pac_bayes_upper(cost, m, delta, renyi, "kl")),
        "upper_pointwise": float(bounds.pointwise_upper(cost, m, delta, log_ratio)),
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    shutil.rmtree(folder / CHECKPOINTS)
    return Run(recipe, physics, policy, certificate, summary)


def load_run(folder: str | Path) -> Run:
    """Load a training that `boundwatch.tasks.grasping.train` wrote.

    Raises
    ------
    SchemaMismatch
        If the folder does not hold a whole training of this task.
    ProvenanceMismatch
        If its policy is not the one that its certificate speaks of.
    """
    folder = Path(folder)
    if not (folder / "settings.json").is_file():
        raise SchemaMismatch(
            f"{folder} holds no settings.json; give the folder that `boundwatch train` wrote"
        )
    if not (folder / "summary.json").is_file():
        raise SchemaMismatch(f"{folder} holds a training that has not finished; run the same command again")
    try:
        settings = json.loads(read_bytes(folder / "settings.json"))
        if settings["task"] != "grasping":
            raise SchemaMismatch(f"{folder} holds a training of {settings['task']!r}, not of grasping")
        recipe, physics = Recipe(**settings["recipe"]), Physics(**settings["physics"])
        summary = {
            name: float(value) for name, value in json.loads(read_bytes(folder / "summary.json")).items()
        }
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise SchemaMismatch(
            f"{folder} is not a whole training of grasping ({error}); train again"
        ) from error
    certificate = Certificate.load(folder / "certificate.json")
    policy_file = folder / "policy.safetensors"
    if certificate.provenance.policy_sha256 != sha256_file(policy_file):
        raise ProvenanceMismatch(
            f"{policy_file} is not the policy that {folder / 'certificate.json'} certifies"
        )
    return Run(recipe, physics, load_policy(policy_file, GraspNetwork()), certificate, summary)
