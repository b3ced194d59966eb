"""A fixed set of tasks: a verdict on all of them together, and on each, under one error rate.

A certificate of the mean over tasks keeps the costs of each. New trials of the same tasks are judged jointly
with them: all tasks by one test, which gets most of the level, and each by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.schema import FrozenMapping
from boundwatch.bounds import betting_p_value
from boundwatch.bounds.multiple import OVERALL_SHARE, holm, with_overall
from boundwatch.bounds.strata import in_proportion, stratified_p_value, weighted_lower, weighted_p_value
from boundwatch.certificates import limits
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.record import CostRecord, is_balanced, refuse_other_tasks
from boundwatch.detectors.family_test import FamilyTest, TaskFinding, Weighed, verdict_of
from boundwatch.detectors.fixed_sample import JointJudge
from boundwatch.detectors.joint import reference_of
from boundwatch.detectors.verdicts import Finding, TailName
from boundwatch.episodes.episodes import Episodes, compatible
from boundwatch.errors import Argument, InvalidSetting

Array = NDArray[np.float64]
Pair = tuple[float, float]
_ALONE: dict[str, limits.Method] = {"rounds": "anytime"}
"""How the limits of a task by itself follow, where not in the usual way."""


def decide_strata(
    certificate: Certificate, costs: Any, alphas: Pair, margin: float | None, tail: TailName | None
) -> Finding:
    """Judge new costs of the tasks whose mean is certified.

    **Guarantee**: if no task got worse, the probability that anything is called ADVERSE, all tasks together
    or any of them, is at most alpha + delta_upper; a single task that did not get worse is called so with
    at most that, too, whatever the others do. BENIGN for all of them is declared with at most
    alpha + delta_lower if their mean rose, and so is any task's that rose. Limits on the shift hold at once
    for the mean and all tasks, each side with its total. **Assumes**: as `HypothesisTest`, for each task.

    With costs of 0 and 1 the test of all tasks is about "no task got worse", which is what a false alarm is;
    where some rise and others fall, read the limits on the mean.
    """
    if tail not in (None, "joint"):
        problem = "does not go with the mean over tasks, which are judged jointly"
        raise InvalidSetting(problem, name="tail", value=tail, remedy="leave it out")
    new, test = _by_task(certificate, costs), StrataTest(certificate, alphas, margin)
    seen = {name: (each.size, float(each.mean())) for name, each in new.items()}
    return test.finding(test.weigh(new), seen, "hypothesis-test")


@dataclass(frozen=True)
class StrataTest:
    """The test of all tasks together and of each, at levels of both sides: weighs costs, and says verdicts.

    Jointly with the lab's trials, the deltas are spent on evidence, and streams that share a certificate each
    get a part; else the limits of the mean and those of the tasks may fail.
    """

    certificate: Certificate
    alphas: Pair
    margin: float | None
    sharing: int = 1

    @cached_property
    def joint(self) -> bool:
        """Whether all tasks together are judged jointly with the lab's trials."""
        return all(self._kept) and max(alpha + delta for alpha, delta in self._spent) < 1

    @cached_property
    def levels(self) -> Pair:
        """What is spent on all tasks together and on each."""
        adverse, benign = (alpha + (delta if self.joint else 0.0) for alpha, delta in self._spent)
        return adverse, benign

    @cached_property
    def totals(self) -> dict[str, float]:
        """The error rates that are promised."""
        more = 1.0 if self.joint else (2 - OVERALL_SHARE) / self._part(1.0)
        adverse, benign = (min(alpha + delta * more, 1.0) for alpha, delta in self._spent)
        return {"false_positive_rate": adverse, "false_negative_rate": benign}

    def weigh(self, new: Mapping[str, Array], share: float = 1.0) -> Weighed:
        """Weigh the new costs of each task; limits get that share of the levels."""
        test = self._of_each(share)
        each, all_ = test.weigh(test.family, new), _Together(self.certificate, new, joint=self.joint)
        margin = 1.0 if self.margin is None else all_.p_margin(self.margin)
        p = all_.p_value(0), all_.p_value(1), margin
        shares = [level * OVERALL_SHARE * share for level in self.levels]
        return Weighed(
            np.column_stack([p, each.p]),
            np.append(all_.shift_lower(shares[0]), each.lower),
            np.append(all_.shift_upper(shares[1]), each.upper),
        )

    def finding(
        self,
        weighed: Weighed,
        seen: Mapping[str, tuple[int, float]],
        detector: str,
        alarms: Mapping[str, int] | None = None,
    ) -> Finding:
        """Return the verdicts on all tasks and, in its `tasks`, on each, of which number and mean were seen.

        Alarms say when a verdict was reached, that on all tasks by the name of "".
        """
        certificate, (p, when) = self.certificate, (weighed.p, alarms or {})
        overall, adverse = with_overall(float(p[0, 0]), p[0, 1:])
        rest, (tails, task_levels) = 1 - OVERALL_SHARE, self._each
        benign, shown = holm(p[1, 1:]), holm(p[2, 1:]) <= task_levels[1]
        same: dict[str, Any] = {"binary": certificate.binary, "margin": self.margin, **self.totals}
        tasks = {}
        for place, (name, (n, mean)) in enumerate(seen.items()):
            called = adverse[place] <= self.levels[0], benign[place] <= task_levels[1]
            tasks[name] = TaskFinding(
                verdict=verdict_of(*called),
                n=n,
                mean_cost=mean,
                **weighed.column(1 + place),
                **same,
                detector="family-test",
                tail=tails[name],
                no_worse=None if self.margin is None else bool(shown[place]),
                first_alarm=when.get(name),
                task=name,
                adjusted_adverse=float(adverse[place]),
                adjusted_benign=min(float(benign[place]) / rest, 1.0),
            )
        shares = self.levels[1] * OVERALL_SHARE
        return Finding(
            verdict=verdict_of(overall <= self.levels[0], p[1, 0] <= shares),
            n=sum(each.n for each in tasks.values()),
            mean_cost=self.mean_of(tasks),
            **weighed.column(0),
            **same,
            detector=detector,
            tail="joint" if self.joint else "betting",
            shares_of=certificate.shares_of,
            no_worse=None if self.margin is None else bool(p[2, 0] <= shares),
            first_alarm=when.get(""),
            tasks=FrozenMapping(tasks),
        )

    def mean_of(self, tasks: Mapping[str, Finding]) -> float:
        """Return the weighted mean over the tasks that have costs."""
        weights = {each.name: each.weight for each in self.certificate.strata if tasks[each.name].n}
        total = sum(weight * tasks[name].mean_cost for name, weight in weights.items())
        return total / sum(weights.values()) if weights else 0.0

    @cached_property
    def _kept(self) -> list[bool]:
        """Whether the lab's trials of each task can be judged jointly with new ones."""
        return [reference_of(each) is not None for each in by_task(self.certificate).values()]

    @cached_property
    def _spent(self) -> list[Pair]:
        """Alpha and delta of both sides."""
        deltas, parts = (self.certificate.delta_upper, self.certificate.delta_lower), self._part(1.0)
        return [(alpha, delta * parts) for alpha, delta in zip(self.alphas, deltas, strict=True)]

    def _part(self, share: float) -> float:
        """Return what may be spent of delta; limits fail once, however many looks and streams there are."""
        return share / self.sharing if any(self._kept) else 1.0

    @cached_property
    def _each(self) -> tuple[dict[str, TailName], Pair]:
        """How each task is weighed, and what may be spent on all of them."""
        test = self._of_each(1.0)
        return test.tails(test.family)

    def _of_each(self, share: float) -> FamilyTest:
        """Return the test of the tasks, at what they may spend of a share of the levels."""
        family = by_task(self.certificate, self._part(share))
        adverse, benign = ((1 - OVERALL_SHARE) * share * alpha for alpha in self.alphas)
        return FamilyTest(family, alpha_adverse=adverse, alpha_benign=benign, margin=self.margin)


