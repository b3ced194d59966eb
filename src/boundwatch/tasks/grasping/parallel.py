"""Many grasps or photographs, on every core, with the same results as on one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import Progress

from boundwatch.errors import InvalidSetting

Result = TypeVar("Result")
_ROUNDS = 20  # a progress bar moves about this many times
_SHARES = 4  # shares of a round for each process: some grasps end early


def in_parallel(
    function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], *, jobs: int, label: str
) -> list[Result]:
    """Return ``function(*arguments[i])`` for each i, computed by several processes, with a bar on a terminal.

    Examples
    --------
    >>> in_parallel(pow, [(2, 3), (3, 2)], jobs=1, label="powers")
    [8, 9]
    """
    if jobs < 1:
        raise InvalidSetting(f"jobs = {jobs} is below 1; give the number of processes")
    console = Console(stderr=True)
    results: list[Result] = []
    with (
        Progress(console=console, disable=not console.is_terminal) as progress,
        Parallel(n_jobs=jobs) as pool,
    ):
        task = progress.add_task(label, total=len(arguments))
        rounds = _ROUNDS if console.is_terminal else 1
        for part in _split(arguments, rounds):
            for share in pool(delayed(_share)(function, work) for work in _split(part, _SHARES * jobs)):
                results += share
            progress.update(task, completed=len(results))
    return results


def _split(items: Sequence[Any], parts: int) -> list[Sequence[Any]]:
    edges = np.linspace(0, len(items), min(parts, len(items)) + 1).round().astype(int)
    return [items[start:stop] for start, stop in itertools.pairwise(edges.tolist())]


def _share(function: Callable[..., Result], work: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in work]
