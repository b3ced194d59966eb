"""The arm's artifacts: a trained policy, and whether it lifts things."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from boundwatch.tasks.grasping.train import Recipe, Run, load_run
from boundwatch.tasks.grasping.world import Physics
from reproduction.artifacts import Array, Artifact, Cache, Policy, load_array, save_array

SEED = 80
"""Of the first published policy; smaller ones were looked at while the claims' rules were written."""
# Another seed than the published one: who tries the code does not look at what is to be published.
QUICK_RECIPE = Recipe(
    seed=0, demonstrations=300, clone_steps=200, prior_environments=10, environments=30, steps=1
)


@dataclass(frozen=True)
class GraspingPolicy(Policy):
    """A policy, trained and certified."""

    kind: ClassVar[str] = "grasping-policy"
    slow: ClassVar[bool] = True
    recipe: Recipe = field(default_factory=lambda: Recipe(seed=SEED))

    def make(self, folder: Path, cache: Cache) -> None:  # noqa: ARG002  (every artifact may use the cache)
        """Train it, on one core: cloning has no use for two, and another policy has."""
        from boundwatch.tasks.grasping.train import train

        train(self.recipe, folder)

    def load(self, cache: Cache) -> Run:
        """Return the training."""
        return load_run(cache.folder(self))


@dataclass(frozen=True)
class Grasps(Artifact):
    """Whether a policy lifts new objects."""

    kind: ClassVar[str] = "grasping-attempts"
    policy: GraspingPolicy
    environments: int
    objects: str = "mugs"
    placement: int = 1
    pad_friction: float = Physics().pad_friction
    seed: int = 0

    def make(self, folder: Path, cache: Cache) -> None:
        """Grasp."""
        deployed = self.policy.load(cache).deploy(
            self.environments,
            objects=self.objects,
            placement=self.placement,
            physics=Physics(pad_friction=self.pad_friction),
            seed=self.seed,
        )
        save_array(folder / "costs.npy", deployed.costs)

    def costs(self, cache: Cache) -> Array:
        """Return the costs, 0 or 1, shape (environments,)."""
        return load_array(cache.folder(self) / "costs.npy")
