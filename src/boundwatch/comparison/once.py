"""Two policies whose trials are finished: one look at all of them, in any order and any numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc

from boundwatch._support.validation import check_flag, check_level, check_margin
from boundwatch.bounds import betting_lower, betting_p_value
from boundwatch.bounds.audit import RateCurve, difference_lower, difference_p_value
from boundwatch.bounds.bets import grid_points, split_on_grid
from boundwatch.bounds.betting_limits import fixed_bets
from boundwatch.bounds.joint_evidence import (
    Reference,
    Wager,
    joint_difference_lower,
    joint_log_evidence,
    references_of,
)
from boundwatch.bounds.multiple import holm, with_overall
from boundwatch.bounds.rate_difference import rate_difference_lower, rate_difference_p_value
from boundwatch.bounds.strata import in_proportion, stratified_p_value, weighted_lower, weighted_p_value
from boundwatch.certificates.record import AuditRecord
from boundwatch.comparison.finding import SIDES, ComparedTasks, ComparisonFinding, ComparisonVerdict, Method
from boundwatch.comparison.matching import (
    PairBy,
    keys_of,
    match_clusters,
    of_one_measure,
    partners,
    same_tasks,
    tasks_of,
)
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import InvalidCost, InvalidSetting

Array = NDArray[np.float64]
_MOST_POINTS = 2000  # different costs that are looked at one by one


@dataclass(frozen=True)
class _Judge(ABC):
    """Two samples and how they are judged; side 0 asks whether A is better, side 1 whether B is."""

    a: Any
    b: Any
    method: Method

    @abstractmethod
    def against(self, side: int, margin: float) -> float:
        """Return a p-value of "the worse policy costs at most `margin` more"."""

    @abstractmethod
    def lower(self, side: int, alpha: float) -> float:
        """Return a lower limit on how much more the worse policy costs."""

    def p_value(self, side: int) -> float:
        return self.against(side, 0.0)

    def limit(self, alpha: float, side: int) -> float:
        """Return the lower (0) or the upper (1) limit on the expected cost of B minus that of A."""
        lower = self.lower(side, alpha)
        return -lower if side else lower


class _Counts(_Judge):
    """Independent trials that fail or not: the exact unconditional test."""

    def against(self, side: int, margin: float) -> float:
        return rate_difference_p_value(*self._series(side), margin)

    def lower(self, side: int, alpha: float) -> float:
        return rate_difference_lower(*self._series(side), alpha)

    def _series(self, side: int) -> tuple[int, int, int, int]:
        """Return trials and failures of A and of B or, of the other side, successes instead."""
        (n_a, a), (n_b, b) = ((each.size, round(each.sum())) for each in (self.a, self.b))
        return (n_a, n_a - a, n_b, n_b - b) if side else (n_a, a, n_b, b)


class _Costs(_Judge):
    """Independent bounded costs: bets on both, at the least favorable common mean."""

    def against(self, side: int, margin: float) -> float:
        log_e = joint_log_evidence(*self._sides[side], margin)
        return math.exp(-min(max(log_e, 0.0), 700.0))

    def lower(self, side: int, alpha: float) -> float:
        return joint_difference_lower(*self._sides[side], alpha)

    @cached_property
    def _sides(self) -> list[tuple[Reference, Wager]]:
        bets, (points, weights) = fixed_bets(self.b.size), _weighed(self.b)
        wagers = Wager(*bets, points, weights), Wager(*bets, 1 - points, weights)
        return list(zip(references_of(*_weighed(self.a)), wagers, strict=True))


def _weighed(costs: Array) -> tuple[Array, Array]:
    """Return different costs and how often each occurs; of very many, split on a grid."""
    values, counts = np.unique(costs, return_counts=True)
    if values.size <= _MOST_POINTS:
        return values, counts.astype(np.float64)
    return grid_points(), split_on_grid(costs)


@dataclass(frozen=True)
class _Pairs(_Judge):
    """Matched pairs: fair coins where costs of 0 and 1 differ, bets on the differences of others.

    Of several tasks whose numbers of pairs are not in proportion to their weights, `uneven` has both.
    """

    uneven: tuple[Array, Array] | None = None

    def p_value(self, side: int) -> float:
        if self.method != "sign test":
            return self.against(side, 0.0)
        against = [int(np.count_nonzero(self.b > self.a)), int(np.count_nonzero(self.a > self.b))]
        return float(bdtrc(against[side] - 1, sum(against), 0.5)) if against[side] else 1.0

    def against(self, side: int, margin: float) -> float:
        null = (1 + margin) / 2
        if self.uneven is None:
            return float(betting_p_value(self._halves(side), null))
        return weighted_p_value(self._means(side, *self.uneven), *self.uneven, null)

    def lower(self, side: int, alpha: float) -> float:
        if self.uneven is None:
            return 2 * float(betting_lower(self._halves(side), alpha)) - 1
        return 2 * weighted_lower(self._means(side, *self.uneven), *self.uneven, alpha) - 1

    def _means(self, side: int, numbers: Array, _: Array) -> Array:
        parts = np.split(self._halves(side), np.cumsum(numbers.astype(np.int64)))[:-1]
        return np.array([part.mean() for part in parts])

    def _halves(self, side: int) -> Array:
        more = self.a - self.b if side else self.b - self.a
        return np.asarray((1 + more) / 2)


@dataclass(frozen=True)
class _Tasks(_Judge):
    """All tasks together: no task got worse (costs of 0 and 1), or the mean over tasks did not (others)."""

    weights: Array

    def p_value(self, side: int) -> float:
        if self.method == "weighted":
            return self.against(side, 0.0)
        n_a, n_b, a, b = (
            np.array(list(map(each, costs))) for each in (len, np.sum) for costs in (self.a, self.b)
        )
        if side:
            a, b = n_a - a, n_b - b
        return stratified_p_value(n_a, np.rint(a), n_b, np.rint(b))

    def against(self, side: int, margin: float) -> float:
        return weighted_p_value(*self._sums(side), margin)

    def lower(self, side: int, alpha: float) -> float:
        return weighted_lower(*self._sums(side), alpha)

    def _sums(self, side: int) -> tuple[Array, Array, Array]:
        """Return means, numbers and weights whose sum is the cost of B minus that of A, or the opposite."""
        means = np.array([costs.mean() for costs in (*self.b, *self.a)])
        numbers = np.array([costs.size for costs in (*self.b, *self.a)], dtype=np.float64)
        weights = np.concatenate([self.weights, -self.weights])
        return (1 - means if side else means), numbers, weights


class _Audits(_Judge):
    """Judged episodes of which people labeled some, or trials: by the rates that are left for both."""

    def against(self, side: int, margin: float) -> float:
        return difference_p_value(*self._series(side), margin)

    def lower(self, side: int, alpha: float) -> float:
        return difference_lower(*self._series(side), alpha)

    def _series(self, side: int) -> tuple[RateCurve, RateCurve]:
        return (self.a.mirrored(), self.b.mirrored()) if side else (self.a, self.b)


_OVERALL = 0.4
"""The share of alpha that the test of all tasks together gets; a regression is mostly one of one task."""


def compare_once(
    policies: Mapping[str, ArrayLike | Episodes | AuditRecord],
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
        The costs of A and of B by their names: arrays, or `Episodes`; of episodes that a machine judged,
        `Audit.record` of their labels, which decide whatever the judge is like.
    alpha
        Probability of a wrong verdict, per side.
    margin
        How much worse B may be and still be called no worse. With 0, B is no worse once it is better, of
        several tasks in the mean over them.
    pair_by
        The columns whose values make two trials partners (`Episodes` that were read with them), or a list of
        keys per policy. Keys must not repeat. Trials without a partner are left out, and listed.
    binary
        Whether every cost is always 0 or 1, which makes the test exact. Left out, that is so of successes,
        and of `Episodes` that were said to be; that all costs are so far is no promise.

    Examples
    --------
    >>> import boundwatch as bw
    >>> f = bw.compare_once({"act": [0] * 27 + [1] * 3, "dp": [0] * 20 + [1] * 10}, binary=True)
    >>> f.verdict.value, round(f.p_a_better, 3)
    ('a-better', 0.016)
    >>> f = bw.compare_once({"a": [1, 0, 1, 0], "b": [0, 0, 1]}, pair_by={"a": [1, 2, 3, 4], "b": [3, 2, 1]})
    >>> f.pairs, f.unmatched_a
    (3, ('4',))
    """
    known: dict[str, Any] = {
        "alpha": check_level(alpha, "alpha"),
        "margin": check_margin(margin, zero=True),
        "names": tuple(map(str, policies)),
        "paired": pair_by is not None,
    }
    if isinstance(policies, Mapping) and any(isinstance(each, AuditRecord) for each in policies.values()):
        return _of_audits(policies, pair_by, known)
    a, b = both = _two(cast("Mapping[str, ArrayLike | Episodes]", policies), binary)
    if pair_by is not None:
        named = dict(zip(policies, both, strict=True))
        (rows_a, alone_a), (rows_b, alone_b) = partners(keys_of(named, pair_by))
        a, b = a.take(rows_a), b.take(rows_b)
        known |= {"unmatched_a": tuple(alone_a), "unmatched_b": tuple(alone_b)}
    else:
        match_clusters(both, paired=False)  # refuses scenes that both ran on
    known["binary"] = a.binary
    of_a, of_b = places = [rows_of(tasks_of(each)) for each in (a, b)]
    tasks = {task: (a.costs[of_a[task]], b.costs[of_b[task]]) for task in same_tasks((a, b), places)}
    if len(tasks) < 2:
        return _finding(_judge(a.costs, b.costs, known), a.costs, b.costs, known)
    given = a.design.weights or dict.fromkeys(tasks, 1.0)
    weights = np.array([given.get(task, 0.0) for task in tasks])
    return _all_tasks(tasks, weights / weights.sum(), known)


