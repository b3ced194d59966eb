"""Columns that matter and were not declared: where rows are read as time, people are asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidSetting, Place

ASKED = ("task",)
"""The columns, in any case, that must be declared if they have several values and rows are read as time."""

_MEANINGS = {
    "strata": "the mean over them is meant",
    "by": "each is judged by itself",
    "where": "only this one is meant",
}


def asked(names: Sequence[str], declared: Declared) -> list[str]:
    """Return the columns of a file that are asked about: none unless somebody can answer.

    Examples
    --------
    >>> asked(["Task", "success"], Declared(answers=("by", "where")))
    ['Task']
    >>> asked(["Task", "success"], Declared())
    []
    """
    if not declared.answers:
        return []
    design = declared.design
    # Strata that came with a certificate answer nothing where no strata are judged.
    said = [column for column in declared.columns if column != design.strata or "strata" in declared.answers]
    known = {normal(column) for column in said}
    return list(dict.fromkeys(name for name in names if normal(name) in ASKED and normal(name) not in known))


def one_value(values: Iterable[str], where: Place, answers: Sequence[str], known: str = "") -> str:
    """Return the value that a column has in all rows so far; refuse a second one, unless it is empty.

    Somebody chose the order of several tasks. A verdict after some of them may be about these.

    Parameters
    ----------
    values
        What some rows have.
    where
        The column.
    answers
        The arguments by which its meaning can be declared.
    known
        What the rows above have.

    Examples
    --------
    >>> one_value(["mug", "", "mug"], Place("log.csv", column="task"), ["by"])
    'mug'
    >>> one_value(["mug", "bowl"], Place("log.csv", column="task"), ["by"])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: log.csv: column 'task' has several values (mug, bowl), and the...
    """
    found = list(dict.fromkeys([known, *values]))
    several = [value for value in found if value]
    if len(several) < 2:
        return several[0] if several else ""
    column = where.column or ""
    remedy: list[str | Argument] = ["declare it: "]
    for place, answer in enumerate(answers):
        value: object = {column: several[0]} if answer == "where" else column
        remedy += [", or " if place else "", Argument(answer, value), f" ({_MEANINGS[answer]})"]
    remedy += [", or ", Argument("as_is", True), " (they come in random order)"]
    raise InvalidSetting(
        f"has several values ({', '.join(several[:2])}), and the order of trials matters here",
        where=where,
        remedy=tuple(remedy),
    )
