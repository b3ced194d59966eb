"""Write ``docs/cli.md`` from the command line's own --help: ``python tools/generate_cli.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from boundwatch.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

INTRODUCTION = """\
# Command line

<!-- Written by tools/generate_cli.py from --help. Change the command or the generator, not this page. -->

Everything is one executable, `boundwatch`. Text is for people, `--json` for machines, `-` is standard input.
An error is one line on standard error with its remedy.

| exit code | means |
|---|---|
| 0 | done |
| 1 | bad input, no episode, an undelivered alarm (`watch`), a failed `verify`, broken promises (`selftest`) |
| 2 | wrong usage |
| 3 | with `--exit-code`: adverse shift (`check`, `watch`), worse policy (`compare`), `--margin` not shown |

Which files are read, and what their columns mean, is described in [Cost files and logs](logs.md).

## What check --json prints

The fields of a finding: `verdict` (`adverse`, `benign` or `within`), `n`, `mean_cost`, `p_adverse`,
`p_benign`, `shift_lower`, `shift_upper`, `false_positive_rate`, `false_negative_rate`, `binary` (every cost
is 0 or 1), `shares_of` (with clusters of trials that pass or fail: which), `margin` and `no_worse` (whether
it is shown; both null without `--margin`), `detector`, `tail`;
`e_adverse`, `e_benign` and `first_alarm` (as `watch` prints them; null for one look);
where the costs came from: `source`, `format`, `measure` (what was read), `design` (how rows relate),
`notes` (how the file was read) and `warnings` (what may make the guarantees wrong); and
`certificate` with `lower`, `upper`, `delta` and `fingerprint`.

With several tasks: `verdict` (`adverse` if any task is), `no_worse` (for every task), `tasks` with one object
per task (`task`, `verdict`, `n`, `mean_cost`, `p_adverse`, `p_benign`, `adjusted_adverse`,
`adjusted_benign`, `e_adverse`, `e_benign`, `first_alarm`, `shift_lower`, `shift_upper`, `binary`, `margin`,
`shares_of`, `no_worse`, and `false_positive_rate`, `false_negative_rate`, `detector`, `tail` as above),
`not_judged`, `false_positive_rate`, `false_negative_rate`; where the costs came from; and
`certificates` with the four fields of each task.

## Options of the file

Commands that read a file have these; where all are the same, they are one line below.

```text
{options}
```
"""

OPTIONS = re.compile(r"^  --success COL .*?^  --sheet NAME [^\n]*(?:\n {20,}[^\n]*)*", re.M | re.S)
RARE = re.compile(r"^  Also: .*?\)\.\n", re.M | re.S)
"""The options of the file, in what --help prints; most commands have the same."""


def render(width: int = 100) -> str:
    """Return the page."""
    root = typer.main.get_command(app)
    (options,), (rare,) = (each.findall(_help(("certify",), width)) for each in (OPTIONS, RARE))
    once = "  --success COL ...".ljust(30) + "See the options of the file."
    sections = [
        f"## {' '.join(path)}\n\n```text\n{said}\n```\n"
        for path in _paths(root, "boundwatch")
        for said in [_help(path[1:], width).replace(options, once).replace(rare, "")]
    ]
    return "\n".join([INTRODUCTION.replace("{options}", f"{options}\n{rare}".rstrip()), *sections])


def _paths(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from _paths(command.get_command(context, name), *path, name)


def _help(arguments: tuple[str, ...], width: int) -> str:
    result = CliRunner().invoke(
        app, [*arguments, "--help"], terminal_width=width, color=False, catch_exceptions=False
    )
    return result.output.strip()


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