def _of_audits(
    policies: Mapping[str, ArrayLike | Episodes | AuditRecord], pair_by: PairBy, known: dict[str, Any]
) -> ComparisonFinding:
    """Compare two policies, at least one of which was judged by a machine and audited."""
    if len(policies) != 2 or pair_by is not None:
        raise InvalidSetting("an audit is compared with one other policy, without partners", name="policies")
    curves, costs = list[RateCurve](), list[Array]()
    for name, each in policies.items():
        if isinstance(each, AuditRecord):
            curves.append(RateCurve.of_audit(each.failures, known["alpha"]))
            costs.append(np.full(sum(each.failures.judged), each.mean))
            continue
        trials = each if isinstance(each, Episodes) else Episodes(each, binary=True, source=str(name))
        if tasks_of(trials) or trials.design.cluster is not None or not trials.binary:
            problem = "is not of single trials of one task that fail or not, as the audit beside it is"
            raise InvalidSetting(problem, name="policies", value=str(name))
        curves.append(RateCurve.of_counts(trials.costs.size, round(trials.costs.sum())))
        costs.append(trials.costs)
    judge = _Audits(curves[0], curves[1], "audit")
    finding = _finding(judge, costs[0], costs[1], known | {"binary": True})
    return replace(finding, failed=None)  # what an audit estimates is no count


