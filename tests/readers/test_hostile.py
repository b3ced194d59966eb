"""Small files that claim to be large: bounded, or refused before the memory is taken."""

import gzip
import io
import tracemalloc

import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

from boundwatch.errors import InvalidCost
from boundwatch.readers import read_costs


def huge_array():
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def far_cell():
    book = openpyxl.Workbook()
    book.active.append(["cost"])
    book.active.append([0.5])
    book.active["XFD1048576"] = 1
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def unread_column():
    text = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 2000, pyarrow.int32()), pyarrow.array(["x" * 1_000_000])
    )
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"cost": [0.5] * 2000, "big": text}), out)
    return out.getvalue()


HOSTILE = {
    "an array of 800 GB": (huge_array, None),
    "a cell far away": (far_cell, 1),
    "a gzip bomb": (lambda: gzip.compress(b"cost\n" + b"0\n" * 20_000_000), None),
    "a gzip bomb of zeros": (lambda: gzip.compress(b"\0" * 40_000_000), None),
    "a large column that is not read": (unread_column, 2000),
    "a header again and again": (lambda: b"cost\n0.5\n" * 20_000, 20_000),
    "a line without end": (lambda: b"cost\n" + b"0" * 9_000_000, None),
}


@pytest.mark.parametrize(("make", "episodes"), HOSTILE.values(), ids=HOSTILE)
def test_bounded(tmp_path, make, episodes):
    path = tmp_path / "hostile"
    path.write_bytes(make())
    if episodes is not None:
        assert len(read_costs(path)) == episodes
        return
    tracemalloc.start()
    try:
        with pytest.raises(InvalidCost):
            read_costs(path)
        assert tracemalloc.get_traced_memory()[1] < 512 << 20
    finally:
        tracemalloc.stop()
