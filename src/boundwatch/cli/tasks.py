"""Commands that are built from tasks: one for each entry point of the group ``boundwatch.tasks``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from boundwatch.cli.root import app, command
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.tasks.base import ENTRY_POINTS, Task

Build = Callable[[str, Task, typer.Typer], object]


def task_group(name: str, help_text: str, build: Build) -> None:
    """Add a group of commands, one per installed task, each built when somebody asks for it."""

    class Group(TyperGroup):
        def list_commands(self, _context: Any) -> list[str]:
            return sorted(entry_points(group=ENTRY_POINTS).names)

        def get_command(self, _context: Any, wanted: str) -> Any:
            found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
            return _command(found[wanted], build) if wanted in found else None

    group = typer.Typer(name=name, help=help_text, cls=Group, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)  # a group without commands of its own is none for typer
    app.add_typer(group)


def _command(point: EntryPoint, build: Build) -> Any:
    """Return the command of a task; of one that cannot be loaded, a command that says so."""
    own = typer.Typer(add_completion=False, rich_markup_mode=None)
    try:
        build(point.name, point.load(), own)
    except Exception as error:  # whatever another package raises when it is imported
        fault = error if isinstance(error, BoundwatchError) else _not_loaded(point, error)

        @command(group=own, example=f"pip uninstall {point.dist.name if point.dist else point.name}")
        def broken() -> None:
            raise fault

        broken.__doc__ = str(fault)
    single = typer.main.get_command(own)
    single.name = point.name
    return single


def _not_loaded(point: EntryPoint, error: Exception) -> InvalidSetting:
    package = point.dist.name if point.dist else "an unknown package"
    return InvalidSetting(
        f"task {point.name!r} of {package} cannot be loaded, {type(error).__name__}: {error}; "
        "upgrade or uninstall that package"
    )
