"""Our own tasks as the command line sees them: its --help needs neither torch nor a physics engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy checks here that these modules are tasks, and that their runs are runs
    from boundwatch.tasks.base import Task
    from boundwatch.tasks.entries import grasping, navigation

    OURS: tuple[Task, ...] = (navigation, grasping)
