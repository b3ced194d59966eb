"""How commands print: aligned text for people, JSON for machines."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from boundwatch.episodes import Episodes


def print_json(content: object) -> None:
    """Print one JSON document."""
    print(json.dumps(content, indent=2, allow_nan=False))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print labelled lines, the labels in a column of their own."""
    pairs = list(rows)
    width = max(len(label) for label, _ in pairs) + 2
    for label, text in pairs:
        print(_fill(text, first=f"  {label:{width}}", rest=" " * (width + 2)))


def print_section(title: str, sentences: Iterable[str], bullet: str = "") -> None:
    """Print a title and the sentences under it."""
    print(f"\n{title}")
    for sentence in sentences:
        print(_fill(sentence, first=f"  {bullet}", rest="  " + " " * len(bullet)))


def describe_source(episodes: Episodes) -> str:
    """Say which file and column the costs came from, and how they were turned into costs."""
    rule = {"cost": "", "success": ", cost = 1 - success", "reward": ", rescaled to a cost"}[episodes.meaning]
    return f"{episodes.source}{f', column {episodes.column}' if episodes.column else ''}{rule}"


def source_fields(episodes: Episodes) -> dict[str, Any]:
    """Return the same for JSON."""
    return {"source": episodes.source, "column": episodes.column, "meaning": episodes.meaning}


def _fill(text: str, first: str, rest: str) -> str:
    if not sys.stdout.isatty():  # whoever reads a pipe wants whole lines
        return first + text
    columns = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(text, columns, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
