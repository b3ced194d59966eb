"""Cells become costs: what each of them says, by the measure that was declared for their column."""

from __future__ import annotations

import datetime
import math
import numbers
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown
from boundwatch._support.validation import shortest
from boundwatch.episodes.decimals import Mark, is_missing, number
from boundwatch.episodes.outcomes import INITIALS, answer, normal, succeeded
from boundwatch.errors import Argument, InvalidCost

if TYPE_CHECKING:
    from boundwatch.episodes.measure import Measure

Cells = Sequence[Any] | NDArray[Any]
Costs = NDArray[np.float64]

_FORMULA = "open and save it in a spreadsheet program, or give it as CSV"
_COUNTS = r"\d+\s*(/|of|von|out of)\s*\d+"
_NAME_WORDS = Argument("success_values")
_MOST_WORDS = 5
_LARGEST_WHOLE = 1 << 53  # up to which whole numbers are floats


@dataclass(frozen=True)
class Notation:
    """How a column is written, as far as its cells have shown it; later ones must be written alike.

    Plain JSON values by `dataclasses.asdict`; a stream keeps it from one block to the next.
    """

    decimal: Mark = ""
    """The decimal mark."""
    percent: bool | None = None
    """Whether numbers are percentages."""
    initials: bool | None = None
    """Whether outcomes are S and F."""


@dataclass(frozen=True)
class Converted:
    """The costs of some cells, how the column is written by now, and which words became failures.

    These are the words that are neither among the declared `success_values` nor known to mean failure.
    """

    costs: Costs
    notation: Notation
    others: Mapping[str, int] = field(default_factory=dict)


def convert(
    measure: Measure, cells: Cells, notation: Notation | None = None, *, binary: bool = False
) -> Converted:
    """Return the cost of every cell; the same for a whole column as for its cells one after the other."""
    state = notation or Notation()
    array = _plain(cells)
    if measure.kind == "success":
        found = _successes(measure, cells, array, state)
    elif array is not None:
        found = Converted(_scaled(measure, array), state)
    else:
        found = _numbers(measure, list(cells), state)
    if binary and not (whole := np.isin(found.costs, (0, 1))).all():
        place = int(np.argmin(whole))
        remedy = ("certify with ", Argument("binary", False))
        problem = "is not 0 or 1, but costs of 0 and 1 were promised"
        raise InvalidCost(problem, value=_python(cells[place]), remedy=remedy).of(place)
    return found


def _plain(cells: Cells) -> Costs | None:
    """Return cells that need no reading; None if there are texts among them."""
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64, copy=False) if cells.dtype.kind in "biuf" else None
    kinds = set(map(type, cells))
    return np.array(cells, dtype=np.float64) if kinds <= {int, float, bool} and _small(cells, kinds) else None


