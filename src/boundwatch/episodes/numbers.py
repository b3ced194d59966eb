"""Numbers as sheets hold them: decimal points and commas, percentages, and what could be read in two ways."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
# 1,234 could be 1234 or 1.234; 0,125 could not.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}([.,]\d{3})+")
_PERCENT = re.compile(r"(.*\d)\s*%")

# The minus of typesetters, and what East Asian keyboards write instead of a point, a minus and a percent sign
# (their digits Python knows).
_VARIANTS = {0x2212: "-", 0xFF0E: ".", 0xFF0D: "-", 0xFF05: "%"}

Style = Literal["plain", "point", "comma", "thousands"]


class Numbers(NamedTuple):
    """A column of numbers, and whether they were written as percentages."""

    values: NDArray[np.float64]
    percent: bool


def parse(value: object) -> float | bool | None:
    """Return a number or a truth value, also from text with a decimal point; None for what is neither.

    Examples
    --------
    >>> parse("0.5"), parse("TRUE"), parse("0,5"), parse(3)
    (0.5, True, None, 3.0)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if "_" in text:  # Python reads 0_1 as 1
            return None
        value = text.translate(_VARIANTS)
    try:
        return float(value)  # type: ignore[arg-type]  # whatever cannot be converted says so
    except (TypeError, ValueError, OverflowError):
        return None


def parse_decimal(text: str) -> float | None:
    """Return a number written with a decimal point or a decimal comma; None for anything else.

    Examples
    --------
    >>> parse_decimal("0,5"), parse_decimal("1.5"), parse_decimal("1.234,5")
    (0.5, 1.5, None)
    """
    text = text.strip().translate(_VARIANTS)
    found = parse(text.replace(",", ".", 1) if _COMMA.fullmatch(text) else text)
    return None if found is None or isinstance(found, bool) else found


def decimal_mark(text: str) -> Literal["", ".", ","]:
    """Return the decimal mark of a number or a percentage; nothing if it has none, or is no number.

    Examples
    --------
    >>> decimal_mark("0,5"), decimal_mark("1.5 %"), decimal_mark("3"), decimal_mark("e.g.")
    (',', '.', '', '')
    """
    if not any(mark in text for mark in ".,\uff0e"):
        return ""
    number = text.strip().translate(_VARIANTS).removesuffix("%").strip()
    if _COMMA.fullmatch(number):
        return ","
    return "." if "." in number and parse(number) is not None else ""


def is_missing(value: object) -> bool:
    """Return whether a cell holds nothing: empty, null, NaN, or a word for that.

    Examples
    --------
    >>> is_missing(" "), is_missing(None), is_missing("n/a"), is_missing("no")
    (True, True, True, False)
    """
    if isinstance(value, str):
        return value.strip().casefold() in (
            "",
            "n/a",
            "na",
            "nan",
            "null",
            "none",
            "-",
            "--",
            "?",
            "#n/a",
            "#nv",
        )
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_numbers(
    raw: list[Any], refuse: Callable[[int, str], NoReturn], *, commas_elsewhere: bool = False
) -> Numbers:
    """Return a column as numbers, or refuse the first cell that is none or could be two.

    Parameters
    ----------
    raw
        The cells: text, numbers or truth values.
    refuse
        Raises the error for a row, given what is wrong with its value.
    commas_elsewhere
        Whether the file writes decimals with commas in other columns, so that 1.234 may be 1234 here.

    Examples
    --------
    >>> def refuse(row, fault):
    ...     raise ValueError(f"{row}: {fault}")
    >>> read_numbers(["0,5", "1"], refuse).values, read_numbers(["5 %", "12%"], refuse)
    (array([0.5, 1. ]), Numbers(values=array([ 5., 12.]), percent=True))
    """
    values = _plain(raw)
    if values is not None:
        if commas_elsewhere:
            _refuse_thousands([str(value).strip() for value in raw], ".", refuse)
        return Numbers(values, False)
    texts = [value.strip() if isinstance(value, str) else value for value in raw]
    percents = [isinstance(text, str) and _PERCENT.fullmatch(text) is not None for text in texts]
    if any(percents):
        for row, percent in enumerate(percents):
            if not percent:
                refuse(
                    row,
                    _nothing(texts[row]) or "has no %, unlike others in the column; write all of them alike",
                )
        texts = [_PERCENT.fullmatch(text)[1] for text in texts]  # type: ignore[index]  # all match
    commas = [isinstance(text, str) and _COMMA.fullmatch(text) is not None for text in texts]
    if any(commas):
        for row, text in enumerate(texts):
            if isinstance(text, str) and "." in text and parse(text) is not None:
                refuse(
                    row, "has a decimal point, but others in the column have commas; write all of them alike"
                )
        _refuse_thousands(
            [text for text, comma in zip(texts, commas, strict=True) if comma], ",", refuse, commas
        )
    parsed = [
        parse(text.replace(",", ".") if comma else text) for text, comma in zip(texts, commas, strict=True)
    ]
    for row, value in enumerate(parsed):
        if value is None:
            refuse(row, not_a_number(raw[row]))
    return Numbers(np.array(parsed, dtype=np.float64), any(percents))


def _plain(raw: list[Any]) -> NDArray[np.float64] | None:
    """Return a column of plain numbers quickly; None if there is anything else in it."""
    try:
        values = np.array([float(value) for value in raw], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if any(isinstance(value, str) and "_" in value for value in raw) else values


def _refuse_thousands(
    texts: list[str], mark: str, refuse: Callable[[int, str], NoReturn], rows: list[bool] | None = None
) -> None:
    """Refuse a column in which every mark could separate thousands."""
    marked = [text for text in texts if mark in text]
    if marked and all(_THOUSANDS.fullmatch(text) for text in marked):
        row = (
            rows.index(True) if rows is not None else next(i for i, text in enumerate(texts) if mark in text)
        )
        refuse(
            row,
            "could have a decimal mark or a mark between thousands; write 1234 or 1.2340, "
            "with a point and nothing between thousands",
        )


def _nothing(value: object) -> str | None:
    return "is empty; every episode needs a number" if is_missing(value) else None


def not_a_number(value: object, row: str = "episode") -> str:
    """Say what is wrong with a value that is not a number, and the remedy.

    Examples
    --------
    >>> not_a_number("1,234.5")
    'is not a number; write decimals with a point, and nothing between thousands (1234.5)'
    """
    text = value.strip() if isinstance(value, str) else ""
    if is_missing(value) and not text:
        return f"is not a number; every {row} needs one"
    remedy = f"every {row} needs one"
    if re.fullmatch(r"[-+]?\d[\d.,' \u00a0\u202f]*", text):
        remedy = "write decimals with a point, and nothing between thousands (1234.5)"
    return f"is not a number; {remedy}"
