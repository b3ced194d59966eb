"""Our own tasks as the command line sees them: its --help needs neither torch nor a physics engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from boundwatch._support import parallel
from boundwatch.bounds import pac_bayes

if TYPE_CHECKING:  # mypy checks here that these modules are tasks, and that their runs are runs
    from boundwatch.tasks.base import Task
    from boundwatch.tasks.entries import grasping, navigation

    OURS: tuple[Task, ...] = (navigation, grasping)

Bound = Annotated[
    pac_bayes.Bound, typer.Option(help="What is minimized and certified; pinsker is Theorem 1 as printed.")
]
Backend = Annotated[
    parallel.Backend, typer.Option(help="Processes of this machine, or a Ray cluster (extra ray).")
]
Delta = Annotated[float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")]
