"""The training recipe: demonstrations, a cloned policy as prior, a posterior, a certificate; what came out.

1. The expert grasps mugs at random points of their rims; the successes are the demonstrations.
2. A conditional variational autoencoder clones them. Its decoder, with a latent vector drawn from N(0, I),
   is a policy: the prior.
3. Algorithm 4 moves the distribution of the latent vector, on other mugs.
4. One latent vector is drawn from it and the policy certified on these mugs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.describing import one_line
from boundwatch._support.files import make_folder
from boundwatch._support.parallel import Backend
from boundwatch._support.validation import check_choices, check_level
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting
from boundwatch.tasks import folder as folders
from boundwatch.tasks.grasping.attempt import ARC, Outcome, expert_grasp
from boundwatch.tasks.grasping.camera import Image
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.policy import (
    LATENT,
    NETWORKS,
    GraspAutoencoder,
    Grasping,
    GraspNetwork,
    LatentCosts,
    to_action,
)
from boundwatch.tasks.grasping.scenes import Scene
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import (
    GaussianPosterior,
    check_disjoint,
    load_policy,
    tensorfile,
    train_evolution,
    train_prior,
)
from boundwatch.training.determinism import Stream, generator
from boundwatch.training.run import OptimizerName

_NAME = "grasping"
_STAGES = ((1 / 2, 1.0), (1 / 3, 1 / 4), (1 / 6, 1 / 20))
"""Shares of the cloning steps, and their learning rates over the first."""
_PART = 100  # demonstrations between two checkpoints, a few seconds


class Draw(IntEnum):
    """What is drawn; different purposes are independent under the same seed."""

    DEMONSTRATIONS = 0
    RIM_ANGLES = 1
    PRIOR = 2
    PRIOR_LATENTS = 3
    TRAINING = 4
    DEPLOYMENT = 5


@dataclass(frozen=True)
class Recipe:
    """Everything about one training; the defaults are the full setting."""

    demonstrations: int = 4_500
    """Mugs on which the expert shows how to grasp."""
    clone_steps: int = 4_000
    """Steps of the autoencoder's training: half at the learning rate, a third at a quarter of it, the rest
    at a twentieth."""
    clone_batch: int = 16
    """Demonstrations in each of them."""
    clone_rate: float = 2e-3
    """Learning rate."""
    prior_environments: int = 500
    """Other mugs, on which the cloned policy is judged before training; used for nothing else."""
    environments: int = 500
    """Training environments, for posterior and certificate."""
    steps: int = 10
    """Steps of Algorithm 4; each runs every training environment twice, with opposite latent noise."""
    rate: float = 0.05
    """Learning rate of the latent mean."""
    variance_rate: float = 0.02
    """Learning rate of the latent log-variance."""
    optimizer: OptimizerName = "adam"
    """Adam, or steps along the natural gradient itself, the algorithm as printed."""
    bound: Bound = "pointwise"
    """What is minimized and certified."""
    delta: float = 0.01
    """Probability with which the certificate may fail."""
    seed: int = 0
    """Of everything random."""
    objects: Literal["mugs", "varied-mugs"] = "mugs"
    """What is grasped: mugs of one shape in many sizes, or of many shapes."""
    depth_noise: bool = False
    """Whether the camera sees as a real sensor does, with noise."""
    unsteadiness: float = 0.0
    """Standard deviation, meters, of the expert's grasps along the radius and in height."""
    sorted: bool = True
    """Whether demonstrations that failed are left out; if not, they are cloned with the others."""
    network: Literal["points", "features"] = "points"
    """The paper's, in which each channel of the convolutions is a point in the image, or a plain one."""

    def __post_init__(self) -> None:
        least = {"demonstrations": self.clone_batch, "clone_batch": 1, "clone_steps": 6, "environments": 8}
        for name, low in (least | {"prior_environments": 1, "steps": 1, "seed": 0}).items():
            if getattr(self, name) < low:
                raise InvalidSetting(f"{name} = {getattr(self, name)} is below {low}; training needs more")
        for name in ("clone_rate", "rate", "variance_rate", "unsteadiness"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf or (value == 0.0 and name != "unsteadiness"):
                raise InvalidSetting(f"{name} = {value} is not above 0; leave it out if in doubt")
        check_choices(self)
        check_level(self.delta, "delta")

    def generator(self, purpose: Draw, *index: int) -> np.random.Generator:
        """Return the generator for a purpose; other purposes, indices and plain seeds give other numbers."""
        return generator(self.seed, Stream.SCENES, purpose, *index)


HARDER = Recipe(
    demonstrations=4_000,
    clone_batch=32,
    prior_environments=200,
    rate=10.0,
    variance_rate=3.0,
    optimizer="sgd",
    objects="varied-mugs",
    depth_noise=True,
    unsteadiness=0.02,
    sorted=False,
    network="features",
)
"""Mugs of many shapes, seen through a real sensor's noise and shown by an unsteady hand."""
FEATURES: dict[str, Any] = {"network": "features", "demonstrations": 9_000}
FEATURES |= {"clone_steps": 3_000, "clone_batch": 128}
"""How the plain network is cloned where the paper's is the usual one."""
HARDER_POINTS: dict[str, Any] = {"network": "points", "clone_steps": 12_000, "clone_batch": 16}
"""How the paper's network is cloned in the harder world, where it learns more slowly."""
SMALL: dict[str, Any] = {"demonstrations": 1_000, "clone_steps": 800, "prior_environments": 50}
SMALL |= {"environments": 60, "steps": 2}
"""What makes a recipe small enough to wait for, for a looser certificate."""


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
        return replace(self, films=paths)


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


def load_run(folder: str | Path) -> Run:
    """Load what `train` wrote; see `boundwatch.tasks.folder.load`."""
    folder = Path(folder)
    saved = folders.load(folder, _NAME)
    with folders.whole(folder, _NAME):
        recipe, physics = Recipe(**saved.settings["recipe"]), Physics(**saved.settings["physics"])
        summary = {name: float(value) for name, value in saved.summary.items()}
    policy = load_policy(saved.policy, NETWORKS[recipe.network]())
    return Run(recipe, physics, policy, saved.certificate, summary)


def train(
    recipe: Recipe,
    folder: str | Path,
    physics: Physics | None = None,
    *,
    jobs: int = 1,
    backend: Backend = "loky",
) -> Run:
    """Train, draw and certify a policy; write everything to a folder.

    A folder that holds another training is refused; one that holds this one is loaded, or continued if it was
    interrupted: see `boundwatch.tasks.folder.claim`. Processes, on this machine (``"loky"``) or a Ray cluster
    (``"ray"``), change the time only.

    **Guarantee**: with probability at least 1 - delta over the training environments and the policy drawn,
    the policy's expected cost on such environments lies between the certificate's limits. The same recipe
    and physics give the same files, byte for byte, on one machine; the certificate's date is that of the
    first start, whatever interruption follows.
    """
    physics = Physics() if physics is None else physics
    settings = {"recipe": asdict(recipe), "physics": asdict(physics)}
    with folders.claim(folder, _NAME, settings) as claimed:
        if not claimed.finished:
            task = Grasping(recipe.objects, 1, physics, jobs, backend, recipe.depth_noise)
            _train(claimed, recipe, task)
    return load_run(folder)


def _train(claimed: folders.Claim, recipe: Recipe, task: Grasping) -> None:
    shown = task.draw(recipe.demonstrations, recipe.generator(Draw.DEMONSTRATIONS))
    prior = task.draw(recipe.prior_environments, recipe.generator(Draw.PRIOR))
    scenes = task.draw(recipe.environments, recipe.generator(Draw.TRAINING))
    check_disjoint([*shown, *prior], scenes)
    # First what is kept in checkpoints: a run that is killed soon goes on from there.
    *demonstrations, success = _demonstrations(recipe, task, claimed.checkpoints, shown)
    images = task.photographs(scenes)
    network = _clone(recipe, claimed.checkpoints, demonstrations, np.stack(images))
    posterior = GaussianPosterior.over_latent(network, LATENT)
    latents = posterior.sample(len(prior), recipe.generator(Draw.PRIOR_LATENTS))
    judged = LatentCosts(task, network, prior, task.photographs(prior))
    prior_cost = float(judged.costs(posterior, latents, np.arange(len(prior))[:, None]).mean())
    costs = LatentCosts(task, network, scenes, images)
    rule: dict[str, Any] = {"bound": recipe.bound, "delta": recipe.delta, "seed": recipe.seed}
    history = train_evolution(
        posterior,
        costs,
        steps=recipe.steps,
        samples=2,
        per_environment=True,
        natural=True,
        optimizer=recipe.optimizer,
        learning_rate=recipe.rate,
        variance_rate=recipe.variance_rate,
        **rule,
        checkpoint=claimed.checkpoints / "evolution.safetensors",
    )
    limits = claimed.certify(posterior, costs, binary=True, **rule)
    history.save(claimed.folder / "training.json")
    claimed.finish({"expert_success": success, "prior_cost": prior_cost} | limits)


def _clone(
    recipe: Recipe, checkpoints: Path, demonstrations: Sequence[Tensor], training_images: Image
) -> GraspNetwork:
    """Return the network cloned from images, actions and the manner of grasping."""
    generator = torch.Generator().manual_seed(recipe.seed)
    manners = demonstrations[2].reshape(len(demonstrations[2]), -1).shape[1]
    autoencoder = GraspAutoencoder(generator, recipe.network, manners)
    for stage, (share, rate) in enumerate(_STAGES):
        generator.manual_seed(recipe.seed + stage)
        train_prior(
            autoencoder,
            lambda model, *batch: model.loss(*batch, generator),
            tuple(demonstrations),
            disjoint_from=training_images,
            steps=round(share * recipe.clone_steps),
            batch_size=recipe.clone_batch,
            learning_rate=rate * recipe.clone_rate,
            seed=recipe.seed + stage,
            generator=generator,
            checkpoint=checkpoints / f"clone{stage + 1}.safetensors",
        )
    return autoencoder.network.eval().requires_grad_(False)


def _demonstrations(
    recipe: Recipe, task: Grasping, checkpoints: Path, scenes: list[Scene]
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Return images, actions and manners of the demonstrations, and how often the expert succeeded.

    The manner of a steady expert is the angle; that of an unsteady one, how far off it was as well.
    """
    rng = recipe.generator(Draw.RIM_ANGLES)
    manner = np.column_stack([rng.uniform(-ARC, ARC, len(scenes)), rng.standard_normal((len(scenes), 2))])
    grasps = [
        expert_grasp(scene, angle, outward=recipe.unsteadiness * out, upward=recipe.unsteadiness * up)
        for scene, (angle, out, up) in zip(scenes, manner.tolist(), strict=True)
    ]
    parts = []
    for start in range(0, len(scenes), _PART):
        part = slice(start, min(start + _PART, len(scenes)))
        path = checkpoints / f"demonstrations{part.start}-{part.stop}.safetensors"
        if not path.exists():
            seen = torch.from_numpy(np.stack(task.photographs(scenes[part])))
            outcomes = task.attempts(scenes[part], grasps[part], label="demonstrations")
            lifted = torch.tensor([outcome.cost == 0.0 for outcome in outcomes])
            tensorfile.save(path, {"images": seen, "lifted": lifted})
        parts.append(tensorfile.load(path)[0])
    images, lifted = (torch.cat([part[name] for part in parts]) for name in ("images", "lifted"))
    success = float(lifted.float().mean())
    if not recipe.sorted:
        lifted = torch.ones_like(lifted)
    if int(lifted.sum()) < recipe.clone_batch:
        raise InvalidSetting(
            f"the expert succeeded {int(lifted.sum())} times in {len(scenes)}, less than clone_batch = "
            f"{recipe.clone_batch}; raise demonstrations, or choose a physics in which mugs can be lifted"
        )
    actions = torch.tensor([to_action(grasp) for grasp in grasps])
    chosen = torch.from_numpy(manner if recipe.unsteadiness else manner[:, 0]).float()
    return images[lifted], actions[lifted], chosen[lifted], success
