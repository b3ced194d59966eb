"""boundwatch train grasping: clone, train and certify a policy that lifts mugs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from boundwatch.cli import output as out
from boundwatch.cli.options import Backend, Jobs, Json
from boundwatch.cli.root import command
from boundwatch.cli.train.navigation import RunFolder, group
from boundwatch.reporting import wording


@command(
    group=group,
    example="boundwatch train grasping -o run --jobs 2\nboundwatch train grasping -o small --quick --jobs 2",
)
def grasping(
    output: RunFolder,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small setting: 1,000 demonstrations, 60 mugs.")
    ] = False,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    bound: Annotated[
        Literal["pointwise", "kl", "pinsker"],
        typer.Option(help="What is minimised and certified; pinsker is Theorem 1 as printed."),
    ] = "pointwise",
    delta: Annotated[
        float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Lift mugs with a Panda arm by one depth image from above.

    A scripted expert shows 9,000 grasps, an autoencoder clones them, and Algorithm 4 trains its latent vector
    on 500 other mugs, which also give the certificate: six minutes on two cores,
    under a minute with --quick. An interrupted training continues when the same command is run again. Needs
    the extras `train` and `sim`.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.tasks.grasping.recipe import QUICK, Recipe
    from boundwatch.tasks.grasping.train import train

    recipe = replace(QUICK if quick else Recipe(), bound=bound, delta=delta, seed=seed)
    run = train(recipe, output, jobs=jobs, backend=backend)
    if as_json:
        out.print_json(run.certificate.to_dict() | {"summary": run.summary})
        return
    print(f"Wrote {output}")
    out.print_section("Promise", wording.promise(run.certificate))
    out.print_section("Basis", wording.basis(run.certificate))
    summary = run.summary
    out.print_section(
        "Beside it",
        [
            f"The expert lifted {summary['expert_success']:.1%} of its mugs. The cloned policy, before "
            f"training, failed on {summary['prior_cost']:.1%} of {recipe.prior_environments} others.",
            f"Upper limits by Theorem 1: {summary['upper_pinsker']:.4f}, by its kl-inverse: "
            f"{summary['upper_kl']:.4f}, pointwise: {summary['upper_pointwise']:.4f}. "
            f"Only the one chosen beforehand ({bound}) is certified.",
        ],
    )
    out.print_section(
        "Next",
        [
            f"boundwatch rollout grasping --policy {output} --placement 4 -n 10 -o new.csv --render pictures",
            f"boundwatch check {output / 'certificate.json'} new.csv",
        ],
    )
