"""What a cell says (how a trial went, a number as people write it, or nothing), and what it costs."""

from __future__ import annotations

import datetime
import math
import numbers
import re
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import shortest
from boundwatch.episodes.words import (
    INITIALS,
    Mark,
    Outcome,
    date,
    garbled,
    is_empty,
    is_missing,
    normal,
    number,
    outcome,
)
from boundwatch.errors import Argument, InvalidCost, Remedy, shown

if TYPE_CHECKING:
    from boundwatch.episodes.measure import Measure

Cells = Sequence[Any] | NDArray[Any]
Costs = NDArray[np.float64]

_OF = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:/|of|von|out of)\s*(\d+)", re.IGNORECASE).fullmatch
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
    percent: bool | None = None
    words: bool | None = None  # whether costs are words (yes, no), not numbers
    clock: bool | None = None  # whether they are times (0:29), not numbers
    initials: bool | None = None  # whether outcomes are S and F


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
    if values is None or ((state.words or state.clock) and values.size):
        values, others = _read(measure, cells, state, ends)
    elif values.size:
        state.words = state.clock = False
    if not scaled:
        return Converted(values, others)
    costs = (values - low if measure.kind == "cost" else high - values) / (high - low)
    if binary and not (whole := np.isin(costs, (0, 1))).all():
        place = int(np.argmin(whole))
        value = cells[place].item() if isinstance(cells[place], np.generic) else cells[place]
        problem = "is not 0 or 1, but costs of 0 and 1 were promised"
        remedy = ("certify with ", Argument("binary", False))
        raise InvalidCost(problem, value=value, remedy=remedy).of(place)
    return Converted(costs, others)


def _plain(measure: Measure, cells: Cells, state: Notation, ends: tuple[float, float]) -> Costs | None:
    """Return cells that are numbers in their range, plainly written; None if one of them needs a look."""
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        kinds = set(map(type, cells))
        alike = measure.kind != "success" and state.decimal != ","
        alike = alike and not (state.percent or state.words or state.clock)
        if kinds == {str} and alike and all(map(_PLAIN, cells)):
            state.decimal, state.percent = "." if "." in "".join(cells) else state.decimal, False
            cells = list(map(float, cells))
        elif not kinds <= {int, float, bool} or (bool in kinds and ends not in ((0, 1), _ANY_NUMBER)):
            return None
    try:
        values = np.asarray(cells, dtype=np.float64)
    except OverflowError:
        return None
    if measure.kind == "success":
        return values if not measure.success_values and np.isin(values, (0, 1)).all() else None
    return values if not values.size or (values.min() >= ends[0] and values.max() <= ends[1]) else None


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
        value, own = cell.item() if isinstance(cell, np.generic) else cell, state
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
    odd = {cell for cell in known if _is_mode(measure, cell)}
    if words:
        odd = {cell for cell in known if not known[cell] and _usual(cell) is not False}
    return values, dict(Counter(str(cell).strip() for cell in listed if cell in odd))


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
        means = ("; if empty means something, say what with ", Argument("empty_as"))
        remedy: Remedy = (asked, *(means if is_empty(cell) and what != "count" else ()))
        raise InvalidCost(f"has no {what}", remedy=remedy)
    if isinstance(cell, str) and cell.startswith("="):
        remedy = "open and save it in a spreadsheet program, or give it as CSV"
        raise InvalidCost("is a formula whose result is not in the file", value=cell, remedy=remedy)
    if was := date(cell):
        remedy = "format the column as text, and write it again"
        raise InvalidCost(f"is a date (was it {was}?)", value=str(cell), remedy=remedy)
    if isinstance(cell, datetime.time):
        remedy = f"if it is {cell:%H:%M} in minutes and seconds, write the seconds as a number"
        raise InvalidCost("is kept as hours and minutes", value=f"{cell:%H:%M}", remedy=remedy)


