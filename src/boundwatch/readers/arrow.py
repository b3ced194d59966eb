"""Large parts of a text through pyarrow, where they are simple enough to mean the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.cells import Cells
from boundwatch.readers.table import MOST_LABELS, Block, Rows

SMALLEST = 1 << 16
"""Bytes below which nothing is gained."""
_NUMBERED = r"^\s*#?\s*\p{Nd}+($|[^\p{Nd}.,]|[.,]($|[^\p{Nd}]))"  # as table.py has it, in RE2's language


def read(data: bytes, rows: Rows, delimiter: str, first: int) -> Block | None:
    """Return the block of whole lines; None if pyarrow is not there or might read them differently.

    Whatever is unusual (quotes, blank lines, headers that are repeated, rows of another width, other
    encodings than UTF-8, decimal commas) is left to the careful reader, which also says what is wrong.
    """
    if len(data) < SMALLEST or not _is_simple(data, rows):
        return None
    try:
        import pyarrow
        from pyarrow import compute, csv
    except ImportError:
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    wanted, numbering = [*rows.wanted, *rows.layout.questions], list(rows.numbering or ())
    labels = (*numbering, *rows.scenes)
    kinds = {str(rows.names.index(name)): pyarrow.string() for name in (*wanted, *labels)}
    if rows.notation.decimal and rows.notation.kind == "number":  # else it is looked for
        kinds[str(rows.names.index(wanted[0]))] = pyarrow.float64()
    names = list(map(str, range(len(rows.names))))
    separated = {"delimiter": delimiter or "\x1f", "quote_char": False, "ignore_empty_lines": False}
    converted = {"include_columns": list(kinds), "column_types": kinds, "null_values": []}
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(data),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(**separated),
            convert_options=csv.ConvertOptions(**converted, strings_can_be_null=False),
        )
    except pyarrow.ArrowException:
        return None
    at = {name: table.column(str(rows.names.index(name))) for name in (*wanted, *labels)}
    numbered = [compute.all(compute.match_substring_regex(at[name], _NUMBERED)).as_py() for name in numbering]
    if table.num_rows != lines or not all(numbered) or (found := _measured(at[wanted[0]], rows)) is None:
        return None
    labels = labels if rows.counted < MOST_LABELS else ()
    others = {name: _texts(at[name]) for name in (*wanted[1:], *labels)}
    rows.counted += lines
    return Block(rows.source, rows.unit, range(first, first + lines), {wanted[0]: found} | others, labels)


def _is_simple(data: bytes, rows: Rows) -> bool:
    """Return whether nothing in these bytes needs care, as far as a glance can tell."""
    measure, notation = rows.layout.measure, rows.notation
    if measure.counted or measure.empty_as is not None or any(map(data.__contains__, b'"\0\x1f')):
        return False
    if measure.kind != "success" and (notation.kind not in ("number", "word") or notation.decimal == ","):
        return False
    if rows.named and re.fullmatch(r"[\d.]+", rows.wanted[0]):
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _measured(column: Any, rows: Rows) -> Cells | None:
    """Return words or numbers; None if a row may be blank, a remark, a header or not plainly written."""
    import pyarrow
    from pyarrow import compute

    if rows.layout.measure.kind == "success" or rows.notation.kind == "word":
        texts = _texts(column)
        return None if {"", rows.wanted[0].strip()} & set(texts) else texts
    numbers, has_point = column, False
    if column.type == pyarrow.string():
        has_point = compute.any(compute.match_substring(column, ".")).as_py()
        try:
            numbers = compute.cast(compute.utf8_trim_whitespace(column), pyarrow.float64())
        except pyarrow.ArrowException:
            return None
    values: NDArray[np.float64] = np.concatenate([np.empty(0), *map(_array, filter(len, numbers.chunks))])
    if not np.isfinite(values).all():
        return None
    rows.notation.decimal = "." if has_point else rows.notation.decimal
    return values


def _texts(column: Any) -> list[str]:
    """Return the cells of a column of text without spaces around them."""
    texts: list[str] = []
    for chunk in filter(len, column.chunks):
        encoded = chunk.dictionary_encode()  # a text that comes often is made and looked at once
        known = list(map(str.strip, encoded.dictionary.to_pylist()))
        texts += map(known.__getitem__, _array(encoded.indices).tolist())
    return texts


def _array(chunk: Any) -> NDArray[Any]:
    # Not a column's to_numpy, which imports pandas.
    kind = np.dtype(chunk.type.to_pandas_dtype())
    return np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
