"""Lines become trials, by the parser and the measure that also read whole files."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from boundwatch._support.validation import check_predictions
from boundwatch.episodes.cells import outcome
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place, Refusal
from boundwatch.readers.lines import Batch
from boundwatch.readers.table import Block, Line
from boundwatch.readers.text import TextRows

_LONGEST_NUMBER = 100  # digits; a longer id is a name


class Trial(NamedTuple):
    """A trial: its line and its cost, whose it is, its id, and predictions."""

    number: int
    cost: float
    stream: str = ""
    id: Any = None
    predictions: tuple[float, list[float]] | None = None
    """That for the trial's scene, and those for scenes that were not run."""
    stratum: str = ""
    label: float | None = None
    """What people say, where a machine judged the trial and they have labeled it."""


class Taken(NamedTuple):
    """Trials, how many lines they were read from, which lines were passed over, and why no more were read."""

    trials: list[Trial]
    lines: int
    skipped: list[tuple[int, Refusal]]
    fault: Refusal | None = None


class TrialReader(TextRows):
    """Reads lines as they come; whatever comes at once, the trials are the same.

    `declared` says how.

    Examples
    --------
    >>> reader = TrialReader(Declared.of(success="ok", id="trial", by="robot"), "log")
    >>> lines = [Line(1, b"trial;robot;ok"), Line(2, b"7;arm-1;no")]
    >>> reader.trials(lines).trials
    [Trial(number=2, cost=1.0, stream='arm-1', id=7, predictions=None, stratum='', label=None)]
    """

    by_line = True

    def __init__(self, declared: Declared, source: str) -> None:
        super().__init__(declared, source)
        self._cell: Any = None  # the first one
        self._state: dict[str, Any] | None = None

    @property
    def says_yes_or_no(self) -> bool:
        """Whether trials succeed or fail, so that nothing is in between: by the measure or the first cell."""
        is_word = isinstance(self._cell, str) and outcome(self._cell) is not None
        of_success = bool(self.names) and self.layout.measure.kind == "success"
        return is_word or isinstance(self._cell, bool) or of_success

    @property
    def state(self) -> dict[str, Any]:
        """What must be known to go on, as plain JSON values that do not change any more."""
        if self._state is None:
            self._state = json.loads(json.dumps(super().state))
        return self._state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        super().__init__(self.declared, self.source, state)
        self._state = state

    def begin(self) -> None:
        """Go on with another sender, which does not end a cell that the last one has begun."""
        self.pending, self._state = [], None

    def trials(self, lines: Sequence[Line], *, lenient: bool = False) -> Taken:
        """Return the trials in some lines, up to the first line that is none; `lenient` passes over these."""
        before = self.state
        try:
            return Taken(self._take(lines), len(lines), [])
        except Refusal:
            self.restore(before)  # and find out which line it was
        trials: list[Trial] = []
        skipped: list[tuple[int, Refusal]] = []
        for done, line in enumerate(lines):
            before = self.state
            try:
                trials += self._take([line])
            except Refusal as error:
                self.restore(before)
                if not lenient or not isinstance(error, InvalidCost):
                    return Taken(trials, done, skipped, error)
                skipped.append((line.number, error))
        return Taken(trials, len(lines), skipped)

    def go_back(self, before: dict[str, Any], lines: Sequence[Line], trials: int) -> int:
        """Read again from a state, only so many trials; return how many lines these are."""
        self.restore(before)
        done = 0
        while trials > 0:
            trials -= len(self.trials(lines[done : done + 1], lenient=True).trials)
            done += 1
        return done

    def _take(self, lines: Sequence[Line]) -> list[Trial]:
        self._state = None
        if (found := self.take_lines(lines)) is None or not len(block := self.chosen(found)):
            return []
        costs = self.costs(block).costs.tolist()
        self._cell = block.columns[self.wanted[0]][0] if self._cell is None else self._cell
        self.distinct = self.distinct or 0.0 in costs or self._cell in ("0", "1")
        return self._placed(block, costs)

    def _placed(self, block: Block, costs: list[float]) -> list[Trial]:
        """Return trials with what the design says of them."""
        roles, nothing = self.layout.roles, [""] * len(block)
        tasks, strata = (block.names(*roles[each]) if each in roles else nothing for each in ("by", "strata"))
        ids: Iterable[Any] = repeat(None)
        if "id" in roles:
            ids = map(self._id, block.columns[roles["id"][0]], block.numbers)
        guesses: Iterable[Any] = repeat(None)
        if "predicted" in roles:
            columns = [block.columns[roles[each][0]] for each in ("predicted", "unlabeled")]
            guesses = map(self._predictions, *columns, block.numbers)
        return list(map(Trial, block.numbers, costs, tasks, ids, guesses, strata))

    def _id(self, cell: Any, number: int) -> Any:
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            remedy = "give it: episodes are told apart by it"
            raise InvalidCost("is empty", where=self._at(number, self.declared.design.id), remedy=remedy)
        if isinstance(cell, float) and cell.is_integer():  # JSON has one kind of number: 1.0 is 1
            return int(cell)
        is_text = isinstance(cell, str) and self.file_format != "jsonl"
        return int(cell) if is_text and cell.isdecimal() and len(cell) <= _LONGEST_NUMBER else cell

    def _predictions(self, first: Any, second: Any, number: int) -> tuple[float, list[float]] | None:
        """Return both kinds of predictions; lists, or text with blanks or semicolons between numbers."""
        one, others = (
            cell if isinstance(cell, list) else str("" if cell is None else cell).replace(";", " ").split()
            for cell in (first, second)
        )
        if not one and not others:
            return None
        try:
            predicted, unlabeled = check_predictions(one[0] if len(one) == 1 else one or None, others)
        except InvalidCost as error:
            design = self.declared.design
            is_scene = str(error.name).startswith("predicted")
            where = self._at(number, design.predicted if is_scene else design.unlabeled)
            raise InvalidCost(error.problem, where=where, value=error.value, remedy=error.remedy) from None
        except InvalidSetting as error:  # a fault of this line, not of the stream
            problem = f"is not whole: {error.problem}"
            raise InvalidCost(problem, where=self._at(number), remedy=error.remedy) from None
        return predicted or 0.0, unlabeled.tolist()

    def _at(self, number: int, column: str | None = None) -> Place:
        return Place(self.source, "line", number, column)