def _two(policies: Mapping[str, ArrayLike | Episodes], binary: bool | None) -> list[Episodes]:
    """Return the episodes of two policies, of one measure; both or none are of 0 and 1."""
    if not isinstance(policies, Mapping) or len(policies) != 2:
        problem = "is not a mapping of two names to costs"
        raise InvalidSetting(problem, name="policies", value=policies, remedy='give {"a": costs, "b": costs}')
    both = [
        (each if isinstance(each, Episodes) else Episodes(each, source=str(name))).as_promised()
        for name, each in policies.items()
    ]
    said = all(each.binary for each in both) if binary is None else check_flag(binary, "binary")
    if binary and not all(np.isin(each.costs, (0.0, 1.0)).all() for each in both):
        raise InvalidCost("not all costs are 0 or 1", remedy="binary costs were promised")
    return of_one_measure([replace(each, binary=said) for each in both])


def _judge(a: Array, b: Array, known: Mapping[str, Any]) -> _Judge:
    if known["paired"]:
        return _Pairs(a, b, "sign test" if known["binary"] else "betting")
    return _Counts(a, b, "exact") if known["binary"] else _Costs(a, b, "betting")


def _all_tasks(
    tasks: Mapping[str, tuple[Array, Array]], weights: Array, known: Mapping[str, Any]
) -> ComparedTasks:
    """Judge all tasks together and each by itself, and correct p-values and verdicts for their number."""
    all_a, all_b = ([pair[side] for pair in tasks.values()] for side in (0, 1))
    balanced = all(in_proportion([len(each) for each in costs], weights) for costs in (all_a, all_b))
    a, b = np.concatenate(all_a), np.concatenate(all_b)
    judge = _judge(a, b, known)
    if isinstance(judge, _Pairs):
        uneven = None if balanced else (np.array([float(each.size) for each in all_a]), weights)
        judge = replace(judge, uneven=uneven)
    elif known["binary"] or not balanced:
        judge = _Tasks(all_a, all_b, "stratified" if known["binary"] else "weighted", weights)
    overall = _finding(judge, a, b, known, len(tasks))
    if not balanced:
        mean_a, mean_b = (float(weights @ [each.mean() for each in costs]) for costs in (all_a, all_b))
        overall = replace(overall, mean_cost_a=mean_a, mean_cost_b=mean_b)
    alone = {**known, "unmatched_a": (), "unmatched_b": ()}
    found = [_finding(_judge(*pair, known), *pair, alone) for pair in tasks.values()]
    of_some_task = overall.method in ("stratified", "sign test")
    own = [(each.p_a_better, each.p_b_better) for each in found]
    sides = [
        _adjusted(p_overall, [each[side] for each in own], of_some_task)
        for side, p_overall in enumerate((overall.p_a_better, overall.p_b_better))
    ]
    together, *each_task = zip(*(np.append(p_all, p_tasks).tolist() for p_all, p_tasks in sides), strict=True)
    judged = [
        _judged(replace(each, p_alone=alone), p_values)
        for each, alone, p_values in zip(found, own, each_task, strict=True)
    ]
    return ComparedTasks(overall=_judged(overall, together), tasks=dict(zip(tasks, judged, strict=True)))


