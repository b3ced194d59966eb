"""Parquet (extra ``io``): only the columns that are asked for, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import MissingExtra
from boundwatch.readers.block import ROWS, Block, Cells, Table, damaged, empty, too_large, wanted

MOST_ROWS = 100_000_000
"""A few bytes can stand for more rows than fit into memory."""


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read the columns of a file that are asked for."""
    opened = open_parquet(file, source)
    names = tuple(opened.schema_arrow.names)
    if not opened.metadata.num_rows:
        raise empty(source)
    measure = declared.resolve(names)
    columns = wanted(names, declared, measure)

    def blocks() -> Iterator[Block]:
        number = 1
        for cells in parts(opened, columns, source):
            rows = len(cells[columns[0]])
            yield Block("row", range(number, number + rows), cells)
            number += rows

    return Table(source, "parquet", names, measure, blocks())


def open_parquet(file: IO[bytes] | str, source: str) -> Any:
    """Open a file with pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "io") from error
    try:
        opened = pyarrow.parquet.ParquetFile(file)
        texts = [field.name for field in opened.schema_arrow if pyarrow.types.is_string(field.type)]
        if texts:  # each text once, however many rows have it
            opened = pyarrow.parquet.ParquetFile(file, read_dictionary=texts)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise damaged(source, "Parquet") from error
    if opened.metadata.num_rows > MOST_ROWS:
        raise too_large(source, f"it says that it has {opened.metadata.num_rows} rows")
    return opened


def parts(opened: Any, columns: list[str], source: str) -> Iterator[dict[str, Cells]]:
    """Yield the cells of some columns, some rows at a time."""
    import pyarrow

    rows = 0
    try:
        for batch in opened.iter_batches(batch_size=ROWS, columns=columns):
            rows += batch.num_rows
            yield {name: _cells(batch.column(batch.schema.get_field_index(name))) for name in columns}
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise damaged(source, "Parquet") from error
    if rows != opened.metadata.num_rows:  # pyarrow reads some damaged pages as shorter ones
        raise damaged(source, "Parquet")


def _cells(column: Any) -> Cells:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        known = column.dictionary.to_pylist()
        return [None if place is None else known[place] for place in column.indices.to_pylist()]
    number = pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)
    if number and not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    listed = column.to_pylist()
    return [each[0] if isinstance(each, list) and len(each) == 1 else each for each in listed]
