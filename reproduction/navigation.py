"""The drone's artifacts: a trained policy, and what it pays in a distribution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.train import PAPERS_LABELS, Recipe, Run, load_run
from boundwatch.tasks.navigation.world import World, distribution
from reproduction import recorded
from reproduction.artifacts import Array, Artifact, Cache, Policy, load_array, save_array

SWEEP = tuple(f"difficulty:{v:g}" for v in recorded.DIFFICULTIES)
"""The paper's 21 settings of difficulty."""
QUICK_SWEEP = tuple(f"difficulty:{v:g}" for v in (-9.0, -2.0, 0.0, 3.5, 4.1, 9.0))
SEED = 70
"""Of the first published policy; smaller ones were looked at while the claims' rules were written."""
# Another seed than the published one: who tries the code does not look at what is to be published.
QUICK_RECIPE = Recipe(
    seed=1, environments=1000, prior_environments=1000, prior_steps=150, steps=40, **PAPERS_LABELS
)
DATASETS = 2000
"""The paper's number of test datasets per setting."""
ENVIRONMENTS = 100_000
"""Flights per setting: 2000 datasets of 50, and the expected cost to within 0.001."""


def in_words(setting: str) -> str:
    """Return the name of a distribution as people read it.

    Examples
    --------
    >>> in_words("difficulty:-9"), in_words("difficulty:0"), in_words("difficulty:3.95")
    ('difficulty −9 (no obstacle)', 'difficulty 0 (9 obstacles)', 'difficulty 3.95 (13 obstacles)')
    >>> in_words("windy:2.5"), in_words("task-irrelevant"), in_words("training")
    ('wind of 2.5 m/s', 'four obstacles', 'training')
    """
    kind, _, value = setting.partition(":")
    if kind == "difficulty":
        count = distribution(setting).obstacles
        obstacles = f"{count} obstacles" if count else "no obstacle"
        return f"difficulty {value.replace('-', '−')} ({obstacles})"
    if kind == "windy":
        return f"wind of {value} m/s"
    return "four obstacles" if setting == "task-irrelevant" else setting


@dataclass(frozen=True)
class NavigationPolicy(Policy):
    """A policy, trained and certified."""

    kind: ClassVar[str] = "navigation-policy"
    recipe: Recipe = field(default_factory=lambda: Recipe(seed=SEED, **PAPERS_LABELS))
    flights: str = ""
    """Of recorded flights in place of the model's: the SHA-256 of the shipped file."""

    def make(self, folder: Path, cache: Cache) -> None:  # noqa: ARG002  (every artifact may use the cache)
        """Train it."""
        from boundwatch.tasks.navigation.train import train

        recordings = Recordings.load(recorded.FOLDER / recorded.FLIGHTS) if self.flights else None
        train(self.recipe, folder, World(recordings=recordings))

    def load(self, cache: Cache) -> Run:
        """Return the training."""
        return _loaded(cache.folder(self))

    def on_recorded_flights(self) -> NavigationPolicy:
        """Return the same, trained and deployed on the 34 flights that the authors recorded."""
        return dataclasses.replace(self, flights=recorded.digest(recorded.FLIGHTS))

    def with_threshold(self, d_thresh: float) -> NavigationPolicy:
        """Return the same for another cost."""
        return dataclasses.replace(self, recipe=dataclasses.replace(self.recipe, d_thresh=d_thresh))


@dataclass(frozen=True)
class Flights(Artifact):
    """What a policy pays in new environments, and what its network says there."""

    kind: ClassVar[str] = "navigation-flights"
    policy: NavigationPolicy
    distribution: str
    environments: int
    seed: int = 0
    """Whatever it is, these are not the environments of the training, nor of its prior."""

    def make(self, folder: Path, cache: Cache) -> None:
        """Fly."""
        run = self.policy.load(cache)
        # The name is part of the seed: distributions do not share their luck.
        seed = (self.seed, *self.distribution.encode())
        flown = run.deploy(self.distribution, self.environments, seed=seed)
        save_array(folder / "costs.npy", flown.costs)
        save_array(folder / "logits.npy", flown.logits.astype(np.float32))

    def costs(self, cache: Cache) -> Array:
        """Return the costs, shape (environments,)."""
        return load_array(cache.folder(self) / "costs.npy")

    def logits(self, cache: Cache) -> Array:
        """Return the network's outputs, shape (environments, primitives)."""
        return load_array(cache.folder(self) / "logits.npy")


@dataclass(frozen=True)
class Sweep:
    """One policy, deployed where it was trained and in settings of varied difficulty."""

    policy: NavigationPolicy = field(default_factory=NavigationPolicy)
    """How it was trained."""
    settings: tuple[str, ...] = SWEEP
    """The distributions, in order of difficulty."""
    environments: int = ENVIRONMENTS
    """Flights in each, and in the training distribution."""
    datasets: int = DATASETS
    """Test datasets in each."""
    seed: int = 10
    """Of the flights; another draw than the training's, whatever the two seeds."""

    def flights(self, distribution: str) -> Flights:
        """Return the flights in a distribution."""
        return Flights(self.policy, distribution, self.environments, self.seed)


@lru_cache(maxsize=4)  # every figure asks for it several times, and its world takes a while to make
def _loaded(folder: Path) -> Run:
    return load_run(folder)


QUICK_SWEEP_SETTINGS = Sweep(NavigationPolicy(QUICK_RECIPE), QUICK_SWEEP, environments=2048, datasets=40)
