"""The training recipe: a prior on some environments, a posterior and a certificate on others.

1. Prior: the network learns, by plain supervised learning, to score primitives by their clearance.
2. Posterior: Algorithm 3 on other environments, over the adapter's few directions.
3. One policy is drawn from the posterior and certified on the posterior's environments.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from boundwatch.tasks import folder as folders
from boundwatch.tasks.navigation import runs
from boundwatch.tasks.navigation.distributions import distribution
from boundwatch.tasks.navigation.policy import BATCH, Navigation, Policy, logits_of
from boundwatch.tasks.navigation.recipe import Draw, Recipe
from boundwatch.tasks.navigation.runs import Run
from boundwatch.tasks.navigation.world import Environments, World
from boundwatch.training import (
    GaussianPosterior,
    History,
    check_disjoint,
    load_policy,
    train_backprop,
    train_prior,
)
from boundwatch.training.determinism import single_thread
from boundwatch.training.policies import draw_first_weights


def train(recipe: Recipe, folder: str | Path, world: World | None = None) -> Run:
    """Train, draw and certify a policy in a world, by default the published one; write all to a folder.

    A folder that holds another training is refused; one that holds this one is loaded, or continued if it was
    interrupted: see `boundwatch.tasks.folder.claim`.

    **Guarantee**: with probability at least 1 - delta over the training environments and the policy drawn,
    the policy's expected cost in `recipe.distribution` lies between the certificate's limits.
    The same recipe and world give the same files, byte for byte, on one kind of machine; the certificate's
    date is that of the first start, whatever interruption follows.
    **Assumes**: the recipe, its seed among it, was not chosen by trying on the training environments.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Recipe(environments=100, prior_environments=100, prior_steps=2, steps=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = train(tiny, folder)
    ...     flown = run.deploy("easier", 10)
    >>> run.certificate.n, flown.costs.shape, flown.logits.shape
    (100, (10,), (10, 7))
    """
    world = World() if world is None else world
    with folders.claim(folder, runs.NAME, runs.settings(recipe, world)) as claimed:
        if not claimed.finished:
            _train(claimed, recipe, world)
    return runs.load_run(folder)


def _train(claimed: folders.Claim, recipe: Recipe, world: World) -> None:
    if world.drone is None:
        world.recordings.save(claimed.folder / "recordings.npz")
    task = Navigation(world, distribution(recipe.distribution), recipe.d_thresh)
    prior_distribution = distribution(recipe.prior_distribution)
    prior_set = world.draw(prior_distribution, recipe.prior_environments, seed=(recipe.seed, Draw.PRIOR))
    policy = _prior_policy(recipe, world, prior_set, claimed.checkpoints)
    training_set = world.draw(task.distribution, recipe.environments, seed=(recipe.seed, Draw.TRAINING))
    _check_disjoint(prior_set, training_set)
    posterior, history = _posterior(
        recipe, policy, training_set, claimed.checkpoints / "posterior.safetensors"
    )
    rule = {"bound": recipe.bound, "delta": recipe.delta, "seed": recipe.seed}
    trained = claimed.certify(posterior, lambda drawn: task.rollout(drawn, training_set), **rule)
    history.save(claimed.folder / "training.json")
    certified = load_policy(claimed.folder / folders.POLICY, runs.network(recipe, world))
    runs.save_logits(claimed.folder, logits_of(certified, training_set.images))
    # The draw is a stream of its own: comparing with it tells nothing about the certified one.
    noise = np.random.default_rng([recipe.seed, len(Draw)]).standard_normal(posterior.dim)
    untrained = posterior.prior_mean + posterior.prior_variance.sqrt() * torch.from_numpy(noise)
    cost = float(task.rollout(posterior.policy(untrained), training_set).mean())
    prior = folders.three_bounds(cost, recipe.environments, recipe.delta, renyi=0.0, log_ratio=0.0)
    claimed.finish({"trained": trained, "prior_draw": prior})


def _check_disjoint(prior_set: Environments, training_set: Environments) -> None:
    """Refuse sets that share an environment: obstacles and rollouts, for different ones may look the same.

    Without obstacles there are only as many environments as ways to draw rollouts, and independent draws
    do coincide; nothing could be told from that.
    """
    if training_set.obstacles.shape[1] > 0:
        prior_rows, training_rows = (
            zip(part.obstacles, part.rollouts, strict=True) for part in (prior_set, training_set)
        )
        check_disjoint(prior_rows, training_rows)


def _prior_policy(recipe: Recipe, world: World, prior_set: Environments, checkpoints: Path) -> Policy:
    """Train the network on the prior's environments."""
    policy = runs.network(recipe, world)
    policy.adapter.requires_grad_(False)
    draw_first_weights(policy, torch.Generator().manual_seed(recipe.seed))
    images = torch.from_numpy(prior_set.images)
    if recipe.prior_loss == "cross-entropy":
        loss, useful = _cross_entropy, np.clip(prior_set.clearances, -recipe.d_thresh, recipe.d_thresh)
        targets = torch.from_numpy(useful / (recipe.label_temperature * recipe.d_thresh)).softmax(dim=1)
    else:
        loss, targets = _expected_cost, torch.from_numpy(prior_set.costs(recipe.d_thresh)).float()
    slow = recipe.prior_steps // 3
    for name, steps, rate in (("fast", recipe.prior_steps - slow, 1.0), ("slow", slow, 0.1)):
        train_prior(
            policy,
            loss,
            (images, targets),
            disjoint_from=(),  # images may be equal by chance; `_check_disjoint` has compared what they show
            steps=max(steps, 1),
            batch_size=recipe.prior_batch,
            learning_rate=rate * recipe.prior_rate,
            seed=recipe.seed,
            checkpoint=checkpoints / f"prior-{name}.safetensors",
        )
    policy.choose_directions(images)
    return policy.eval()


def _cross_entropy(policy: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(policy(images), targets)


def _expected_cost(policy: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    expected: Tensor = (policy(images).softmax(dim=1) * targets).sum(dim=1)
    return expected


def _posterior(
    recipe: Recipe, policy: Policy, training_set: Environments, checkpoint: Path
) -> tuple[GaussianPosterior, History]:
    """Run Algorithm 3 over the adapter. What lies before it is frozen, so it is computed once."""
    with torch.no_grad(), single_thread():
        parts = [policy.embed(part) for part in torch.split(torch.from_numpy(training_set.images), BATCH)]
    scores, coordinates = (torch.cat(part) for part in zip(*parts, strict=True))
    costs = torch.from_numpy(training_set.costs(recipe.d_thresh)).float()

    def surrogate(adapter: Any, scores: Tensor, coordinates: Tensor, costs: Tensor) -> tuple[Tensor, Tensor]:
        logits = adapter(scores, coordinates)
        expected = ((recipe.sharpness * logits).softmax(dim=1) * costs).sum(dim=1)
        return expected, costs.gather(1, logits.argmax(dim=1, keepdim=True))[:, 0]

    variance = math.exp(recipe.prior_log_variance)
    small = GaussianPosterior.over(policy.adapter, prior_variance=variance)
    history = train_backprop(
        small,
        surrogate,
        (scores, coordinates, costs),
        steps=recipe.steps,
        bound=recipe.bound,
        delta=recipe.delta,
        samples=recipe.samples,
        batch_size=max(recipe.environments // 4, 1),
        learning_rate=recipe.rate,
        seed=recipe.seed,
        checkpoint=checkpoint,
    )
    whole = GaussianPosterior.over(policy, ["adapter"], prior_variance=variance)
    whole.move(small.mean, small.log_variance)
    return whole, history
