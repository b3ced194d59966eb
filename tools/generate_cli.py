"""Write ``docs/cli.md`` from the command line's own --help: ``python tools/generate_cli.py``."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

A finding: `verdict` (`adverse`, `benign` or `within`), `n`, `mean_cost`, `p_adverse`, `p_benign`,
`shift_lower`, `shift_upper`, `false_positive_rate`, `false_negative_rate`, `binary`, `shares_of` (which
clusters), `labels` (how many, of an audit), `margin` and `no_worse` (null without `--margin`), `detector`,
`tail`; `e_adverse`, `e_benign` and `first_alarm` (null for one look); `source`, `format`, `measure`,
`design`, `notes` (how the file was read) and `warnings` (what may make the guarantees wrong); and
`certificate` with `lower`, `upper`, `delta` and `fingerprint`.

With several tasks: `verdict` (`adverse` if any task is), `no_worse` (for every task), `tasks` with the same
fields per task and `task`, `adjusted_adverse`, `adjusted_benign`; `not_judged`, `false_positive_rate`,
`false_negative_rate`; where the costs came from; and `certificates` with the four fields of each task.

## Options

Every command has `-h, --help`, with examples; most have `--json`, or `--force` for the files they write.
After "as above" stand options that mean what they mean in a command above. `boundwatch train NAME -h` and
`rollout NAME -h` say what each task has.

```text
{options}
```
"""

ENTRY = re.compile(r"^  (?=[-A-Z])\S.*\n(?: {4,}\S.*\n?)*", re.M)
"""An option, an argument or a few options together, in what --help prints."""
GROUP = re.compile(r"^[A-Z][\w ]*:\n(?:(?: .*)?\n?)*?(?=^\S|\Z)", re.M)


def render(width: int = 100) -> str:
    """Return the page."""
    os.environ["COLUMNS"] = str(width)
    helps = list(_helps(app, "boundwatch"))
    groups = [group for _, text in helps for group in GROUP.findall(text) if group.startswith("The file:")]
    reading = [{_said(entry): entry for entry in ENTRY.findall(group)} for group in groups]
    # `plan` has a --cost of its own.
    common = (said for said in reading[0] if sum(said in other for other in reading) >= len(reading) - 1)
    file = {said: reading[0][said] for said in common}
    said = set(file)
    sections = [
        f"## {' '.join(path)}\n\n```text\n{text.strip()}\n```\n"
        for path, whole in helps
        if path[1:2] not in (("train",), ("rollout",)) or len(path) == 2  # each task has its own options
        for text in [GROUP.sub(lambda group: _once(group[0], said, set(file)), whole)]
    ]
    shown = "".join(file.values()).rstrip()
    return "\n".join([INTRODUCTION.replace("{options}", shown), *sections])


_USUAL = ("--json", "--force")
"""What goes without saying."""


def _said(entry: str) -> str:
    return " ".join(entry.split())


def _name(entry: str) -> str:
    """Return what an entry is called: its option or argument, or all options that it puts together."""
    if entry.strip().startswith("Also:"):
        return ", ".join(re.findall(r"--[\w-]+", entry))
    shown = re.split(r"  | <", entry.strip())[0].split()
    return next((word for word in shown if word.startswith("--")), " ".join(shown))


def _once(group: str, said: set[str], file: set[str]) -> str:
    """Return a group of options without those that were said, which are named at its end."""
    if group.startswith(("Commands", "Example")):  # each has a section of its own; tutorials have examples
        return ""
    known: dict[str, str] = {}
    rare = next(words for words in file if words.startswith("Also:")).removesuffix(".")
    for entry in ENTRY.findall(group):
        words = _said(entry)
        if words.startswith(f"{rare}, "):  # these, and more
            more = f"  Also: {words.removeprefix(f'{rare}, ')}\n"
            group, words = group.replace(entry, f"{more}{entry}", 1), f"{rare}."
        name = _name(entry)
        if words in said or name == "--help":
            group = group.replace(entry, "", 1)
            known |= {words: name} if name != "--help" else {}
        said.add(words)
    without = [_name(words) for words in file - known.keys()]
    usual = file if len(without) <= 1 else set()
    names = [name for words, name in known.items() if words not in usual and name not in _USUAL]
    names = [" but ".join(["the options of the file", *without])] * bool(usual) + names
    above = textwrap.fill(
        f"as above: {', '.join(names)}",
        98,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    told = names and not group.startswith("Arguments")  # the line of usage has these
    rest = f"{group.rstrip()}\n" + (f"{above}\n" if told else "")
    return "" if rest.count("\n") < 2 else f"{rest}\n"


def _helps(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the help of a command, and of those that it has."""
    name = " ".join(path)
    yield path, command.help(name)
    for each in getattr(command, "names", tuple)():
        yield from _helps(command.find(each), *path, each)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
