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
from boundwatch.bounds.multiple import OVERALL_SHARE, with_overall
from boundwatch.bounds.strata import stratified_p_value, weighted_lower, weighted_p_value
from boundwatch.certificates import limits
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.record import CostRecord, refuse_other_tasks
from boundwatch.detectors.base import Finding, TailName, Verdict
from boundwatch.detectors.family import FamilyTest
from boundwatch.detectors.joint import reference_of
from boundwatch.episodes.episodes import Episodes, compatible
from boundwatch.errors import Argument, InvalidSetting

Array = NDArray[np.float64]
Pair = tuple[float, float]
NAME = "hypothesis-test"
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
    new = _by_task(certificate, costs)
    family = by_task(certificate)
    deltas = certificate.delta_upper, certificate.delta_lower
    joint = all(reference_of(each) is not None for each in family.values())
    joint = joint and max(alpha + delta for alpha, delta in zip(alphas, deltas, strict=True)) < 1
    rest = 1 - OVERALL_SHARE
    test = FamilyTest(family, alpha_adverse=rest * alphas[0], alpha_benign=rest * alphas[1], margin=margin)
    found = test.decide(new)
    # Jointly, the deltas are spent on evidence; else the limits of the mean and those of the tasks may fail.
    totals = tuple(
        alpha + delta * (1 if joint else 1 + rest) for alpha, delta in zip(alphas, deltas, strict=True)
    )
    levels = tuple(alpha + (delta if joint else 0.0) for alpha, delta in zip(alphas, deltas, strict=True))
    weighed = _Together(certificate, new, joint=joint)
    p_adverse, tasks_adverse = with_overall(
        weighed.p_value(0), [each.p_adverse for each in found.tasks.values()]
    )
    benign = min(weighed.p_value(1) / OVERALL_SHARE, 1.0)
    rates: dict[str, Any] = dict(zip(("false_positive_rate", "false_negative_rate"), totals, strict=True))
    tasks = {}
    for (name, each), adverse in zip(found.tasks.items(), tasks_adverse.tolist(), strict=True):
        verdict = Verdict.BENIGN if each.verdict is Verdict.BENIGN else Verdict.WITHIN
        verdict = Verdict.ADVERSE if adverse <= levels[0] else verdict
        adjusted = {"adjusted_adverse": adverse, "adjusted_benign": min(each.adjusted_benign / rest, 1.0)}
        tasks[name] = dataclasses.replace(each, verdict=verdict, **adjusted, **rates)
    shares = levels[0] * OVERALL_SHARE, levels[1] * OVERALL_SHARE
    called = (
        Verdict.ADVERSE
        if p_adverse <= levels[0]
        else Verdict.BENIGN
        if benign <= levels[1]
        else Verdict.WITHIN
    )
    return Finding(
        verdict=called,
        n=sum(each.size for each in new.values()),
        mean_cost=float(sum(each.weight * new[each.name].mean() for each in certificate.strata)),
        p_adverse=weighed.p_value(0),
        p_benign=weighed.p_value(1),
        shift_lower=weighed.shift_lower(shares[0]),
        shift_upper=weighed.shift_upper(shares[1]),
        **rates,
        detector=NAME,
        tail="joint" if joint else "betting",
        binary=certificate.binary,
        shares_of=certificate.shares_of,
        margin=margin,
        no_worse=None if margin is None else weighed.p_margin(margin) <= shares[1],
        tasks=FrozenMapping(tasks),
    )


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


def by_task(certificate: Certificate) -> CertificateFamily:
    """Return the certificate of each task by itself, at what the tasks may spend of its deltas."""
    share = (1 - OVERALL_SHARE) / len(certificate.strata)
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
        certified = 0.0 if self.joint else self.certificate.upper
        return weighted_lower(*self._sums(0), level) - certified

    def shift_upper(self, level: float) -> float:
        """Return an upper limit on it."""
        if self.joint:
            return -weighted_lower(*self._sums(1), level)
        return 1 - weighted_lower(*self._sums(1), level) - self.certificate.lower

    def _against(self, side: int, more: float) -> float:
        """Return a p-value of "the mean rose by at most `more`" or, on the other side, "it fell"."""
        null = more
        if not self.joint:
            null += (1 - self.certificate.lower) if side else self.certificate.upper
            if null >= 1:
                return 1.0
            if null <= 0:
                return 0.0
            sizes = [each.size for each in self.new.values()]
            if _in_proportion(sizes, [each.weight for each in self.certificate.strata]):
                costs = np.concatenate(list(self.new.values()))
                return float(betting_p_value(1 - costs if side else costs, null))
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


def _in_proportion(sizes: list[int], weights: list[float]) -> bool:
    return bool(np.allclose(np.array(sizes) / sum(sizes), weights, rtol=1e-12, atol=0.0))
