"""boundwatch train, rollout: a command for each entry point of the group ``boundwatch.tasks``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any

from boundwatch._support import files
from boundwatch._support.describing import written
from boundwatch._support.validation import check_costs
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_1
from boundwatch.cli.root import PARTS, Command, Group
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.reporting.wording import count
from boundwatch.tasks.base import ENTRY_POINTS, Deployment, Task


def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _find(build: Callable[[str, Task], Command], name: str) -> Command:
    """Return the command of a task; of one that cannot be loaded, a command that says so."""
    point = _points()[name]
    try:
        return build(name, point.load())
    except Exception as error:  # whatever another package raises when it is imported
        fault = error if isinstance(error, BoundwatchError) else _not_loaded(point, error)

    def broken() -> None:
        raise fault

    broken.__doc__ = str(fault)
    return Command(broken, f"pip uninstall {point.dist.name if point.dist else point.name}")


def _not_loaded(point: EntryPoint, error: Exception) -> InvalidSetting:
    package = point.dist.name if point.dist else "an unknown package"
    return InvalidSetting(
        f"task {point.name!r} of {package} cannot be loaded, {type(error).__name__}: {error}; "
        "upgrade or uninstall that package"
    )


def _train(name: str, task: Task) -> Command:
    """Return ``train NAME``."""

    def train(*, output: Path, as_json: bool = False, **options: Any) -> None:
        """Train.

        Options
        -------
        output RUN: Folder to write; use a new folder for each training.
        """
        run = task.train(output, **options)
        if as_json:
            out.print_json(run.certificate.to_dict() | {"summary": dict(run.summary)})
            return
        print(f"Trained: {output}")
        out.print_promise(run.certificate)
        if run.notes:
            out.print_section("Beside it", run.notes)
        print("\nNext")  # unwrapped: it is to be copied
        print(f"  boundwatch rollout {name} --policy {output} -n 10 -o new.csv")
        print(f"  boundwatch check {output / 'certificate.json'} new.csv")

    return Command(train, f"boundwatch train {name} -o run", task.train)


def _rollout(name: str, task: Task) -> Command:
    """Return ``rollout NAME``."""

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

    example = f"boundwatch rollout {name} --policy run -n 10 -o new.csv"
    return Command(rollout, f"{example}\nboundwatch check run/certificate.json new.csv", task.deploy)


def _table(deployed: Deployment) -> str:
    """Return the costs, in digits that give the same numbers back, with what else is known, as CSV."""
    rows = zip(deployed.costs.tolist(), *deployed.columns.values(), strict=True)
    return written([("cost", *deployed.columns), *rows], "csv") + "\n"


_TRAIN = "Train and certify a policy for a task. Needs the extra `train`."
_ROLLOUT = "Deploy a trained policy of a task and write its costs. Needs the extra `train`."
for _name, _about, _build in (("train", _TRAIN, _train), ("rollout", _ROLLOUT, _rollout)):
    PARTS[_name] = Group(_about, lambda: sorted(_points()), partial(_find, _build))
