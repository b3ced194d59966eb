"""Two policies, compared while their files grow; a verdict waits while they have run different tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from boundwatch._support import files
from boundwatch.comparison.policy_comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison
from boundwatch.episodes import Episodes, looks_binary
from boundwatch.episodes.alignment import different_tasks, first_apart, of_one_measure
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.steps import surely_in_blocks, task_columns
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

    def episodes(self, n: int | None = None) -> Episodes:
        """Return the trials so far, or the first n of them, with a warning."""
        column, meaning = self.lines.chosen
        costs = np.array(self.costs[:n])
        binary = meaning == "success" or self.lines.binary
        warnings: tuple[str, ...] = ()
        if left := len(self.costs) - len(costs):
            warnings = (
                f"{self.path}: its last {left} trials are left out: with them, it has a verdict that may be "
                "about the tasks instead of the policies",
            )
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
            notes=notes,
            warnings=warnings,
            lines=self.numbers[:n],
        )


class Step(NamedTuple):
    """What is known after a trial; a verdict that waits is not part of it."""

    finding: ComparisonFinding
    withheld: str
    """Why a verdict waits; nothing if none does."""
    alike: bool
    """Whether both policies have run about the same tasks, if a verdict waits."""


class Following:
    r"""Compares two policies trial by trial while their files grow.

    A verdict waits while the tasks of both policies clearly differ so far: it may be about the tasks. It is
    always valid to wait. But a comparison keeps its verdict: one that waited must also be borne out by all
    pairs once their tasks are alike, for those that made it may have been outweighed. If these show the
    opposite, there will be no answer. What was said once is not taken back.

    Parameters
    ----------
    a, b
        The files of the two policies.
    build
        Returns the comparison, once it is known whether every cost is 0 or 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> paths = [pathlib.Path(tempfile.mkdtemp()) / name for name in ("a.csv", "b.csv")]
    >>> _ = [path.write_text("success\n" + 4 * f"{n}\n") for n, path in enumerate(paths)]
    >>> both = [GrowingFile(str(path), LineReader(), print) for path in paths]
    >>> following = Following(*both, lambda binary: PolicyComparison(binary=binary, paired=False))
    >>> [step.finding.verdict.name for step in following.look()], following.over
    (['UNDECIDED', 'UNDECIDED', 'UNDECIDED', 'B_BETTER'], True)
    """

    def __init__(self, a: GrowingFile, b: GrowingFile, build: Callable[[bool], PolicyComparison]) -> None:
        self.a, self.b, self._build = a, b, build
        self.test: PolicyComparison | None = None
        self.withheld = ""
        """Why a verdict waits after the latest trial; nothing if none does."""
        self._said_verdict = self._said_no_worse = self._contradicted = False
        self._before: tuple[int, int] | None = None
        self._reached = 0

    @property
    def over(self) -> bool:
        """Whether more trials change nothing: there is an answer, there cannot be one, or none may follow."""
        if self.test is None:
            return False
        at_end = self.test.horizon is not None and self.test.pairs >= self.test.horizon
        answered = self._said_no_worse if self.test.margin else self._said_verdict
        return answered or self._contradicted or at_end

    def look(self) -> Iterator[Step]:
        """Take in the new trials of both files, and say what is known after each.

        Raises
        ------
        InvalidCost
            If tasks come one after the other, and not in the same order in both files.
        InvalidSetting
            If the files do not hold the same measure.
        """
        a, b = self.a, self.b
        a.look()
        b.look()
        if not a.costs or not b.costs:
            return
        _refuse_other_tasks(a, b)
        if self.test is None:
            self.test = self._build(all(each.binary for each in self.evaluations()))
        test = self.test
        for pair in zip_longest(a.costs[test.n_a :], b.costs[test.n_b :]):
            before = test.n_a, test.n_b
            yield self._step(test.update(*pair), before)

    def _step(self, finding: ComparisonFinding, before: tuple[int, int]) -> Step:
        new = _without(finding, verdict=self._said_verdict, no_worse=self._said_no_worse)
        undecided = new.verdict is ComparisonVerdict.UNDECIDED and not new.no_worse
        self.withheld, alike = ("", True) if undecided else self._why_wait(new)
        if self.withheld:
            if self._before is None:
                self._before, self._reached = before, finding.pairs
            said = _without(finding, verdict=not self._said_verdict, no_worse=not self._said_no_worse)
            return Step(said, self.withheld, alike)
        self._before = None
        self._said_verdict |= finding.verdict is not ComparisonVerdict.UNDECIDED
        self._said_no_worse |= bool(finding.no_worse)
        return Step(finding, "", alike)

    def _why_wait(self, finding: ComparisonFinding) -> tuple[str, bool]:
        """Say why what is new in a finding waits, and whether the tasks are alike."""
        a, b, n, self._contradicted = self.a, self.b, finding.pairs, False
        if said := different_tasks(a.tasks[:n], b.tasks[:n], (a.path, b.path)):
            return said, False
        if self._before is None or _is_borne_out(finding):
            return "", True
        self._contradicted = _is_contradicted(finding)
        what = "no worse" if finding.verdict is ComparisonVerdict.UNDECIDED else finding.verdict.name
        shown = "show the opposite" if self._contradicted else "do not bear it out"
        return (
            f"{what} was reached at pair {self._reached}, when the two policies had run different tasks, and "
            f"all {finding.pairs} pairs {shown}"
        ), True

    def evaluations(self) -> list[Episodes]:
        """Return the trials of both policies; if a verdict waits, those before it, with a warning.

        Raises
        ------
        InvalidCost
            If a policy has no trials.
        """
        for each in (self.a, self.b):
            if not each.costs:
                raise InvalidCost(
                    f"{each.path}: no trial was counted, so nothing was compared; at least one is needed"
                )
        counted = self._before or (None, None)
        return of_one_measure([self.a.episodes(counted[0]), self.b.episodes(counted[1])])


def _refuse_other_tasks(a: GrowingFile, b: GrowingFile) -> None:
    """Refuse trials that only a whole file would put in order: those that were counted keep their places."""
    if not surely_in_blocks(a.tasks) and not surely_in_blocks(b.tasks):
        return
    if (apart := first_apart(a.tasks, b.tasks)) is not None:
        place, one, other = apart
        raise InvalidCost(
            f"{b.path}: line {b.numbers[place]} is of {other or 'no task'}, but its partner, line "
            f"{a.numbers[place]} of {a.path}, is of {one or 'no task'}; list tasks in the same order, or "
            "compare without --follow, which takes them in turn"
        )


def _without(finding: ComparisonFinding, *, verdict: bool, no_worse: bool) -> ComparisonFinding:
    """Return the finding without its verdict, without "no worse", or without both."""
    none = {"verdict": ComparisonVerdict.UNDECIDED, "first_alarm": None} if verdict else {}
    return ComparisonFinding._of(finding.__dict__ | none | ({"no_worse": False} if no_worse else {}))


def _is_borne_out(finding: ComparisonFinding) -> bool:
    lower, upper = finding.difference_lower, finding.difference_upper
    return (
        (finding.verdict is not ComparisonVerdict.A_BETTER or lower > 0)
        and (finding.verdict is not ComparisonVerdict.B_BETTER or upper < 0)
        and (not finding.no_worse or upper < finding.margin)
    )


def _is_contradicted(finding: ComparisonFinding) -> bool:
    lower, upper = finding.difference_lower, finding.difference_upper
    return (
        (finding.verdict is ComparisonVerdict.A_BETTER and upper < 0)
        or (finding.verdict is ComparisonVerdict.B_BETTER and lower > 0)
        or (finding.no_worse and lower > finding.margin)
    )
