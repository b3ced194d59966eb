"""Two policies, compared while their trials come in: after every one or, of several tasks, every turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.matching import of_one_measure, refuse_apart, take_in_turn
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.episodes.episodes import Episodes, looks_binary
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, Place


class Arrival(NamedTuple):
    """A trial that came in: its line, its cost, its task if these are declared."""

    number: int
    cost: float
    task: str = ""


@dataclass
class Arrivals:
    """The trials of one policy as they come in."""

    source: str
    trials: Iterator[Arrival | None]
    measure: Callable[[], Measure]
    binary: bool = False
    found: list[Arrival] = field(default_factory=list)

    def look(self) -> bool:
        """Take in what came since the last look; return whether anything did."""
        before = len(self.found)
        for trial in self.trials:
            if trial is None:
                break
            self.found.append(trial)
        return len(self.found) > before

    def episodes(self) -> Episodes:
        """Return the trials so far; at least one is needed."""
        if not self.found:
            problem = "no trial was counted, so nothing was compared"
            raise InvalidCost(problem, where=Place(self.source), remedy="at least one is needed")
        numbers, costs, tasks = zip(*self.found, strict=True)
        binary = self.binary or self.measure().kind == "success"
        note = f"{self.source}: all costs are 0 or 1; if they always are, say so: fewer trials will do"
        return Episodes(
            costs,
            binary=binary,  # by promise, not by looks: what comes later may be in between
            measure=self.measure(),
            keys={"strata": tasks} if any(tasks) else None,
            source=self.source,
            unit="line",
            numbers=numbers,
            notes=[] if binary or not looks_binary(np.array(costs)) else [note],
        )


class Following:
    """Compares two policies while their trials come in.

    Trials of several tasks are taken in turn, whatever their order: the first of each task, then the second
    of each. Their number is stated: nobody can tell from the first trials how many will come.
    """

    def __init__(
        self, a: Arrivals, b: Arrivals, build: Callable[[bool], PolicyComparison], tasks: int | None = None
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
        """Take in the new trials of both, and say what is known after each, or after each turn."""
        came = [each.look() for each in (self.a, self.b)]
        if not any(came) or not self.a.found or not self.b.found or self._lacking():
            return
        both = self.evaluations()
        if self.test is None:
            self.test = self._build(all(each.binary for each in both))
        test = self.test
        if test.paired:
            refuse_apart(self.a.episodes(), self.b.episodes())
        a, b = (each.costs.tolist() for each in both)
        if test.finished and not test.n_a:  # what was there first is counted first
            yield test.update_many(a, b)
        for pair in zip_longest(a[test.n_a :], b[test.n_b :]):
            finding = test.update(*pair)
            if finding.pairs == min(finding.n_a, finding.n_b):
                yield finding

    def _lacking(self) -> bool:
        """Return whether a task was not run yet by both; refuse more tasks than were stated."""
        if self._tasks is None:
            return False
        a, b = ({trial.task: None for trial in each.found} for each in (self.a, self.b))
        if len(a | b) > self._tasks:
            problem = f"there are more than {self._tasks} tasks: {', '.join(a | b)}"
            raise InvalidCost(problem, where=Place(self.b.source), remedy=("correct ", Argument("tasks")))
        return len(a.keys() & b.keys()) < self._tasks

    def evaluations(self) -> list[Episodes]:
        """Return the trials of both policies; of several tasks, those in complete turns."""
        both = of_one_measure([self.a.episodes(), self.b.episodes()])
        if self._lacking():
            problem = f"{self._tasks} tasks were stated, and not all were run by both policies"
            raise InvalidCost(problem, where=Place(self.b.source), remedy="run each at least once")
        return both if self._tasks in (None, 1) else take_in_turn(both)
