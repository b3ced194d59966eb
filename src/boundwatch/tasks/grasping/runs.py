"""A finished training of the arm: what came out, how to load it again and deploy its policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from boundwatch._support.describing import one_line
from boundwatch._support.files import make_folder
from boundwatch._support.parallel import Backend
from boundwatch.certificates.certificate import Certificate
from boundwatch.tasks import folder as folders
from boundwatch.tasks.grasping.attempt import Outcome
from boundwatch.tasks.grasping.camera import Image
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.policy import NETWORKS
from boundwatch.tasks.grasping.recipe import Draw, Recipe
from boundwatch.tasks.grasping.scenes import Scene
from boundwatch.tasks.grasping.task import Grasping
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import load_policy

NAME = "grasping"


@dataclass(frozen=True)
class Deployment:
    """What happened in new environments, one entry each."""

    physics: Physics
    scenes: list[Scene]
    images: list[Image]
    grasps: list[Grasp]
    outcomes: list[Outcome]
    films: Sequence[Path] = ()

    def __repr__(self) -> str:
        return one_line(self, {"n": len(self.outcomes), "mean_cost": float(self.costs.mean())})

    def __str__(self) -> str:
        return f"{len(self.outcomes)} grasps, of which {self.costs.sum():g} failed"

    @property
    def costs(self) -> NDArray[np.float64]:
        """0 where the object was lifted, else 1."""
        return np.array([outcome.cost for outcome in self.outcomes])

    @property
    def columns(self) -> Mapping[str, Sequence[object]]:
        """How far each object rose, in meters, what happened, and its film where one was drawn."""
        rises = [f"{outcome.rise:.4f}" for outcome in self.outcomes]
        films = [*map(str, self.films), *[""] * (len(rises) - len(self.films))]
        told = {"rise": rises, "reason": [outcome.reason for outcome in self.outcomes]}
        return told | {"film": films} if self.films else told

    def draw(self, folder: Path, title: str, most: int) -> Deployment:
        """Draw films of the first grasps, at most so many, into a folder; return the deployment with them."""
        from boundwatch.tasks.grasping.pictures import film

        make_folder(folder)
        paths = [folder / f"{number:02d}.gif" for number in range(1, min(most, len(self.scenes)) + 1)]
        for path, scene, image, grasp in zip(paths, self.scenes, self.images, self.grasps, strict=False):
            film(scene, image, grasp, self.physics, path, f"{title}, number {path.stem}: ")
        return dataclasses.replace(self, films=paths)


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

    def __repr__(self) -> str:
        return one_line(self, {"recipe": self.recipe, "certificate": self.certificate})

    def __str__(self) -> str:
        return f"An arm trained on {self.recipe.environments} objects. {self.certificate}"

    def deploy(
        self,
        n: int,
        *,
        objects: str | None = None,
        placement: int = 1,
        physics: Physics | None = None,
        seed: int = 0,
        jobs: int = 1,
        backend: Backend = "loky",
    ) -> Deployment:
        """Try the policy on n new objects, by default such as it was trained on.

        They are independent of all others, whatever the seed. Another ``physics`` meets the same objects.
        """
        objects = self.recipe.objects if objects is None else objects
        physics = self.physics if physics is None else physics
        task = Grasping(objects, placement, physics, jobs, backend, self.recipe.depth_noise)
        rng = self.recipe.generator(Draw.DEPLOYMENT, seed, placement, *objects.encode())
        scenes = task.draw(n, rng)
        images = task.photographs(scenes)
        grasps = task.grasps(self.policy, images)
        return Deployment(task.physics, scenes, images, grasps, task.attempts(scenes, grasps))

    @property
    def notes(self) -> Sequence[str]:
        """How the expert and the prior did, and the other bounds."""
        lifted, failed = 100 * self.summary["expert_success"], 100 * self.summary["prior_cost"]
        return (
            f"The expert lifted {lifted:.1f} % of its mugs. The cloned policy, before training, failed on "
            f"{failed:.1f} % of {self.recipe.prior_environments} others.",
            folders.compare_bounds(self.summary, self.recipe.bound),
        )


def settings(recipe: Recipe, physics: Physics) -> dict[str, Any]:
    """Return everything that determines a training, as plain JSON values."""
    return {"recipe": dataclasses.asdict(recipe), "physics": dataclasses.asdict(physics)}


def load_run(folder: str | Path) -> Run:
    """Load a training that `boundwatch.tasks.grasping.train` wrote; see `boundwatch.tasks.folder.load`."""
    folder = Path(folder)
    saved = folders.load(folder, NAME)
    with folders.whole(folder, NAME):
        recipe, physics = Recipe(**saved.settings["recipe"]), Physics(**saved.settings["physics"])
        summary = {name: float(value) for name, value in saved.summary.items()}
    policy = load_policy(saved.policy, NETWORKS[recipe.network]())
    return Run(recipe, physics, policy, saved.certificate, summary)
