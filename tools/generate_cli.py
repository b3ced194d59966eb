"""Write ``docs/cli.md`` from the commands themselves: ``python tools/generate_cli.py``."""

from __future__ import annotations

import dataclasses
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from boundwatch.cli import app
from boundwatch.cli.reading import Reading

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

INTRODUCTION = """\
# Command line

<!-- Written by tools/generate_cli.py from the commands. Change those, not this page. -->

Everything is one executable, `boundwatch`. Text is for people, `--json` for machines, `-` is standard input.
An error is one line on standard error with its remedy. `boundwatch COMMAND --help` says more.

| exit code | means |
|---|---|
| 0 | done |
| 1 | bad input, no episode, an undelivered alarm (`watch`), a failed `verify`, broken promises (`selftest`) |
| 2 | wrong usage |
| 3 | with `--exit-code`: adverse shift (`check`, `watch`), worse policy (`compare`), `--margin` not shown |

Which files are read, and what their columns mean, is described in [Cost files and logs](logs.md).

## What check --json prints

`verdict` (`adverse`, `benign` or `within`), `n`, `mean_cost`, `p_adverse`, `p_benign`, `shift_lower`,
`shift_upper`, `false_positive_rate`, `false_negative_rate`, `binary` (every cost is 0 or 1), `shares_of`
(with clusters of trials that pass or fail: which), `margin` and `no_worse` (null without `--margin`),
`detector`, `tail`; `e_adverse`, `e_benign` and `first_alarm` (as `watch` prints them; null for one look);
`source`, `format`, `measure` (what was read), `design` (how rows relate), `notes` (how the file was read),
`warnings` (what may make the guarantees wrong); and `certificate` with `lower`, `upper`, `delta` and
`fingerprint`.

With several tasks: `verdict` (`adverse` if any task is), `no_worse` (for every task), `tasks` (these fields
for each, with `task`, `adjusted_adverse` and `adjusted_benign`), `not_judged`, `control`, the two rates,
where the costs came from, and `certificates`.

## Options of the file

Every command that reads a file has them all, unless it says otherwise.

```text
{file}
```

## Options of several commands

Each command names those that it has after "Also".

```text
{shared}
```
"""

Record = tuple[str, str]
"""An option or argument as it is written, and what it does."""


def render() -> str:
    """Return the page: what several commands have is said once."""
    commands = dict(_commands(typer.main.get_command(app), "boundwatch"))
    records = {name: list(_records(command)) for name, command in commands.items()}
    reading = {field.name for field in dataclasses.fields(Reading)}
    file = list(_records(commands["boundwatch check"], reading))
    times = Counter(each for found in records.values() for each in found)
    shared = sorted(each for each, count in times.items() if count > 1 and each not in file)
    page = INTRODUCTION.replace("{file}", _listed(file)).replace("{shared}", _listed(shared))
    return "\n".join([page, *(_section(name, commands[name], file, shared) for name in commands)])


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    context = typer.Context(command)
    for each in command.list_commands(context):
        yield from _commands(command.get_command(context, each), f"{name} {each}")


def _records(command: Any, names: set[str] | None = None) -> Iterator[Record]:
    context = typer.Context(command)
    for each in command.get_params(context):
        if (names is None or each.name in names) and each.name != "help":
            name, said = each.get_help_record(context)
            name = name.split(" <")[0] if each.param_type_name == "argument" else name
            yield name, said.replace("  [required]", "").strip()


def _listed(records: list[Record]) -> str:
    return "\n".join(
        textwrap.fill(
            said, 108, initial_indent=f"  {name}  ", subsequent_indent=" " * 6, break_on_hyphens=False
        )
        for name, said in records
    )


def _section(name: str, command: Any, file: list[Record], shared: list[Record]) -> str:
    """Return what a command is for, what only it has, the names of what others have, too, and examples."""
    records = list(_records(command))
    own = [each for each in records if each not in (*file, *shared)]
    reads = ["the options of the file"] if len(set(file) & set(records)) > len(file) // 2 else []
    also = [*(each[0].removeprefix("-o, ").split()[0] for each in records if each in shared), *reads]
    pieces = command.collect_usage_pieces(typer.Context(command))[1:]
    usage = " ".join([name, *pieces]).replace("{", "").replace("}", "").replace("[[", "[").replace("]]", "]")
    lines = [
        f"Usage: {usage}",
        *filter(None, [_listed(own)]),
        *(f"  Also {', '.join(also)}." for _ in also[:1]),
    ]
    examples = [f"    {each}" for each in str(command.epilog).splitlines()[:3]]
    summary = str(command.help).partition("\n\n")[0]
    return "\n".join([f"## {name}\n\n{summary}\n\n```text", *lines, "Example:", *examples, "```\n"])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
