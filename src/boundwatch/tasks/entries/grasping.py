"""The arm as a `boundwatch.tasks.base.Task`: what ``train grasping`` and ``rollout grasping`` do."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from boundwatch._support.parallel import Backend
from boundwatch.bounds.pac_bayes import Bound

if TYPE_CHECKING:  # torch comes with it, and --help does without
    from boundwatch.tasks.grasping.train import Deployment, Run

MOST_FILMS = 10


def train(
    folder: Path,
    *,
    quick: bool = False,
    harder: bool = False,
    network: Literal["points", "features"] | None = None,
    jobs: Annotated[int, (1, math.inf)] = 1,
    backend: Backend = "loky",
    bound: Bound = "pointwise",
    delta: float = 0.01,
    seed: Annotated[int, (0, math.inf)] = 0,
) -> Run:
    """Lift mugs with a Panda arm by one depth image from above.

    A scripted expert shows 4,500 grasps, an autoencoder clones them, and Algorithm 4 trains its latent vector
    on 500 other mugs, which also give the certificate: six minutes on two cores,
    about a minute with --quick. An interrupted training continues when the same command is run again. Needs
    the extras `train` and `sim`.

    With --harder there are 4,000 demonstrations, and the plain network, which learns sooner.

    Options
    -------
    quick: A small setting: 1,000 demonstrations, 60 mugs.
    harder: Mugs of many shapes, a depth camera with a Kinect's noise, an unsteady expert.
    network: The paper's, which finds points in the image (spatial softmax), or a plain one.
        [default: points; with --harder or --quick: features, which learns sooner]
    jobs N: Processes; they change the time, nothing else.
    backend: Processes of this machine, or a Ray cluster (extra ray).
    bound: What is minimized and certified; pinsker is Theorem 1 as printed.
    delta P: Probability with which the certificate may fail.
    seed SEED: Seed of everything random.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.grasping.train import FEATURES, HARDER, HARDER_POINTS, SMALL, Recipe, train

    base = HARDER if harder else Recipe()
    if (network or ("features" if harder or quick else "points")) != base.network:
        base = replace(base, **(HARDER_POINTS if harder else FEATURES))
    base = replace(base, **(SMALL if quick else {}))
    recipe = replace(base, bound=bound, delta=delta, seed=seed)
    return train(recipe, folder, jobs=jobs, backend=backend)


def load(folder: Path) -> Run:
    """Load what `train` wrote."""
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.grasping.train import load_run

    return load_run(folder)


def deploy(
    run: Run,
    n: int,
    *,
    objects: Literal["mugs", "varied-mugs", "bowls", "wide-bowls"] | None = None,
    placement: Annotated[int, (1, 6)] = 1,
    friction: float | None = None,
    density: float | None = None,
    seed: Annotated[int, (0, math.inf)] = 0,
    jobs: Annotated[int, (1, math.inf)] = 1,
    backend: Backend = "loky",
    render: Path | None = None,
) -> Deployment:
    """Let a trained policy grasp new objects.

    A row of the CSV has the cost (0 if the object was lifted by 10 cm, else 1), how far it rose in meters,
    what happened, and its film if one was asked for. Needs the extras `train` and `sim`.

    Options
    -------
    objects: What stands on the table; bowls are 12-18 cm across, wide-bowls 15-21 cm.
        [default: that of the training]
    placement K: Where: a square with sides of 10 (training), 20, 30, 40, 50 or 60 cm.
    friction MU: Friction of the finger pads. [default: as in training, 0.5]
    density KG/M3: Density of the objects. [default: as in training, 2300]
    seed SEED: Seed of the objects, which are never the training objects.
    jobs N: Processes; they change the time, nothing else.
    backend: Processes of this machine, or a Ray cluster (extra ray).
    render DIR: Draw films (GIF) of the first 10 grasps; needs `plot`.
    """
    if render is not None:
        from boundwatch.tasks.grasping import pictures  # noqa: F401  (names its extra before the work)
    given = {name: v for name, v in (("pad_friction", friction), ("density", density)) if v is not None}
    options: dict[str, Any] = {"objects": objects, "placement": placement, "seed": seed, "jobs": jobs}
    deployed = run.deploy(n, physics=replace(run.physics, **given), backend=backend, **options)
    if render is None:
        return deployed
    return deployed.draw(render, f"{objects or run.recipe.objects}, placement {placement}", MOST_FILMS)
