"""boundwatch train: policy, posterior and certificate of a task, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from boundwatch.cli import output as out
from boundwatch.cli.family import print_promise
from boundwatch.cli.options import Json
from boundwatch.cli.root import command
from boundwatch.cli.tasks import takes_options_of, task_group
from boundwatch.tasks.base import Task

RunFolder = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="RUN", help="Folder to write; use a new folder for each training."
    ),
]


def build(name: str, task: Task, group: typer.Typer) -> None:
    """Add ``train NAME``."""

    @takes_options_of(task.train)
    def train(output: RunFolder, *, as_json: Json = False, **options: Any) -> None:
        run = task.train(output, **options)
        if as_json:
            out.print_json(run.certificate.to_dict() | {"summary": dict(run.summary)})
            return
        print(f"Trained: {output}")
        print_promise(run.certificate)
        if run.notes:
            out.print_section("Beside it", run.notes)
        print("\nNext")  # unwrapped: it is to be copied
        print(f"  boundwatch rollout {name} --policy {output} -n 10 -o new.csv")
        print(f"  boundwatch check {output / 'certificate.json'} new.csv")

    train.__doc__ = task.train.__doc__
    command(group=group, example=f"boundwatch train {name} -o run")(train)


task_group("train", "Train and certify a policy for a task. Needs the extra `train`.", build)
