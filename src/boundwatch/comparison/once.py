"""Two policies whose trials are finished: one look at all of them, in any order and any numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc

from boundwatch._support.validation import check_flag, check_level, check_margin
from boundwatch.bounds import betting_lower, betting_p_value
from boundwatch.bounds.betting_limits import fixed_bets
from boundwatch.bounds.cost_grid import grid_points, split_on_grid
from boundwatch.bounds.joint_evidence import Reference, Wager, joint_difference_lower, joint_log_evidence
from boundwatch.bounds.joint_side import references_of
from boundwatch.bounds.multiple import holm, with_overall
from boundwatch.bounds.rate_difference import rate_difference_lower, rate_difference_p_value
from boundwatch.bounds.strata import in_proportion, stratified_p_value, weighted_lower, weighted_p_value
from boundwatch.comparison.finding import (
    SIDES,
    ComparedTasks,
    ComparisonFinding,
    ComparisonVerdict,
    Method,
)
from boundwatch.comparison.matching import PairBy, keys_of, match
from boundwatch.comparison.turns import match_clusters, of_one_measure, tasks_of
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import InvalidCost, InvalidSetting, Place

Array = NDArray[np.float64]
_MOST_POINTS = 2000  # different costs that are looked at one by one


@dataclass(frozen=True)
class _Counts:
    """Independent trials that fail or not: the exact unconditional test."""

    n: tuple[int, int]
    failures: tuple[int, int]
    method: Method = "exact"

    def p_value(self, side: int) -> float:
        return rate_difference_p_value(*self._series(side))

    def p_margin(self, margin: float) -> float:
        return rate_difference_p_value(*self._series(1), -margin)

    def limit(self, alpha: float, side: int) -> float:
        lower = rate_difference_lower(*self._series(side), alpha)
        return -lower if side else lower

    def _series(self, side: int) -> tuple[int, int, int, int]:
        """Return trials and failures of A and of B or, of the other side, successes instead."""
        (n_a, n_b), (a, b) = self.n, self.failures
        return (n_a, n_a - a, n_b, n_b - b) if side else (n_a, a, n_b, b)


@dataclass(frozen=True)
class _Costs:
    """Independent bounded costs: bets on both, at the least favorable common mean."""

    a: Array
    b: Array
    method: Method = "betting"

    def p_value(self, side: int) -> float:
        return self._against(side, 0.0)

    def p_margin(self, margin: float) -> float:
        return self._against(1, -margin)

    def limit(self, alpha: float, side: int) -> float:
        lower = joint_difference_lower(self._references[side], self._wagers[side], alpha)
        return -lower if side else lower

    def _against(self, side: int, margin: float) -> float:
        log_e = joint_log_evidence(self._references[side], self._wagers[side], margin)
        return math.exp(-min(max(log_e, 0.0), 700.0))

    @cached_property
    def _references(self) -> tuple[Reference, Reference]:
        return references_of(*_weighed(self.a))

    @cached_property
    def _wagers(self) -> tuple[Wager, Wager]:
        sizes, log_shares = fixed_bets(self.b.size)
        points, weights = _weighed(self.b)
        return Wager(sizes, log_shares, points, weights), Wager(sizes, log_shares, 1 - points, weights)


def _weighed(costs: Array) -> tuple[Array, Array]:
    """Return different costs and how often each occurs; of very many, split on a grid."""
    values, counts = np.unique(costs, return_counts=True)
    if values.size <= _MOST_POINTS:
        return values, counts.astype(np.float64)
    return grid_points(), split_on_grid(costs)


@dataclass(frozen=True)
class _Pairs:
    """Matched pairs: fair coins where costs of 0 and 1 differ, bets on the differences of others.

    Of several tasks whose numbers of pairs are not in proportion to their weights, `uneven` has both.
    """

    a: Array
    b: Array
    method: Method
    uneven: tuple[Array, Array] | None = None

    def p_value(self, side: int) -> float:
        if self.method != "sign test":
            return self._against(side, 0.5)
        against = [int(np.count_nonzero(self.b > self.a)), int(np.count_nonzero(self.a > self.b))]
        return float(bdtrc(against[side] - 1, sum(against), 0.5)) if against[side] else 1.0

    def p_margin(self, margin: float) -> float:
        return self._against(1, (1 - margin) / 2)

    def limit(self, alpha: float, side: int) -> float:
        halves = self._halves(side)
        if self.uneven is None:
            lower = float(betting_lower(halves, alpha))
        else:
            lower = weighted_lower(self._means(halves), *self.uneven, alpha)
        return 1 - 2 * lower if side else 2 * lower - 1

    def _against(self, side: int, null: float) -> float:
        halves = self._halves(side)
        if self.uneven is None:
            return float(betting_p_value(halves, null))
        return weighted_p_value(self._means(halves), *self.uneven, null)

    def _means(self, halves: Array) -> Array:
        assert self.uneven is not None  # noqa: S101  (asked before)
        ends = np.cumsum(self.uneven[0].astype(np.int64))
        return np.array([part.mean() for part in np.split(halves, ends)[:-1]])

    def _halves(self, side: int) -> Array:
        more = self.a - self.b if side else self.b - self.a
        return np.asarray((1 + more) / 2)


@dataclass(frozen=True)
class _Tasks:
    """All tasks together: no task got worse (costs of 0 and 1), or the mean over tasks did not (others)."""

    a: list[Array]
    b: list[Array]
    weights: Array
    method: Method

    def p_value(self, side: int) -> float:
        if self.method == "weighted":
            return weighted_p_value(*self._sums(side), 0.0)
        n_a, n_b, a, b = (
            np.array(list(map(each, costs))) for each in (len, np.sum) for costs in (self.a, self.b)
        )
        if side:
            a, b = n_a - a, n_b - b
        return stratified_p_value(n_a, np.rint(a), n_b, np.rint(b))

    def p_margin(self, margin: float) -> float:
        return weighted_p_value(*self._sums(1), -margin)

    def limit(self, alpha: float, side: int) -> float:
        lower = weighted_lower(*self._sums(side), alpha)
        return -lower if side else lower

    def _sums(self, side: int) -> tuple[Array, Array, Array]:
        """Return means, numbers and weights whose sum is the cost of B minus that of A, or the opposite."""
        means = np.array([costs.mean() for costs in (*self.b, *self.a)])
        numbers = np.array([costs.size for costs in (*self.b, *self.a)], dtype=np.float64)
        weights = np.concatenate([self.weights, -self.weights])
        return (1 - means if side else means), numbers, weights


_Judge = _Counts | _Costs | _Pairs | _Tasks
"""Two samples and how they are judged; side 0 asks whether A is better, side 1 whether B is."""
_OVERALL = 0.4
"""The share of alpha that the test of all tasks together gets; a regression is mostly one of one task."""


def compare_once(
    policies: Mapping[str, ArrayLike | Episodes],
    *,
    alpha: float = 0.05,
    margin: float = 0.0,
    pair_by: PairBy = None,
    binary: bool | None = None,
) -> ComparisonFinding | ComparedTasks:
    """Compare two policies whose trials are finished: all of them, in any order, unequal in number.

    **Guarantee**: if A is not better, A_BETTER is declared with probability at most `alpha`; likewise for B.
    Each limit on the difference holds with probability at least 1 - `alpha`, and `no_worse` is wrongly True
    with at most `alpha`. Of several tasks: that of `ComparedTasks`. **Assumes**: numbers of trials that were
    fixed beforehand, and one look; whoever looks and goes on needs `PolicyComparison`. Independent trials
    of each policy and, of several tasks, of each task; with `pair_by`, independent pairs.

    Costs of 0 and 1 are judged by an exact unconditional test (Boschloo's), other costs by bets on both. Of
    matched pairs, an exact sign test is made on those that differ. Several tasks (strata) are judged overall
    and one by one: the overall test gets 0.4 alpha and the tasks 0.6 alpha by Holm. Of costs of 0 and 1 tasks
    have all of alpha once the overall test has rejected, and a task that is told apart decides overall, too.

    Parameters
    ----------
    policies
        The costs of A and of B by their names: arrays, or `Episodes`.
    alpha
        Probability of a wrong verdict, per side.
    margin
        How much worse B may be and still be called no worse. With 0, B is no worse once it is better, of
        several tasks in the mean over them.
    pair_by
        The columns whose values make two trials partners (`Episodes` that were read with them), or a list of
        keys per policy. Keys must not repeat. Trials without a partner are left out, and listed.
    binary
        Whether every cost is 0 or 1; left out, as `Episodes` has it.

    Examples
    --------
    >>> import boundwatch as bw
    >>> f = bw.compare_once({"act": [0] * 27 + [1] * 3, "dp": [0] * 20 + [1] * 10})
    >>> f.verdict.value, round(f.p_a_better, 3)
    ('a-better', 0.016)
    >>> f = bw.compare_once({"a": [1, 0, 1, 0], "b": [0, 0, 1]}, pair_by={"a": [1, 2, 3, 4], "b": [3, 2, 1]})
    >>> f.pairs, f.unmatched_a
    (3, ('4',))
    """
    level, margin = check_level(alpha, "alpha"), check_margin(margin, zero=True)
    a, b = _two(policies, binary)
    one, other = map(str, policies)
    known: dict[str, Any] = {
        "alpha": level,
        "margin": margin,
        "names": (one, other),
        "binary": a.binary and b.binary,
    }
    if pair_by is not None:
        found = match(keys_of(one, a, pair_by), keys_of(other, b, pair_by), (one, other))
        a, b = a.take(found.rows_a), b.take(found.rows_b)
        known |= {"paired": True, "unmatched_a": found.alone_a, "unmatched_b": found.alone_b}
    else:
        match_clusters((a, b), paired=False)  # refuses scenes that both ran on
    tasks = _by_task(a, b)
    if len(tasks) < 2:
        return _finding(_judge(a.costs, b.costs, known), a.costs, b.costs, known)
    return _all_tasks(tasks, _weights(a, list(tasks)), known)


def _two(policies: Mapping[str, ArrayLike | Episodes], binary: bool | None) -> list[Episodes]:
    """Return the episodes of two policies, of one measure; both or none are of 0 and 1."""
    if not isinstance(policies, Mapping) or len(policies) != 2:
        problem = "is not a mapping of two names to costs"
        raise InvalidSetting(problem, name="policies", value=policies, remedy='give {"a": costs, "b": costs}')
    both = [
        each if isinstance(each, Episodes) else Episodes(each, binary=binary, source=str(name))
        for name, each in policies.items()
    ]
    costs = np.concatenate([each.costs for each in both])
    if binary is None and not all(each.binary for each in both):
        # One that never fails says nothing about its kind; the other may.
        alike = any(each.binary for each in both) and bool(np.isin(costs, (0.0, 1.0)).all())
        both = [replace(each, binary=alike) for each in both]
    elif binary is not None:
        both = [replace(each, binary=check_flag(binary, "binary")) for each in both]
        if binary and not np.isin(costs, (0.0, 1.0)).all():
            raise InvalidCost("not all costs are 0 or 1", remedy="binary costs were promised")
    return of_one_measure(both)


def _by_task(a: Episodes, b: Episodes) -> dict[str, tuple[Array, Array]]:
    """Return the costs of both policies on each task, if tasks are declared; refuse a task of one only."""
    of_a, of_b = (rows_of(tasks_of(each)) for each in (a, b))
    for mine, theirs, each in ((of_a, of_b, b), (of_b, of_a, a)):
        if missing := [task for task in mine if task not in theirs]:
            problem = f"has no trials of {missing[0]}, which the other policy was tried on"
            raise InvalidCost(problem, where=Place(each.source), remedy="compare policies on the same tasks")
    return {task: (a.costs[rows], b.costs[of_b[task]]) for task, rows in of_a.items()}


def _weights(episodes: Episodes, tasks: list[str]) -> Array:
    given = episodes.design.weights
    weights = np.array([given.get(task, 0.0) if given else 1.0 for task in tasks])
    return np.asarray(weights / weights.sum())


def _judge(a: Array, b: Array, known: Mapping[str, Any]) -> _Judge:
    if known.get("paired"):
        return _Pairs(a, b, "sign test" if known["binary"] else "betting")
    if known["binary"]:
        return _Counts((a.size, b.size), (round(a.sum()), round(b.sum())))
    return _Costs(a, b)


def _all_tasks(
    tasks: Mapping[str, tuple[Array, Array]], weights: Array, known: Mapping[str, Any]
) -> ComparedTasks:
    """Judge all tasks together and each by itself, and correct the verdicts for their number."""
    all_a, all_b = ([pair[side] for pair in tasks.values()] for side in (0, 1))
    balanced = all(in_proportion([len(each) for each in costs], weights) for costs in (all_a, all_b))
    a, b = np.concatenate(all_a), np.concatenate(all_b)
    judge: _Judge = _Tasks(all_a, all_b, weights, "stratified" if known["binary"] else "weighted")
    if known.get("paired"):
        uneven = None if balanced else (np.array([float(each.size) for each in all_a]), weights)
        judge = _Pairs(a, b, "sign test" if known["binary"] else "betting", uneven)
    elif balanced and not known["binary"]:
        judge = _Costs(a, b)
    overall = _finding(judge, a, b, known, len(tasks))
    found = {
        task: _finding(_judge(*pair, known), *pair, {**known, "unmatched_a": (), "unmatched_b": ()})
        for task, pair in tasks.items()
    }
    of_some_task = overall.method in ("stratified", "sign test")
    adjusted = [
        _adjusted(getattr(overall, name), [getattr(each, name) for each in found.values()], of_some_task)
        for name in ("p_a_better", "p_b_better")
    ]
    alphas = (known["alpha"],) * 2
    overall = replace(overall, p_a_better=adjusted[0][0], p_b_better=adjusted[1][0])
    overall = _judged(overall, _verdict((adjusted[0][0], adjusted[1][0]), alphas))
    for row, (task, each) in enumerate(found.items()):
        found[task] = _judged(each, _verdict((adjusted[0][1][row], adjusted[1][1][row]), alphas))
    return ComparedTasks(overall=overall, tasks=found)


def _adjusted(p_overall: float, p_values: list[float], of_some_task: bool) -> tuple[float, Array]:
    """Return adjusted p-values of the overall claim and of each task's, at one rate."""
    if of_some_task:
        return with_overall(p_overall, p_values, _OVERALL)
    # A task that is better does not show that the mean is: each has its own part of alpha.
    return min(p_overall / _OVERALL, 1.0), np.minimum(holm(p_values) / (1 - _OVERALL), 1.0)


def _judged(finding: ComparisonFinding, verdict: ComparisonVerdict) -> ComparisonFinding:
    """Return the same with another verdict; of one task, without a margin, "no worse" is "better"."""
    kept = finding.no_worse if finding.margin or finding.tasks > 1 else verdict is ComparisonVerdict.B_BETTER
    return replace(finding, verdict=verdict, no_worse=kept)


def _finding(
    judge: _Judge, a: Array, b: Array, known: Mapping[str, Any], tasks: int = 1
) -> ComparisonFinding:
    """Judge two samples by themselves."""
    alpha, margin = known["alpha"], known["margin"]
    p_values = judge.p_value(0), judge.p_value(1)
    verdict = _verdict(p_values, (alpha, alpha))
    shown = verdict is ComparisonVerdict.B_BETTER
    if margin or tasks > 1:  # a verdict on several tasks may be about some of them; this is about the mean
        shown = judge.p_margin(margin) <= alpha
    return ComparisonFinding(
        verdict=verdict,
        n_a=a.size,
        n_b=b.size,
        pairs=a.size if known.get("paired") else None,
        mean_cost_a=float(a.mean()),
        mean_cost_b=float(b.mean()),
        e_a_better=None,
        e_b_better=None,
        p_a_better=p_values[0],
        p_b_better=p_values[1],
        first_alarm=None,
        no_worse=bool(shown),
        horizon=None,
        tasks=tasks,
        method=judge.method,
        limits=partial(judge.limit, alpha),
        **({"paired": False} | dict(known)),
    )


def _verdict(p_values: tuple[float, float], alphas: tuple[float, float]) -> ComparisonVerdict:
    """Return who is better; evidence for both, which needs an alpha of about one half, decides nothing."""
    shown = [side for side in (0, 1) if p_values[side] <= alphas[side]]
    return SIDES[shown[0]] if len(shown) == 1 else ComparisonVerdict.UNDECIDED
