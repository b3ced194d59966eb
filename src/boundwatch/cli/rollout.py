"""boundwatch rollout: deploy a trained policy of a task; costs to a file."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from boundwatch._support import files
from boundwatch._support.validation import check_costs
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_1
from boundwatch.cli.root import command
from boundwatch.cli.tasks import task_group
from boundwatch.reporting.wording import count
from boundwatch.tasks.base import Deployment, Task


def build(name: str, task: Task, group: typer.Typer) -> None:
    """Add ``rollout NAME``."""

    @command(
        group=group,
        about=task.deploy.__doc__,
        takes=task.deploy,
        example=f"boundwatch rollout {name} --policy run -n 10 -o new.csv\n"
        "boundwatch check run/certificate.json new.csv",
    )
    def rollout(
        *,
        policy: Path,
        output: Path,
        n: Annotated[int, AT_LEAST_1] = 10,
        force: bool = False,
        as_json: bool = False,
        **options: Any,
    ) -> None:
        """Deploy the policy.

        Options
        -------
        policy RUN: Folder that `boundwatch train` wrote.
        output FILE: CSV to write, one row per episode.
        n N: Number of episodes.
        """
        files.protect(output, [policy, *(v for v in options.values() if isinstance(v, Path))], force=force)
        run = task.load(policy)
        deployed = task.deploy(run, n, **options)
        costs = check_costs(deployed.costs, binary=run.certificate.binary)
        files.write_text(output, _table(deployed))
        error = float(costs.std(ddof=1) / n**0.5) if n > 1 else None
        if as_json:
            chosen = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
            numbers = {"n": n, "mean_cost": float(costs.mean()), "standard_error": error}
            if run.certificate.binary:
                numbers["failures"] = int(costs.sum())
            out.print_json(chosen | numbers | {"output": str(output), "columns": ["cost", *deployed.columns]})
        elif run.certificate.binary:
            print(f"Wrote {output}: {count(int(costs.sum()), 'failure')} in {count(n, 'episode')}")
        else:
            spread = "" if error is None else f" (standard error {error:.4f})"
            print(f"Wrote {output}: {count(n, 'episode')}, mean cost {costs.mean():.4f}{spread}")


task_group(
    "rollout",
    "Deploy a trained policy of a task and write its costs. Needs the extra `train`.",
    build,
)


def _table(deployed: Deployment) -> str:
    """Return the costs, in digits that give the same numbers back, with what else is known, as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["cost", *deployed.columns])
    writer.writerows(zip(deployed.costs.tolist(), *deployed.columns.values(), strict=True))
    return file.getvalue()
