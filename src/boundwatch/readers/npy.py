"""NumPy arrays: one value per row, several unnamed columns, or the named fields of a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.declared import Declared
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers.block import ROWS, Block, Cells, Table, damaged, empty, wanted

_SAVE = "save a plain numeric array with numpy.save"


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read an array a part at a time, after its header has been checked against its size."""
    size = file.seek(0, 2)
    file.seek(0)
    shape, fortran, dtype = _header(file, source, size)
    names = dtype.names or tuple(str(n) for n in range(1, (shape[1] if len(shape) > 1 else 1) + 1))
    if len(shape) not in (1, 2) or (dtype.names and len(shape) != 1):
        remedy = "save an array of shape (n,) or (n, columns)"
        raise InvalidCost(f"has shape {shape}", where=Place(source), remedy=remedy)
    if not shape[0] or not names:
        raise empty(source)
    named = names if dtype.names or len(names) > 1 else ()
    measure = declared.resolve(named)
    columns = wanted(names, declared, measure)

    def column(part: NDArray[Any], name: str) -> Cells:
        found = part[name] if dtype.names else part.reshape(len(part), -1)[:, int(name) - 1]
        plain = found.dtype.kind in "iuf" and found.ndim == 1
        return found.astype(np.float64) if plain else list(found.tolist())

    def blocks() -> Iterator[Block]:
        whole = fortran and len(shape) > 1  # then a row's values are far from each other
        step = shape[0] if whole else max(1, ROWS * 16 // len(names))
        for start in range(0, shape[0], step):
            rows = min(step, shape[0] - start)
            array = _values(file, source, dtype, (rows, *shape[1:]), fortran=whole)
            numbers = range(start + 1, start + rows + 1)
            yield Block("row", numbers, {name: column(array, name) for name in columns})

    return Table(source, "npy", named, measure, blocks())


def read_array(file: IO[bytes], source: str, size: int) -> NDArray[Any]:
    """Return a whole array, from the next so many bytes."""
    shape, fortran, dtype = _header(file, source, size)
    return _values(file, source, dtype, shape, fortran=fortran)


def _header(file: IO[bytes], source: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = getattr(np.lib.format, f"read_array_header_{version[0]}_0")(file)
    except Exception as error:  # the header is Python, and its parser raises whatever it likes
        raise damaged(source, "NPY", _SAVE) from error
    if dtype.hasobject or not dtype.itemsize:
        raise InvalidCost("holds Python objects", where=Place(source), remedy=_SAVE)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise damaged(source, "NPY")
    return shape, fortran, dtype


def _values(
    file: IO[bytes], source: str, dtype: np.dtype[Any], shape: tuple[int, ...], *, fortran: bool
) -> NDArray[Any]:
    wanted_bytes = math.prod(shape) * dtype.itemsize
    data = file.read(wanted_bytes)
    if len(data) < wanted_bytes:
        raise damaged(source, "NPY")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
