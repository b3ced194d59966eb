"""What a cell says (how a trial went, a number as people write it, or nothing), and what it costs."""

from __future__ import annotations

import datetime
import math
import numbers
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import shortest
from boundwatch.errors import Argument, InvalidCost, Remedy, shown

if TYPE_CHECKING:
    from boundwatch.episodes.measure import Measure

Mark = Literal["", ".", ","]

_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE).fullmatch
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}").fullmatch  # 1,234 could be 1234 or 1.234; 0,125 could not
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(rf"(\d\d?)[-. ]({_MONTH})\w*|({_MONTH})\w*[-. ](\d\d?)|\d{{4}}-(\d\d)-(\d\d)").fullmatch
_MISSING = {"", "n/a", "na", "nan", "null", "none", "-", "--", "?", "#n/a", "#nv"}
# The minus of typesetters, and the marks of East Asian keyboards, whose digits Python knows.
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
    mark: Mark = "," if comma else "." if "." in plain else ""
    return Number(value, mark, percent, comma and _THOUSANDS(plain) is not None)


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


Cells = Sequence[Any] | NDArray[Any]
Costs = NDArray[np.float64]

OF = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:/|of|von|out of)\s*(\d+)", re.IGNORECASE).fullmatch
_CLOCK = re.compile(r"(?:(\d+):(?=\d\d:))?(\d+):([0-5]\d(?:\.\d+)?)", re.ASCII).fullmatch  # 1:02:03, 12:34
_DIGITS = re.compile(r"[-+]?\d[\d.,' \u00a0\u202f]*").fullmatch
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII).fullmatch
_TIMEOUTS = {"timeout", "time out", "time-out", "timed out"}
_NAME_WORDS = Argument("success_values")
_MOST_WORDS = 5
_ANY_NUMBER = (-sys.float_info.max, sys.float_info.max)


@dataclass
class Notation:
    """How a column is written, as far as its cells have shown it; later ones must be written alike.

    `convert` keeps it up to date. Plain JSON values by `dataclasses.asdict`.
    """

    decimal: Mark = ""
    kind: str = ""  # number, percentage, time (0:29) or word; of outcomes, word or initial (S and F)


class Converted(NamedTuple):
    """The costs of some cells, and which words became failures, how often each.

    These are the words that are neither among the declared `success_values` nor known to mean failure. Where
    rows count trials, `times` is how many each stands for.
    """

    costs: Costs
    others: Mapping[str, int]
    times: NDArray[np.int64] | None = None


def convert(
    measure: Measure,
    cells: Cells,
    notation: Notation | None = None,
    *,
    binary: bool = False,
    scaled: bool = True,
) -> Converted:
    """Return the cost of every cell; the same for a whole column as for its cells one after the other.

    Not `scaled`, these are the values that cells hold (1 for success), whatever the range.
    """
    state, others = notation or Notation(), dict[str, int]()
    low, high = ends = measure.ends if scaled else _ANY_NUMBER
    values = _plain(measure, cells, state, ends)
    if values is None:
        values, others = _read(measure, cells, state, ends)
    if not scaled:
        return Converted(values, others)
    costs = (values - low if measure.kind == "cost" else high - values) / (high - low)
    if binary and not (whole := np.isin(costs, (0, 1))).all():
        place = int(np.argmin(whole))
        problem = "is not 0 or 1, but costs of 0 and 1 were promised"
        remedy = ("certify with ", Argument("binary", False))
        raise InvalidCost(problem, value=_item(cells[place]), remedy=remedy).of(place)
    return Converted(costs, others)


def _plain(measure: Measure, cells: Cells, state: Notation, ends: tuple[float, float]) -> Costs | None:
    """Return cells that are numbers in their range, plainly written; None if one of them needs a look."""
    kind, decimal = "word" if measure.kind == "success" else "number", state.decimal
    if state.kind not in ("", kind):
        return None
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        kinds = set(map(type, cells))
        if kinds == {str} and kind == "number" and decimal != "," and all(map(_PLAIN, cells)):
            decimal = "." if "." in "".join(cells) else decimal
            cells = list(map(float, cells))
        elif not kinds <= {int, float, bool} or (bool in kinds and ends not in ((0, 1), _ANY_NUMBER)):
            return None
    try:
        values = np.asarray(cells, dtype=np.float64)
    except OverflowError:
        return None
    if kind == "word":
        fits = not measure.success_values and bool(np.isin(values, (0, 1)).all())
    else:
        fits = not values.size or bool(values.min() >= ends[0] and values.max() <= ends[1])
    if fits and values.size:
        state.kind, state.decimal = kind, decimal
    return values if fits else None