def _small(cells: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether all whole numbers fit into a float."""
    return int not in kinds or max(map(abs, cells)) < 1 << 1000


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _refused(error: InvalidCost, cells: Sequence[Any], place: int) -> InvalidCost:
    """Return a refusal with its value and place; of nothing, with how far that goes on."""
    last = place
    if is_missing(cells[place]):
        while last + 1 < len(cells) and is_missing(cells[last + 1]):
            last += 1
    return error.of(place, last)


# Successes.


def _successes(measure: Measure, cells: Cells, array: Costs | None, state: Notation) -> Converted:
    words = {_key(word) for word in measure.success_values}
    if array is not None and not words and np.isin(array, (0, 1)).all():
        return Converted(1.0 - array, state)
    listed = [_python(cell) for cell in cells]
    known: dict[Any, bool] = {}
    others: set[Any] = set()
    # A column has few different cells: each is understood once, in the order in which they appear.
    for cell in _different(listed):
        try:
            known[cell], state = _success(cell, words, state)
        except InvalidCost as error:
            place = next(at for at, other in enumerate(listed) if other is cell)
            raise _refused(_with_words(error, listed), listed, place) from None
        if words and not known[cell] and _usual(cell) is not False:
            others.add(cell)
    costs = 1.0 - np.fromiter(map(known.__getitem__, listed), np.float64, len(listed))
    counted = Counter(str(cell).strip() for cell in listed if cell in others) if others else Counter()
    return Converted(costs, state, dict(counted))


def _different(cells: list[Any]) -> Iterator[Any]:
    """Yield every different cell once; refuse one that cannot be compared, such as a list, in its turn."""
    place = next((at for at, cell in enumerate(cells) if not isinstance(cell, Hashable)), None)
    yield from dict.fromkeys(cells[:place])
    if place is not None:
        problem, remedy = "is neither a success nor a failure", "write yes or no, or 1 or 0"
        raise InvalidCost(problem, value=cells[place], remedy=remedy).of(place)


def _success(cell: Any, words: set[str], state: Notation) -> tuple[bool, Notation]:
    _refuse_strangers(cell, "outcome", "no")
    if words:
        return _named(cell, words), state
    initial = INITIALS.get(normal(cell)) if isinstance(cell, str) else None
    if initial and not state.initials and state.initials is not False:
        state = replace(state, initials=True)
    if initial is not None and state.initials:
        return initial, state
    found = _usual(cell)
    if found is None:
        raise _unknown(cell)
    if state.initials:
        raise InvalidCost("stands beside S and F", value=cell, remedy="write all outcomes alike")
    if initial is None and isinstance(cell, str):
        state = replace(state, initials=False)
    return found, state


def _usual(cell: Any) -> bool | None:
    """Return what a cell means in a column of successes: True, False or, if it is neither, None."""
    if isinstance(cell, str):
        if (found := succeeded(cell)) is not None:
            return found
        written = number(cell)
        cell = None if written is None or written.percent else written.value
    return bool(cell) if isinstance(cell, numbers.Real) and cell in (0, 1) else None


def _named(cell: Any, words: set[str]) -> bool:
    """Return whether a cell is one of the words that were declared to mean success."""
    key = _key(cell)
    if key in words:
        return True
    if _usual(cell):
        problem = "usually means success, but is not among the words that were declared to"
        raise InvalidCost(problem, value=cell, remedy=("add it to ", _NAME_WORDS, ", or change the cell"))
    slips = get_close_matches(key, list(words), n=1, cutoff=0.8)
    if slips and slips[0] not in key:
        remedy = ("correct it, or add it to ", _NAME_WORDS)
        raise InvalidCost(f"looks like {slips[0]!r}", value=cell, remedy=remedy)
    return False


def _key(value: object) -> str:
    """Return a word as it is compared: 1, 1.0 and "1" are one."""
    if isinstance(value, str):
        written = number(value)
        return normal(value) if written is None or written.percent else shortest(written.value)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST_WHOLE:
        return normal(shown(value))
    return shortest(value)


def _unknown(cell: Any) -> InvalidCost:
    text = cell.strip() if isinstance(cell, str) else ""
    written = number(text)
    if written is not None and written.percent:
        remedy: tuple[str | Argument, ...] = ("give one row per trial",)
        return InvalidCost("is a percentage, not one trial", value=cell, remedy=remedy)
    if written is not None or isinstance(cell, numbers.Real):
        remedy = ("if it is a score, where more is better, use ", Argument("reward"), " with ")
        remedy += (Argument("cost_range"),)
        return InvalidCost("is neither 0 nor 1", value=cell, remedy=remedy)
    if re.fullmatch(_COUNTS, text, re.IGNORECASE):
        return InvalidCost("counts several trials", value=cell, remedy="give one row per trial")
    remedy = ("write yes or no, or name the words that mean success with ", _NAME_WORDS)
    return InvalidCost("is not a known word for success or failure", value=cell, remedy=remedy)


def _with_words(error: InvalidCost, cells: list[Any]) -> InvalidCost:
    """Return a refusal that asks for words, with those that the column holds."""
    if _NAME_WORDS in error.remedy and len(error.remedy) == 2:
        words = [shown(word.strip() if isinstance(word, str) else word) for word in cells if word != ""]
        words = list(dict.fromkeys(words))
        more = ", ..." if len(words) > _MOST_WORDS else ""
        error.remedy += (f"; the column holds {', '.join(words[:_MOST_WORDS])}{more}",)
    return error


# Costs and rewards.


def _numbers(measure: Measure, cells: list[Any], state: Notation) -> Converted:
    values = np.empty(len(cells))
    known: dict[Any, float] = {}
    for place, cell in enumerate(cells):
        try:
            if (value := known.get(cell)) is None:
                value, state = _number(measure, _python(cell), state)
                known[cell] = value
        except TypeError:
            problem = "is not a number"
            raise InvalidCost(problem, value=cell, remedy="give one number per episode").of(place) from None
        except InvalidCost as error:
            raise _refused(error, cells, place) from None
        values[place] = value
    return Converted(_scaled(measure, values), state)


def _number(measure: Measure, cell: Any, state: Notation) -> tuple[float, Notation]:
    _refuse_strangers(cell, "number", "what it cost")
    if isinstance(cell, str):
        if measure.kind == "cost" and (said := answer(cell)) is not None:
            if said == "judges":
                remedy = ("read the column with ", Argument("success", measure.column))
                raise InvalidCost("says how the trial went, not what it cost", value=cell, remedy=remedy)
            return _within(measure, float(said), cell), state
        value, state = _written(measure, cell, state)
    else:
        try:
            value = float(cell)
        except (ValueError, OverflowError):
            value = math.inf
    return _within(measure, value, cell), state


def _written(measure: Measure, text: str, state: Notation) -> tuple[float, Notation]:
    """Return the number in a text, which must be written like those before it."""
    found = number(text)
    if found is None:
        remedy = "every episode needs one"
        if re.fullmatch(r"[-+]?\d[\d.,' \u00a0\u202f]*", text.strip()):
            remedy = "write decimals with a point, and nothing between thousands (1234.5)"
        raise InvalidCost("is not a number", value=text, remedy=remedy)
    alike = "write all numbers of the column alike"
    if found.ambiguous and state.decimal != ",":
        remedy = "write 1234, or 1.234 with a decimal point"
        raise InvalidCost(
            "could have a decimal comma, or a comma between thousands", value=text, remedy=remedy
        )
    if found.mark and state.decimal and found.mark != state.decimal:
        marks = {".": "point", ",": "comma"}
        problem = f"has a decimal {marks[found.mark]}, unlike the rows above it"
        raise InvalidCost(problem, value=text, remedy=alike)
    if state.percent is not None and found.percent != state.percent:
        problem = f"has {'a' if found.percent else 'no'} %, unlike the rows above it"
        raise InvalidCost(problem, value=text, remedy=alike)
    if found.percent and measure.cost_range != (0.0, 100.0):
        ends = Argument("cost_range", (0, 100))
        raise InvalidCost("is a percentage", value=text, remedy=("pass ", ends))
    return found.value, replace(state, decimal=found.mark or state.decimal, percent=found.percent)


def _within(measure: Measure, value: float, cell: Any) -> float:
    low, high = measure.ends
    if low <= value <= high:
        return value
    if not math.isfinite(value):
        remedy = "give every episode a number (a failed one usually the worst)"
        raise InvalidCost("is not finite", value=cell, remedy=remedy)
    problem = f"is outside [{shortest(low)}, {shortest(high)}]"
    remedies = ("pass the range that it can have, known in advance, as ", Argument("cost_range"))
    raise InvalidCost(problem, value=cell, remedy=remedies)


def _scaled(measure: Measure, values: Costs) -> Costs:
    low, high = measure.ends
    if values.size and not (values.min() >= low and values.max() <= high):
        listed = values.tolist()
        place = int(np.argmin((values >= low) & (values <= high)))
        try:
            _refuse_strangers(listed[place], "number", "what it cost")
            _within(measure, listed[place], listed[place])
        except InvalidCost as error:
            raise _refused(error, listed, place) from None
    if (measure.kind, low, high) == ("cost", 0, 1):
        return values
    scaled: Costs = (high - values if measure.kind == "reward" else values - low) / (high - low)
    return scaled


def _refuse_strangers(cell: Any, what: Literal["outcome", "number"], stopped: str) -> None:
    """Refuse what is neither text nor number: nothing, a formula, a date, a duration."""
    if is_missing(cell):
        remedy = f"not run yet? then end the table above; stopped? then write {stopped}"
        raise InvalidCost(f"has no {what}", remedy=remedy)
    if isinstance(cell, str) and cell.startswith("="):
        raise InvalidCost("is a formula whose result is not in the file", value=cell, remedy=_FORMULA)
    if isinstance(cell, datetime.date):
        remedy = "format the cell as text and write it again"
        raise InvalidCost(f"is a date; was it {cell.month}/{cell.day}?", value=str(cell), remedy=remedy)
    if isinstance(cell, datetime.timedelta | datetime.time):
        raise InvalidCost(
            "is a duration", value=str(cell), remedy="write it as a number, such as its seconds"
        )
