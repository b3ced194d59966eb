"""The smallest settings with which every experiment still runs: the quick ones, smaller."""

from __future__ import annotations

import dataclasses
from typing import Any

from reproduction.grasping import GraspingPolicy
from reproduction.navigation import NavigationPolicy, Sweep
from reproduction.runner import all_settings

from boundwatch.tasks.grasping.train import Recipe as GraspingRecipe
from boundwatch.tasks.navigation.train import Recipe
from reproduction import (
    certificates,
    cost_function,
    gradients,
    labels,
    mug_placement,
    mugs_and_bowls,
    posterior,
    power,
    stronger_baselines,
    theorem_3,
    wind,
)

RECIPE = Recipe(environments=300, prior_environments=300, prior_steps=30, prior_batch=64, steps=6, samples=2)
POLICY = NavigationPolicy(RECIPE)
SWEEP = Sweep(POLICY, ("difficulty:-9", "difficulty:0", "difficulty:9"), environments=500, datasets=10)
GRASPING = GraspingPolicy(
    GraspingRecipe(
        demonstrations=24, clone_steps=6, clone_batch=8, prior_environments=2, environments=8, steps=2
    )
)


def tiny_settings() -> dict[str, Any]:
    settings = {
        name: dataclasses.replace(value, sweep=SWEEP) if hasattr(value, "sweep") else value
        for name, value in all_settings(quick=True).items()
    }
    changes: dict[str, dict[str, Any]] = {
        cost_function.NAME: {
            "policy": POLICY,
            "thresholds": (0.5,),
            "settings": SWEEP.settings,
            "truth": 500,
            "environments": 100,
        },
        wind.NAME: {"policy": POLICY, "datasets": 10, "truth": 500},
        theorem_3.NAME: {"distributions": ("training", "difficulty:9"), "datasets": 200},
        power.NAME: {"held_out": 500},
        stronger_baselines.NAME: {"environments": 100, "calibration": 200, "steps": 3},
        labels.NAME: {"environments": 100, "calibration": 200, "steps": 3},
        posterior.NAME: {"steps": 2, "environments": 200},
        gradients.NAME: {"arm": GRASPING},
        certificates.NAME: {"repetitions": 20},
        mug_placement.NAME: {
            "policy": GRASPING,
            "placements": (1, 6),
            "trials": 5,
            "datasets": 2,
            "environments": 20,
        },
        mugs_and_bowls.NAME: {
            "policy": GRASPING,
            "environments": 20,
            "horizon": 20,
            "frictions": (0.2,),
            "sensitivity": 4,
        },
    }
    for name, change in changes.items():
        settings[name] = dataclasses.replace(settings[name], **change)
    return settings
