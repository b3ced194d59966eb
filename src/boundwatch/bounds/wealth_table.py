"""The wealth of many streams at once; `boundwatch.bounds.bets.Wealth` is that of one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Array, Bets, fold_interval, linear_factors

Rows = NDArray[np.int64]

# Sums are folded below this. A bet 1e180 times behind is written as if it were just so far, with an anchor of
# its own: until the next fold it stays below 1e-120, which no sum notices, and above the denormal numbers.
_FOLD_BELOW = 1e-100
_LOG_BEHIND = -180 * math.log(10)
_N, _TOTAL, _NUMBERS = 0, 1, 2  # columns of the book; then tops, wealth and best of each side


class WealthTable:
    """One row per stream, with all sides of `Wealth`, or with the adverse one alone if there is no rest.

    A bet's log capital is its anchor plus the logarithm of its entry in `capitals`; of all bets that matter
    the anchor is the one of their side in the book. What else changes with every cost is in the book, too,
    because each table costs a gather and a scatter.

    Examples
    --------
    >>> table = WealthTable(Bets.for_costs(binary=False), 0.2, 0.9, size=2)
    >>> for costs in [[0.5, 0.0], [0.9, 0.0], [0.4, 0.1]]:
    ...     log_wealth = table.step(np.arange(2), np.array(costs))
    >>> log_wealth[0].round(2)
    array([ 2.44, -1.08])
    """

    def __init__(self, bets: Bets, upper: float, *rests: float, size: int) -> None:
        sides = self._sides = 1 + len(rests)
        self._shares = np.tile(bets.shares, sides)
        self._lines = np.vstack(linear_factors(bets, upper, *rests))
        self._fold_every = fold_interval(upper, *rests)
        self._tops, self._log, self._best = (
            slice(_NUMBERS + start * sides, _NUMBERS + (start + 1) * sides) for start in range(3)
        )
        self.capitals = np.empty((0, self._shares.size))
        self.anchors = np.empty((0, self._shares.size))
        self.book = np.empty((0, _NUMBERS + 3 * sides))
        self.grow(size)

    @property
    def size(self) -> int:
        """How many streams there is room for."""
        return self.book.shape[0]

    @property
    def n(self) -> Array:
        """The number of costs of each stream."""
        return self.book[:, _N]

    @property
    def total(self) -> Array:
        """The sum of the costs of each stream."""
        return self.book[:, _TOTAL]

    @property
    def log(self) -> Array:
        """The log wealth of each stream, one column per side."""
        return self.book[:, self._log]

    @property
    def best(self) -> Array:
        """The largest log wealth of each stream so far, one column per side."""
        return self.book[:, self._best]

    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""
        used = self.size
        for name in ("capitals", "anchors", "book"):
            old = getattr(self, name)
            new = np.empty((size, old.shape[1]))
            new[:used] = old
            setattr(self, name, new)
        self.clear(slice(used, size))

    def clear(self, rows: slice) -> None:
        """Begin some streams anew."""
        self.capitals[rows] = self._shares
        self.anchors[rows] = 0.0
        self.book[rows] = 0.0

    def step(self, rows: Rows, costs: Array) -> Array:
        """Count one cost for each of some different streams; return their log wealth, one column per side."""
        first, last = int(rows[0]), int(rows[-1]) + 1
        # All streams in their usual order are one block: no gather, no scatter.
        block = last - first == rows.size and bool((rows[1:] - rows[:-1] == 1).all())
        where: slice | Rows = slice(first, last) if block else rows
        ones_and_costs = np.ones((rows.size, 2))
        ones_and_costs[:, 1] = costs
        capitals = ones_and_costs @ self._lines
        capitals *= self.capitals[where] if block else self.capitals.take(rows, axis=0)
        sums = self._sums(capitals)
        book = self.book.take(rows, axis=0)
        book[:, _N] += 1
        book[:, _TOTAL] += costs
        with np.errstate(divide="ignore"):  # what was wiped out is computed anew by the fold
            wealth: Array = book[:, self._tops] + np.log(sums)
        to_fold = book[:, _N] % self._fold_every == 0
        if sums.min() < _FOLD_BELOW:
            to_fold |= (sums < _FOLD_BELOW).any(axis=1)
        if (due := np.flatnonzero(to_fold)).size:
            capitals[due], book[due, self._tops] = self._fold(rows[due], capitals[due])
            wealth[due] = book[due, self._tops] + np.log(self._sums(capitals[due]))
        book[:, self._log] = wealth
        book[:, self._best] = np.maximum(book[:, self._best], wealth)
        self.capitals[where] = capitals
        self.book[where] = book
        return wealth

    def _fold(self, rows: Rows, capitals: Array) -> tuple[Array, Array]:
        """Anchor each side anew at its largest capital; return the capitals and the anchors of the sides."""
        with np.errstate(divide="ignore"):  # a bet may have lost everything
            logs = (self.anchors[rows] + np.log(capitals)).reshape(rows.size, self._sides, -1)
        tops = logs.max(axis=2, keepdims=True)
        behind = logs - tops < _LOG_BEHIND
        self.anchors[rows] = np.where(behind, logs - _LOG_BEHIND, tops).reshape(capitals.shape)
        return np.exp(np.maximum(logs - tops, _LOG_BEHIND)).reshape(capitals.shape), tops[:, :, 0]

    def _sums(self, capitals: Array) -> Array:
        sums: Array = np.einsum("ijk->ij", capitals.reshape(capitals.shape[0], self._sides, -1))
        return sums
