"""Rows that stand for several trials: 9 of 10 succeeded, or 9 trials like this one; and their totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.cells import (
    OF,
    Cells,
    Converted,
    Notation,
    convert,
    is_missing,
    number,
    refuse_strangers,
)
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, Place, Remedy

MOST_TRIALS = 50_000_000
_MOST_ROWS = 2000  # of a table of counts, whose totals are looked for


def expand(measure: Measure, columns: Sequence[Cells], notation: Notation, *, binary: bool) -> Converted:
    """Return the costs of all trials that rows stand for: of k successes in n trials, first the successes.

    Examples
    --------
    >>> found = expand(Measure("successes", "ok", trials="n"), [[2, "50%"], [3, 2]], Notation(), binary=True)
    >>> found.costs.tolist(), found.times.tolist()
    ([0.0, 0.0, 1.0, 0.0, 1.0], [3, 2])
    """
    cells, numbers = columns[0], columns[1] if len(columns) > 1 else [None] * len(columns[0])
    if measure.count is not None:
        found = convert(measure, cells, notation, binary=binary)
        times = np.array([_whole(cell, row, measure.count) for row, cell in enumerate(numbers)], np.int64)
        return Converted(np.repeat(found.costs, _checked(times)), found.others, times)
    rows = enumerate(zip(cells, numbers, strict=True))
    pairs = np.array([_pair(measure, *both, row) for row, both in rows], np.int64).reshape(-1, 2)
    counted, times = pairs.T
    failed = counted if measure.kind == "failures" else times - counted
    each = np.stack([_checked(times) - failed, failed], axis=1).ravel()
    return Converted(np.repeat(np.tile([0.0, 1.0], times.size), each), {}, times)


def refuse_total(rows: NDArray[np.float64], places: Sequence[Place], *, alike: bool) -> None:
    """Refuse a row whose trials and failures are the sums of at least two rows just above it.

    Where a row is of trials `alike`: if the last rows have the sums of all above them, for each outcome.
    """
    outcomes, last = rows[:, 1] / np.maximum(rows[:, 0], 1), len(rows)
    if alike:
        last -= len(set(outcomes.tolist()))
        above = [rows[:last][outcomes[:last] == each] for each in outcomes[last:]]
        both = zip(above, rows[last:], strict=True)
        found = [last] if all(len(each) > 1 and (each.sum(axis=0) == row).all() for each, row in both) else []
    else:
        sums = ((end, np.cumsum(rows[:end][::-1], axis=0)[1:]) for end in range(2, min(last, _MOST_ROWS)))
        found = [end for end, above_it in sums if (above_it == rows[end]).all(axis=1).any()]
    if found:
        problem = "has the sum of the trials above it, and of their failures"
        remedy = ("if it is a total, delete the row; if not, pass ", Argument("as_is", True))
        raise InvalidCost(problem, where=places[found[0]], remedy=remedy)


def refuse_shares(cells: Cells, rows: NDArray[np.float64], places: Sequence[Place]) -> None:
    """Refuse ones that may be shares, so all trials: if none is above 1, and each has several, or is 1.0."""
    values, several = np.array([_value(cell) for cell in cells]), rows[:, 0] > 1
    ones = [] if (values > 1).any() else np.flatnonzero((values == 1) & several).tolist()
    pointed = [row for row in ones if isinstance(cells[row], str) and not cells[row].strip().isdigit()]
    if found := pointed or (ones if several.all() else []):
        problem = f"may be 1 of the {rows[found[0], 0]:g} trials, or a share of 1, so all of them"
        share: Remedy = (Argument("cost_range", (0, 1)), " if it is a share, or ", Argument("as_is", True))
        remedy = ("pass ", *share, " if it is a count")
        raise InvalidCost(problem, where=places[found[0]], value=cells[found[0]], remedy=remedy)


def _checked(times: NDArray[np.int64]) -> NDArray[np.int64]:
    if (total := np.cumsum(times)).size and total[-1] > MOST_TRIALS:
        row = int(np.argmax(total > MOST_TRIALS))
        problem, remedy = f"brings more than {MOST_TRIALS:,} trials", "give fewer"
        raise InvalidCost(problem, value=int(times[row]), remedy=remedy).of(row)
    return times


def _whole(cell: Any, row: int, column: str | None) -> int:
    """Return how many trials a cell says."""
    value = _value(cell)
    if 0 <= value <= 2 * MOST_TRIALS and value == int(value):
        return int(value)
    problem, remedy = "is not a whole number of trials", "count them, and write nothing between thousands"
    if is_missing(cell):
        problem, remedy = "says no number of trials", "write it; if the row is a mean or a remark, delete it"
    raise InvalidCost(problem, where=Place(column=column), value=cell, remedy=remedy).of(row)


def _value(cell: Any) -> float:
    """Return the number in a cell that is no percentage; NaN if there is none."""
    if isinstance(cell, str):
        written = number(cell)
        return math.nan if written is None or written.percent or written.ambiguous else written.value
    try:
        return math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _pair(measure: Measure, cell: Any, other: Any, row: int) -> tuple[int, int]:
    """Return how many trials a row counts, and in how many; `other` is the number of these or of failures."""
    if measure.failures is not None:
        counted, failed = _whole(cell, row, measure.column), _whole(other, row, measure.failures)
        n = counted + failed
    else:
        said = None if measure.trials is None else _whole(other, row, measure.trials)
        try:
            refuse_strangers(cell, "count")
            counted, n = _count(measure, cell, said)
        except InvalidCost as error:
            raise error.of(row) from None
    problem, remedy = f"is more than the {n} trials of its row", "correct one of them"
    if not n:
        problem, remedy = "counts no trial", "if none was run, delete the row"
    if not 0 < n >= counted:
        raise InvalidCost(problem, value=cell, remedy=remedy).of(row)
    return counted, n


def _count(measure: Measure, cell: Any, n: int | None) -> tuple[int, int]:
    """Return how many of how many trials a cell says; `n` is what the column of the trials says."""
    of = OF(cell.strip()) if isinstance(cell, str) else None
    if of is not None and of[1].isdigit():
        if n not in (None, int(of[2])):
            problem = f"but column {measure.trials!r} says {n} trials"
            raise InvalidCost(problem, value=cell, remedy="correct one")
        return int(of[1]), int(of[2])
    if n is None:
        ways = (Argument("trials"), " or of the failed ones with ", Argument("failures"))
        remedy = ("write 9/10, or name the column of the trials with ", *ways)
        raise InvalidCost("does not say of how many trials", value=cell, remedy=remedy)
    value, percent = _value(cell), False
    if isinstance(cell, str) and (written := number(cell)) is not None and written.percent:
        value, percent = written.value, True
    if percent or measure.cost_range is not None:
        return _share(cell, value, n, 100.0 if percent else measure.ends[1]), n
    if 0 <= value < math.inf and value == int(value):
        return int(value), n
    share = ("; if it is a share of them, pass ", Argument("cost_range", (0, 1)))
    remedy = ("count them", *(share if 0 < value < 1 else ()))
    raise InvalidCost("is not a whole number of trials", value=cell, remedy=remedy)


def _share(cell: Any, value: float, n: int, whole: float) -> int:
    """Return the only number of trials whose share of `n` rounds to what a cell says."""
    digits = len(str(cell).strip().rstrip("%％ ").translate({44: "."}).partition(".")[2])
    digits = max(digits, 2) if whole == 1 else digits  # programs write 0.50 as 0.5
    half = 0.5 * 10.0 ** -min(digits, 9) * (1 + 1e-6)
    exact = value * n / whole if math.isfinite(value) else -1.0
    near = range(max(round(exact) - 1, 0), round(exact) + 2) if n else ()
    fitting = [k for k in near if abs(k * whole / n - value) <= half]
    if len(fitting) == 1:
        return fitting[0]
    several = f"could be {fitting[0]} or {fitting[1]}" if fitting else "is the share of no whole number"
    raise InvalidCost(f"{several} of {n} trials", value=cell, remedy="write how many there were")
