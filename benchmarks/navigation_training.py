"""The full setting at all five thresholds, and where training the posterior pays. Takes about ten minutes."""

from __future__ import annotations

import copy
from typing import Any

from reproduction.recorded import THRESHOLDS

from benchmarks import trained
from boundwatch import bounds
from boundwatch.tasks.navigation.train import Draw, Recipe, Run

HELD_OUT = 50_000
SEED = 1
# A prior from another world, 7 or 63 posterior dimensions. Variances and directions come from seed 101.
POSTERIORS = {
    "prior from 500 environments with 1 obstacle": Recipe(
        prior_distribution="obstacles:1", prior_environments=500, prior_steps=480, prior_batch=64,
        prior_log_variance=-1.0, rate=0.05,
    ),
    "prior from 10,000 environments with 1 obstacle": Recipe(
        prior_distribution="obstacles:1", prior_log_variance=-1.0, rate=0.05
    ),
    "prior from calm air, trained in wind of 2.5 m/s": Recipe(
        distribution="windy:2.5", directions=8, prior_log_variance=-1.0, rate=0.05
    ),
}  # fmt: skip


def run() -> dict[str, Any]:
    """Train, and return the numbers."""
    thresholds = {f"{1000 * d:g} mm": Recipe(d_thresh=d, seed=SEED) for d in THRESHOLDS}
    tables = {
        table: {name: row(trained.drone(recipe)) for name, recipe in recipes.items()}
        for table, recipes in (("thresholds", thresholds), ("posteriors", POSTERIORS))
    }
    return {"seed": SEED, "held_out": HELD_OUT, **tables}


def row(run: Run) -> dict[str, Any]:
    """Return a training's summary, what the policy costs in new environments, and the prior's own mean."""
    costs = run.deploy(run.recipe.distribution, HELD_OUT, seed=SEED).costs
    untrained = copy.deepcopy(run.policy)
    for name, weight in untrained.named_parameters():
        if name.startswith("adapter."):
            weight.data.zero_()
    task, recipe = run.task(), run.recipe
    training_set = run.world.draw(task.distribution, recipe.environments, seed=(recipe.seed, Draw.TRAINING))
    mean_cost = float(task.rollout(untrained, training_set).mean())
    limit = float(bounds.pointwise_upper(mean_cost, recipe.environments, recipe.delta, 0.0))
    return run.summary | {
        "expected_cost": float(costs.mean()),
        "lower": run.certificate.lower,
        "prior_mean": {"cost": mean_cost, "upper_pointwise": limit},
    }


def show(result: dict[str, Any]) -> None:
    """Print the numbers as tables."""
    for table in ("thresholds", "posteriors"):
        print(
            f"\n{table}: cost, D2, ln ratio, Theorem 1, kl, pointwise, expected cost ({result['held_out']})"
        )
        for name, entry in result[table].items():
            print(f"  {name}")
            for kind, label in (("trained", "trained"), ("prior_draw", "prior draw")):
                numbers = "  ".join(f"{value:8.4f}" for value in entry[kind].values())
                expected = f"  {entry['expected_cost']:8.4f}" if kind == "trained" else ""
                print(f"    {label:10}  {numbers}{expected}")
            mean = entry["prior_mean"]
            print(
                f"    prior mean  {mean['cost']:8.4f}, pointwise {mean['upper_pointwise']:.4f} at no variance"
            )
