"""Validity in fact: how often certified intervals miss, over independent training sets and policies.

A reduced setting: one prior (trained once, on its own environments), then again and again a fresh training
set, a posterior trained on it, one policy drawn and certified. The policy's true expected cost comes from
many new environments. A negative control certifies the same policies as if their cost had no spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import trained
from boundwatch import bounds
from boundwatch.tasks.navigation import TRAINING, World
from boundwatch.tasks.navigation.policy import Adapter
from boundwatch.tasks.navigation.train import Recipe
from boundwatch.training import GaussianPosterior, train_backprop

DRAWS = 300
ENVIRONMENTS = 500
TRUTH = 40 * 1024
STEPS = 40
DELTA = 0.01
VARIANCE = float(np.exp(-1.0))
SEED = 7


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    world = World()
    recipe = Recipe(
        seed=SEED, prior_distribution="obstacles:1", prior_environments=500, environments=500,
        prior_steps=300, steps=1, prior_log_variance=-1.0,
    )  # fmt: skip
    policy = trained.drone(recipe).policy
    truth = embed(policy, world, TRUTH, (SEED, 100))
    names = ("pinsker", "kl", "pointwise", "no spread (control)")
    misses = dict.fromkeys(names, 0)
    widths = dict.fromkeys(names, 0.0)
    moved = []
    for draw in range(DRAWS):
        training = embed(policy, world, ENVIRONMENTS, (SEED, 200, draw))
        posterior = GaussianPosterior.over(Adapter(0, world.primitives), prior_variance=VARIANCE)
        train_backprop(
            posterior, surrogate, training, steps=STEPS, delta=DELTA, learning_rate=0.1, samples=2, seed=draw
        )
        weights = posterior.sample(1, np.random.default_rng([SEED, 300, draw]))[0]
        seen, true = (cost_of(posterior, weights, data) for data in (training, truth))
        renyi, ratio = posterior.renyi_divergence(), posterior.log_density_ratio(weights)
        moved.append(renyi)
        limits = {
            "pinsker": (
                bounds.pac_bayes_lower(seen, ENVIRONMENTS, DELTA, renyi, "pinsker"),
                bounds.pac_bayes_upper(seen, ENVIRONMENTS, DELTA, renyi, "pinsker"),
            ),
            "kl": (
                bounds.pac_bayes_lower(seen, ENVIRONMENTS, DELTA, renyi, "kl"),
                bounds.pac_bayes_upper(seen, ENVIRONMENTS, DELTA, renyi, "kl"),
            ),
            "pointwise": (
                bounds.pointwise_lower(seen, ENVIRONMENTS, DELTA, ratio),
                bounds.pointwise_upper(seen, ENVIRONMENTS, DELTA, ratio),
            ),
            "no spread (control)": (seen - 0.01, seen + 0.01),
        }
        for name, (lower, upper) in limits.items():
            misses[name] += not lower <= true <= upper
            widths[name] += float(upper - lower) / DRAWS
    return {
        "seed": SEED,
        "draws": DRAWS,
        "environments": ENVIRONMENTS,
        "truth": TRUTH,
        "delta": DELTA,
        "mean_renyi": float(np.mean(moved)),
        "misses": misses,
        "mean_width": widths,
    }


def embed(policy: Any, world: World, n: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the adapter takes, and every primitive's cost, in n environments."""
    parts = []
    for environments in world.stream(TRAINING, n, seed=seed):
        with torch.no_grad():
            scores, coordinates = policy.embed(torch.from_numpy(environments.images))
        parts.append((scores, coordinates, torch.from_numpy(environments.costs(0.5)).float()))
    scores, coordinates, costs = (torch.cat(part) for part in zip(*parts, strict=True))
    return scores, coordinates, costs


def surrogate(adapter: Any, scores: Tensor, coordinates: Tensor, costs: Tensor) -> Tensor:
    """Return the expected cost under a sharp softmax."""
    return ((4 * adapter(scores, coordinates)).softmax(dim=1) * costs).sum(dim=1)


def cost_of(posterior: GaussianPosterior, weights: Tensor, data: tuple[Tensor, Tensor, Tensor]) -> float:
    """Return the mean cost of the best-scored primitive."""
    scores, coordinates, costs = data
    with torch.no_grad():
        chosen = posterior.call(weights, scores, coordinates).argmax(dim=1, keepdim=True)
    return float(costs.double().gather(1, chosen).mean())


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(
        f"{result['draws']} training sets of {result['environments']}, delta {result['delta']}, "
        f"mean D2 {result['mean_renyi']:.1f}; truth from {result['truth']} environments"
    )
    for name, missed in result["misses"].items():
        width = result["mean_width"][name]
        print(f"  {name:20} missed {missed:3d} of {result['draws']}, mean width {width:.3f}")
