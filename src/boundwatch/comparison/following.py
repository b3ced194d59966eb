"""Two policies, compared while their trials come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.matching import of_one_measure
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, Place


@dataclass
class Arrivals:
    """The trials of one policy as they come in: of each its line and its cost, and its predictions."""

    source: str
    trials: Iterator[tuple[int, float] | None]
    measure: Callable[[], Measure]
    binary: bool = False
    found: list[tuple[int, float]] = field(default_factory=list)
    predictions: list[tuple[float | None, Sequence[float]]] = field(default_factory=list)

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
        numbers, costs = zip(*self.found, strict=True)
        return Episodes(
            costs,
            binary=self.binary or None,
            measure=self.measure(),
            source=self.source,
            file_format="read by line",
            unit="line",
            numbers=numbers,
        ).as_promised()


class Following:
    """Compares two policies while their trials come in."""

    def __init__(self, a: Arrivals, b: Arrivals, build: Callable[[bool], PolicyComparison]) -> None:
        self.a, self.b, self._build = a, b, build
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
        """Take in the new trials of both, and say what is known after each."""
        came = [each.look() for each in (self.a, self.b)]
        if not any(came) or not self.a.found or not self.b.found:
            return
        both = self.evaluations()
        if self.test is None:
            self.test = self._build(all(each.binary for each in both))
        test, (a, b) = self.test, (each.costs.tolist() for each in both)
        if test.finished and not test.n_a:  # what was there first is counted first
            yield test.update_many(a, b)
        if test.predictions:
            yield from self._with_predictions(test)
        for pair in zip_longest(a[test.n_a :], b[test.n_b :]):
            yield test.update(*pair)

    def _with_predictions(self, test: PolicyComparison) -> Iterator[ComparisonFinding]:
        new = [
            zip(each.found[n:], each.predictions[n:], strict=True)
            for each, n in ((self.a, test.n_a), (self.b, test.n_b))
        ]
        for a, b in zip_longest(*new, fillvalue=((0, None), (None, ()))):
            (_, cost_a), (_, cost_b) = a[0], b[0]
            given: dict[str, Any] = {"predicted_a": a[1][0], "unlabeled_a": a[1][1]}
            yield test.update(cost_a, cost_b, **given, predicted_b=b[1][0], unlabeled_b=b[1][1])

    def evaluations(self) -> list[Episodes]:
        """Return the trials of both policies."""
        return of_one_measure([self.a.episodes(), self.b.episodes()])