def _success(measure: Measure, cell: Any, state: Notation) -> bool:
    """Return whether a cell says success; S and F do where no other word is."""
    initial = INITIALS.get(normal(cell)) if isinstance(cell, str) else None
    if initial and state.initials is None:
        state.initials = True
    if initial is not None and state.initials:
        return initial
    found = _usual(cell)
    if found is None:
        refuse_strangers(cell, "outcome")
        raise _unknown(measure, cell)
    if state.initials:
        raise InvalidCost("stands beside S and F", value=cell, remedy="write all outcomes alike")
    if initial is None and isinstance(cell, str):
        state.initials = False
    return found


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
    if _usual(cell):
        problem = "usually means success, but is not among the words that were declared to"
        raise InvalidCost(problem, value=cell, remedy=("change the cell, or add it to ", _NAME_WORDS))
    slips = get_close_matches(key, list(words), n=1, cutoff=0.8)
    if slips and slips[0] not in key:
        remedy = ("correct it, or add it to ", _NAME_WORDS)
        raise InvalidCost(f"looks like {slips[0]!r}", value=cell, remedy=remedy)
    return False


def _key(value: object) -> str:
    """Return a word as it is compared: 1, 1.0 and "1" are one."""
    text = str(value)
    written = number(text)
    return normal(text) if written is None or written.percent else shortest(written.value)


def _unknown(measure: Measure, cell: Any) -> InvalidCost:
    text = cell.strip() if isinstance(cell, str) else ""
    counts: Remedy = (Argument("successes", measure.column), " with ", Argument("trials"))
    if _OF(text):
        return InvalidCost("is not one trial", value=cell, remedy=("read counts with ", counts[0]))
    written = number(text) if text else None
    if written is not None and written.percent:
        return InvalidCost("is not one trial", value=cell, remedy=("read the share of trials with ", *counts))
    if isinstance(cell, numbers.Real) or written is not None:
        score = (Argument("reward", measure.column), " with ", Argument("cost_range"))
        remedy: Remedy = ("a score, where more is better? ", *score, "; counts? ", *counts)
        return InvalidCost("is neither 0 nor 1", value=cell, remedy=(*remedy, "; a total? delete the row"))
    remedy = ("write yes or no, or name the words that mean success with ", _NAME_WORDS, garbled(text))
    return InvalidCost("is not a known word for success or failure", value=cell, remedy=remedy)


def _number(measure: Measure, cell: Any, state: Notation, ends: tuple[float, float]) -> float:
    """Return the cost or the reward in a cell, which must be in its range."""
    mode, text = _is_mode(measure, cell), cell.strip() if isinstance(cell, str) else ""
    if normal(text) in _TIMEOUTS and (measure.timeout_as is not None or not mode):
        return _timeout(measure, cell)
    refuse_strangers(cell, "number")
    said = _said(measure, cell, ends, mode=mode)
    clock = _CLOCK(text) is not None or isinstance(cell, datetime.timedelta)
    if said is not None:
        value = _answer(measure, cell, said)
    elif clock:
        value = _seconds(measure, cell)
    elif isinstance(cell, str):
        value = _written(measure, cell, state)
    else:
        try:
            value = float(cell)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
    _check_alike(state, cell, words=said is not None, clock=clock)
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
    problem = f"is outside [{shortest(low)}, {shortest(high)}]"
    raise InvalidCost(problem, value=_plainly(cell), remedy=remedy)


def _said(measure: Measure, cell: Any, ends: tuple[float, float], *, mode: bool) -> Outcome | None:
    """Return what a cell says in a word, if it is one: something written where nothing costs nothing is."""
    if mode:
        return Outcome(success=True, judges=False)
    if isinstance(cell, bool) and ends not in ((0, 1), _ANY_NUMBER):  # true is yes, not 1 of 100
        return Outcome(success=cell, judges=False)
    return outcome(cell.strip()) if measure.kind == "cost" and isinstance(cell, str) else None


def _check_alike(state: Notation, cell: Any, *, words: bool, clock: bool) -> None:
    """Refuse a word among numbers, a number among times, and the like."""
    now = (words, clock)
    if (state.words, state.clock) not in ((None, None), now):
        names = {(True, False): "word", (False, True): "time", (False, False): "number"}
        problem = (
            f"is a {names[now]} where the rows above have {names[bool(state.words), bool(state.clock)]}s"
        )
        raise InvalidCost(problem, value=_plainly(cell), remedy="write all of the column alike")
    state.words, state.clock = now