def _read(
    measure: Measure, cells: Cells, state: Notation, ends: tuple[float, float]
) -> tuple[Costs, dict[str, int]]:
    """Return what cells hold: each different one is understood once, in the order in which they appear."""
    listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
    words = set(map(_key, measure.success_values))
    try:
        known = dict.fromkeys(listed, 0.0)
    except TypeError:  # a list, say; what is wrong above it comes first
        place = next(at for at, cell in enumerate(listed) if not isinstance(cell, Hashable))
        _read(measure, listed[:place], state, ends)
        remedy = "give one value per episode"
        raise InvalidCost("is not one value", value=listed[place], remedy=remedy).of(place) from None
    for cell in known:
        value, own = _item(cell), state
        if measure.empty_as is not None and is_empty(value):
            value, own = measure.empty_as, Notation()  # whoever declares it need not write it like the others
        try:
            if measure.kind != "success":
                known[cell] = _number(measure, value, own, ends)
            else:
                known[cell] = _named(value, words) if words else _success(measure, value, own)
        except InvalidCost as error:
            raise _placed(error, listed, cell) from None
    values = np.fromiter(map(known.__getitem__, listed), np.float64, len(listed))
    if words:
        odd = {cell for cell in known if not known[cell] and _usual(cell) is not False}
    elif measure.empty_as is not None:
        odd = {cell for cell in known if _is_mode(measure, cell)}
    else:
        return values, {}
    return values, dict(Counter(str(cell).strip() for cell in listed if cell in odd))


