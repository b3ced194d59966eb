"""boundwatch train: policy, posterior and certificate of a task, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from boundwatch.cli import output as out
from boundwatch.cli.root import command
from boundwatch.cli.tasks import task_group
from boundwatch.tasks.base import Task


def build(name: str, task: Task, group: typer.Typer) -> None:
    """Add ``train NAME``."""
    example = f"boundwatch train {name} -o run"

    @command(group=group, about=task.train.__doc__, takes=task.train, example=example)
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


task_group("train", "Train and certify a policy for a task. Needs the extra `train`.", build)
