"""How commands print: aligned text for people, JSON for machines."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch._support.describing import printable
from boundwatch._support.validation import shortest
from boundwatch.certificates import signing
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.certificates.verification import on_trust
from boundwatch.cli.options import flag, refuse
from boundwatch.episodes.episodes import Episodes, describe
from boundwatch.errors import InvalidSetting, Place
from boundwatch.reporting import families as words
from boundwatch.reporting import wording
from boundwatch.reporting.wording import count

_ARGUMENT = re.compile(r"\b(by|strata|cluster|episode)='([^']*)'")  # in notes, as Python spells it
_UNUSUAL = 0.2  # a level that people may not have meant


def print_json(content: object) -> None:
    """Print one JSON document."""
    print(files.one_page(content))


def print_bold(text: str, *, err: bool = False) -> None:
    """Print what matters most: bold, on a terminal."""
    file = sys.stderr if err else sys.stdout
    print(f"\x1b[1m{text}\x1b[0m" if file.isatty() else text, file=file)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print labeled lines, the labels in a column of their own."""
    labels, texts = zip(*rows, strict=True)
    width = max(map(len, labels)) + 2
    firsts = [f"  {label:{width}}" for label in labels]
    _print_filled(firsts, texts, rest=" " * (width + 2))


def print_section(title: str, sentences: Iterable[str], bullet: str = "") -> None:
    """Print a title and the sentences under it."""
    print(f"\n{title}")
    texts = list(sentences)
    _print_filled([f"  {bullet}"] * len(texts), texts, rest="  " + " " * len(bullet))


def print_finding(said: words.Words, sources: Sequence[Episodes]) -> None:
    """Print a verdict, what it rests on, and how that is to be read."""
    print_bold(said.headline)
    print("".join(f"{line}\n" for line in (*said.lines, "")), end="")
    if said.table is not None:
        print_table(*said.table)
        print()
    print_rows([*said.rows, *(("costs", describe_source(each)) for each in sources)])
    print_section("Note", said.notes, bullet="- ")


def describe_source(episodes: Episodes) -> str:
    """Say which file and column the costs came from, and how they were turned into costs."""
    design, measure = episodes.design, episodes.measure
    said = episodes.source + (f", column {measure.column}" if measure.column else "")
    if measure.counted or measure.timeout_as is not None or measure.empty_as is not None:
        said = f"{episodes.source}, {measure}"
    elif measure.cost_range is not None:
        low, high = map(shortest, measure.cost_range)
        worst = low if measure.kind == "reward" else high
        said += f", rescaled to a cost from the range {low} to {high}: {worst} is worst"
    else:
        said += ", cost = 1 - success" if measure.kind == "success" else ", read as a cost: 1 is worst"
    for column, value in design.where.items():
        said += f", {column} {value}"
    counted = count(len(episodes.costs), "episode")
    if episodes.repeats:
        counted = describe(episodes.repeats, str(design.cluster))
    said += f"; {episodes.file_format}, {counted}"
    if design.episode:
        said += f" ({design.reduce} of the rows with the same {design.episode})"
    if tasks := set(episodes.keys.get("by", ())):
        said += f" of {count(len(tasks), 'task')} (column {design.by})"
    return said


def source_fields(*sources: Episodes) -> dict[str, Any]:
    """Return the same for JSON; of several metrics, a list."""
    fields = [
        {
            "source": each.source,
            "format": each.file_format,
            "measure": each.measure.to_dict(),
            "design": each.design.to_dict(),
            "notes": each.notes,
            "warnings": each.warnings,
        }
        for each in sources
    ]
    return {"metrics": fields} if len(sources) > 1 else fields[0]


def print_warnings(*read: Episodes) -> None:
    """Say on standard error how files were read, and what may make the guarantees wrong; each once."""
    notes: dict[str, None] = {}
    warnings: dict[str, None] = {}
    for each in read:
        notes |= dict.fromkeys(each.notes)
        warnings |= dict.fromkeys(each.warnings)
    for line in (*map("note: {}".format, notes), *map("warning: {}".format, warnings)):
        warn(_ARGUMENT.sub(r"--\1 \2", line))


def warn(message: str) -> None:
    """Say something on standard error."""
    print(f"boundwatch: {printable(message)}", file=sys.stderr, flush=True)


