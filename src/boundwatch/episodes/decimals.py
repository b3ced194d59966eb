"""Numbers as people write them: with a decimal point or a comma, as percentages."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 could be 1234 or 1.234; 0,125 could not
_MISSING = {"", "n/a", "na", "nan", "null", "none", "-", "--", "?", "#n/a", "#nv"}
# The minus of typesetters, and what East Asian keyboards write instead of a point, a minus and a percent sign
# (their digits Python knows).
_VARIANTS = {0x2212: "-", 0xFF0E: ".", 0xFF0C: ",", 0xFF0D: "-", 0xFF05: "%"}

Mark = Literal["", ".", ","]


@dataclass(frozen=True)
class Number:
    """A number that was written as text."""

    value: float
    mark: Mark
    percent: bool
    ambiguous: bool
    """Whether its comma may stand between thousands."""


def number(text: str) -> Number | None:
    """Return the number in a text; None if there is none."""
    plain = text.strip().translate(_VARIANTS)
    percent = plain.endswith("%")
    plain = plain.removesuffix("%").rstrip()
    comma = _COMMA.fullmatch(plain) is not None
    ambiguous = comma and _THOUSANDS.fullmatch(plain) is not None
    if "_" in plain:  # Python reads 0_1 as 1
        return None
    try:
        value = float(plain.replace(",", ".") if comma else plain)
    except ValueError:
        return None
    return Number(value, "," if comma else "." if "." in plain else "", percent, ambiguous)


def is_missing(value: object) -> bool:
    """Return whether a cell holds nothing: empty, null, NaN, or a word for that."""
    if isinstance(value, str):
        return value.strip().casefold() in _MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))