def _by_task(certificate: Certificate, costs: Any) -> dict[str, Array]:
    """Return the new costs of each certified task; refuse missing and other tasks."""
    meant = [each.name for each in certificate.strata]
    if isinstance(costs, Mapping):
        refuse_other_tasks(costs, meant)
        return {name: certificate.check_costs(costs[name]) for name in meant}
    tasks = costs.keys.get("strata") if isinstance(costs, Episodes) else None
    if tasks is None:
        problem = (
            "the certificate is of the mean over tasks, and these costs do not say which task each is of"
        )
        raise InvalidSetting(problem, remedy=("give ", Argument("strata")))
    values, names = certificate.check_costs(compatible(costs, certificate)), np.array(tasks)
    refuse_other_tasks(dict.fromkeys(tasks), meant)
    return {name: values[names == name] for name in meant}


def by_task(certificate: Certificate, part: float = 1.0) -> CertificateFamily:
    """Return the certificate of each task by itself, at what tasks may spend of a part of its deltas."""
    share = part * (1 - OVERALL_SHARE) / len(certificate.strata)
    deltas = {name: getattr(certificate, name) * share for name in ("delta", "delta_upper", "delta_lower")}
    usual: limits.Method = "exact" if certificate.binary else "betting"
    made = {}
    for each in certificate.strata:
        draft = dataclasses.replace(
            certificate,
            n=each.n,
            mean_cost=each.mean_cost,
            record=None if certificate.binary else CostRecord.of(each.costs),
            strata=(),
            method=_ALONE.get(certificate.method, usual),
            **deltas,
        )
        lower, upper = limits.derive(draft)
        made[each.name] = dataclasses.replace(draft, lower=lower, upper=upper)
    return CertificateFamily(made, by=certificate.design.strata or "task")