def _item(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _placed(error: InvalidCost, cells: Sequence[Any], cell: Any) -> InvalidCost:
    """Return a refusal with its place: of nothing, with how far that goes on; of a word, with the others."""
    place = last = next(at for at, other in enumerate(cells) if other is cell)
    while is_missing(cell) and last + 1 < len(cells) and is_missing(cells[last + 1]):
        last += 1
    if _NAME_WORDS in error.remedy:
        words = list(dict.fromkeys(shown(str(word).strip()) for word in cells if word != ""))
        more = ", ..." if len(words) > _MOST_WORDS else ""
        error.remedy += (f"; the column holds {', '.join(words[:_MOST_WORDS])}{more}",)
    return error.of(place, last)


def refuse_strangers(cell: Any, what: str) -> None:
    """Refuse what is neither text nor number: nothing, a formula, a date, a time of day."""
    if is_missing(cell):
        stopped = {"outcome": "no", "count": "9/10"}.get(what, "what it cost")
        asked = f"not run yet? end the table above; stopped? write {stopped}; a total? delete the row"
        failed = Argument("empty_as", stopped) if what == "outcome" else Argument("empty_as")
        means = ("; if empty means something, say what with ", failed)
        remedy: Remedy = (asked, *(means if is_empty(cell) and what != "count" else ()))
        raise InvalidCost(f"has no {what}", remedy=remedy)
    if isinstance(cell, str) and cell.startswith("="):
        remedy = "open and save it in a spreadsheet program, or give it as CSV"
        raise InvalidCost("is a formula whose result is not in the file", value=cell, remedy=remedy)
    if (was := date(cell)) or isinstance(cell, datetime.time):
        problem = f"is a date (was it {was}?)" if was else "is kept as hours and minutes"
        remedy = "format the column as text, and write it again"
        raise InvalidCost(problem, value=str(cell), remedy=remedy)


def _success(measure: Measure, cell: Any, state: Notation) -> bool:
    """Return whether a cell says success; S and F do where no other word is."""
    said = INITIALS.get(normal(cell)) if isinstance(cell, str) and state.kind != "word" else None
    found = _usual(cell) if said is None else said
    if found is None:
        refuse_strangers(cell, "outcome")
        raise _unknown(measure, cell)
    _check_alike(state, "word" if said is None else "initial", cell)
    return found


def _check_alike(state: Notation, kind: str, cell: Any) -> None:
    """Refuse a word among numbers, a number among times, and the like."""
    if state.kind not in ("", kind):
        problem = f"is a {kind} where the rows above have {state.kind}s"
        raise InvalidCost(problem, value=cell, remedy="write all of the column alike")
    state.kind = kind


def _usual(cell: Any) -> bool | None:
    """Return what a cell means in a column of successes: True, False or, if it is neither, None."""
    if isinstance(cell, str):
        if (said := outcome(cell)) is not None:
            return said.success
        written = number(cell)
        cell = None if written is None or written.percent else written.value
    return bool(cell) if isinstance(cell, numbers.Real) and cell in (0, 1) else None


def _named(cell: Any, words: set[str]) -> bool:
    """Return whether a cell is one of the words that were declared to mean success."""
    key = _key(cell)
    if key in words:
        return True
    refuse_strangers(cell, "outcome")
    slips = get_close_matches(key, list(words), n=1, cutoff=0.8)
    if _usual(cell) or (slips and slips[0] not in key):
        problem = f"looks like {slips[0]!r}" if slips else "usually means success"
        remedy = ("correct it, or add it to ", _NAME_WORDS)
        raise InvalidCost(f"{problem}, but was not declared to mean success", value=cell, remedy=remedy)
    return False


def _key(value: object) -> str:
    """Return a word as it is compared: 1, 1.0 and "1" are one."""
    text = str(value)
    written = number(text)
    return normal(text) if written is None or written.percent else shortest(written.value)


def _unknown(measure: Measure, cell: Any) -> InvalidCost:
    text = cell.strip() if isinstance(cell, str) else ""
    counts: Remedy = (Argument("successes", measure.column), " with ", Argument("trials"))
    of, written = OF(text), number(text)
    if of or (written is not None and written.percent):
        remedy: Remedy = ("read counts or shares with ", *counts[: 1 if of else None])
        return InvalidCost("is not one trial", value=cell, remedy=remedy)
    if isinstance(cell, numbers.Real) or written is not None:
        score = (Argument("reward", measure.column), " with ", Argument("cost_range"))
        remedy = ("a score, where more is better? ", *score, "; counts? ", *counts)
        return InvalidCost("is neither 0 nor 1", value=cell, remedy=(*remedy, "; a total? delete the row"))
    foreign = "" if text.isascii() else "; if the file shows another word, save it as UTF-8"
    remedy = ("write yes or no, or name the words that mean success with ", _NAME_WORDS, foreign)
    return InvalidCost("is not a known word for success or failure", value=cell, remedy=remedy)


def _number(measure: Measure, cell: Any, state: Notation, ends: tuple[float, float]) -> float:
    """Return the cost or the reward in a cell, which must be in its range."""
    text = cell.strip() if isinstance(cell, str) else ""
    if measure.timeout_as is not None and normal(text) in _TIMEOUTS:
        return measure.timeout_as
    refuse_strangers(cell, "number")
    value = _value(measure, cell, state, truth=ends in ((0, 1), _ANY_NUMBER))
    low, high = ends
    if low <= value <= high:
        return value
    if not math.isfinite(value):
        usual = "give every episode a number (a failed one usually the worst)"
        raise InvalidCost("is not a finite number", value=cell, remedy=usual)
    counts: tuple[str | Argument, ...] = ()
    if measure.kind == "cost" and measure.cost_range is None and value > 1 and value == int(value):
        counts = ("; a count? ", Argument("failures", measure.column), " with ", Argument("trials"))
    remedy = ("pass the range that it can have, known in advance, as ", Argument("cost_range"), *counts)
    raise InvalidCost(f"is outside [{shortest(low)}, {shortest(high)}]", value=cell, remedy=remedy)


def _value(measure: Measure, cell: Any, state: Notation, *, truth: bool) -> float:
    """Return the number that a cell says, in a word, as a time or in digits; `truth` is a number, too."""
    if _is_mode(measure, cell):  # something where nothing costs nothing
        _check_alike(state, "word", cell)
        return 1.0
    said = outcome(cell) if isinstance(cell, str) and measure.kind == "cost" else None
    if said is not None or (isinstance(cell, bool) and not truth):
        return _answer(measure, cell, state, judges=said is not None and said.judges)
    if not isinstance(cell, str):
        _check_alike(state, "number", cell)
        try:
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            return math.nan
    if clock := _CLOCK(cell.strip()):
        if measure.cost_range is None:
            remedy = ("give the range that it can have, in seconds, as ", Argument("cost_range"))
            raise InvalidCost("is a time", value=cell, remedy=remedy)
        _check_alike(state, "time", cell)
        return sum(float(part or 0) * unit for part, unit in zip(clock.groups(), (3600, 60, 1), strict=True))
    return _written(measure, cell, state)


def _answer(measure: Measure, cell: Any, state: Notation, *, judges: bool) -> float:
    """Return the cost that a word has: yes is 1, which no other range than [0, 1] has as its worst."""
    if judges:
        remedy: Remedy = ("read the column with ", Argument("success", measure.column))
        raise InvalidCost("says how the trial went, not what it cost", value=cell, remedy=remedy)
    if measure.cost_range not in (None, (0, 1)):
        problem = "is a word, and costs in another range than [0, 1] are numbers"
        raise InvalidCost(problem, value=cell, remedy="write a number")
    _check_alike(state, "word", cell)
    return float(_usual(cell) or 0)


def _is_mode(measure: Measure, cell: Any) -> bool:
    """Return whether a cell names what went wrong, where an empty one was declared to cost something."""
    names = measure.kind == "cost" and measure.cost_range is None and measure.empty_as is not None
    if not names or not isinstance(cell, str) or is_missing(cell):
        return False
    return outcome(cell) is None and not cell.strip()[0].isdigit()


def _written(measure: Measure, text: str, state: Notation) -> float:
    """Return the number in a text, which must be written like those before it."""
    found = number(text)
    if found is None:
        return _score(measure, text, state)
    if found.percent and measure.cost_range != (0, 100):
        raise InvalidCost("is a percentage", value=text, remedy=("pass ", Argument("cost_range", (0, 100))))
    problem, remedy = "", "write all numbers of the column alike"
    if found.ambiguous and state.decimal != ",":
        problem = "could have a decimal comma, or a comma between thousands"
        remedy = "write 1234, or 1.234 with a decimal point"
    elif found.mark and state.decimal and found.mark != state.decimal:
        problem = f"has a decimal {'comma' if found.mark == ',' else 'point'}, unlike the rows above it"
    if problem:
        raise InvalidCost(problem, value=text, remedy=remedy)
    _check_alike(state, "percentage" if found.percent else "number", text)
    state.decimal = found.mark or state.decimal
    return found.value


def _score(measure: Measure, text: str, state: Notation) -> float:
    """Return the points of 3/5, if the range that was declared ends at 5; refuse any other text."""
    remedy: Remedy = "every episode needs one; if the row is a total or a unit, delete it"
    if points := OF(text.strip()):
        if measure.cost_range is not None and measure.ends[1] == float(points[2]):
            _check_alike(state, "number", text)
            return float(points[1].replace(",", "."))
        score, counts = Argument("cost_range", (0, int(points[2]))), Argument("successes", measure.column)
        remedy = ("if it is a score, pass ", score, "; if it counts trials, use ", counts)
        raise InvalidCost(f"is a number of {points[2]}", value=text, remedy=remedy)
    if outcome(text) is not None:
        remedy = ("write a number, or read the column with ", Argument("success", measure.column))
    elif normal(text) in _TIMEOUTS:
        worst = measure.ends[measure.kind == "cost"]
        remedy = ("say what that is with ", Argument("timeout_as", worst), " (the worst)")
    elif _DIGITS(text.strip()):
        remedy = "write decimals with a point, and nothing between thousands (1234.5)"
    raise InvalidCost("is not a number", value=text, remedy=remedy)
