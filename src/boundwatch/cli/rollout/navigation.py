"""boundwatch rollout: deploy a trained policy of an example task; costs to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support.files import write_costs
from boundwatch.cli import output as out
from boundwatch.cli.options import Json
from boundwatch.cli.root import app, command
from boundwatch.reporting.wording import count

group = typer.Typer(
    name="rollout",
    help="Deploy a trained policy of an example task and write its costs. Needs the extra `train`.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(group)

PolicyRun = Annotated[
    Path, typer.Option("--policy", metavar="RUN", help="Folder that `boundwatch train` wrote.")
]
CostsOut = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="CSV to write, one cost a row.")
]


@command(
    group=group,
    example="boundwatch rollout navigation --policy run --distribution windy:2.5 -n 50 -o windy.csv\n"
    "boundwatch check run/certificate.json windy.csv",
)
def navigation(
    policy: PolicyRun,
    output: CostsOut,
    distribution: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="training, easier, harder, task-irrelevant, windy (5 m/s), windy:SPEED, difficulty:V "
            "(-9 to 9, 0 is training), obstacles:K.",
        ),
    ] = "training",
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of flights.")] = 10,
    seed: Annotated[
        int, typer.Option(metavar="SEED", help="Of the environments; never those of the training.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Fly a trained drone in new environments of a named distribution."""
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.navigation.runs import load_run

    run = load_run(policy)
    costs, _ = run.deploy(distribution, n, seed=seed)
    write_costs(output, costs)
    error = float(costs.std(ddof=1) / n**0.5) if n > 1 else None
    if as_json:
        out.print_json(
            {
                "distribution": distribution,
                "n": n,
                "seed": seed,
                "mean_cost": float(costs.mean()),
                "standard_error": error,
                "output": str(output),
            }
        )
        return
    spread = "" if error is None else f" (standard error {error:.4f})"
    print(f"Wrote {output}: {count(n, 'flight')} in {distribution}, mean cost {costs.mean():.4f}{spread}")
