"""Rows that are not read one by one: those that are left out, and those that are steps of an episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import shortest
from boundwatch.episodes.cells import normal, number
from boundwatch.episodes.costs import convert
from boundwatch.episodes.design import USUAL_REDUCTION, Reduction
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.block import Block, Cells, Table

_LONGEST_NAME = 1000


def label(value: object) -> str:
    """Return the name that a cell holds; nothing if it holds none."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return shortest(float(value)) if np.isfinite(value) else ""
    return str(value).strip()[: _LONGEST_NAME + 1]


def labels(cells: Cells) -> list[str]:
    """Return the names in a column, each made once."""
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells
    try:
        known = {value: label(value) for value in dict.fromkeys(values)}
    except TypeError:  # a list, say
        return [label(value) for value in values]
    return [known[value] for value in values]


def names(block: Block, column: str, source: str) -> list[str]:
    """Return the names in a column, of which every row must have one."""
    found = labels(block.columns[column])
    for row, name in enumerate(found):
        if not 0 < len(name) <= _LONGEST_NAME:
            raise InvalidCost(
                "is longer than any name" if name else "has no name",
                where=Place(source, block.unit, block.numbers[row], column),
                remedy="give every row a short text or a whole number there",
            )
    return found


def filtered(block: Block, where: Mapping[str, str], source: str) -> Block:
    """Return the rows that have these values in these columns of the file; refuse an empty cell there."""
    kept = np.ones(len(block), dtype=bool)
    for column, value in where.items():
        wanted = normal(value)
        found = labels(block.columns[column])
        if wanted and "" in found:
            place = Place(source, block.unit, block.numbers[found.index("")], column)
            problem, remedy = "is empty, and rows are chosen by it", "write it in every row"
            raise InvalidCost(problem, where=place, remedy=remedy)
        same = {name: normal(name) == wanted for name in set(found)}
        kept &= np.array([same[name] for name in found], dtype=bool)
    if kept.all():
        return block
    rows = np.flatnonzero(kept).tolist()
    return Block(
        block.unit,
        [block.numbers[row] for row in rows],
        {
            name: cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows]
            for name, cells in block.columns.items()
        },
        {name: [cells[row] for row in rows] for name, cells in block.labels.items()},
    )


def reduction(reduce: Reduction | None, measure: Measure, source: str) -> Reduction:
    """Return the rule that makes steps one value, the customary one if none is asked for."""
    rule = reduce or USUAL_REDUCTION.get(measure.kind)
    if rule is None:
        problem = "has a cost for every step of an episode"
        remedy = ("choose what makes them one with ", Argument("reduce"), ": mean, max, last or sum")
        raise InvalidSetting(problem, where=Place(source, column=measure.column), remedy=remedy)
    return rule


@dataclass
class Gathered:
    """The episodes of a file: costs, where each is, keys by role, and what notes are made of."""

    costs: NDArray[np.float64]
    numbers: Sequence[int] = ()
    keys: dict[str, list[str]] = field(default_factory=dict)
    unit: str = "row"
    others: Counter[str] = field(default_factory=Counter)
    labels: dict[str, list[str]] = field(default_factory=dict)


def joined_steps(
    blocks: Iterable[Block],
    table: Table,
    rule: Reduction,
    episode: str,
    apart: str | None,
    roles: Mapping[str, str],
) -> Gathered:
    """Return the episodes of rows that are their steps; episodes may be interleaved."""
    which, source = [episode] if apart is None else [episode, apart], table.source
    found: dict[tuple[str, ...], int] = {}
    values, places = [np.empty(0)], list[int]()
    numbers, keys = list[int](), list[tuple[str, ...]]()
    for block in blocks:
        values.append(_values(block, table))
        columns = [names(block, column, source) for column in (*which, *roles.values())]
        for row, cells in enumerate(zip(*columns, strict=True)):
            step, key = cells[: len(which)], cells[len(which) :]
            place = found.setdefault(step, len(found))
            places.append(place)
            if place == len(keys):
                keys.append(key)
                numbers.append(block.numbers[row])
            elif keys[place] != key:
                _refuse_two(keys[place], key, roles, step[0], Place(source, block.unit, block.numbers[row]))
    joined = _reduced(np.concatenate(values), np.array(places, dtype=np.int64), rule, len(found))
    try:
        costs = convert(replace(table.measure, success_values=()), joined).costs
    except InvalidCost as error:
        name = list(found)[error.cells.start][0]
        raise error.at(Place(f"{source}: episode {name}", column=table.column)) from None
    listed = zip(*keys, strict=True) if keys else [()] * len(roles)
    return Gathered(costs, numbers, {role: list(each) for role, each in zip(roles, listed, strict=True)})


def _refuse_two(
    first: Sequence[str], second: Sequence[str], roles: Mapping[str, str], episode: str, where: Place
) -> NoReturn:
    each = zip(roles.values(), first, second, strict=True)
    column, one, other = next((column, one, other) for column, one, other in each if one != other)
    raise InvalidSetting(
        f"but steps of episode {episode} above have {one!r}: several episodes would become one",
        where=replace(where, column=column),
        value=other,
        remedy=("keep them apart with ", Argument("by"), ", or name a column that no two episodes share"),
    )


def _reduced(
    values: NDArray[np.float64], places: NDArray[np.int64], rule: Reduction, n: int
) -> NDArray[np.float64]:
    """Return one value for each of n episodes; `places` says whose each value is."""
    if rule in ("sum", "mean"):
        sums = np.bincount(places, values, n).astype(np.float64)
        return sums / np.bincount(places, minlength=n) if rule == "mean" else sums
    joined = np.full(n, -np.inf)
    if rule == "last":
        joined[places] = values
    else:
        np.maximum.at(joined, places, values)
    return joined


def _values(block: Block, table: Table) -> NDArray[np.float64]:
    """Return what each step holds: whether it succeeded, or its number before it is scaled."""
    if table.measure.kind == "success":
        return 1 - block.costs(table.measure, table.notation, table.source).costs
    cells = block.columns[table.column]
    table.notation.words = False
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64)
    try:
        return np.array([_number(cell, row) for row, cell in enumerate(cells)])
    except InvalidCost as error:
        where = Place(table.source, block.unit, block.numbers[error.cells.start], table.column)
        raise error.at(where) from None


def _number(cell: Any, row: int) -> float:
    written = number(cell) if isinstance(cell, str) else None
    if written is not None and not written.percent:
        return written.value
    if isinstance(cell, int | float):
        return float(cell)
    raise InvalidCost("is not a number", value=cell, remedy="every step needs one").of(row)
