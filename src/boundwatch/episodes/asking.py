"""What must be declared, or may matter, by the names of columns: one short list.

A name here never decides what a cell means. It asks: a column that may matter to the guarantee, and that
nobody declared, is refused as soon as its values show that it does. ``as_is`` silences all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from boundwatch.episodes.cells import normal
from boundwatch.errors import Argument, InvalidSetting, Place


class Question(NamedTuple):
    """Why several values of a column are asked about, what can be said, and what ``as_is`` then means."""

    why: str
    answers: tuple[str, ...]
    as_is: str
    in_order: bool = False  # only where rows are read as time
    known: str = ""  # the value that is not offered


ASKED: Mapping[str, Question] = {
    "task": Question(
        "and the order of trials matters here", ("strata", "by", "where"), "they come in random order", True
    ),
    **dict.fromkeys(
        ("policy", "model", "method", "checkpoint"),
        Question("and these may be several policies", ("policy", "where"), "they are one policy"),
    ),
}
"""The columns, in any case, whose several values must be declared."""

_MEANINGS = {
    "strata": "the mean over them is meant",
    "by": "each is judged by itself",
    "policy": "they are compared",
    "where": "only this one is meant",
}
_SHOWN = 5


def certified(value: str) -> Question:
    """Return what is asked about a column of which only the rows with this value were certified."""
    return Question(f"and the certificate is of {value}", ("where",), "all are meant", known=value)


def one_value(
    question: Question,
    cells: Iterable[tuple[Sequence[str], str]],
    known: dict[str, str],
    where: Place,
    offered: Sequence[str],
) -> None:
    """Take further cells of a column, each with what its rows are taken apart by (a policy, a robot).

    Refuse a second value, empty cells aside. `known` has the value of each part so far. `offered` are the
    arguments that can be given here.
    """
    pairs = [("/".join(part), value) for part, value in dict.fromkeys(cells) if value]
    for group, value in pairs:
        if normal(known.setdefault(group, value)) == normal(value):
            continue
        several = list(dict.fromkeys([known[group], *(each for of, each in pairs if of == group)]))
        column = where.column or ""
        remedy: list[str | Argument] = ["declare it: "]
        for answer in filter(offered.__contains__, question.answers):
            other = next((each for each in several if normal(each) != normal(question.known)), several[0])
            chosen: object = {column: other} if answer == "where" else column
            remedy += [Argument(answer, chosen), f" ({_MEANINGS[answer]}), or "]
        remedy += [Argument("as_is", True), f" ({question.as_is})"]
        listed = ", ".join(several[:_SHOWN]) + (", ..." if len(several) > _SHOWN else "")
        raise InvalidSetting(
            f"has several values ({listed}), {question.why}", where=where, remedy=tuple(remedy)
        )
