"""Rows that are not read one by one: those that are left out, and those that are steps of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import shortest
from boundwatch.episodes.cells import normal, number
from boundwatch.episodes.costs import Notation, convert
from boundwatch.episodes.design import USUAL_REDUCTION, Reduction
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.block import Block, Cells, measured

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


def filtered(block: Block, where: Mapping[str, str]) -> Block:
    """Return the rows that have these values in these columns of the file."""
    kept = np.ones(len(block), dtype=bool)
    for column, value in where.items():
        wanted = normal(value)
        kept &= np.array([normal(name) == wanted for name in labels(block.columns[column])], dtype=bool)
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
class Steps:
    """Episodes from rows that are their steps; episodes may be interleaved."""

    measure: Measure
    rule: Reduction
    notation: Notation
    episode: str
    apart: str | None
    roles: Mapping[str, str]
    source: str
    found: dict[tuple[str, str], int] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    keys: list[tuple[str, ...]] = field(default_factory=list)

    def take(self, block: Block) -> None:
        """Take some steps."""
        if not len(block):
            return
        values = self._values(block)
        episodes = names(block, self.episode, self.source)
        tasks = [""] * len(block) if self.apart is None else names(block, self.apart, self.source)
        keys = list(zip(*(names(block, column, self.source) for column in self.roles.values()), strict=True))
        for row, each in enumerate(zip(episodes, tasks, strict=True)):
            key = keys[row] if keys else ()
            place = self.found.setdefault(each, len(self.values))
            if place == len(self.values):
                self.values.append(values[row])
                self.counts.append(1)
                self.numbers.append(block.numbers[row])
                self.keys.append(key)
                continue
            if self.keys[place] != key:
                self._refuse(block, row, each[0], self.keys[place], key)
            self.counts[place] += 1
            self.values[place] = self._joined(self.values[place], values[row])

    def _joined(self, sofar: float, value: float) -> float:
        if self.rule in ("sum", "mean"):
            return sofar + value
        return value if self.rule == "last" else max(sofar, value)

    def _refuse(
        self, block: Block, row: int, episode: str, first: Sequence[str], second: Sequence[str]
    ) -> NoReturn:
        column, one, other = next(
            each for each in zip(self.roles.values(), first, second, strict=True) if each[1] != each[2]
        )
        raise InvalidSetting(
            f"but steps of episode {episode} above have {one!r}: several episodes would become one",
            where=Place(self.source, block.unit, block.numbers[row], column),
            value=other,
            remedy=("keep them apart with ", Argument("by"), ", or name a column that no two episodes share"),
        )

    def costs(self) -> NDArray[np.float64]:
        """Return the cost of each episode."""
        values = np.array(self.values)
        if self.rule == "mean":
            values /= np.array(self.counts)
        try:
            return convert(replace(self.measure, success_values=()), values).costs
        except InvalidCost as error:
            place = error.index or 0
            episode = list(self.found)[place][0]
            raise error.at(Place(f"{self.source}: episode {episode}", column=self.measure.column)) from None

    def _values(self, block: Block) -> list[float]:
        """Return what each step holds: whether it succeeded, or its number before it is scaled."""
        if self.measure.kind == "success":
            return (1 - block.costs(self.measure, self.notation, self.source).costs).tolist()  # type: ignore[no-any-return]
        cells = block.columns[measured(self.measure)]
        self.notation.words = False
        if isinstance(cells, np.ndarray):
            return cells.astype(np.float64).tolist()  # type: ignore[no-any-return]
        try:
            return [_number(cell, row) for row, cell in enumerate(cells)]
        except InvalidCost as error:
            where = Place(self.source, block.unit, block.numbers[error.index or 0], self.measure.column)
            raise error.at(where) from None


def _number(cell: Any, row: int) -> float:
    written = number(cell) if isinstance(cell, str) else None
    if written is not None and not written.percent:
        return written.value
    if isinstance(cell, int | float):
        return float(cell)
    raise InvalidCost("is not a number", value=cell, remedy="every step needs one").of(row)
