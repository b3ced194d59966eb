"""vla-eval: results (JSON: tasks, episodes, metrics) and the recording that they are made from (SQLite)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Kind
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers.table import Table, of_log
from boundwatch.readers.text import document

# What ran last counts, as in the harness's own export; rows without a task's number are all kept.
_LAST = """
SELECT metrics, failure_reason, task_name, episode_id, safe_name
FROM episode_results JOIN eval_metadata USING (eval_id) WHERE episode_results.rowid IN (
    SELECT MAX(rowid) FROM episode_results
    GROUP BY eval_id, task_name, episode_id, json_extract(context, '$.task_idx'),
             CASE WHEN json_extract(context, '$.task_idx') IS NULL THEN rowid END
) ORDER BY task_name, episode_id, episode_results.rowid"""


def read(data: bytes, source: str, declared: Declared) -> Table:
    """Read the episodes of results: a column for each metric, and task, episode_id and benchmark."""
    if data.startswith(b"SQLite"):
        return _recorded(data, source, declared)
    content, rows = document(data, Place(source)), []
    for task in content["tasks"]:
        for each in task["episodes"]:
            own = task["task"], each.get("episode_id"), content["benchmark"]
            rows.append((each["metrics"], each.get("failure_reason"), *own))
    return _table(rows, source, declared, partial=content.get("partial"))


def _recorded(data: bytes, source: str, declared: Declared) -> Table:
    if Path(f"{source}-journal").exists():
        problem, remedy = "is being written to", "wait until the evaluation has ended"
        raise InvalidCost(problem, where=Place(source), remedy=remedy)
    with closing(sqlite3.connect(":memory:")) as recording:
        recording.deserialize(data)
        recording.execute("PRAGMA trusted_schema = OFF")
        rows = [(json.loads(metrics or "{}"), *own) for metrics, *own in recording.execute(_LAST)]
        queue = recording.execute("SELECT 1 FROM sqlite_master WHERE name = 'work_queue'").fetchone()
        partial = queue and recording.execute("SELECT 1 FROM work_queue WHERE NOT done").fetchone()
    return _table(rows, source, declared, partial=partial)


def _table(rows: list[tuple[Any, ...]], source: str, declared: Declared, *, partial: object) -> Table:
    names = dict.fromkeys(name for metrics, *_ in rows for name in metrics)
    columns: dict[str, list[Any]] = {name: [metrics.get(name) for metrics, *_ in rows] for name in names}
    for place, name in enumerate(("task", "episode_id", "benchmark"), start=2):
        columns[name] = [row[place] for row in rows]
    says: dict[str, Kind] = {"success": "success"}
    table = of_log(source, "vla-eval", columns, declared, says=says, one_of="benchmark")
    table.strata = "task"
    if broken := sum(row[1] is not None for row in rows):
        errors = "episodes broke off with an error; vla-eval counts them as failures"
        table.notes.append(f"{broken} of {len(rows)} {errors}")
    if partial:
        table.warnings.append("the evaluation is not complete; were episodes left out?")
    return table
