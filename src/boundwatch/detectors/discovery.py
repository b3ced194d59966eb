"""Which tests a fleet has begun, and what share of the false discovery rate each of them may spend.

e-BH lists the k tests with the largest e_i g_i, for the largest k whose k-th is at least 1/(k rate). The
shares g_i must add up to at most 1 and not depend on costs, so they are dealt out in advance: one half,
equally, to the m streams of the first look; of the rest, block b of later tests (new streams and resets), m
2^(b - 1) of them, divides 1/((b + 1)(b + 2)). The proof is in ``docs/theory.md``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.schema import convert
from boundwatch.detectors.saving import Count
from boundwatch.errors import SchemaMismatch

Array = NDArray[np.float64]


@dataclass
class DiscoveryShares:
    """The tests of a fleet in the order in which they began; see the top of the file."""

    first: Count | None = None
    """Streams at the first look; None before it."""
    used: Count = 0
    """Places of the reserve that are taken."""
    late: dict[str, Count] = field(default_factory=dict)
    """The row of a stream to its place in the reserve; text, as in JSON."""

    def add(self, start: int, stop: int) -> None:
        """Begin the tests of new streams."""
        if self.first is not None:
            for row in range(start, stop):
                self.restart(row)

    def restart(self, row: int) -> None:
        """Begin a stream's test anew; the old one is not listed any more, and its share is spent."""
        self.late[str(row)] = self.used
        self.used += 1

    def look(self, total: int) -> Array:
        """Return the logarithms of the shares of all streams, as the first look fixed them."""
        self.first = self.first or total
        shares = np.full(total, -math.log(2 * self.first))
        for row, place in self.late.items():
            shares[int(row)] = _reserved(place, self.first)
        return shares

    @classmethod
    def from_dict(cls, content: object, total: int) -> DiscoveryShares:
        """Return the shares that `dataclasses.asdict` described, of so many streams."""
        shares = convert(cls, content, "state.shares")
        if asdict(shares) != content:
            raise SchemaMismatch("is not whole", name="state.shares", remedy="the state is damaged")
        for row, place in shares.late.items():
            if not (row.isdecimal() and int(row) < total) or place >= shares.used:
                problem = f"has the unknown place {row!r}"
                raise SchemaMismatch(problem, name="state.shares", remedy="the state is damaged")
        return shares


def _reserved(place: int, first: int) -> float:
    """Return the log share of a place in the reserve, counted from 0."""
    block = math.floor(math.log2(place / first + 1)) + 1
    return -math.log((block + 1) * (block + 2) * first * 2 ** (block - 1))
