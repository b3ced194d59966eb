"""Write ``docs/cli.md`` from the command line's own --help: ``python docs/generate_cli.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from boundwatch.cli import app

PAGE = Path(__file__).with_name("cli.md")

INTRODUCTION = """\
# Command line

<!-- Written by docs/generate_cli.py from --help. Change the command or the generator, not this page. -->

Everything is one executable, `boundwatch`. Text is for people, `--json` for machines, `-` is standard input.
An error is one line on standard error with its remedy.

| exit code | means |
|---|---|
| 0 | done |
| 1 | an error: bad input, or a certificate that does not verify; nothing was written |
| 2 | wrong usage |
| 3 | `check --exit-code` found an adverse shift |

## Cost files

One row per episode. The format is recognised by content, not by name (`--format` names it), and may be
gzipped:

| format | what it holds |
|---|---|
| CSV | commas, semicolons or tabs; with a header, or without one if the first row is all numbers |
| JSON lines | a number or an object on each line |
| NPY | an array of shape (n,) or (n, columns), or a record array; never pickled objects |
| Parquet | a flat column (needs the extra `io`: `pip install 'boundwatch[io]'`) |

The logs of LeRobot, Stable-Baselines3 and MCAP, files with several rows an episode, and several tasks at once
are described in [Logs](logs.md).

A header that is a number cannot be told from data: pandas writes `0` above a Series without a name, which
would count as one more cost. Give it a name, or write `header=False`.

A cost lies in [0, 1], and higher is worse. The last word of a column's name says what it holds:

| column | becomes |
|---|---|
| `success`, `is_success`, `next.success` | cost = 1 - success; true, false, 0 or 1; a binary certificate |
| `reward`, `return` | cost = (HIGH - reward) / (HIGH - LOW); needs `--cost-range LOW HIGH` |
| `cost` and every other name | the cost itself, or (cost - LOW) / (HIGH - LOW) with `--cost-range LOW HIGH` |

The range must be known before the data: one that is read off the data bounds nothing.
Without `--column`, exactly one column must be called `cost`, `success` or `reward`, or there must be a single
column without a name. Whatever is missing, not a number or out of range is refused with its row, because an
episode that is left out quietly would make every guarantee wrong.

## What check --json prints

The fields of a finding: `verdict` (`adverse`, `benign` or `within`), `n`, `mean_cost`, `p_adverse`,
`p_benign`, `shift_lower`, `shift_upper`, `false_positive_rate`, `false_negative_rate`, `detector`, `tail`;
where the costs came from: `source`, `column`, `meaning`, `format`, `cost_range`, `by`, `detail` and
`warnings`; and `certificate` with `lower`, `upper`, `delta` and `fingerprint`.

With several tasks: `verdict` (`adverse` if any task is), `tasks` with one object a task (`task`, `verdict`,
`n`, `mean_cost`, `p_adverse`, `p_benign`, `adjusted_adverse`, `adjusted_benign`, `e_adverse`, `e_benign`,
`shift_lower`, `shift_upper`), `not_judged`, `control`, `false_positive_rate`, `false_negative_rate`; where
the costs came from; and `certificates` with the four fields of each task.
"""


def render(width: int = 100) -> str:
    """Return the page."""
    root = typer.main.get_command(app)
    sections = [
        f"## {' '.join(path)}\n\n```text\n{_help(path[1:], width)}\n```\n"
        for path in _paths(root, "boundwatch")
    ]
    return "\n".join([INTRODUCTION, *sections])


def _paths(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from _paths(child, *path, name)


def _help(arguments: tuple[str, ...], width: int) -> str:
    result = CliRunner().invoke(
        app, [*arguments, "--help"], terminal_width=width, color=False, catch_exceptions=False
    )
    return result.output.strip()


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
