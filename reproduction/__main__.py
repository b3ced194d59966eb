"""python -m reproduction: the paper's figures and tables."""

from __future__ import annotations

from reproduction import processor

processor.pin()  # before anything below loads NumPy or PyTorch

import sys  # noqa: E402
import time  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Literal  # noqa: E402

from boundwatch.cli.root import Command, main  # noqa: E402
from boundwatch.errors import InvalidSetting, MissingExtra  # noqa: E402

NAME = "python -m reproduction"


def reproduce(
    figures: list[str] | None = None,
    *,
    output: Path = Path("reproduced"),
    quick: bool = False,
    policies: int | None = None,
    certificate: Literal["pointwise", "theorem-1"] = "pointwise",
    jobs: int = 2,
    costs: list[str] | None = None,
) -> None:
    """Make the paper's figures and tables, and judge its claims.

    All on one page. Everything computed is kept under the hash of its settings, source and version: a run
    that was killed goes on where it was, and a second one only draws. Figures: difficulty, rates, baselines,
    irrelevant-shift, cost-function, wind, hardware, theorem-3, mug-placement, mugs-and-bowls,
    gradients, posterior, labels, stronger-baselines, power, certificates.

    Options
    -------
    figures FIGURE...: Names of figures; all, or none given, means every one.
    output FOLDER: Where the page and the cache go.
    quick: Small sizes: minutes instead of an hour, and rough numbers.
    policies N: Policies, with consecutive seeds, over which the paper's claims are judged: 5, or 2 with
        --quick. The figures are of the first.
    certificate: What the figures' detectors compare with. The table of claims has both.
    jobs N: Processes.
    costs SETTING=FILE: Recorded costs of your own drone for the figure wind, shown beside the simulated ones:
        a setting of that figure (windy:5, easier, harder, ...) and a cost file. May be repeated.
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
    left: Counter[str] = Counter()
    with progress_bar("computing") as progress:
        note = "" if quick else "an arm takes ten minutes"
        task = progress.add_task("", total=None, note=note)

        def started(kinds: Sequence[str]) -> None:
            left.update(kinds)
            progress.update(task, total=len(kinds))

        def done(kind: str) -> None:
            left[kind] -= 1
            note = kind if left[kind] else f"every {kind} is there"
            progress.update(task, advance=1, note=note, stage=not left[kind])

        page = runner.reproduce(
            names,
            output,
            settings,
            policies=(2 if quick else 5) if policies is None else policies,
            certificate=certificate,
            recorded_flights=True,
            jobs=jobs,
            started=started,
            done=done,
        )
    if not processor.is_pinned():
        print(
            f"This run computed with {processor.instructions()}: other processors may give other numbers.",
            file=sys.stderr,
        )
    print(f"Wrote {page} after {(time.monotonic() - began) / 60:.1f} minutes")


app = Command(reproduce, f"{NAME} all -o reproduced\n{NAME} wind -o quick --quick")

if __name__ == "__main__":
    main(app, NAME)
