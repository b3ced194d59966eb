"""Large parts of a text through pyarrow, where they are simple enough to mean the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.readers.block import MOST_LABELS, Block, Cells
from boundwatch.readers.rows import Rows

SMALLEST = 1 << 16
"""Bytes below which nothing is gained."""
_NUMBERED = r"^\s*#?\s*\p{Nd}+($|[^\p{Nd}.,]|[.,]($|[^\p{Nd}]))"  # as rows.py has it, in RE2's language


def read(data: bytes, rows: Rows, delimiter: str, first: int) -> Block | None:
    """Return the block of whole lines; None if pyarrow is not there or might read them differently.

    Whatever is unusual (quotes, remarks, blank lines, headers that are repeated, rows of another width, other
    encodings than UTF-8, decimal commas) is left to the careful reader, which also says what is wrong.
    """
    if len(data) < SMALLEST or not _is_simple(data, rows):
        return None
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    numbering = [name for name, going_on in rows.numbered.items() if going_on]
    at = {name: str(rows.names.index(name)) for name in (*rows.wanted, *rows.asked, *numbering)}
    kinds = dict.fromkeys(at.values(), pyarrow.string())
    # A point is needed once to know the decimal mark; with several columns it may be in any of them.
    unmarked = not rows.notation.decimal and b"." in data and len(rows.names) > 1
    numeric = rows.measure.kind != "success" and not rows.notation.words
    if numeric and not unmarked:
        kinds[at[rows.column]] = pyarrow.float64()
    csv = pyarrow.csv
    names = [str(place) for place in range(len(rows.names))]
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
    if table.num_rows != lines or not all(_all_numbered(table.column(at[name])) for name in numbering):
        return None
    column = table.column(at[rows.column])
    found = _numbers(column, rows, data) if numeric else _words(column, rows)
    if found is None:
        return None
    columns: dict[str, Cells] = {rows.column: found}
    columns |= {n: _texts(table.column(at[n])) for n in (*rows.wanted, *rows.asked) if n != rows.column}
    labels = {n: _texts(table.column(at[n])) for n in numbering if rows.counted < MOST_LABELS}
    rows.counted += lines
    return Block(rows.unit, range(first, first + lines), columns, labels)


def _is_simple(data: bytes, rows: Rows) -> bool:
    """Return whether nothing in these bytes needs care, as far as a glance can tell."""
    notation = rows.notation
    if (notation.words is None and rows.measure.kind != "success") or any(map(data.__contains__, b'"\0\x1f')):
        return False
    if notation.decimal == "," or notation.percent or (rows.named and re.fullmatch(r"[\d.]+", rows.column)):
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _all_numbered(column: Any) -> bool:
    import pyarrow.compute as compute

    return bool(compute.all(compute.match_substring_regex(column, _NUMBERED)).as_py())


def _words(column: Any, rows: Rows) -> list[str] | None:
    """Return words; None if a row may be blank, a remark, or the header once more."""
    texts = _texts(column)
    known = set(texts)
    unusual = known & {"", rows.column.strip()} or any(text.startswith("#") for text in known)
    return None if unusual else texts


def _numbers(column: Any, rows: Rows, data: bytes) -> NDArray[np.float64] | None:
    """Return numbers; None if some are not plain, or not written like those above."""
    import pyarrow
    import pyarrow.compute as compute

    mark = "." if b"." in data else ""
    if column.type == pyarrow.string():
        mark = "." if compute.any(compute.match_substring(column, ".")).as_py() else ""
        try:
            column = compute.cast(compute.utf8_trim_whitespace(column), pyarrow.float64())
        except pyarrow.ArrowException:
            return None
    parts = [_array(chunk) for chunk in column.chunks if len(chunk)]
    values: NDArray[np.float64] = np.concatenate([np.empty(0), *parts])
    if not np.isfinite(values).all():
        return None
    rows.notation.decimal = rows.notation.decimal or ("." if mark else "")
    return values


def _texts(column: Any) -> list[str]:
    """Return the cells of a column of text without spaces around them."""
    texts: list[str] = []
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()  # a text that comes often is made and looked at once
        known = [text.strip() for text in encoded.dictionary.to_pylist()]
        texts += map(known.__getitem__, _array(encoded.indices).tolist())
    return texts


def _array(chunk: Any) -> NDArray[Any]:
    # Not a column's to_numpy, which imports pandas.
    kind = np.dtype(chunk.type.to_pandas_dtype())
    return np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
