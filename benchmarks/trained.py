"""Policies that several benchmarks use: trained once, and kept in one folder.

A folder in it is named by the hash of its recipe and of the code that trains.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.source import source_digest

from boundwatch.tasks.grasping.train import FEATURES
from boundwatch.tasks.grasping.train import Recipe as ArmRecipe
from boundwatch.tasks.navigation.train import Recipe as DroneRecipe

if TYPE_CHECKING:  # simulators are imported where a policy is trained
    from boundwatch.tasks.grasping.train import Run as ArmRun
    from boundwatch.tasks.navigation.train import Run as DroneRun

CACHE = Path.home() / ".cache" / "boundwatch-benchmarks"
SEED = 20
"""Of the policies that more than one benchmark uses."""


def folder(module: str, recipe: Any) -> Path:
    """Return where a training by this recipe and by today's code of a module is kept."""
    text = json.dumps(dataclasses.asdict(recipe), sort_keys=True) + source_digest(module)
    return CACHE / f"{module}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def drone(recipe: DroneRecipe | None = None) -> DroneRun:
    """Return a drone's training, by default the full one: from the folder, or else trained now."""
    from boundwatch.tasks.navigation.train import train

    recipe = DroneRecipe(seed=SEED) if recipe is None else recipe
    return train(recipe, folder(train.__module__, recipe))


def arm(recipe: ArmRecipe | None = None) -> ArmRun:
    """Return an arm's training, by default with the plain network: from the folder, or else trained now."""
    from boundwatch.tasks.grasping.train import train

    recipe = ArmRecipe(seed=SEED, **FEATURES) if recipe is None else recipe
    return train(recipe, folder(train.__module__, recipe), jobs=2)
