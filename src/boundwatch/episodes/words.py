"""What people write in a cell: words for how a trial went, numbers, dates, or nothing."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from typing import Any, Literal, NamedTuple

Mark = Literal["", ".", ","]

_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE).fullmatch
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}").fullmatch  # 1,234 could be 1234 or 1.234; 0,125 could not
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(rf"(\d\d?)[-. ]({_MONTH})\w*|({_MONTH})\w*[-. ](\d\d?)|\d{{4}}-(\d\d)-(\d\d)").fullmatch
_MISSING = {"", "n/a", "na", "nan", "null", "none", "-", "--", "?", "#n/a", "#nv"}
# The minus of typesetters, and what East Asian keyboards write instead of a point, a minus and a percent sign
# (their digits Python knows).
_VARIANTS = {0x2212: "-", 0xFF0E: ".", 0xFF0C: ",", 0xFF0D: "-", 0xFF05: "%"}


def normal(text: str) -> str:
    """Return a text as it is compared with others: in any case, with any spaces, accents and ticks."""
    plain = unicodedata.normalize("NFKC", text).replace("\ufe0f", "")  # the mark of a picture, not of a word
    return " ".join(plain.casefold().split())


class Outcome(NamedTuple):
    """What a word says, and whether it is good or bad by itself.

    Yes and no answer a question, so they mean something in a column of costs, too; pass and failed judge.
    """

    success: bool
    judges: bool


# One table, in all languages at once.
_TABLE = {
    (True, False): "yes y true t ja j wahr oui vrai si sí sì verdadero vero sim verdadeiro tak 是",
    (False, False): "no n false f nein falsch non faux falso não nao nee nej nie 否",
    (True, True): (
        "success successful succeeded succes succès pass passed ok okay good erfolg erfolgreich bestanden "
        "gelungen io i.o. i.o réussi réussite éxito exito exitoso successo riuscito sucesso 成功 "
        "✓ ✔ ✅ ☑ ○ 👍"
    ),
    (False, True): (
        "failure fail failed unsuccessful nok ko bad aborted not_ok no_success not_successful not_passed "
        "misserfolg fehlgeschlagen fehler durchgefallen nicht_erfolgreich nicht_bestanden nio n.i.o. "
        "n.i.o n.io échec echec échoué fallo fracaso fallito fallimento falha 失败 失敗 ✗ ✘ ✖ ❌ × 👎"
    ),
}
_OUTCOMES = {
    normal(word.replace("_", " ")): Outcome(*says) for says, words in _TABLE.items() for word in words.split()
}
# Success and failure by one letter each: only where a column has no other word.
INITIALS = {"s": True, "f": False}


def outcome(text: str) -> Outcome | None:
    """Return what a word says; None if it is not known."""
    return _OUTCOMES.get(normal(text))


class Number(NamedTuple):
    """A number that was written as text; its comma is `ambiguous` if it may stand between thousands."""

    value: float
    mark: Mark
    percent: bool
    ambiguous: bool


def number(text: str) -> Number | None:
    """Return the number in a text; None if there is none."""
    plain = text.strip().translate(_VARIANTS)
    percent = plain.endswith("%")
    plain = plain.removesuffix("%").rstrip()
    comma = _COMMA(plain) is not None
    if "_" in plain:  # Python reads 0_1 as 1
        return None
    try:
        value = float(plain.replace(",", ".") if comma else plain)
    except ValueError:
        return None
    return Number(
        value, "," if comma else "." if "." in plain else "", percent, comma and _THOUSANDS(plain) is not None
    )


def is_missing(value: object) -> bool:
    """Return whether a cell holds nothing: empty, null, NaN, or a word for that."""
    if isinstance(value, str):
        return value.strip().casefold() in _MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_empty(cell: object) -> bool:
    """Return whether nothing is written in a cell; a word for nothing is something."""
    return cell is None or (not cell.strip() if isinstance(cell, str) else cell != cell)


def date(cell: Any) -> str:
    """Return the 9/10 that a spreadsheet program may have turned into a date; nothing if it is none."""
    if isinstance(cell, datetime.date):
        return "/".join(map(str, sorted((cell.month, cell.day))))
    found = _DATE(cell.strip().lower()) if isinstance(cell, str) else None
    parts = filter(None, found.groups()) if found else ()
    return "/".join(map(str, sorted(_MONTHS.index(p) + 1 if p in _MONTHS else int(p) for p in parts)))
