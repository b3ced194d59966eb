"""The drone as a `boundwatch.tasks.base.Task`: what ``train navigation`` and ``rollout navigation`` do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from boundwatch._support import files
from boundwatch.bounds.pac_bayes import Bound

if TYPE_CHECKING:  # torch comes with them, and --help does without
    from boundwatch.tasks.navigation.train import Deployment, Run


def train(
    folder: Path,
    *,
    quick: bool = False,
    d_thresh: float = 500.0,
    trajectories: Path | None = None,
    distance: Literal["exact", "sensor"] = "exact",
    bound: Bound = "pointwise",
    delta: float = 0.01,
    seed: int = 1,
) -> Run:
    """Fly a drone through obstacle fields by one depth image.

    The prior is trained on 10,000 environments, posterior and certificate on 10,000 others: about a minute
    on two cores, half a minute with --quick. An interrupted training continues when the same command is
    run again. RUN then holds certificate.json, the policy, its training costs and all settings.

    Options
    -------
    quick: A small setting: 4,000 environments each.
    d_thresh MM: Clearance from which a flight costs nothing, in mm.
    trajectories FILE: Recorded flights, CSV or NPZ, in place of the model of the drone.
    distance: Clearance from the state, or as the depth sensor sees it in flight.
    bound: What is minimized and certified; pinsker is Theorem 1 as printed.
    delta P: Probability with which the certificate may fail.
    seed SEED: Seed of everything random.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.recordings import Recordings
    from boundwatch.tasks.navigation.scene import Scene
    from boundwatch.tasks.navigation.train import QUICK, Recipe, train
    from boundwatch.tasks.navigation.world import World

    base = QUICK if quick else Recipe()
    recipe = replace(base, d_thresh=d_thresh / 1000.0, bound=bound, delta=delta, seed=seed)
    if trajectories is not None:  # a training may replace whatever is in its folder
        files.protect(trajectories, [folder], force=True)
    recordings = None if trajectories is None else Recordings.load(trajectories)
    return train(recipe, folder, World(Scene(distance=distance), recordings=recordings))


def load(folder: Path) -> Run:
    """Load what `train` wrote."""
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.train import load_run

    return load_run(folder)


def deploy(run: Run, n: int, *, distribution: str = "training", seed: int = 0) -> Deployment:
    """Fly a trained drone in new environments of a named distribution.

    Options
    -------
    distribution NAME: training, easier, harder, task-irrelevant, windy (5 m/s), windy:SPEED, difficulty:V
        (-9 to 9, 0 is training), obstacles:K.
    seed SEED: Seed of the environments, which are never the training environments.
    """
    return run.deploy(distribution, n, seed=seed)