def _adjusted(p_overall: float, p_values: list[float], of_some_task: bool) -> tuple[float, Array]:
    """Return adjusted p-values of the overall claim and of each task's, at one rate."""
    if of_some_task:
        return with_overall(p_overall, p_values, _OVERALL)
    # A task that is better does not show that the mean is: each has its own part of alpha.
    return min(p_overall / _OVERALL, 1.0), np.minimum(holm(p_values) / (1 - _OVERALL), 1.0)


def _judged(finding: ComparisonFinding, p_values: tuple[float, float]) -> ComparisonFinding:
    """Return the same by adjusted p-values; of one task, without a margin, "no worse" is "better"."""
    verdict = _verdict(p_values, finding.alpha)
    kept = finding.no_worse if finding.margin or finding.tasks > 1 else verdict is ComparisonVerdict.B_BETTER
    a_better, b_better = p_values
    return replace(finding, verdict=verdict, no_worse=kept, p_a_better=a_better, p_b_better=b_better)


def _finding(
    judge: _Judge, a: Array, b: Array, known: Mapping[str, Any], tasks: int = 1
) -> ComparisonFinding:
    """Judge two samples by themselves."""
    alpha, margin = known["alpha"], known["margin"]
    p_values = judge.p_value(0), judge.p_value(1)
    verdict = _verdict(p_values, alpha)
    shown = verdict is ComparisonVerdict.B_BETTER
    if margin or tasks > 1:  # a verdict on several tasks may be about some of them; this is about the mean
        shown = judge.against(1, -margin) <= alpha
    return ComparisonFinding(
        verdict=verdict,
        n_a=a.size,
        n_b=b.size,
        pairs=a.size if known["paired"] else None,
        mean_cost_a=float(a.mean()),
        mean_cost_b=float(b.mean()),
        p_a_better=p_values[0],
        p_b_better=p_values[1],
        no_worse=bool(shown),
        tasks=tasks,
        method=judge.method,
        limits=partial(judge.limit, alpha),
        failed=(round(a.sum()), round(b.sum())) if known["binary"] else None,
        **known,
    )


def _verdict(p_values: tuple[float, float], alpha: float) -> ComparisonVerdict:
    """Return who is better; evidence for both, which needs an alpha of about one half, decides nothing."""
    shown = [SIDES[side] for side in (0, 1) if p_values[side] <= alpha]
    return shown[0] if len(shown) == 1 else ComparisonVerdict.UNDECIDED
