"""How far long work has come, for people at a terminal."""

from __future__ import annotations

from multiprocessing import parent_process

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress_bar(description: str | None) -> Progress:
    """Return a progress bar on stderr, silent without a description or when stderr is not a terminal.

    It is silent in a worker process, too: whoever started that has a bar of its own. Its tasks have a field
    ``note``, shown behind the bar.

    Examples
    --------
    >>> with progress_bar("counting") as progress:
    ...     task = progress.add_task("", total=2, note="")
    ...     progress.update(task, advance=1, note="one")
    """
    console = Console(stderr=True)
    columns = (TextColumn(description or ""), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(
        *columns,
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=description is None or parent_process() is not None or not console.is_terminal,
    )
