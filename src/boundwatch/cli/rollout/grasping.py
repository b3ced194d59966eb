"""boundwatch rollout grasping: try a trained policy on new objects, with pictures if asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from boundwatch._support.files import write_text
from boundwatch.cli import output as out
from boundwatch.cli.options import Backend, Jobs, Json
from boundwatch.cli.rollout.navigation import CostsOut, PolicyRun, group
from boundwatch.cli.root import command
from boundwatch.reporting.wording import count

MOST_FILMS = 10


@command(
    group=group,
    example="boundwatch rollout grasping --policy run --objects bowls --placement 4 -n 10 -o costs.csv\n"
    "boundwatch check run/certificate.json costs.csv",
)
def grasping(
    policy: PolicyRun,
    output: CostsOut,
    objects: Annotated[
        Literal["mugs", "bowls", "wide-bowls"],
        typer.Option(help="What stands on the table; bowls are 12-18 cm across, wide-bowls 15-21 cm."),
    ] = "mugs",
    placement: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            max=6,
            help="Where: a square with sides of 10 (training), 20, 30, 40, 50 or 60 cm.",
        ),
    ] = 1,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of objects.")] = 10,
    friction: Annotated[
        float | None,
        typer.Option(metavar="MU", help="Of the finger pads. [default: that of the training, 0.5]"),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(metavar="KG/M3", help="Of the objects. [default: that of the training, 2300]"),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="SEED", min=0, help="Of the objects; never those of the training.")
    ] = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    render: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Draw films (GIF) of the first {MOST_FILMS} grasps; needs `plot`."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Let a trained policy grasp new objects.

    A row of the CSV has the cost (0 if the object was lifted by 10 cm, else 1), how far it rose in metres,
    and what happened. Needs the extras `train` and `sim`.
    """
    from boundwatch import training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.grasping.runs import load_run

    if render is not None:
        from boundwatch.tasks.grasping import pictures  # noqa: F401  (before the work, for the same reason)
    run = load_run(policy)
    given = {name: v for name, v in (("pad_friction", friction), ("density", density)) if v is not None}
    physics = replace(run.physics, **given)
    deployment = run.deploy(
        n, objects=objects, placement=placement, physics=physics, seed=seed, jobs=jobs, backend=backend
    )
    rows = [f"{outcome.cost},{outcome.rise:.4f},{outcome.reason}\n" for outcome in deployment.outcomes]
    write_text(output, "cost,rise,reason\n" + "".join(rows))
    films = [] if render is None else deployment.draw(render, f"{objects}, placement {placement}", MOST_FILMS)
    failures = int(deployment.costs.sum())
    if as_json:
        settings = {"objects": objects, "placement": placement, "n": n, "seed": seed} | given
        files = {"output": str(output), "films": [str(film) for film in films]}
        out.print_json(settings | {"failures": failures, "mean_cost": failures / n} | files)
        return
    print(
        f"Wrote {output}: {count(failures, 'failure')} in {count(n, 'grasp')} of {objects}, "
        f"placement {placement}"
    )
    if films:
        print(f"Drew {films[0]} to {films[-1].name}")
