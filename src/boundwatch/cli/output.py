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
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
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
    design = episodes.design
    tasks = set(episodes.keys.get("by", ()))
    of = f" of {count(len(tasks), 'task')} (column {design.by})" if tasks else ""
    steps = f" ({design.reduce} of the rows with the same {design.episode})" if design.episode else ""
    read = f"; {episodes.file_format}, {count(len(episodes.costs), 'episode')}{steps}{of}"
    where = "".join(f", {column} {value}" for column, value in design.where.items())
    return f"{episodes.source}{describe_measure(episodes.measure)}{where}{read}"


def describe_measure(measure: Measure) -> str:
    """Say which column was read, and how it was turned into costs; it follows the name of a file."""
    name = f", column {measure.column}" if measure.column else ""
    if measure.cost_range is not None:
        low, high = map(shortest, measure.cost_range)
        worst = low if measure.kind == "reward" else high
        return f"{name}, rescaled to a cost from the range {low} to {high}: {worst} is worst"
    return name + (", cost = 1 - success" if measure.kind == "success" else ", read as a cost: 1 is worst")


def source_fields(episodes: Episodes) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "source": episodes.source,
        "format": episodes.file_format,
        "measure": episodes.measure.to_dict(),
        "design": episodes.design.to_dict(),
        "notes": episodes.notes,
        "warnings": episodes.warnings,
    }


def print_warnings(*read: Episodes) -> None:
    """Say on standard error how files were read, and what may make the guarantees wrong; each once."""
    for note in dict.fromkeys(note for each in read for note in each.notes):
        print(f"boundwatch: note: {printable(note)}", file=sys.stderr)
    for warning in dict.fromkeys(warning for each in read for warning in each.warnings):
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
