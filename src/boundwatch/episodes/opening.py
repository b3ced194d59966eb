"""Which format a file has, and the table in it."""

from __future__ import annotations

import dataclasses
import io
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Literal, get_args

from boundwatch._support import files
from boundwatch.episodes import fast, formats, lerobot, lerobot_dataset, mcap, spreadsheet, stable_baselines3
from boundwatch.episodes.damage import decompress, refuse_bombs
from boundwatch.episodes.numbers import parse
from boundwatch.episodes.table import Table, Wanted
from boundwatch.episodes.text import decode
from boundwatch.errors import InvalidCost, InvalidSetting

Format = Literal[
    "csv",
    "json",
    "jsonl",
    "npy",
    "parquet",
    "xlsx",
    "lerobot-eval",
    "lerobot-dataset",
    "sb3-monitor",
    "sb3-evaluations",
    "mcap",
]
"""The names of the formats."""

_GZIP_MAGIC = b"\x1f\x8b"
_HEAD = 1 << 18
_LONGEST_LINE = 1 << 20  # a longer one is no episode
_BINARY: dict[bytes, Format] = {
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"PK\x03\x04": "xlsx",  # or another archive
    mcap.MAGIC: "mcap",
}


def open_table(
    path: Path | None,
    source: str,
    file_format: Format | None,
    wanted: Wanted,
    evaluation: int | None,
    sheet: str | None,
) -> tuple[Format, Table]:
    """Return the format of a file (of standard input, if the path is None) and the table in it."""
    if file_format is not None and file_format not in get_args(Format):
        known = ", ".join(get_args(Format))
        raise InvalidSetting(f"file_format = {file_format!r} is unknown; choose one of {known} (--format)")
    if path is not None and (file_format == "lerobot-dataset" or _is_dataset(path)):
        found, table = "lerobot-dataset", lerobot_dataset.read_dataset(path)
    elif path is not None and (file_format == "mcap" or _begins_with(path, mcap.MAGIC)):
        found, table = "mcap", mcap.read_mcap(lambda: files.open_binary(path), source, wanted.column)
    else:
        content = _bytes(path, source) if path is None or not _is_long_text(path) else path
        found = file_format or _recognize(content, source)
        table = _read(content, found, source, wanted.column, evaluation, sheet)
    for name, value, owner in (("evaluation", evaluation, "sb3-evaluations"), ("sheet", sheet, "xlsx")):
        if value is not None and found != owner:
            raise InvalidSetting(
                f"{source}: {name} goes with {owner}, this is {found}; leave it out (--{name})"
            )
    return found, table  # type: ignore[return-value]  # a name that is none was refused above


def holds_lines(path: str) -> bool:
    """Return whether a stream is read line by line: it may still grow, or it is numbers without a name.

    That goes for standard input, for a pipe, and for a file that is not there yet, that is empty, or whose
    first line is a number. Any other file is read as a whole: only then are tasks in blocks, and rows that
    are steps, always noticed.

    Examples
    --------
    >>> holds_lines("-"), holds_lines("not/yet/there.jsonl")
    (True, True)
    """
    if path == "-" or not _is_file(Path(path)):
        return not _is_dataset(Path(path))
    if _beginning(Path(path)).startswith((*_BINARY, _GZIP_MAGIC)):
        return False
    first = _opening(path).strip().split("\n", 1)[0]
    return not first or isinstance(parse(first), float)


def is_log(path: str) -> bool:
    """Return whether a file is a log that only means something as a whole, such as an evaluation's.

    Examples
    --------
    >>> is_log("-"), is_log("not/yet/there.csv")
    (False, False)
    """
    return lerobot.looks_like_evaluation(_opening(path))


def refuse_document(path: str, asked: Collection[str] = ()) -> None:
    """Refuse a JSON document where lines are read: its only line may lack a newline, and be waited for.

    Examples
    --------
    >>> refuse_document("-")
    """
    head = _opening(path, _LONGEST_LINE)
    cut = bool(head) and "\n" not in head and Path(path).stat().st_size > _LONGEST_LINE
    lines = [line for line in head.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines[:2]):
        return  # JSON lines
    if fault := formats.document_fault("".join(lines[:1]).strip(), asked, named=any(asked), cut=cut):
        raise InvalidSetting(f"{path}: line 1: {fault}")


def _read(
    content: bytes | Path,
    found: str,
    source: str,
    column: str | None,
    evaluation: int | None,
    sheet: str | None,
) -> Table:
    """Read what was recognized; a long text only as far as is needed, if it is simple."""
    asked = () if column is None else (column,)

    def careful() -> Table:
        data = content if isinstance(content, bytes) else files.read_bytes(content)
        return _read_carefully(data, found, source, column, evaluation, sheet)

    quick = fast.read_table(content, found, asked, careful) if found in ("csv", "jsonl") else None
    return careful() if quick is None else quick


