"""python -m reproduction: the paper's figures and tables."""

from __future__ import annotations

from reproduction import processor

processor.pin()  # before anything below loads NumPy or PyTorch

import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Annotated, Literal  # noqa: E402

import typer  # noqa: E402

from boundwatch.cli.root import command, main, new_app  # noqa: E402
from boundwatch.errors import InvalidSetting, MissingExtra  # noqa: E402

NAME = "python -m reproduction"
app = new_app()


@command(group=app, example=f"{NAME} all -o reproduced\n{NAME} wind -o quick --quick")
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="Names of figures; all, or none given, means every one."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the page and the cache go.")
    ] = Path("reproduced"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: minutes instead of an hour, and rough numbers.")
    ] = False,
    policies: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Policies, with consecutive seeds, over which the paper's claims are judged: 5, or 2 with "
            "--quick. The figures are of the first.",
        ),
    ] = None,
    certificate: Annotated[
        Literal["pointwise", "theorem-1"],
        typer.Option(help="What the figures' detectors compare with. The table of claims has both."),
    ] = "pointwise",
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes.")] = 2,
    costs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=FILE",
            help="Recorded costs of your own drone for the figure wind, shown beside the simulated ones: "
            "a setting of that figure (windy:5, easier, harder, ...) and a cost file. May be repeated.",
        ),
    ] = None,
) -> None:
    """Make the paper's figures and tables, and judge its claims.

    All on one page. Everything computed is kept under the hash of its settings, source and version: a run
    that was killed goes on where it was, and a second one only draws. Figures: difficulty, rates, baselines,
    irrelevant-shift, cost-function, wind, hardware, theorem-3, mug-placement, mugs-and-bowls,
    gradients, posterior, labels, stronger-baselines, power, certificates.
    """
    try:
        from boundwatch._support.parallel import progress_bar
        from reproduction import runner, wind
    except ImportError as error:
        raise MissingExtra("reproducing the paper", "all") from error

    began = time.monotonic()
    settings = runner.all_settings(quick=quick)
    names = [name for name in figures or () if name != "all"]
    if "all" in (figures or ()):
        names += runner.EXPERIMENTS
    if costs and names and wind.NAME not in names:
        raise InvalidSetting(f"--costs {costs[0]}: only the figure wind shows recorded costs; ask for it too")
    settings[wind.NAME] = wind.with_recorded(settings[wind.NAME], costs or ())
    with progress_bar("computing") as progress:
        note = "" if quick else "an arm takes ten minutes"
        task = progress.add_task("", total=None, note=note)
        page = runner.reproduce(
            names,
            output,
            settings,
            policies=(2 if quick else 5) if policies is None else policies,
            certificate=certificate,
            recorded_flights=True,
            jobs=jobs,
            started=lambda total: progress.update(task, total=total),
            done=lambda what: progress.update(task, advance=1, note=what),
        )
    if not processor.is_pinned():
        print(
            f"This run computed with {processor.instructions()}: other processors may give other numbers.",
            file=sys.stderr,
        )
    print(f"Wrote {page} after {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main(app, NAME)
