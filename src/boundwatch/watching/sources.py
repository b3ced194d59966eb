"""What lines come from, whatever is behind it: a file, a pipe, a spool, or rows that were read before.

A source yields batches: all whole lines that are there now. The one who counts them stores the `Position`
behind the last one, and can go on from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from boundwatch.watching.lines import Batch, LineSplitter

CHUNK = 1 << 16
"""Bytes that are read at once: what a pipe holds."""
NOTHING = Batch((0, 0), [], b"", 0, None)
"""What a source yields now and then while it waits, for those who have something else to do."""


class Source(Protocol):
    """What yields lines."""

    restless: bool
    """Whether to yield `NOTHING` while no line comes, where that is possible."""

    def batches(self) -> Iterator[Batch]:
        """Yield the lines that are there, until there will be no more."""
        ...


class RowSource:
    """Costs that were read as a whole, one line each.

    Parameters
    ----------
    lines
        What is counted.
    numbers
        The line of the file that each comes from; left out, they are numbered from 1.
    """

    def __init__(self, lines: list[str], numbers: Sequence[int] = ()) -> None:
        self._lines = lines
        self.restless = False  # it never waits
        self._numbers = numbers or range(1, len(lines) + 1)

    def batches(self) -> Iterator[Batch]:
        """Yield all lines."""
        for batch in LineSplitter((0, 0)).feed("".join(f"{line}\n" for line in self._lines).encode()):
            numbered = zip(batch.lines, self._numbers, strict=True)
            yield replace(batch, lines=[line._replace(number=number) for line, number in numbered])


def name_of(path: str) -> str:
    """Return what to call a stream in a message."""
    return "standard input" if path == "-" else path
