"""boundwatch train: policy, posterior and certificate of an example task, in one folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from boundwatch.cli import output as out
from boundwatch.cli.options import Json
from boundwatch.cli.root import app, command
from boundwatch.reporting import wording

group = typer.Typer(
    name="train",
    help="Train and certify a policy for an example task. Needs the extra `train`.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(group)

RunFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="RUN", help="Folder to write; one training each.")
]


@command(
    group=group,
    example="boundwatch train navigation -o run --quick\n"
    "boundwatch train navigation -o run300 --d-thresh 300",
)
def navigation(
    output: RunFolder,
    quick: Annotated[bool, typer.Option("--quick", help="A small setting: 4,000 environments each.")] = False,
    d_thresh: Annotated[
        float, typer.Option(metavar="MM", help="Clearance from which a flight costs nothing, in mm.")
    ] = 500.0,
    trajectories: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Recorded flights, CSV or NPZ, in place of the model of the drone."
        ),
    ] = None,
    distance: Annotated[
        Literal["exact", "sensor"],
        typer.Option(help="Clearance from the state, or as the depth sensor sees it in flight."),
    ] = "exact",
    bound: Annotated[
        Literal["pointwise", "kl", "pinsker"],
        typer.Option(help="What is minimised and certified; pinsker is Theorem 1 as printed."),
    ] = "pointwise",
    delta: Annotated[
        float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Of everything random.")] = 1,
    as_json: Json = False,
) -> None:
    """Fly a drone through obstacle fields by one depth image.

    The prior is trained on 10,000 environments, posterior and certificate on 10,000 others: about a minute
    on two cores, half a minute with --quick. An interrupted training continues when the same command is
    run again. RUN then holds certificate.json, the policy, its training costs and all settings.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.recipe import QUICK, Recipe
    from boundwatch.tasks.navigation.recordings import Recordings
    from boundwatch.tasks.navigation.scene import Scene
    from boundwatch.tasks.navigation.train import train
    from boundwatch.tasks.navigation.world import World

    recipe = replace(
        QUICK if quick else Recipe(), d_thresh=d_thresh / 1000.0, bound=bound, delta=delta, seed=seed
    )
    recordings = None if trajectories is None else Recordings.load(trajectories)
    run = train(recipe, output, World(Scene(distance=distance), recordings=recordings))
    if as_json:
        out.print_json(run.certificate.to_dict() | {"summary": run.summary})
        return
    print(f"Wrote {output}")
    out.print_section("Promise", wording.promise(run.certificate))
    out.print_section("Basis", wording.basis(run.certificate))
    trained, untrained = run.summary["trained"], run.summary["prior_draw"]
    out.print_section(
        "Beside it",
        [
            f"Upper limits by Theorem 1: {trained['upper_pinsker']:.4f}, by its kl-inverse: "
            f"{trained['upper_kl']:.4f}, pointwise: {trained['upper_pointwise']:.4f}. "
            f"Only the one chosen beforehand ({bound}) is certified.",
            f"An untrained draw from the prior: training cost {untrained['cost']:.4f}, pointwise limit "
            f"{untrained['upper_pointwise']:.4f}.",
        ],
    )
    print("\nNext")  # unwrapped: it is to be copied
    print(f"  boundwatch rollout navigation --policy {output} --distribution harder -n 10 -o harder.csv")
    print(f"  boundwatch check {output / 'certificate.json'} harder.csv")