def warn_of_levels(levels: Mapping[str, float | None]) -> None:
    """Say plainly what an unusually high error rate means."""
    for name, level in levels.items():
        if level is not None and _UNUSUAL <= level < 1:
            warn(
                f"warning: {flag(name)} {level:g} lets the promise fail in up to {100 * level:.0f} of 100 "
                "cases where it should hold; 0.05 or less is usual"
            )


def seen(known: Any, cost: float) -> str:
    """Say a trial's outcome, and what is known of all so far, in columns."""
    if known.binary:
        return f"{'failed' if cost else 'succeeded':<9}  {wording.failed(known):<16}"
    return f"cost {cost:<6.4g} mean {known.mean_cost:<7.4f}"


def each_of(loaded: Certificate | Mapping[str, Certificate] | None) -> list[Certificate]:
    """Return the certificates of a file, if there is one."""
    return [loaded] if isinstance(loaded, Certificate) else list((loaded or {}).values())


def load_trusted(path: Path, key: Path | None) -> Certificate | CertificateFamily:
    """Load certificates; say on standard error which of their numbers are taken on trust, without a key."""
    loaded = load(path, key=key)
    for trusted in dict.fromkeys(filter(None, map(on_trust, each_of(loaded)))) if key is None else ():
        warn(f"note: taken on trust: {trusted}; --key checks who signed them")
    return loaded


def protect(
    outputs: Mapping[str, Path | None], inputs: Sequence[Any], *, force: bool, no_title: bool = False
) -> None:
    """Refuse what `files.protect` refuses, and options about files where none is to be written."""
    if (no_title or force) and not any(outputs.values()):
        needs = f"goes with {' or '.join(map(flag, outputs))}; give it, or leave this out"
        refuse({"no_title": no_title, "force": force}, needs)
    for path in filter(None, outputs.values()):
        files.protect(path, inputs, force=force)


def print_promise(loaded: Certificate | CertificateFamily, basis: Iterable[str] = ()) -> None:
    """Print what certificates promise, and what they stand on."""
    basis = list(basis)
    if isinstance(loaded, Certificate):
        print_section("Promise", wording.promise(loaded))
        print_section("Basis", [*wording.basis(loaded), *basis])
        return
    print_section("Promise", words.promise(loaded))
    print()
    print_table(*words.promises(loaded))
    if notes := words.vacuous(loaded):
        print_section("Note", notes)
    if basis:
        print_section("Basis", basis)


def save(loaded: Certificate | CertificateFamily, output: Path, sign: Path | None) -> str:
    """Write certificates, signed if there is a key; say what was written."""
    if sign is not None:
        signing.sign(output, loaded.to_dict(), sign)
    loaded.save(output)
    return f"Wrote {output}" + ("" if sign is None else f" and {signing.signature_path(output)}")


_NOT_PAGES = {".pdf", ".png", ".svg", ".jpg", ".jpeg", ".docx"}


def require_html(path: Path | None) -> None:
    """Refuse a page under a name that promises another format."""
    if path is not None and path.suffix.lower() in _NOT_PAGES:
        remedy = "end its name in .html; any browser prints it as PDF"
        raise InvalidSetting("would be an HTML page", where=Place(str(path)), remedy=remedy)


def draw(path: Path | None, kind: str, *arguments: Any, title: bool = True) -> None:
    """Draw a figure of a kind that `boundwatch.reporting.plots` has, if somebody wants one."""
    if path is not None:
        from boundwatch.reporting import plots

        plots.save_figure(getattr(plots, kind)(*arguments), path, title=title)


def print_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows under their heads; the last column, of names, may be of any width."""
    lines = [tuple(map(printable, line)) for line in (heads, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads) - 1)]
    for line in lines:
        cells = [f"{cell:>{width}}" for cell, width in zip(line, widths, strict=False)]
        print("  " + "  ".join([*cells, line[-1]]))


def _print_filled(firsts: Sequence[str], texts: Sequence[str], rest: str) -> None:
    columns = max(40, shutil.get_terminal_size().columns)
    for first, text in zip(firsts, list(map(printable, texts)), strict=True):
        if sys.stdout.isatty():
            fill = textwrap.TextWrapper(columns, first, rest, break_on_hyphens=False).fill
            print(fill(text))
        else:  # the reader of a pipe wants whole lines
            print(first + text)
