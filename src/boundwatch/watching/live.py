"""A stream of episodes, one line each, watched by a detector whose state survives a crash."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.stream import StreamDetector
from boundwatch.episodes.table import Table, kinds, parse, shown, to_costs
from boundwatch.errors import BoundwatchError, CertificateError, InvalidCost, InvalidSetting, SchemaMismatch

DETECTORS: dict[str, type[SequentialTest] | type[ChangeDetector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
}
_KIND = "watch"
_VERSION = 2


class Line(NamedTuple):
    """A line of the stream: its number from 1, its text, and the byte after it."""

    number: int
    text: str
    end: int


def parse_line(
    text: str,
    *,
    column: str | None = None,
    cost_range: tuple[float, float] | None = None,
    binary: bool = False,
) -> float:
    """Return the cost that a line holds: a number, or a JSON object with one.

    Parameters
    ----------
    text
        The line. The rules are those of `read_costs`: a ``success`` becomes the cost 1 - success.
    column, cost_range, binary
        As in `read_costs`.

    Raises
    ------
    InvalidCost
        When the line holds no cost.
    InvalidSetting
        When all lines like it would be misread: a reward without its range, a column that may be better when
        it is higher.

    Examples
    --------
    >>> parse_line("0.25"), parse_line('{"episode": 3, "success": true}'), parse_line("7", cost_range=(0, 10))
    (0.25, 0.0, 0.7)
    """
    text = _bare(text)
    values: Mapping[str, Any] = {"1": text}
    if text.startswith(("{", "[", '"')):
        try:
            values = json.loads(text)
        except ValueError as error:
            raise InvalidCost(f"{text[:40]!r} is not JSON ({error})") from error
        if not isinstance(values, dict):
            raise InvalidCost(f"{text[:40]!r} is neither a number nor a JSON object")
    table = Table(list(values), text.startswith("{"), lambda name: [values[name]])
    try:
        name = table.choose(column, "the line")
    except InvalidSetting as error:
        raise InvalidCost(str(error)) from error
    meaning = table.meaning(name, "the line")
    try:
        return float(to_costs(table, name, meaning, cost_range, binary=binary, source="the line")[0])
    except InvalidCost as error:
        raise InvalidCost(str(error).removeprefix("the line: row 1 = ")) from error


def refuse_header(line: Line, path: str, *, first: bool) -> None:
    r"""Raise `InvalidSetting` for the header of a table: without it, the lines after it would be misread.

    Parameters
    ----------
    line
        A line that is not empty.
    path
        Where it comes from, for the error.
    first
        Whether nothing came before it. Later on, only the name of a success or reward is a header, as only
        these turn costs round.

    Examples
    --------
    >>> refuse_header(Line(1, "0.25\n", 5), "-", first=True)
    >>> refuse_header(Line(2, "success\n", 8), "-", first=False)
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: standard input: line 2 = 'success' is neither a number nor JSON...
    """
    text = _bare(line.text)
    if text.startswith(("{", "[")) or parse(text.strip('"')) is not None:
        return
    if first or kinds(text) & {"success", "reward"}:
        source = "standard input" if path == "-" else path
        raise InvalidSetting(
            f"{source}: line {line.number} = {shown(text)} is neither a number nor JSON, and what follows a "
            "header means nothing without it; read a table with --format csv, or send costs or JSON objects"
        )


def read_lines(path: str, *, start: int = 0, number: int = 0, wait: bool = False) -> Iterator[Line]:
    """Yield the lines of a file from byte `start` on, or those of standard input.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    start, number
        The byte to begin at, and how many lines come before it.
    wait
        Whether to wait for more at the end of the file. A last line without its newline is then not yielded
        before it is finished.
    """
    if path == "-":
        try:
            # Unbuffered: what was not yet counted when the program is killed stays in the pipe.
            with io.FileIO(sys.stdin.fileno(), closefd=False) as pipe:
                for raw in pipe:
                    number += 1
                    yield Line(number, raw.decode("utf-8", "replace"), 0)
        except (OSError, AttributeError) as error:  # a folder, or closed
            raise InvalidSetting("standard input: cannot be read; pipe or redirect a file into it") from error
        return
    try:
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size < start:
                raise InvalidSetting(f"{path}: is shorter than when it was last read; start a new --state")
            file.seek(start)
            while True:
                raw = file.readline()
                if raw.endswith(b"\n") or (raw and not wait):
                    number += 1
                    start += len(raw)
                    yield Line(number, raw.decode("utf-8", "replace"), start)
                elif not wait:
                    return
                else:
                    file.seek(start)  # an unfinished line is read again when there is more of it
                    time.sleep(0.1)
                    if os.fstat(file.fileno()).st_size < start:
                        raise InvalidSetting(f"{path}: became shorter while it was watched")
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be read, {error.strerror}; check the path") from error


@dataclass
class Watch:
    """A detector and how much of its stream it has counted.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> watch = Watch(bw.SequentialTest(certificate), source="-")
    >>> finding = watch.count(Line(1, "0.4", 0), 0.4)
    >>> Watch.from_dict(watch.to_dict(), certificate).lines
    1
    """

    detector: StreamDetector[Any]
    source: str
    lines: int = 0
    end: int = 0
    skipped: int = 0
    last_cost: float | None = None
    digest: str = ""
    """SHA-256 of the last line and of the digest before it, so of all lines: is it still the same stream?"""

    def count(self, line: Line, cost: float) -> Any:
        """Count the cost of a line and return the finding."""
        finding = self.detector.update(cost)
        self.last_cost = cost
        self._pass(line)
        return finding

    def skip(self, line: Line, *, malformed: bool) -> None:
        """Pass over a line that holds no cost."""
        self._pass(line)
        self.skipped += malformed

    def _pass(self, line: Line) -> None:
        self.lines, self.end = line.number, line.end
        self.digest = _chain(self.digest, line)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "kind": _KIND,
            "version": _VERSION,
            "source": self.source,
            "lines": self.lines,
            "end": self.end,
            "skipped": self.skipped,
            "last_cost": self.last_cost,
            "digest": self.digest,
            "detector": self.detector.state_dict(),
        }

    @classmethod
    def from_dict(cls, content: object, certificate: Certificate) -> Watch:
        """Return the watch that `to_dict` described; it must belong to the certificate."""
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise SchemaMismatch("it is not a state that `boundwatch watch` wrote; name another file")
        if content.get("version") != _VERSION:
            raise SchemaMismatch(
                f"it has version {content.get('version')!r}, not {_VERSION}; start a new one"
            )
        state = content.get("detector")
        kind = state.get("kind") if isinstance(state, dict) else None
        matching = [build for build in DETECTORS.values() if build.__name__ == kind]
        numbers = [content.get(name) for name in ("lines", "end", "skipped")]
        if not matching or not isinstance(state, dict) or not all(type(x) is int and x >= 0 for x in numbers):
            raise SchemaMismatch("it is damaged; start a new one")
        return cls(
            detector=matching[0].from_state_dict(state, certificate),
            source=str(content.get("source")),
            lines=content["lines"],
            end=content["end"],
            skipped=content["skipped"],
            last_cost=content.get("last_cost"),
            digest=str(content.get("digest")),
        )

    def save(self, path: Path) -> None:
        """Write the state; a reader sees the old one or the new one, never a part."""
        files.write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path, certificate: Certificate, source: str) -> Watch:
        """Read a state and check that it belongs to the certificate and to the source as it is now."""
        try:
            watch = cls.from_dict(json.loads(files.read_bytes(path)), certificate)
        except ValueError as error:
            if isinstance(error, BoundwatchError):
                raise
            raise SchemaMismatch(f"{path}: is not JSON; name another file, or delete it") from error
        except CertificateError as error:
            raise type(error)(f"{path}: {error}") from error
        if watch.source != source:
            raise InvalidSetting(
                f"{path}: follows {watch.source!r}, not {source!r}; use one state file per source"
            )
        if source != "-" and watch.digest != _digest(source, watch.end):
            raise InvalidSetting(
                f"{path}: the {watch.lines} lines that it counted are no longer those of {source}; restore "
                "that file, or start a new --state"
            )
        return watch


def _bare(text: str) -> str:
    return text.removeprefix("\ufeff").strip()


def _chain(digest: str, line: Line) -> str:
    return hashlib.sha256(f"{digest}{line.text}".encode()).hexdigest()


def _digest(source: str, end: int) -> str:
    """Return the digest of a file's lines up to a byte."""
    digest = ""
    for line in takewhile(lambda line: line.end <= end, read_lines(source)):
        digest = _chain(digest, line)
    return digest
