"""Two policies, compared while their trials come in: look after every trial, stop whenever you like."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from boundwatch._support.describing import arguments, one_line
from boundwatch._support.schema import Level, Probability, convert
from boundwatch._support.validation import check_costs, check_flag, check_level, check_margin
from boundwatch.bounds.bets import Bets, CostGrid
from boundwatch.bounds.joint_evidence import references_of, sides_against
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS, SMALLEST_TOTAL, alarm_line
from boundwatch.bounds.predicted_mean import Luck, luck_of
from boundwatch.comparison.betting import DifferenceBets, MarginBets
from boundwatch.comparison.finding import SIDES, ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.late import late_line
from boundwatch.comparison.margin import LATER, has_table, margin_table
from boundwatch.comparison.predicted_pairs import GoalBets, LazyLimits
from boundwatch.comparison.region import LAST_PAIR, LONGEST_HORIZON, Region, SignRegion, find_region
from boundwatch.detectors.evidence import bounded_exp
from boundwatch.detectors.joint import joint_p_value
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Refusal, SchemaMismatch

_SETTINGS = ("alpha", "margin", "binary", "paired", "horizon", "tasks", "finished", "predictions")
_REACHED = ("n_a", "n_b", "pairs", "verdict", "first_alarm", "no_worse")


@dataclass(frozen=True, kw_only=True)
class _State:
    """A comparison as plain JSON values: what it was made with, and all costs."""

    kind: Literal["PolicyComparison"]
    version: Literal[1]
    alpha: Level
    margin: float
    binary: bool
    paired: bool
    horizon: int | None
    tasks: int
    finished: bool
    costs: Annotated[list[list[Probability]], Meta(min_length=2, max_length=2)]
    predictions: bool = False
    lucks: tuple[list[Luck], list[Luck]] = ([], [])


class PolicyComparison:
    """Compares the costs of two policies, pair by pair, and may be read after every trial.

    **Guarantee**: that of `ComparisonFinding`, at `alpha` per side: if the two are equally good, one of the
    verdicts is ever given with probability at most 2 `alpha`. The same costs always give the same verdict.
    **Assumes**: costs in [0, 1]. Unpaired: i.i.d. trials of each policy, independent of the other's. Paired:
    i.i.d. pairs, whatever ties the two costs of a pair together; a verdict on costs of 0 and 1 allows drift,
    as long as both policies meet the same conditions and these do not depend on earlier outcomes. Both
    policies were final before their trials: comparing ten checkpoints and keeping the winner's verdict needs
    `rank`.

    Pair trials that share a seed or a scene, and say so. Pairing takes out what makes a scene hard for both
    and saves trials. Unpaired is for trials drawn independently; on matched seeds it can promise too much.

    The i-th cost of A is tested with the i-th of B. A policy that is ahead waits for the other, unless A was
    `finished`: with 1,000 such trials, 10 and 30 % are told apart after 22 new ones on average, not 51.

    Several tasks in a fixed order are not i.i.d. trials: whoever is good at the first ones would win. With
    `tasks`, they take turns, each once per turn and always in the same order, and the test looks after
    complete turns only. It is about the mean over the tasks, which may differ in any way.

    Parameters
    ----------
    alpha
        Probability of a wrong verdict, per side.
    binary
        Whether every cost is 0 or 1. The error rate is then computed exactly, which saves about a third of
        the trials.
    paired
        Whether the two costs of a pair come from the same seed or scene.
    horizon
        The largest number of pairs that will be run, if it is known in advance and costs are binary: more
        power for small differences until then, and no verdict after it.
    margin
        How much worse B may be and still be called no worse: see `ComparisonFinding.no_worse`. With 0, B is
        no worse once it is better.
    tasks
        How many tasks take turns. With more than one, **assumes** that trials of different tasks and turns
        are independent, and that each task's expected costs stay as they are. The verdict then needs an
        e-value of 1/alpha with costs of 0 and 1, too: no exact count of failures is proven for tasks that
        differ.
    finished
        Whether all trials of A (always A, whichever has more) were run before the first of B, **in a number
        that did not depend on their outcomes**. Independent trials of 0 and 1 only. The verdict is then that
        of a certified reference and a stream (`joint_region`).
    predictions
        Whether trials come with predicted costs, as in `PredictedTest`: fewer trials and narrower limits if
        these are good, and a valid verdict whatever they are. One task, not `finished`, no `horizon`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> test = bw.PolicyComparison(binary=True, paired=False)
    >>> finding = test.update_many([1, 0, 1, 1, 1, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
    >>> finding.verdict.value, finding.first_alarm, round(finding.difference_upper, 2)
    ('b-better', 5, 0.11)
    """

    drifting: ClassVar[bool] = False
    """Whether pairs may differ from each other in any way; a margin is then shown by bets alone."""

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        binary: bool,
        paired: bool,
        horizon: int | None = None,
        margin: float = 0.0,
        tasks: int = 1,
        finished: bool = False,
        predictions: bool = False,
    ) -> None:
        self.alpha = check_level(alpha, "alpha")
        self.binary, self.paired = check_flag(binary, "binary"), check_flag(paired, "paired")
        self.finished = check_flag(finished, "finished")
        self.predictions = check_flag(predictions, "predictions")
        self.tasks = _whole(tasks, "tasks", "tasks")
        self.horizon = check_horizon(horizon, binary=self.binary, tasks=self.tasks)
        self.margin = check_margin(margin, zero=True)
        other = self.paired or self.horizon is not None or self.tasks > 1 or self.alpha < SMALLEST_TOTAL
        if self.finished and (other or not self.binary):
            problem = "goes with independent trials of 0 and 1, of one task, without a horizon, alpha >= 1e-6"
            raise InvalidSetting(problem, name="finished", value=True, remedy="leave it out")
        if self.predictions and (self.finished or self.tasks > 1 or self.horizon is not None):
            problem = "go with one task, not finished, without a horizon"
            raise InvalidSetting(problem, name="predictions", remedy="leave them out")
        self._bets = DifferenceBets()
        # Evidence that A costs more than B less the margin.
        self._counts = self.binary and self.tasks == 1
        self._tabled = self._counts and not self.drifting and has_table(self.alpha, self.margin)
        self._left = self.alpha * LATER if self._tabled else self.alpha
        self._margin_bets = MarginBets(self.margin, self._left) if self.margin else None
        self._settings: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        self.reset()

    def __repr__(self) -> str:
        return one_line(self, arguments(self) | {"pairs": self.pairs, "verdict": self.verdict})

    def __str__(self) -> str:
        return f"Comparison of A with B: {self.verdict.name} after {self.pairs} pairs"

    @cached_property
    def region(self) -> Region | SignRegion | None:
        """Where costs of 0 and 1 of one task decide; None for others, where an e-value of 1/alpha does."""
        counts = self._counts and not self.predictions
        return find_region(self.alpha, paired=self.paired, horizon=self.horizon) if counts else None

    def reset(self) -> None:
        """Forget all costs and the verdict: what follows is a new comparison with its own error rate."""
        self.n_a = self.n_b = self.pairs = 0
        self.verdict = ComparisonVerdict.UNDECIDED
        self.first_alarm: int | None = None
        self.no_worse = False
        self._costs: tuple[list[float], list[float]] = ([], [])
        self._lucks: tuple[list[Luck], list[Luck]] = ([], [])
        self._goals = GoalBets(self.alpha) if self.predictions else None
        self._helped = LazyLimits(self.alpha)
        self._totals = [0.0, 0.0]
        # Binary costs: failures of A and B; of matched pairs, only where they differ.
        self._failures = [0, 0]
        self._logs = np.tile(self._bets.log_shares, (2, 1))
        # After the table of independent trials: failures of both when it ended, pairs that differ since.
        self._late = [0, 0]
        self._reference: Finished | None = None
        self._evidence, self._best = [0.0, 0.0], [0.0, 0.0]
        self._halves = CostGrid()
        self._squares = 0.0  # of the differences
        self._margin_logs = np.zeros(0) if self._margin_bets is None else self._margin_bets.log_shares.copy()

    def update(
        self,
        cost_a: float | None = None,
        cost_b: float | None = None,
        *,
        predicted_a: float | None = None,
        unlabeled_a: ArrayLike = (),
        predicted_b: float | None = None,
        unlabeled_b: ArrayLike = (),
    ) -> ComparisonFinding:
        """Count one more trial of each policy, or of one of them, and return the finding.

        Parameters
        ----------
        cost_a, cost_b
            Their costs. A cost that is not one raises `InvalidCost`, and nothing is counted.
        predicted_a, unlabeled_a, predicted_b, unlabeled_b
            What was predicted, as in `PredictedTest.update`.
        """
        a = None if cost_a is None else self._check(cost_a, "cost_a")
        b = None if cost_b is None else self._check(cost_b, "cost_b")
        if a is None and b is None:
            raise InvalidCost("no cost was given", remedy=("give ", Argument("cost_a"), " or cost_b"))
        lucks = luck_of(predicted_a, unlabeled_a), luck_of(predicted_b, unlabeled_b)
        if not self.predictions and (predicted_a is not None or predicted_b is not None):
            remedy = ("say ", Argument("predictions", True))
            raise InvalidSetting("goes with a comparison made for it", name="predicted", remedy=remedy)
        self._count(a, b, lucks)
        return self._finding()

    def update_many(
        self, costs_a: ArrayLike | None = None, costs_b: ArrayLike | None = None
    ) -> ComparisonFinding:
        """Count many trials in their order; the result is that of `update` on each.

        Parameters
        ----------
        costs_a, costs_b
            Costs of the two policies. They may differ in number. If one is invalid, none is counted.
        """
        if costs_a is None and costs_b is None:
            raise InvalidCost("no costs were given", remedy=("give ", Argument("costs_a"), " or costs_b"))
        both = [
            [] if costs is None else check_costs(costs, binary=self.binary, name=name).tolist()
            for name, costs in (("costs_a", costs_a), ("costs_b", costs_b))
        ]
        if self.finished and self._reference is None:  # A came first, however many there are of B by now
            for cost in both[0]:
                self._count(cost, None)
            both[0] = []
        for pair in zip_longest(*both):
            self._count(*pair)
        return self._finding()

    def finding(self) -> ComparisonFinding:
        """Return what is known after the latest trial; at least one is needed."""
        if self.n_a + self.n_b == 0:
            raise InvalidCost("no cost has been counted", remedy="call update(cost_a, cost_b) first")
        return self._finding()

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> import json
        >>> import boundwatch as bw
        >>> test = bw.PolicyComparison(binary=False, paired=True)
        >>> _ = test.update_many([0.3, 0.1, 0.4], [0.2, 0.1])
        >>> again = bw.PolicyComparison.from_state_dict(json.loads(json.dumps(test.state_dict())))
        >>> again.update(cost_b=0.2).e_b_better == test.update(cost_b=0.2).e_b_better
        True
        """
        costs = [list(each) for each in self._costs]
        lucks = {"lucks": [list(each) for each in self._lucks]} if self.predictions else {}
        return {"kind": "PolicyComparison", "version": 1, **self._settings, "costs": costs, **lucks}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> PolicyComparison:
        """Return the comparison that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, possibly through a JSON file.
        """
        found = convert(_State, state, "state")
        try:
            test = cls(**{name: getattr(found, name) for name in _SETTINGS})
            if test.predictions:
                both = (zip(*each, strict=True) for each in zip(found.costs, found.lucks, strict=True))
                for a, b in zip_longest(*both, fillvalue=(None, Luck())):
                    test._count(a[0], b[0], (a[1], b[1]))
            elif any(found.costs):
                test.update_many(*(costs or None for costs in found.costs))
        except Refusal as error:
            raise SchemaMismatch(f"the state is damaged: {error}") from error
        return test

    def _check(self, cost: float, name: str) -> float:
        # The common case first: this runs once per trial, and the careful check takes longer than the test.
        if type(cost) in (float, int) and 0 <= cost <= 1 and (not self.binary or cost in (0, 1)):
            return float(cost)
        return float(check_costs([cost], binary=self.binary, name=name)[0])

    def _count(
        self, cost_a: float | None, cost_b: float | None, lucks: tuple[Luck, Luck] = (Luck(), Luck())
    ) -> None:
        if self.finished:
            self._begin(cost_a is not None, cost_b is not None)
        for side, cost in enumerate((cost_a, cost_b)):
            if cost is not None:
                self._totals[side] += cost
                self._costs[side].append(cost)
                self._lucks[side].append(lucks[side])
        self.n_a, self.n_b = map(len, self._costs)
        while min(self.n_a, self.n_b) - self.pairs >= self.tasks:
            aimed = 0.0  # one size for the whole turn
            if self._margin_bets is not None:
                aimed = self._margin_bets.size(self.pairs, self._squares, float(self._margin_logs[-1]))
            for place in range(self.pairs, self.pairs + self.tasks):
                self._bet(self._costs[0][place], self._costs[1][place], aimed)
            self._look()
        if self._reference is not None:
            self._look()

    def _begin(self, a_comes: bool, b_comes: bool) -> None:
        """Once B begins, keep what was counted of A."""
        if self._reference is None and not b_comes:
            return
        if a_comes or not 0 < self.n_a <= MOST_REFERENCE_TRIALS:
            problem = f"policy A must be finished before B begins, after {self.n_a} trials it is not"
            remedy = f"count all of its trials first, at most {MOST_REFERENCE_TRIALS}; or say finished=False"
            raise InvalidCost(problem, remedy=remedy)
        self._reference = self._reference or Finished(self.n_a, round(self._totals[0]))

    def _bet(self, cost_a: float, cost_b: float, aimed: float) -> None:
        self.pairs += 1
        self._logs[0] += self._bets.log_factors(cost_a, cost_b)
        self._logs[1] += self._bets.log_factors(cost_b, cost_a)
        if self._margin_bets is not None:
            self._margin_logs += self._margin_bets.log_factors_of(aimed, cost_a, cost_b)
            self._squares += (cost_a - cost_b) ** 2
        self._halves.add(half := (1 + cost_b - cost_a) / 2)
        if self._goals is not None:
            a, b = (each[self.pairs - 1] for each in self._lucks)
            lucks = Luck(-a.value / 2, -a.least / 2, -a.most / 2), Luck(*(x / 2 for x in b))
            self._goals.add(half, lucks)
            self._helped.add(half, lucks)
        if self._counts and not (self.paired and cost_a == cost_b):
            self._failures[0] += int(cost_a)
            self._failures[1] += int(cost_b)
        if self.pairs == LAST_PAIR:
            self._late[0] = sum(self._failures)
        elif self.pairs > LAST_PAIR:
            self._late[1] += cost_a != cost_b

    def _look(self) -> None:
        """Read the evidence; within a turn it may be high because of the tasks that came first."""
        tops = self._logs.max(axis=1)
        sums = np.exp(self._logs - tops[:, None]).sum(axis=1)
        self._evidence = self._goals.evidence if self._goals else (tops + np.log(sums)).tolist()
        for side in (0, 1):
            self._best[side] = max(self._best[side], self._evidence[side])
            if self.verdict is ComparisonVerdict.UNDECIDED and self._decides(side):
                self.verdict = SIDES[side]
                self.first_alarm = self.pairs if self._reference is None else self._new()[0]
        if self._margin_bets is None:
            self.no_worse = self.verdict is ComparisonVerdict.B_BETTER
        elif not self.no_worse:
            self.no_worse = float(np.logaddexp.reduce(self._margin_logs)) >= math.log(1 / self._left)
            if self._tabled and not self.no_worse:
                table, (a, b) = margin_table(self.alpha, self.margin), self._failures
                self.no_worse = table.shows(self.pairs, round(self._squares), b - a)

    def _decides(self, side: int) -> bool:
        region = self.region
        if region is None:
            return self._evidence[side] >= math.log(1 / self.alpha)
        if self._reference is not None:
            return self._reference.decides(side, *self._new(), self.alpha)
        better, worse = self._failures[:: 1 - 2 * side]
        if isinstance(region, SignRegion):
            return region.alarms(better, worse, self._evidence[side])
        if self.paired or self.horizon is not None or self.pairs <= LAST_PAIR:
            return region.alarms(self.pairs, better, worse)
        return late_line(self.alpha, self._late[0]).alarms(self._late[1], worse - better)

    def _new(self) -> tuple[int, int]:
        """Return trials and failures of B."""
        return self.n_b, round(self._totals[1])

    def _finding(self) -> ComparisonFinding:
        limits: Any = [partial(_limit, CostGrid(self._halves.weights), self.alpha, self.pairs), None]
        if self._reference is not None:
            limits[0] = partial(self._reference.limit, *self._new(), self.alpha)
        if self._goals is not None:
            limits = [partial(self._helped.limit, self.pairs, helped) for helped in (True, False)]
        return ComparisonFinding(
            **{name: getattr(self, name) for name in _REACHED},
            mean_cost_a=self._totals[0] / self.n_a if self.n_a else None,
            mean_cost_b=self._totals[1] / self.n_b if self.n_b else None,
            failed=(round(self._totals[0]), round(self._totals[1])) if self.binary else None,
            e_a_better=bounded_exp(self._evidence[0]),
            e_b_better=bounded_exp(self._evidence[1]),
            p_a_better=self._p_value(0),
            p_b_better=self._p_value(1),
            **self._settings,
            limits=limits[0],
            limits_alone=limits[1],
        )

    def _p_value(self, side: int) -> float:
        best = min(self._best[side], 708.0)  # a p-value of 0 would claim too much
        if self.region is None:  # the verdict is that the e-value reached 1/alpha
            return math.exp(-best)
        return joint_p_value(best, self.alpha, reached=self.verdict is SIDES[side])


def _limit(halves: CostGrid, alpha: float, pairs: int, side: int) -> float:
    """Return a limit on the difference from (1 + cost of B - cost of A)/2 of all pairs."""
    bets = Bets.for_costs(binary=False)
    if not pairs:
        return 1.0 if side else -1.0
    return 2 * (halves.mean_upper if side else halves.mean_lower)(bets, alpha) - 1


def check_horizon(horizon: object, *, binary: bool, tasks: int = 1) -> int | None:
    """Return the largest number of pairs, if there is one, or refuse what is not."""
    number = LONGEST_HORIZON if horizon is None else _whole(horizon, "horizon", "pairs")
    problem = "goes with costs of 0 and 1 of one task only" if tasks > 1 or not binary else ""
    if number > LONGEST_HORIZON:
        problem = f"is more than {LONGEST_HORIZON} pairs; without an end a few more do"
    if problem and horizon is not None:
        raise InvalidSetting(problem, name="horizon", value=horizon, remedy="leave it out")
    return None if horizon is None else number


def _whole(value: object, name: str, of_what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidSetting(f"is no number of {of_what}", name=name, value=value, remedy="give 1 or more")
    return int(value)


class Finished(NamedTuple):
    """The trials and failures of policy A, which was finished before B's first trial: all count at once."""

    n: int
    failures: int

    def decides(self, side: int, trials: int, failures: int, alpha: float) -> bool:
        """Return whether so many failures of B say that A (0) or B (1) is better."""
        # If B is to be better, the same is asked of its successes.
        b, a = (trials - failures, self.n - self.failures) if side else (failures, self.failures)
        return bool(b >= alarm_line(self.n, a, alpha).needed(trials)[trials])

    def limit(self, trials: int, failures: int, alpha: float, side: int) -> float:
        """Return a limit on the difference, by bets on both at the least favorable common rate."""
        points = np.array([0.0, 1.0])
        old, new = (np.array([n - k, k], float) for n, k in (self, (trials, failures)))
        sides = sides_against(references_of(points, old), (alpha, alpha), None, binary=True)
        lower = sides[side].difference_lower(points, new)
        return -lower if side else lower
