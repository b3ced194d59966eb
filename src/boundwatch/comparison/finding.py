"""What a comparison of two policies has found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from scipy.special import ndtri

from boundwatch._support.describing import InNotebook, InTable, frame, html, table
from boundwatch.bounds.held_out import clopper_pearson_lower, clopper_pearson_upper


class ComparisonVerdict(StrEnum):
    """Which of two policies has the lower expected cost."""

    A_BETTER = "a-better"
    """Evidence that policy A has the lower expected cost."""
    B_BETTER = "b-better"
    """Evidence that policy B has the lower expected cost."""
    UNDECIDED = "undecided"
    """Not enough evidence yet. It does not say that the two are equally good."""


class Call(StrEnum):
    """What LeRobot's table calls a task, where A is the old policy and B the new one."""

    REGRESSED = "regressed"
    """Shown to be worse, under the error rate of the whole table."""
    SUSPECT = "suspect"
    """Worse by a test of this task alone: of ten tasks some are, by luck, in a third of tables."""
    IMPROVED = "improved"
    """Shown to be better, under the error rate of the whole table."""
    HELD = "held"
    """Shown to be worse by at most the margin, by a test of this task alone."""
    UNDERPOWERED = "underpowered"
    """None of these: too few episodes."""


SIDES = (ComparisonVerdict.A_BETTER, ComparisonVerdict.B_BETTER)


Method = Literal["anytime", "exact", "sign test", "betting", "stratified", "weighted", "audit"]
CALL_MARGIN = 0.1
"""By how much B may be worse to be called HELD, if no margin was stated."""
_POWER = 0.8
Limits = Callable[[int], float]
"""Return the lower (0) or the upper (1) limit on the expected cost of B minus that of A."""


