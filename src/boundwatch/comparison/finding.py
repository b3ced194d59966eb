"""What a comparison of two policies has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from boundwatch._support.notebook import InNotebook
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.cost_grid import CostGrid


class ComparisonVerdict(StrEnum):
    """Which of two policies has the lower expected cost."""

    A_BETTER = "a-better"
    """Evidence that policy A has the lower expected cost."""
    B_BETTER = "b-better"
    """Evidence that policy B has the lower expected cost."""
    UNDECIDED = "undecided"
    """Not enough evidence yet. It does not say that the two are equally good."""


SIDES = (ComparisonVerdict.A_BETTER, ComparisonVerdict.B_BETTER)


@dataclass(frozen=True, kw_only=True)
class ComparisonFinding(InNotebook):
    """What is known about two policies, valid whenever it is read.

    **Guarantee**: if A is not better, A_BETTER is ever declared with probability at most `alpha`; if B is not
    better, B_BETTER is ever declared with probability at most `alpha`, however long you look and whatever
    makes one stop. Each limit on the difference holds for all times at once with probability at least
    1 - `alpha`. The limits are computed when first asked for (about 3 ms each). Of several `tasks`, all of
    this is about the mean over them, at complete turns.

    With costs of 0 and 1 of one task the verdict may come a few pairs before the limits exclude 0: its
    threshold is computed exactly, the limits use 1/alpha.

    Attributes
    ----------
    verdict
        The answer; once given, it stays.
    n_a, n_b
        Numbers of costs of the two policies.
    pairs
        How many of them were tested: the i-th of A with the i-th of B. The policy that is ahead waits, and so
        do the pairs of a turn that is not complete.
    mean_cost_a, mean_cost_b
        Mean costs; None before the first.
    e_a_better, e_b_better
        E-values against "A is not better" and "B is not better": large is evidence.
    p_a_better, p_b_better
        Anytime-valid p-values of the same: 1 over the largest e-value so far. With costs of 0 and 1 of one
        task the verdict does not follow from the e-value: it is `alpha` more before the verdict, and at most
        `alpha` from then on.
    first_alarm
        The pair, counted from 1, at which the verdict was reached; None while it is UNDECIDED.
    no_worse
        Whether it is shown that B costs at most `margin` more than A; it is ever True wrongly with
        probability at most `alpha`. It can be True beside any verdict.
    alpha, margin, binary, paired, horizon, tasks
        How the two were compared.
    """

    verdict: ComparisonVerdict
    n_a: int
    n_b: int
    pairs: int
    mean_cost_a: float | None
    mean_cost_b: float | None
    e_a_better: float
    e_b_better: float
    p_a_better: float
    p_b_better: float
    first_alarm: int | None
    no_worse: bool
    alpha: float
    margin: float
    binary: bool
    paired: bool
    horizon: int | None
    tasks: int
    halves: CostGrid = field(repr=False, compare=False)
    """(1 + cost of B - cost of A)/2 of all pairs; what the limits are computed from."""

    @cached_property
    def difference_lower(self) -> float:
        """The lower limit on the expected cost of B minus that of A: positive if A is better."""
        bets = Bets.for_costs(binary=False)
        return 2 * self.halves.mean_lower(bets, self.alpha) - 1 if self.pairs else -1.0

    @cached_property
    def difference_upper(self) -> float:
        """The upper limit on it: negative if B is better."""
        bets = Bets.for_costs(binary=False)
        return 2 * self.halves.mean_upper(bets, self.alpha) - 1 if self.pairs else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = super().to_dict()
        del content["halves"]
        limits = {"difference_lower": self.difference_lower, "difference_upper": self.difference_upper}
        return content | limits