@dataclass(frozen=True)
class _Together:
    """All tasks at once: new costs beside the certified ones or, where those are not kept, the limits."""

    certificate: Certificate
    new: Mapping[str, Array]
    joint: bool

    def p_value(self, side: int) -> float:
        """Return a p-value of "no task got worse" (side 0), or "the mean over tasks rose" (side 1)."""
        if side == 0 and self.joint and self.certificate.binary:
            strata, new = self.certificate.strata, self.new.values()
            lab = [each.n for each in strata], [each.failures for each in strata]
            return stratified_p_value(*lab, [each.size for each in new], [each.sum() for each in new])
        return self._against(side, 0.0)

    def p_margin(self, margin: float) -> float:
        """Return a p-value of "the mean over tasks rose by the margin or more"."""
        return self._against(1, -margin)

    def shift_lower(self, level: float) -> float:
        """Return a lower limit on how much the mean over tasks rose."""
        if self._pooled is not None:
            return float(JointJudge(self._pooled, (level, level)).shift_lower(self._all)[0])
        certified = 0.0 if self.joint else self.certificate.upper
        return weighted_lower(*self._sums(0), level) - certified

    def shift_upper(self, level: float) -> float:
        """Return an upper limit on it."""
        if self._pooled is not None:
            return float(JointJudge(self._pooled, (level, level)).shift_upper(self._all)[0])
        if self.joint:
            return -weighted_lower(*self._sums(1), level)
        return 1 - weighted_lower(*self._sums(1), level) - self.certificate.lower

    def _against(self, side: int, more: float) -> float:
        """Return a p-value of "the mean rose by at most `more`" or, on the other side, "it fell"."""
        if self._pooled is not None:
            costs = 1 - self._all if side else self._all
            return float(JointJudge(self._pooled, (0.5, 0.5))._p_values(side, costs, more)[0])
        null = more
        if not self.joint:
            null += (1 - self.certificate.lower) if side else self.certificate.upper
            if null >= 1:
                return 1.0
            if null <= 0:
                return 0.0
            if self._in_proportion:
                return float(betting_p_value(1 - self._all if side else self._all, null)[0])
        return weighted_p_value(*self._sums(side), null)

    def _sums(self, side: int) -> tuple[Array, Array, Array]:
        """Return means, numbers and weights whose sum is the new mean less the certified one, or mirrored."""
        weights, sizes = self._weights, [float(each.size) for each in self.new.values()]
        means = [float(each.mean()) for each in self.new.values()]
        if self.joint:
            means += [each.mean_cost for each in self.certificate.strata]
            sizes += [float(each.n) for each in self.certificate.strata]
            weights = np.concatenate([weights, -weights])
        found = np.array(means)
        return (1 - found if side else found), np.array(sizes), weights

    @cached_property
    def _weights(self) -> Array:
        return np.array([each.weight for each in self.certificate.strata])

    @cached_property
    def _all(self) -> Array:
        return np.concatenate(list(self.new.values()))[None]

    @cached_property
    def _in_proportion(self) -> bool:
        return in_proportion([each.size for each in self.new.values()], self._weights)

    @cached_property
    def _pooled(self) -> Certificate | None:
        """Of all trials as one sample, where bets of one size on each of them are valid; else None."""
        if self.certificate.binary or not (self.joint and self._in_proportion):
            return None
        record = CostRecord.of(np.concatenate([each.costs for each in self.certificate.strata]))
        pooled = dataclasses.replace(self.certificate, strata=(), method="betting", record=record)
        return pooled if is_balanced(self.certificate.strata) and reference_of(pooled) is not None else None
