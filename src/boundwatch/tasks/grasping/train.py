"""The training recipe: demonstrations, a cloned policy as prior, a posterior, a certificate.

1. The expert grasps mugs at random points of their rims; the successes are the demonstrations.
2. A conditional variational autoencoder clones them. Its decoder, with a latent vector drawn from N(0, I),
   is a policy: the prior.
3. Algorithm 4 moves the distribution of the latent vector, on other mugs.
4. One latent vector is drawn from it and the policy certified on these mugs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from boundwatch._support.parallel import Backend
from boundwatch.errors import InvalidSetting
from boundwatch.tasks import folder as folders
from boundwatch.tasks.grasping import runs
from boundwatch.tasks.grasping.camera import Image
from boundwatch.tasks.grasping.expert import ARC, expert_grasp
from boundwatch.tasks.grasping.policy import LATENT, GraspAutoencoder, GraspNetwork, to_action
from boundwatch.tasks.grasping.recipe import Draw, Recipe
from boundwatch.tasks.grasping.runs import Run
from boundwatch.tasks.grasping.scenes import Scene
from boundwatch.tasks.grasping.task import Grasping, LatentCosts
from boundwatch.tasks.grasping.world import Physics
from boundwatch.training import GaussianPosterior, check_disjoint, tensorfile, train_evolution, train_prior

_STAGES = ((1 / 2, 1.0), (1 / 3, 1 / 4), (1 / 6, 1 / 20))
"""Shares of the cloning steps, and their learning rates over the first."""
_PART = 100  # demonstrations between two checkpoints, a few seconds


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
    with folders.claim(folder, runs.NAME, runs.settings(recipe, physics)) as claimed:
        if not claimed.finished:
            task = Grasping(recipe.objects, 1, physics, jobs, backend, recipe.depth_noise)
            _train(claimed, recipe, task)
    return runs.load_run(folder)


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
    history = train_evolution(
        posterior,
        costs,
        steps=recipe.steps,
        bound=recipe.bound,
        delta=recipe.delta,
        samples=2,
        per_environment=True,
        natural=True,
        optimizer=recipe.optimizer,
        learning_rate=recipe.rate,
        variance_rate=recipe.variance_rate,
        seed=recipe.seed,
        checkpoint=claimed.checkpoints / "evolution.safetensors",
    )
    rule = {"bound": recipe.bound, "delta": recipe.delta, "seed": recipe.seed, "binary": True}
    limits = claimed.certify(posterior, costs, **rule)
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