def _plainly(cell: Any) -> Any:
    return str(cell) if isinstance(cell, datetime.timedelta) else cell


def _is_mode(measure: Measure, cell: Any) -> bool:
    """Return whether a cell names what went wrong, where an empty one was declared to cost something."""
    names = measure.kind == "cost" and measure.cost_range is None and measure.empty_as is not None
    if not names or not isinstance(cell, str) or is_missing(cell) or cell.startswith("=") or date(cell):
        return False
    return outcome(cell) is None and not any(letter.isdigit() for letter in cell[:1])


def _timeout(measure: Measure, cell: str) -> float:
    """Return what was declared for the word timeout."""
    if measure.timeout_as is None:
        worst = measure.ends[measure.kind == "cost"]
        remedy = ("say what that is with ", Argument("timeout_as", worst), " (the worst)")
        raise InvalidCost("is not a number", value=cell, remedy=remedy)
    return measure.timeout_as


def _seconds(measure: Measure, cell: str | datetime.timedelta) -> float:
    """Return the seconds of a duration, or of a time such as 12:34 or 1:02:03."""
    if measure.cost_range is None:
        remedy = ("give the range that it can have, in seconds, as ", Argument("cost_range"))
        raise InvalidCost("is a time", value=str(cell), remedy=remedy)
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    parts = map(float, reversed(cell.split(":")))
    return sum(part * unit for part, unit in zip(parts, (1, 60, 3600), strict=False))


def _answer(measure: Measure, cell: str, said: Outcome) -> float:
    """Return the cost that a word has: yes is 1, which no other range than [0, 1] has as its worst."""
    if said.judges:
        remedy: Remedy = ("read the column with ", Argument("success", measure.column))
        raise InvalidCost("says how the trial went, not what it cost", value=cell, remedy=remedy)
    if measure.cost_range not in (None, (0, 1)):
        problem = "is a word, and costs in another range than [0, 1] are numbers"
        raise InvalidCost(problem, value=cell, remedy="write a number")
    return float(said.success)


def _written(measure: Measure, text: str, state: Notation) -> float:
    """Return the number in a text, which must be written like those before it."""
    found = number(text)
    if found is None:
        remedy: Remedy = "every episode needs one; if the row is a total or a unit, delete it"
        if score := _OF(text.strip()):
            return _score(measure, text, *score.groups())
        if _DIGITS(text.strip()):
            remedy = "write decimals with a point, and nothing between thousands (1234.5)"
        raise InvalidCost("is not a number", value=text, remedy=remedy)
    problem, remedy = "", "write all numbers of the column alike"
    if found.ambiguous and state.decimal != ",":
        problem = "could have a decimal comma, or a comma between thousands"
        remedy = "write 1234, or 1.234 with a decimal point"
    elif found.mark and state.decimal and found.mark != state.decimal:
        problem = f"has a decimal {'comma' if found.mark == ',' else 'point'}, unlike the rows above it"
    elif state.percent is not None and found.percent != state.percent:
        problem = f"has {'a' if found.percent else 'no'} %, unlike the rows above it"
    elif found.percent and measure.cost_range != (0, 100):
        problem, remedy = "is a percentage", ("pass ", Argument("cost_range", (0, 100)))
    if problem:
        raise InvalidCost(problem, value=text, remedy=remedy)
    state.decimal, state.percent = found.mark or state.decimal, found.percent
    return found.value


def _score(measure: Measure, text: str, points: str, most: str) -> float:
    """Return the points of 3/5, if the range that was declared ends at 5."""
    if measure.cost_range is None or measure.ends[1] != float(most):
        score, counts = Argument("cost_range", (0, int(most))), Argument("successes", measure.column)
        remedy = ("if it is a score, pass ", score, "; if it counts trials, use ", counts)
        raise InvalidCost(f"is a number of {most}", value=text, remedy=remedy)
    return float(points.replace(",", "."))
