"""Two policies, compared while their files grow: after every trial or, of several tasks, every turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import numpy as np

from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.episodes.alignment import first_apart, of_one_measure, take_in_turn
from boundwatch.episodes.costs import Notation, convert
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.episodes import Episodes, looks_binary
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, Place
from boundwatch.readers import Block, GrowingFile, TextRows
from boundwatch.readers.block import measured
from boundwatch.readers.steps import filtered, names


class FollowedFile:
    """A file that somebody writes to, and the trials in its whole lines.

    Parameters
    ----------
    path
        The file; it must be there.
    declared
        What to read.
    say
        Is told what people should know about how it is read.
    binary
        Whether every cost was promised to be 0 or 1.
    """

    def __init__(
        self, path: str, declared: Declared, say: Callable[[str], None], *, binary: bool = False
    ) -> None:
        self.path, self.declared, self._say, self.binary = path, declared, say, binary
        self.costs: list[float] = []
        self.tasks: list[str] = []
        self.numbers: list[int] = []
        self._batches = iter(GrowingFile(path, follow=True))
        self._text = TextRows(declared, path)
        self._notation = Notation()
        self._asked = False

    def look(self) -> None:
        """Take in the lines that were finished since the last look.

        Raises
        ------
        Refusal
            For a line that is no trial, or if lines that were counted have changed.
        """
        for batch in self._batches:
            if batch.note:
                self._say(f"{self.path}: {batch.note}")
            if not batch.lines:
                break
            block = self._text.take(batch.lines)
            if block is not None and len(block):
                self._take(block)
        if self._text.rows is None and self._text.lines > 1 and not self._asked:
            self._asked = True
            self._say(f"{self.path}: no trial and no column to read so far; name the column")

    def _take(self, block: Block) -> None:
        measure = self.measure
        where = {
            column: value
            for declared, column in self.declared.locate(self._names).items()
            if (value := self.declared.design.where.get(declared)) is not None
        }
        block = filtered(block, where) if where else block
        try:
            found = convert(measure, block.columns[measured(measure)], self._notation, binary=self.binary)
        except InvalidCost as error:
            place = Place(self.path, block.unit, block.numbers[error.index or 0], measure.column)
            raise error.at(place) from None
        self._notation = found.notation
        self.costs += found.costs.tolist()
        self.numbers += block.numbers
        if (strata := self.declared.design.strata) is not None:
            self.tasks += names(block, self.declared.locate(self._names)[strata], self.path)

    @property
    def _names(self) -> Sequence[str]:
        return () if self._text.rows is None else self._text.rows.names

    @property
    def measure(self) -> Measure:
        """How its trials are measured, once that is known."""
        return Measure("cost") if self._text.rows is None else self._text.rows.measure

    def episodes(self) -> Episodes:
        """Return the trials so far."""
        costs = np.array(self.costs)
        binary = self.measure.kind == "success" or self.binary
        notes: tuple[str, ...] = ()
        if not binary and looks_binary(costs):  # what comes later may be in between
            notes = (f"{self.path}: all costs are 0 or 1; if they always are, say so: fewer trials will do",)
        return Episodes(
            costs,
            binary=binary,
            measure=self.measure,
            design=self.declared.design,
            keys={"strata": self.tasks} if self.tasks else None,
            source=self.path,
            file_format=self._text.file_format,
            unit="line",
            numbers=self.numbers,
            notes=notes,
        )


class Following:
    r"""Compares two policies while their files grow.

    Trials of several tasks are taken in turn, whatever their order in the files: the first of each task, then
    the second of each. Their number is stated: nobody can tell from the first trials how many will come.

    Parameters
    ----------
    a, b
        The files of the two policies.
    build
        Returns the comparison, once it is known whether every cost is 0 or 1.
    tasks
        How many tasks (strata) the files name; None if none are declared.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> paths = [pathlib.Path(tempfile.mkdtemp()) / name for name in ("a.csv", "b.csv")]
    >>> _ = [path.write_text("success\n" + 4 * f"{n}\n") for n, path in enumerate(paths)]
    >>> both = [FollowedFile(str(path), Declared(), print) for path in paths]
    >>> following = Following(*both, lambda binary: PolicyComparison(binary=binary, paired=False))
    >>> [finding.verdict.name for finding in following.look()], following.over
    (['UNDECIDED', 'UNDECIDED', 'UNDECIDED', 'B_BETTER'], True)
    """

    def __init__(
        self,
        a: FollowedFile,
        b: FollowedFile,
        build: Callable[[bool], PolicyComparison],
        tasks: int | None = None,
    ) -> None:
        self.a, self.b, self._build, self._tasks = a, b, build, tasks
        self.test: PolicyComparison | None = None

    @property
    def over(self) -> bool:
        """Whether more trials change nothing: there is an answer, or there cannot be one."""
        test = self.test
        if test is None:
            return False
        at_end = test.horizon is not None and test.pairs >= test.horizon
        answered = test.no_worse if test.margin else test.verdict is not ComparisonVerdict.UNDECIDED
        return answered or at_end

    def look(self) -> Iterator[ComparisonFinding]:
        """Take in the new trials of both files, and say what is known after each, or after each turn.

        Raises
        ------
        InvalidCost
            If there are more tasks than were stated, or partners are of different tasks.
        InvalidSetting
            If the files do not hold the same measure.
        """
        a, b = self.a, self.b
        a.look()
        b.look()
        if not a.costs or not b.costs:
            return
        self._refuse_tasks()
        if self.test is None:
            self.test = self._build(all(each.binary for each in of_one_measure([a.episodes(), b.episodes()])))
        test = self.test
        if test.paired:
            self._refuse_partners()
        if self._lacks_tasks():
            return
        both = [each.costs.tolist() for each in self.evaluations()]
        for pair in zip_longest(both[0][test.n_a :], both[1][test.n_b :]):
            finding = test.update(*pair)
            if finding.pairs == min(finding.n_a, finding.n_b):
                yield finding

    def _refuse_tasks(self) -> None:
        found = dict.fromkeys([*self.a.tasks, *self.b.tasks])
        if self._tasks is not None and len(found) > self._tasks:
            problem = f"there are more than {self._tasks} tasks: {', '.join(found)}"
            raise InvalidCost(problem, where=Place(self.b.path), remedy=("correct ", Argument("tasks")))

    def _refuse_partners(self) -> None:
        a, b = self.a, self.b
        if (apart := first_apart(a.tasks, b.tasks)) is not None:
            place, one, other = apart
            raise InvalidCost(
                f"is of {other}, but its partner, line {a.numbers[place]} of {a.path}, of {one}",
                where=Place(b.path, "line", b.numbers[place]),
                remedy=("match the rows by seed, or compare without ", Argument("paired", True)),
            )

    def _lacks_tasks(self) -> bool:
        return self._tasks is not None and len(set(self.a.tasks) & set(self.b.tasks)) < self._tasks

    def evaluations(self) -> list[Episodes]:
        """Return the trials of both policies; of several tasks, those in complete turns.

        Raises
        ------
        InvalidCost
            If a policy has no trials, or not of every task.
        """
        for each in (self.a, self.b):
            if not each.costs:
                problem = "no trial was counted, so nothing was compared"
                raise InvalidCost(problem, where=Place(each.path), remedy="at least one is needed")
        if self._lacks_tasks():
            raise InvalidCost(
                f"{self._tasks} tasks were stated, and not all were run by both policies",
                where=Place(self.b.path),
                remedy="nothing was compared",
            )
        both = of_one_measure([self.a.episodes(), self.b.episodes()])
        return both if self._tasks in (None, 1) else take_in_turn(both)
