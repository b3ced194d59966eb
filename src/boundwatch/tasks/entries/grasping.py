"""The arm as a `boundwatch.tasks.base.Task`: what ``train grasping`` and ``rollout grasping`` do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from boundwatch.tasks.entries import Backend, Bound, Delta

if TYPE_CHECKING:  # torch comes with it, and --help does without
    from boundwatch.tasks.grasping.train import Deployment, Run

MOST_FILMS = 10
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Processes; they change the time, nothing else.")]


def train(
    folder: Path,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small setting: 1,000 demonstrations, 60 mugs.")
    ] = False,
    harder: Annotated[
        bool,
        typer.Option(
            "--harder", help="Mugs of many shapes, a depth camera with a Kinect's noise, an unsteady expert."
        ),
    ] = False,
    network: Annotated[
        Literal["points", "features"] | None,
        typer.Option(
            help="The paper's, which finds points in the image (spatial softmax), or a plain one. "
            "[default: points; with --harder or --quick: features, which learns sooner]"
        ),
    ] = None,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    bound: Bound = "pointwise",
    delta: Delta = 0.01,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of everything random.")] = 0,
) -> Run:
    """Lift mugs with a Panda arm by one depth image from above.

    A scripted expert shows 4,500 grasps, an autoencoder clones them, and Algorithm 4 trains its latent vector
    on 500 other mugs, which also give the certificate: six minutes on two cores,
    about a minute with --quick. An interrupted training continues when the same command is run again. Needs
    the extras `train` and `sim`.

    With --harder there are 4,000 demonstrations, and the plain network, which learns sooner.
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
    objects: Annotated[
        Literal["mugs", "varied-mugs", "bowls", "wide-bowls"] | None,
        typer.Option(
            help="What stands on the table; bowls are 12-18 cm across, wide-bowls 15-21 cm. "
            "[default: that of the training]"
        ),
    ] = None,
    placement: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            max=6,
            help="Where: a square with sides of 10 (training), 20, 30, 40, 50 or 60 cm.",
        ),
    ] = 1,
    friction: Annotated[
        float | None,
        typer.Option(metavar="MU", help="Friction of the finger pads. [default: as in training, 0.5]"),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(metavar="KG/M3", help="Density of the objects. [default: as in training, 2300]"),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="SEED", min=0, help="Seed of the objects, which are never the training objects."
        ),
    ] = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    render: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Draw films (GIF) of the first {MOST_FILMS} grasps; needs `plot`."),
    ] = None,
) -> Deployment:
    """Let a trained policy grasp new objects.

    A row of the CSV has the cost (0 if the object was lifted by 10 cm, else 1), how far it rose in meters,
    what happened, and its film if one was asked for. Needs the extras `train` and `sim`.
    """
    if render is not None:
        from boundwatch.tasks.grasping import pictures  # noqa: F401  (names its extra before the work)
    given = {name: v for name, v in (("pad_friction", friction), ("density", density)) if v is not None}
    options: dict[str, Any] = {"objects": objects, "placement": placement, "seed": seed, "jobs": jobs}
    deployed = run.deploy(n, physics=replace(run.physics, **given), backend=backend, **options)
    if render is None:
        return deployed
    title = f"{objects or run.recipe.objects}, placement {placement}"
    return deployed.draw(render, title, MOST_FILMS)