@dataclass(frozen=True, kw_only=True)
class ComparisonFinding(InNotebook):
    """What is known about two policies: valid whenever it is read, or (`method`) at one look.

    **Guarantee**: if A is not better, A_BETTER is ever declared with probability at most `alpha`; if B is not
    better, B_BETTER is ever declared with probability at most `alpha`, however long you look and whatever
    makes one stop. Each limit on the difference holds for all times at once with probability at least
    1 - `alpha`. The limits are computed when first asked for (about 3 ms each). Of several `tasks`, all of
    this is about the mean over them, at complete turns. What `compare_once` found is guaranteed for one look
    at numbers of trials that were fixed beforehand.

    With costs of 0 and 1 of one task the verdict may come a few pairs before the limits exclude 0: its
    threshold is computed exactly, the limits use 1/alpha.

    Attributes
    ----------
    verdict
        The answer; once given, it stays.
    n_a, n_b
        Numbers of costs of the two policies.
    pairs
        How many of them were tested: the i-th of A with the i-th of B, or those with the same key. The policy
        that is ahead waits, and so do the pairs of a turn that is not complete. None where all trials of both
        were tested.
    mean_cost_a, mean_cost_b
        Mean costs, of tasks by their weights; None before the first.
    failed
        How many of the trials of each failed, if costs are 0 and 1; None beside an audit.
    e_a_better, e_b_better
        E-values against "A is not better" and "B is not better": large is evidence; None for one look.
    p_a_better, p_b_better
        Anytime-valid p-values of the same: 1 over the largest e-value so far. With costs of 0 and 1 of one
        task, and no predictions, the verdict does not follow from it: `alpha` more before the verdict, and at
        most `alpha` from then on. For one look, p-values as usual, of tasks adjusted as the verdict is.
    p_alone
        Of one of several tasks: the same p-values by a test of this task alone.
    first_alarm
        The pair, counted from 1, at which the verdict was reached; if `finished`, the trial
        of B. None while it is UNDECIDED, and for one look.
    no_worse
        Whether it is shown that B costs at most `margin` more than A; it is ever True wrongly with
        probability at most `alpha`, for costs of 0 and 1 if pairs are i.i.d. (without drift). It can be True
        beside any verdict.
    alpha, margin, binary, paired, horizon, tasks, finished, predictions
        How the two were compared. If `finished`, all trials of A, which was there first, were tested.
    method
        ``"anytime"``, or how one look was judged.
    names
        What the two policies are called.
    unmatched_a, unmatched_b
        The keys of trials that have no partner and were left out.
    """

    verdict: ComparisonVerdict
    n_a: int
    n_b: int
    pairs: int | None
    mean_cost_a: float | None
    mean_cost_b: float | None
    failed: tuple[int, int] | None = None
    e_a_better: float | None = None
    e_b_better: float | None = None
    p_a_better: float
    p_b_better: float
    p_alone: tuple[float, float] | None = None
    first_alarm: int | None = None
    no_worse: bool
    alpha: float
    margin: float
    binary: bool
    paired: bool
    horizon: int | None = None
    tasks: int
    finished: bool = False
    predictions: bool = False
    method: Method = "anytime"
    names: tuple[str, str] = ("A", "B")
    unmatched_a: tuple[str, ...] = ()
    unmatched_b: tuple[str, ...] = ()
    limits: Limits = field(repr=False, compare=False)
    """Computes the limits on the difference."""
    limits_alone: Limits | None = field(default=None, repr=False, compare=False)
    """The same from costs alone, if there were predictions."""

    @cached_property
    def difference_lower(self) -> float:
        """The lower limit on the expected cost of B minus that of A: positive if A is better."""
        return self.limits(0)

    @cached_property
    def difference_upper(self) -> float:
        """The upper limit on it: negative if B is better."""
        return self.limits(1)

    @cached_property
    def saved_trials(self) -> int | None:
        """About how many more trials of each without predictions give limits as narrow; below 0, fewer."""
        width = self.difference_upper - self.difference_lower
        if self.limits_alone is None or not self.pairs or not width:
            return None
        return round(self.pairs * (((self.limits_alone(1) - self.limits_alone(0)) / width) ** 2 - 1))

    @property
    def overall(self) -> ComparisonFinding:
        """Itself: all that was compared."""
        return self

    @property
    def rows(self) -> dict[str, ComparisonFinding]:
        """Itself, as `ComparedTasks` has it beside its tasks."""
        return {"overall": self}

    @property
    def gain(self) -> tuple[list[float], float | None]:
        """Limits and mean of what B has more than A: successes where costs are 0 or 1, else costs."""
        ends, mean, sign = [self.difference_lower, self.difference_upper], None, 1 - 2 * self.binary
        if self.mean_cost_a is not None and self.mean_cost_b is not None:
            mean = sign * (self.mean_cost_b - self.mean_cost_a)
        return sorted(sign * end for end in ends), mean

    @property
    def outcomes(self) -> list[tuple[float | None, list[float]]]:
        """Each policy's success rate, or mean cost, and the ends of its own interval where it has one."""
        found: list[tuple[float | None, list[float]]] = []
        for n, mean in ((self.n_a, self.mean_cost_a), (self.n_b, self.mean_cost_b)):
            rate, ends = (mean if mean is None or not self.binary else 1 - mean), []
            if (
                rate is not None
                and self.binary
                and self.tasks == 1
                and self.method not in ("anytime", "audit")
            ):
                sides = clopper_pearson_lower, clopper_pearson_upper  # of one look at one task
                ends = [float(of(round(n * rate), n, self.alpha)) for of in sides]
            found.append((rate, ends))
        return found

    @cached_property
    def call(self) -> Call:
        """What LeRobot's table calls this, with a margin of 0.1 if none was stated."""
        if self.verdict is not ComparisonVerdict.UNDECIDED:
            return Call.REGRESSED if self.verdict is ComparisonVerdict.A_BETTER else Call.IMPROVED
        if (self.p_alone or (self.p_a_better,))[0] <= self.alpha:  # overall: each is better on some task
            return Call.SUSPECT if self.tasks == 1 else Call.REGRESSED
        return Call.HELD if self.difference_upper <= (self.margin or CALL_MARGIN) else Call.UNDERPOWERED

    @property
    def episodes_needed(self) -> int | None:
        """About how many more of each would show with 80 % power that B holds, if both fail alike.

        None where that is answered, for audits, and for costs between 0 and 1. By the normal approximation.
        """
        if not self.binary or self.method == "audit" or self.call not in (Call.SUSPECT, Call.UNDERPOWERED):
            return None
        margin, n = self.margin or CALL_MARGIN, self.n_a + self.n_b
        failed = (self.mean_cost_a or 0.0) * self.n_a + (self.mean_cost_b or 0.0) * self.n_b
        rate = (failed + 0.5) / (n + 1)
        worse = min(rate + margin, 1.0)
        spread = [(rate * (1 - rate) + other * (1 - other)) ** 0.5 for other in (worse, rate)]
        needed = ((ndtri(1 - self.alpha) * spread[0] + ndtri(_POWER) * spread[1]) / margin) ** 2
        return max(math.ceil(float(needed)) - min(self.n_a, self.n_b), 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {
            name: list(each) if isinstance(each, tuple) else each for name, each in super().to_dict().items()
        }
        content |= {name: getattr(self, name) for name in ("difference_lower", "difference_upper")}
        if self.method != "anytime":
            content |= {"call": self.call, "episodes_needed": self.episodes_needed}
        content["saved_trials"] = self.saved_trials
        del content["limits"], content["limits_alone"]
        return content


@dataclass(frozen=True, kw_only=True)
class ComparedTasks(InTable):
    """Two policies on several tasks, overall and on each, under one error rate; see `compare_once`.

    **Guarantee**: per side, with probability at most `alpha` any of these is wrong: an `overall` verdict
    where the policy is better on no task, and a verdict for a task on which it is not better. The overall
    limits, and `overall.no_worse`, are about the mean over tasks; each has its own `alpha`.

    Attributes
    ----------
    overall
        The finding on all tasks together, with p-values that are adjusted as its verdict is. Costs of 0 and
        1: its verdict says that the policy is better on at least one task; where each policy is better on
        some, it says nothing about the mean. Other costs: that its mean over tasks is lower.
    tasks
        The finding on each task. Its p-values are adjusted, too; its limits, and `p_alone`, are its own.
    """

    overall: ComparisonFinding
    tasks: Mapping[str, ComparisonFinding] = field(hash=False)

    @property
    def rows(self) -> dict[str, ComparisonFinding]:
        """The overall finding, then that on each task."""
        return {"overall": self.overall, **self.tasks}

    @property
    def verdict(self) -> ComparisonVerdict:
        """The overall verdict."""
        return self.overall.verdict

    @property
    def no_worse(self) -> bool:
        """Whether it is shown that the mean over tasks of B is at most the margin above that of A."""
        return self.overall.no_worse

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        tasks = [{"task": task, **finding.to_dict()} for task, finding in self.tasks.items()]
        return self.overall.to_dict() | {"by_task": tasks}

    def to_frame(self) -> Any:
        """Return a data frame of one row per task, of pandas or, without it, of polars (extra ``frame``)."""
        return frame(self.to_dict()["by_task"])

    def _repr_html_(self) -> str:
        columns = ("verdict", "n_a", "n_b", "mean_cost_a", "mean_cost_b", "p_a_better", "p_b_better")
        rows = [[task, *(getattr(each, name) for name in columns)] for task, each in self.tasks.items()]
        return html(self, table(rows, ("task", *columns)))
