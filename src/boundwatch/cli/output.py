"""How commands print: aligned text for people, JSON for machines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from boundwatch._support.files import one_page
from boundwatch._support.text import printable
from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.signing import signature_path
from boundwatch.certificates.verification import on_trust
from boundwatch.episodes import Episodes
from boundwatch.episodes.table import Meaning
from boundwatch.reporting.wording import count


def print_json(content: object) -> None:
    """Print one JSON document."""
    print(one_page(content), end="")


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print labeled lines, the labels in a column of their own."""
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
    rule = describe_column(episodes.column, episodes.meaning, episodes.cost_range)
    tasks = f" of {count(len(set(episodes.tasks)), 'task')} (column {episodes.by})" if episodes.tasks else ""
    detail = f", {episodes.detail}" if episodes.detail else ""
    steps = f" ({episodes.reduce} of the rows with the same {episodes.episode})" if episodes.episode else ""
    read = f"; {episodes.file_format}, {count(len(episodes.costs), 'episode')}{steps}{tasks}{detail}"
    return f"{episodes.source}{rule}{read}"


def describe_column(column: str | None, meaning: Meaning, cost_range: tuple[float, float] | None) -> str:
    """Say which column was read, and how it was turned into costs; it follows the name of a file."""
    name = f", column {column}" if column else ""
    if cost_range is not None:
        low, high = map(shortest, cost_range)
        worst = low if meaning == "reward" else high
        return f"{name}, rescaled to a cost from the range {low} to {high}: {worst} is worst"
    return name + (", cost = 1 - success" if meaning == "success" else ", read as a cost: 1 is worst")


def source_fields(episodes: Episodes) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "source": episodes.source,
        "column": episodes.column,
        "meaning": episodes.meaning,
        "format": episodes.file_format,
        "cost_range": episodes.cost_range,
        "by": episodes.by,
        "episode": episodes.episode,
        "reduce": episodes.reduce,
        "detail": episodes.detail,
        "notes": episodes.notes,
        "warnings": episodes.warnings,
    }


def print_warnings(episodes: Episodes) -> None:
    """Say on standard error how the file was read, and what may make the guarantees wrong."""
    for note in episodes.notes:
        print(f"boundwatch: note: {note}", file=sys.stderr)
    for warning in episodes.warnings:
        print(f"boundwatch: warning: {printable(warning)}", file=sys.stderr)


def print_trust(loaded: Certificate | CertificateFamily, key: object) -> None:
    """Say on standard error which numbers of a certificate are taken on trust, without a key."""
    if key is not None:
        return
    each = [loaded] if isinstance(loaded, Certificate) else loaded.values()
    for trusted in dict.fromkeys(filter(None, map(on_trust, each))):
        message = f"taken on trust: {trusted}; --key checks who signed them"
        print(f"boundwatch: note: {message}", file=sys.stderr)


def signed(output: Path, key: object) -> str:
    """Say that a signature was written beside a certificate, if it was."""
    return "" if key is None else f" and {signature_path(output)}"


def print_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows under their heads; the last column, of names, may be of any width."""
    lines = [tuple(map(printable, line)) for line in (heads, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads) - 1)]
    for line in lines:
        cells = [f"{cell:>{width}}" for cell, width in zip(line, widths, strict=False)]
        print("  " + "  ".join([*cells, line[-1]]))


def _fill(text: str, first: str, rest: str) -> str:
    text = printable(text)
    if not sys.stdout.isatty():  # the reader of a pipe wants whole lines
        return first + text
    columns = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(text, columns, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
