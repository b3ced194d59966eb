"""Many grasps or photographs, on every core, with the same results as on one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import Progress

from boundwatch.errors import InvalidSetting

Result = TypeVar("Result")
_SHARE = 25  # calls that a process gets at a time: about half a second of grasps
_ROUND = 4  # shares for each process before the progress bar moves: some grasps end early


def in_parallel(
    function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], *, jobs: int, label: str = ""
) -> list[Result]:
    """Return ``function(*arguments[i])`` for each i, computed by several processes.

    With a label, and on a terminal, a progress bar shows how far it is.

    Examples
    --------
    >>> in_parallel(pow, [(2, 3), (3, 2)], jobs=1, label="powers")
    [8, 9]
    """
    if jobs < 1:
        raise InvalidSetting(f"jobs = {jobs} is below 1; give the number of processes")
    console = Console(stderr=True)
    visible = console.is_terminal and label != ""
    results: list[Result] = []
    with (
        Progress(console=console, disable=not visible) as progress,
        Parallel(n_jobs=jobs) as pool,
    ):
        task = progress.add_task(label, total=len(arguments))
        size = _SHARE * _ROUND * jobs if visible else len(arguments)
        for start in range(0, len(arguments), max(size, 1)):
            part = arguments[start : start + size]
            work = [part[i : i + _SHARE] for i in range(0, len(part), _SHARE)]
            for share in pool(delayed(_share)(function, calls) for calls in work):
                results += share
            progress.update(task, completed=len(results))
    return results


def _share(function: Callable[..., Result], work: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in work]
