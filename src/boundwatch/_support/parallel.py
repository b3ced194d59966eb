"""Many calls of one function, on every core or a Ray cluster, with the same results as on one core."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from boundwatch._support.validation import check_choice
from boundwatch.errors import InvalidSetting, MissingExtra

if TYPE_CHECKING:  # joblib is imported where it is used: command lines need the names of backends only
    from joblib import Parallel

Backend = Literal["loky", "ray"]
"""Processes on this machine, or a Ray cluster."""
Result = TypeVar("Result")
LINE_EVERY = 30.0  # seconds, in a log
_ROUNDS = 20  # a progress bar moves about this many times
_SHARES = 4  # for each process in a round: some calls take longer than others


def in_parallel(
    function: Callable[..., Result],
    arguments: Sequence[tuple[Any, ...]],
    *,
    jobs: int,
    backend: Backend = "loky",
    label: str | None = None,
) -> list[Result]:
    """Return ``function(*arguments[i])`` for each i, in this order, computed by several processes.

    **Guarantee**: the same results whatever ``jobs`` and ``backend``, if the function depends on its
    arguments alone.

    An object that calls share is sent once for many of them; one job means this process. With a `label`, a
    terminal has a progress bar.
    """
    from joblib import delayed

    check_workers(jobs, backend)
    if backend == "ray":
        _connect_ray()
    results: list[Result] = []
    with progress_bar(label) as progress, workers(jobs, backend=backend) as pool:
        task = progress.add_task("", total=len(arguments), note="")
        # A round at a time where somebody watches: not every backend hands results out one by one.
        for part in _split(arguments, 1 if progress.disable and not progress.said else _ROUNDS):
            for share in pool(delayed(_share)(function, calls) for calls in _split(part, _SHARES * jobs)):
                results += share
            progress.update(task, completed=len(results))
    return results


@contextmanager
def workers(jobs: int, *, backend: Backend = "loky", **options: Any) -> Iterator[Parallel]:
    """Let joblib call functions on so many processes inside the block; options are those of ``Parallel``.

    Loky replaces a worker whose memory has grown, as it does when a worker imports torch late, and warns in a
    thread of its own. Where warnings are errors that thread would die, and nobody would ever be told of a
    result; where they are not, users would read of a leak that is none.
    """
    from joblib import Parallel

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        with Parallel(n_jobs=jobs, backend=backend, **options) as pool:
            yield pool


def check_workers(jobs: int, backend: Backend) -> None:
    """Refuse a number of processes, or a backend, that there is not."""
    if jobs < 1:
        raise InvalidSetting("is below 1", name="jobs", value=jobs, remedy="give the number of processes")
    check_choice(backend, "backend", get_args(Backend))


def _split(calls: Sequence[tuple[Any, ...]], parts: int) -> list[Sequence[tuple[Any, ...]]]:
    """Return the calls in at most so many consecutive parts of nearly equal length, none empty."""
    size = max(1, -(-len(calls) // parts))
    return [calls[start : start + size] for start in range(0, len(calls), size)]


def _share(function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in calls]


def _connect_ray() -> None:
    try:
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise MissingExtra("backend='ray'", "ray") from error
    register_ray()  # type: ignore[no-untyped-call]  # ray has no types here


class _Reported(Progress):
    """A progress bar or, where nobody can see one, a line every half minute."""

    said = ""  # the work that lines are about; none are printed without
    _spoken: float | None = None

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Go on, and say so in a log: how much there is to do, the end of a ``stage``, and now and then."""
        super().update(task_id, **changes)
        now = time.monotonic()
        self._spoken = now if self._spoken is None else self._spoken
        if self.said and ("total" in changes or changes.get("stage") or now - self._spoken >= LINE_EVERY):
            self._spoken, task = now, self.tasks[-1]
            total = "" if task.total is None else f" of {task.total:g}"
            minutes = f"{(task.elapsed or 0) / 60:.1f} minutes"
            said = f"{self.said}: {task.completed:g}{total}, {minutes} {task.fields['note']}"
            sys.stderr.write(f"{said.rstrip()}\n")


def progress_bar(description: str | None) -> _Reported:
    """Return a progress bar on stderr; where that is not a terminal, a line every half minute.

    It is silent without a description and in a worker process: whoever started that has a bar of its own.
    Its tasks have a field ``note``, shown behind the bar.
    """
    console, silent = Console(stderr=True), description is None or parent_process() is not None
    columns = (TextColumn(description or ""), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    note = TextColumn("{task.fields[note]}")
    bar = _Reported(*columns, note, console=console, disable=silent or not console.is_terminal)
    bar.said = "" if silent or console.is_terminal else str(description)
    return bar