def trials_of(read: Episodes) -> list[Trial]:
    """Return the trials of a file that was read as a whole."""
    nothing = ("",) * len(read)
    numbers = read.numbers if len(read.numbers) else range(1, len(read) + 1)
    tasks, strata = read.keys.get("by", nothing), read.keys.get("strata", nothing)
    trials = zip(numbers, read.costs.tolist(), tasks, strata, strict=True)
    return [Trial(int(number), cost, task, stratum=stratum) for number, cost, task, stratum in trials]


def explained(fault: Refusal) -> Refusal:
    """Return a refusal that says what can be done about its line."""
    if not isinstance(fault, InvalidCost):
        return fault
    changed = copy.copy(fault)
    changed.remedy = fault.remedy or ("correct it",)
    if fault.where and fault.where.number and not (fault.where.column or fault.cells):  # may be an outcome
        changed.remedy += ("; if it is not a trial, pass ", Argument("skip_malformed", True))
    return changed


def read_on(batches: Iterable[Batch], reader: TrialReader) -> Iterator[Trial | str | None]:
    """Yield trials as their lines come, notes in between, and None where nothing new has come.

    For those who count in memory only: `certify` with a stopping rule, `compare --follow`.
    """
    asked = False
    for batch in batches:
        if batch.note:
            yield batch.note
        taken = reader.trials(batch.lines)
        yield from taken.trials
        if taken.fault is not None:
            raise taken.fault
        if not batch.lines:
            if not asked and reader.lines > 1 and not reader.names:
                asked = True
                yield "no trial and no column to read so far; name the column"
            yield None
    reader.end()
    yield from reader.said