def _read_carefully(
    data: bytes, found: str, source: str, column: str | None, evaluation: int | None, sheet: str | None
) -> Table:
    asked = () if column is None else (column,)
    match found:
        case "npy":
            return formats.read_npy(data, source)
        case "parquet":
            return formats.read_parquet(data, source)
        case "xlsx":
            return spreadsheet.read_workbook(data, source, sheet, asked)
        case "sb3-evaluations":
            return stable_baselines3.read_evaluations(data, source, evaluation)
        case "mcap":
            return mcap.read_mcap(lambda: io.BytesIO(data), source, column)
        case "lerobot-dataset":
            raise InvalidSetting(f"{source}: a LeRobotDataset is a folder; name it")
    text, encoding = _text(data, source)
    match found:
        case "json" | "jsonl":
            return formats.read_json(text, source, asked)
        case "lerobot-eval":
            return lerobot.read_evaluation(text, source)
        case "sb3-monitor":
            return stable_baselines3.read_monitor(text, source)
    table = formats.read_csv(text, source, asked)
    return dataclasses.replace(table, detail=encoding) if encoding else table


def _recognize(content: bytes | Path, source: str) -> Format:
    data = content if isinstance(content, bytes) else _beginning(content)
    if data.startswith(spreadsheet.OLD_MAGIC):
        raise InvalidCost(
            f"{source}: is a workbook of Excel before 2007 (.xls) or an encrypted one; save it as .xlsx"
        )
    for magic, found in _BINARY.items():
        if data.startswith(magic):
            return found if found != "xlsx" else _archive(data, source)
    text, _ = _text(data, source)
    if lerobot.looks_like_evaluation(text):
        return "lerobot-eval"
    if stable_baselines3.looks_like_monitor(text):
        return "sb3-monitor"
    first = text.lstrip()[0]
    if re.match(r"<(!doctype|html|table|\?xml)", text.lstrip(), re.IGNORECASE):
        raise InvalidCost(f"{source}: is a web page (HTML or XML), not a table; save it as CSV or .xlsx")
    return "json" if first == "[" else "jsonl" if first == "{" else "csv"


def _archive(data: bytes, source: str) -> Format:
    refuse_bombs(data, source)
    if stable_baselines3.looks_like_evaluations(data):
        return "sb3-evaluations"
    if spreadsheet.looks_like_workbook(data):
        return "xlsx"
    raise InvalidCost(
        f"{source}: is a ZIP archive, but neither .xlsx nor evaluations.npz; save the costs as CSV, XLSX "
        f"or NPY"
    )


def _text(data: bytes, source: str) -> tuple[str, str]:
    text, encoding = decode(data, source)
    if not text.strip():
        raise InvalidCost(f"{source}: is empty; at least one episode is needed")
    return text, encoding


def _bytes(path: Path | None, source: str) -> bytes:
    data = _read_standard_input() if path is None else files.read_bytes(path)
    if not data.startswith(_GZIP_MAGIC):
        return data
    return decompress(data, source)


def _read_standard_input() -> bytes:
    try:
        return files.read_limited(sys.stdin.buffer, "standard input")
    except (OSError, AttributeError) as error:  # a folder, or closed
        raise InvalidSetting("standard input: cannot be read; pipe or redirect a file into it") from error


def _is_long_text(path: Path) -> bool:
    """Return whether a file is large and in none of the binary formats: it need not be read at once."""
    if not _is_file(path) or path.stat().st_size < fast.SMALLEST:
        return False
    head = _beginning(path)
    binary = head.startswith((*_BINARY, _GZIP_MAGIC, spreadsheet.OLD_MAGIC)) or b"\0" in head
    return bool(head.strip()) and head.endswith(b"\n") and not binary


def _beginning(path: Path, size: int = _HEAD) -> bytes:
    """Return the first lines of a file."""
    with files.open_binary(path) as file:
        head = file.read(size)
    return head[: head.rfind(b"\n") + 1] or head


def _opening(path: str, size: int = _HEAD) -> str:
    """Return the first lines of a file as text; nothing for standard input, or if there is no file yet."""
    if path == "-" or not _is_file(Path(path)):
        return ""
    return _beginning(Path(path), size).decode("utf-8", "replace").removeprefix("\ufeff")


def _is_dataset(path: Path) -> bool:
    return _is_file(path / lerobot_dataset.INFO)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, say; opening it says so
        return False


def _begins_with(path: Path, magic: bytes) -> bool:
    """Look at a file's first bytes; whatever cannot be opened is for the reader to complain about."""
    if not _is_file(path):  # looking into a pipe would take from it
        return False
    with files.open_binary(path) as file:
        return file.read(len(magic)) == magic
