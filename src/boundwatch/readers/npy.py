"""NumPy arrays: one value per row, several unnamed columns, or the named fields of a record."""

from __future__ import annotations

import math
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.cells import Cells
from boundwatch.episodes.declared import Declared
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers.table import Table, by_columns, damaged


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read an array, after its header has been checked against its size."""
    size = file.seek(0, 2)
    file.seek(0)
    array = load(file, source, size)
    fields = array.dtype.names
    if array.ndim not in (1, 2) or (fields and array.ndim != 1):
        remedy = "save an array of shape (n,) or (n, columns)"
        raise InvalidCost(f"has shape {array.shape}", where=Place(source), remedy=remedy)
    if not fields:
        array = array.reshape(len(array), -1)
    several = fields is None and array.shape[1] > 1
    names = fields or (tuple(map(str, range(1, array.shape[1] + 1))) if several else ())

    def column(name: str) -> Cells:
        found = array[name] if fields else array[:, int(name) - 1]
        plain = found.dtype.kind in "iuf" and found.ndim == 1
        return found.astype(np.float64) if plain else list(found.tolist())

    return by_columns(
        source, "npy", names, declared, lambda wanted: [{each: column(each) for each in wanted}]
    )


def load(file: IO[bytes], source: str, size: int) -> NDArray[Any]:
    """Return the array in the next so many bytes; refuse one that says that it is larger."""
    version = np.lib.format.read_magic(file)
    shape, fortran, dtype = getattr(np.lib.format, f"read_array_header_{version[0]}_0")(file)
    if dtype.hasobject or not dtype.itemsize:
        remedy = "save a plain numeric array with numpy.save"
        raise InvalidCost("holds Python objects", where=Place(source), remedy=remedy)
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted > size or len(data := file.read(wanted)) < wanted:
        raise damaged(source, "NPY")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
