"""The drone as a `boundwatch.tasks.base.Task`: what ``train navigation`` and ``rollout navigation`` do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from boundwatch._support import files
from boundwatch.tasks.entries import Bound, Delta

if TYPE_CHECKING:  # torch comes with them, and --help does without
    from boundwatch.tasks.navigation.train import Deployment, Run


def train(
    folder: Path,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A small setting: 4,000 environments each.")] = False,
    d_thresh: Annotated[
        float, typer.Option(metavar="MM", help="Clearance from which a flight costs nothing, in mm.")
    ] = 500.0,
    trajectories: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Recorded flights, CSV, NPZ or MAT, in place of the model of the drone."
        ),
    ] = None,
    distance: Annotated[
        Literal["exact", "sensor"],
        typer.Option(help="Clearance from the state, or as the depth sensor sees it in flight."),
    ] = "exact",
    bound: Bound = "pointwise",
    delta: Delta = 0.01,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of everything random.")] = 1,
) -> Run:
    """Fly a drone through obstacle fields by one depth image.

    The prior is trained on 10,000 environments, posterior and certificate on 10,000 others: about a minute
    on two cores, half a minute with --quick. An interrupted training continues when the same command is
    run again. RUN then holds certificate.json, the policy, its training costs and all settings.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.recordings import Recordings
    from boundwatch.tasks.navigation.scene import Scene
    from boundwatch.tasks.navigation.train import QUICK, Recipe, train
    from boundwatch.tasks.navigation.world import World

    recipe = replace(
        QUICK if quick else Recipe(), d_thresh=d_thresh / 1000.0, bound=bound, delta=delta, seed=seed
    )
    if trajectories is not None:  # a training may replace whatever is in its folder
        files.protect(trajectories, [folder], force=True)
    recordings = None if trajectories is None else Recordings.load(trajectories)
    return train(recipe, folder, World(Scene(distance=distance), recordings=recordings))


def load(folder: Path) -> Run:
    """Load what `train` wrote."""
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.train import load_run

    return load_run(folder)


def deploy(
    run: Run,
    n: int,
    *,
    distribution: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="training, easier, harder, task-irrelevant, windy (5 m/s), windy:SPEED, difficulty:V "
            "(-9 to 9, 0 is training), obstacles:K.",
        ),
    ] = "training",
    seed: Annotated[
        int,
        typer.Option(
            metavar="SEED", help="Seed of the environments, which are never the training environments."
        ),
    ] = 0,
) -> Deployment:
    """Fly a trained drone in new environments of a named distribution."""
    return run.deploy(distribution, n, seed=seed)
