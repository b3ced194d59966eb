"""Two policies, compared while their files grow: after every trial or, of several tasks, every turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from boundwatch._support import files
from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.episodes import Episodes, looks_binary
from boundwatch.episodes.alignment import first_apart, of_one_measure, take_in_turn
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.steps import task_columns
from boundwatch.episodes.text import decode_line
from boundwatch.errors import InvalidCost, InvalidSetting


@dataclass
class GrowingFile:
    """A file that somebody writes to, and the trials in its whole lines.

    Parameters
    ----------
    path
        The file; it must be there.
    lines
        Reads its lines.
    say
        Is told what people should know about how it is read.
    """

    path: str
    lines: LineReader
    say: Callable[[str], None]
    costs: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """The line of each trial."""
    unfinished: int | None = None
    """The line that lacks its newline, at the first look at which nobody seems to be writing it."""
    _read: bytes = b""
    _rest: bytes = b""
    _awaited: int = 0

    def look(self) -> None:
        """Take in the lines that were finished since the last look.

        Raises
        ------
        InvalidCost, InvalidSetting
            For a line that is no trial, or if lines that were counted have changed.
        """
        data = files.read_bytes(self.path)
        if not data.startswith(self._read):
            raise InvalidCost(
                f"{self.path}: lines that were counted have changed or gone; only add lines to a file that "
                "is followed"
            )
        whole = data[: data.rfind(b"\n") + 1]
        new = whole[len(self._read) :].split(b"\n")[:-1]
        for number, raw in enumerate(new, start=self._read.count(b"\n") + 1):
            try:
                self._take(number, decode_line(raw)[0])
            except (InvalidCost, InvalidSetting) as error:
                raise type(error)(f"{self.path}: line {number}: {error}") from error
        if not self.costs and self.lines.header is None and self._read.count(b"\n") < 2 <= whole.count(b"\n"):
            self.say(
                f"{self.path}: no trial and no column to read so far; name it with --success, --cost or "
                "--reward"
            )
        self._read = whole
        rest, last = data[len(whole) :], whole.count(b"\n") + 1
        resting = bool(rest) and rest == self._rest and last != self._awaited
        self.unfinished = last if resting else None
        self._awaited = last if resting else self._awaited
        self._rest = rest

    def _take(self, number: int, text: str) -> None:
        found = self.lines.read(text)
        if self.lines.noticed:
            self.say(f"{self.path}: line {number} {self.lines.noticed}")
        if found is None:
            return
        self.costs.append(found.cost)
        named = (str(found.fields[column]).strip() for column in task_columns(found.fields))
        self.tasks.append(" ".join(filter(None, named)))
        self.numbers.append(number)

    def episodes(self) -> Episodes:
        """Return the trials so far."""
        column, meaning = self.lines.chosen
        costs = np.array(self.costs)
        binary = meaning == "success" or self.lines.binary
        notes: tuple[str, ...] = ()
        if not binary and looks_binary(costs):  # what comes later may be in between
            notes = (f"{self.path}: all costs are 0 or 1; with --binary, it takes fewer trials to tell",)
        return Episodes(
            costs,
            binary,
            self.path,
            column,
            meaning,
            file_format="csv" if self.lines.header or self.lines.values_only else "jsonl",
            cost_range=self.lines.cost_range,
            by="task",
            tasks=tuple(self.tasks),
            notes=notes,
            lines=self.numbers,
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
        How many tasks the files name; None if they name none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> paths = [pathlib.Path(tempfile.mkdtemp()) / name for name in ("a.csv", "b.csv")]
    >>> _ = [path.write_text("success\n" + 4 * f"{n}\n") for n, path in enumerate(paths)]
    >>> both = [GrowingFile(str(path), LineReader(), print) for path in paths]
    >>> following = Following(*both, lambda binary: PolicyComparison(binary=binary, paired=False))
    >>> [finding.verdict.name for finding in following.look()], following.over
    (['UNDECIDED', 'UNDECIDED', 'UNDECIDED', 'B_BETTER'], True)
    """

    def __init__(
        self,
        a: GrowingFile,
        b: GrowingFile,
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
            If a file names tasks that were not stated, or partners are of different tasks.
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
        for each in (self.a, self.b):
            if self._tasks is None and any(each.tasks):
                raise InvalidCost(
                    f"{each.path}: names tasks, and a verdict after some of them may be about these; state "
                    "how many there are with --tasks N, and each is run once before anything is said"
                )
        found = dict.fromkeys([*self.a.tasks, *self.b.tasks])
        if self._tasks is not None and len(found) > self._tasks:
            listed = ", ".join(task or "no task" for task in found)
            raise InvalidCost(f"{self.b.path}: there are more than {self._tasks} tasks (--tasks): {listed}")

    def _refuse_partners(self) -> None:
        a, b = self.a, self.b
        if (apart := first_apart(a.tasks, b.tasks)) is not None:
            place, one, other = apart
            raise InvalidCost(
                f"{b.path}: line {b.numbers[place]} is of {other or 'no task'}, but its partner, line "
                f"{a.numbers[place]} of {a.path}, is of {one or 'no task'}; match the rows by seed, or "
                "compare without --paired"
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
                raise InvalidCost(
                    f"{each.path}: no trial was counted, so nothing was compared; at least one is needed"
                )
        if self._lacks_tasks():
            raise InvalidCost(
                f"{self.b.path}: {self._tasks} tasks were stated, and not all were run by both policies, so "
                "nothing was compared"
            )
        both = of_one_measure([self.a.episodes(), self.b.episodes()])
        if self._tasks in (None, 1):
            return [dataclasses.replace(each, by=None, tasks=()) for each in both]
        return take_in_turn(both)
