"""Parquet (extra ``io``): only the columns that are asked for, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from boundwatch.episodes.cells import Cells
from boundwatch.episodes.declared import Declared
from boundwatch.errors import MissingExtra
from boundwatch.readers.table import ROWS, Table, by_columns, damaged, too_large

_MOST_ROWS = 100_000_000  # a few bytes can stand for more rows than fit into memory


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read the columns of a file that are asked for."""
    opened = open_parquet(file, source)
    names = opened.schema_arrow.names
    return by_columns(source, "parquet", names, declared, lambda wanted: parts(opened, wanted, source))


def open_parquet(file: IO[bytes] | str, source: str) -> Any:
    """Open a file with pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "io") from error
    opened = pyarrow.parquet.ParquetFile(file)
    texts = [field.name for field in opened.schema_arrow if pyarrow.types.is_string(field.type)]
    if texts:  # each text once, however many rows have it
        opened = pyarrow.parquet.ParquetFile(file, read_dictionary=texts)
    if opened.metadata.num_rows > _MOST_ROWS:
        raise too_large(source, f"it says that it has {opened.metadata.num_rows} rows")
    return opened


def parts(opened: Any, columns: list[str], source: str) -> Iterator[dict[str, Cells]]:
    """Yield the cells of some columns, some rows at a time."""
    rows = 0
    for batch in opened.iter_batches(batch_size=ROWS, columns=columns):
        rows += batch.num_rows
        yield {name: _cells(batch.column(batch.schema.get_field_index(name))) for name in columns}
    if rows != opened.metadata.num_rows:  # pyarrow reads some damaged pages as shorter ones
        raise damaged(source, "Parquet")


def _cells(column: Any) -> Cells:
    from pyarrow import types

    if types.is_dictionary(column.type):
        known = [*column.dictionary.to_pylist(), None]
        return [known[-1 if place is None else place] for place in column.indices.to_pylist()]
    if (types.is_floating(column.type) or types.is_integer(column.type)) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    listed = column.to_pylist()
    return [each[0] if isinstance(each, list) and len(each) == 1 else each for each in listed]
