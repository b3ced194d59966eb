"""python -m benchmarks.strangers: train, roll out, compare, draw."""

from __future__ import annotations

import time
from pathlib import Path

from boundwatch.cli.root import Command, main
from boundwatch.errors import MissingExtra

NAME = "python -m benchmarks.strangers"


def strangers(
    *, output: Path = Path("strangers"), quick: bool = False, jobs: int = 2, publish: bool = False
) -> None:
    """Watch other people's tasks with our detectors and with other people's.

    Policies, episodes and comparisons are kept in the folder under the hash of their settings: a run that was
    stopped goes on where it was, and a second one only draws.

    Options
    -------
    output FOLDER: Where the results and the cache go.
    quick: Three of the eight tasks: minutes.
    jobs N: Processes.
    publish: Also write benchmarks/results.json and the page in docs/.
    """
    try:
        from benchmarks.strangers import report, runner
        from boundwatch._support.parallel import progress_bar
    except ImportError as error:
        raise MissingExtra("watching other people's tasks", "all") from error

    began = time.monotonic()
    settings = runner.QUICK if quick else runner.FULL
    with progress_bar("strangers") as progress:
        bar = progress.add_task("", total=runner.parts(settings), note="")
        results = runner.run(
            settings, output, jobs=jobs, done=lambda what: progress.update(bar, advance=1, note=what)
        )
    page = report.write(results, output)
    if publish:
        report.publish(results)
    print(report.headline(results))
    print(f"Wrote {page} after {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main(Command(strangers, f"{NAME} -o strangers\n{NAME} -o quick --quick"), NAME)
