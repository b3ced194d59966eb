"""Arrays with a row per stream, so that one stream is one row and a thousand are a thousand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Where = slice | NDArray[np.int64]
"""Some different streams: a block of rows, or their numbers."""


def numbers(where: Where, size: int) -> NDArray[np.int64]:
    """Return the numbers of some of so many streams."""
    return np.arange(*where.indices(size)) if isinstance(where, slice) else where


class Rows(dict[str, NDArray[Any]]):
    """Named arrays that grow together; every stream begins with the same row."""

    def __init__(self, first: Mapping[str, NDArray[Any]], size: int) -> None:
        super().__init__({name: np.empty((0, *row.shape), row.dtype) for name, row in first.items()})
        self._first = dict(first)
        self.size = 0
        self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""
        for name, row in self._first.items():
            array = np.empty((size, *row.shape), row.dtype)  # rows one after the other in memory
            array[: self.size], array[self.size :] = self[name], row
            self[name] = array
        self.size = size

    def begin(self, where: Where) -> None:
        """Begin some streams anew."""
        for name, row in self._first.items():
            self[name][where] = row
