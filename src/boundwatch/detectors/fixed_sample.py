"""What the two fixed-sample detectors share: tail bounds, and how a dataset is judged.

A fixed-sample detector has `decide` and no `update`: its guarantee is for one look at a number of episodes
that was fixed in advance. Looking after every episode needs `boundwatch.SequentialTest`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_choice, check_level, check_margin
from boundwatch.bounds.bets import SMALLEST_BOUND
from boundwatch.bounds.joint_evidence import JointSide, Wager, joint_difference_lower, joint_log_evidence_many
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS
from boundwatch.bounds.rate_difference import (
    fewest_that_differ,
    rate_difference_lower,
    rate_difference_p_value,
)
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors.joint import counts_of, reference_of, sides_of
from boundwatch.detectors.verdicts import Finding, TailName, Verdict, new_costs, refuse_tasks
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tail:
    """A family of tail bounds on the mean of costs, with one dataset per row."""

    p_value: Callable[[Array, float | Array], Array]
    """Of "the mean is at most `null_mean`", from costs and `null_mean`."""
    lower: Callable[[Array, float], Array]
    """The lower confidence limit that is dual to it, from costs and its failure probability."""


def _of_sums(statistic: str, p_value: Callable[..., Array], lower: Callable[..., Array]) -> Tail:
    """Return the tail of bounds that know of costs their mean, or their sum, and their number."""
    return Tail(
        lambda costs, null: p_value(getattr(costs, statistic)(axis=-1), costs.shape[-1], null),
        lambda costs, delta: lower(getattr(costs, statistic)(axis=-1), costs.shape[-1], delta),
    )


TAILS: dict[TailName, Tail] = {
    "hoeffding": _of_sums("mean", bounds.hoeffding_p_value, bounds.hoeffding_lower),
    "kl": _of_sums("mean", bounds.chernoff_p_value, bounds.chernoff_lower),
    "exact": _of_sums("sum", bounds.binomial_p_value, bounds.clopper_pearson_lower),
    "betting": Tail(bounds.betting_p_value, bounds.betting_lower),
}
"""The tails by name. ``hoeffding`` is the paper's; ``exact`` needs binary costs."""
_OF_ALL = ("n", "false_positive_rate", "false_negative_rate", "detector", "tail", "margin")
_NUMBERS = ("mean_cost", "p_adverse", "p_benign", "shift_lower", "shift_upper")


@dataclass(frozen=True)
class TailJudge:
    """New costs against the limits of a certificate, or of one per row; delta comes on top of the levels."""

    lower: float | Array
    upper: float | Array
    levels: tuple[float, float]
    bound: Tail

    def p_values(self, costs: Array) -> tuple[Array, Array]:
        """Return the p-values while the certificate holds."""
        adverse = self.bound.p_value(costs, self.upper)
        return adverse, self.bound.p_value(1 - costs, 1 - self.lower)

    def shift_lower(self, costs: Array) -> Array:
        """Return lower limits on the new mean less the certified upper limit."""
        return self.bound.lower(costs, self.levels[0]) - self.upper

    def shift_upper(self, costs: Array) -> Array:
        """Return upper limits on the new mean less the certified lower limit."""
        return 1 - self.bound.lower(1 - costs, self.levels[1]) - self.lower

    def p_margin(self, costs: Array, margin: float) -> Array:
        """Return the p-values of "the mean is the lower limit plus the margin, or more"."""
        rest = 1 - self.lower - margin
        p_values = self.bound.p_value(1 - costs, np.maximum(rest, 0.0))
        return np.asarray(np.where(np.asarray(rest) <= 0, 0.0, p_values))  # no cost is that much higher


@dataclass(frozen=True)
class JointJudge:
    """New costs together with those of the certificate: the levels are totals over the draw of both."""

    certificate: Certificate
    levels: tuple[float, float]

    def p_values(self, costs: Array) -> tuple[Array, Array]:
        """Return the p-values over the joint draw."""
        return self._p_values(0, costs), self._p_values(1, 1 - costs)

    def shift_lower(self, costs: Array) -> Array:
        """Return lower limits over the joint draw."""
        return self._difference_lower(0, costs)

    def shift_upper(self, costs: Array) -> Array:
        """Return upper limits over the joint draw."""
        return -self._difference_lower(1, 1 - costs)

    def p_margin(self, costs: Array, margin: float) -> Array:
        """Return the p-values of "the cost rose by the margin or more", over the joint draw."""
        return self._p_values(1, 1 - costs, -margin)

    @cached_property
    def _sides(self) -> list[JointSide]:
        return sides_of(self.certificate, self.levels, None)

    def _p_values(self, side: int, costs: Array, margin: float = 0.0) -> Array:
        if self.certificate.binary:
            seen = counts_of(self.certificate, side)
            return self._by_count(costs, lambda m, j: rate_difference_p_value(*seen, m, j, margin))
        return np.exp(-np.maximum(self._evidence(side, costs, margin), 0.0))

    def _by_count(self, costs: Array, value: Callable[[int, int], float]) -> Array:
        """Compute a number once for each number of failures that occurs."""
        n = costs.shape[-1]
        failures, where = np.unique(costs.sum(axis=-1).round().astype(np.int64), return_inverse=True)
        return np.array([value(n, int(count)) for count in failures])[where]

    def _evidence(self, side: int, costs: Array, margin: float = 0.0) -> Array:
        sizes, log_shares = bounds.fixed_bets(costs.shape[-1])

        def log_wealth(means: Array, datasets: NDArray[np.intp]) -> Array:
            scaled = costs[datasets] / np.maximum(means, SMALLEST_BOUND)[:, None]
            with np.errstate(divide="ignore"):  # a bet of the whole capital is lost at a cost of 0
                logs = [np.log((1 - b) + b * scaled).sum(axis=1) for b in sizes]
            return np.asarray(logsumexp(np.stack(logs, axis=1) + log_shares, axis=1))

        reference, at_once = self._sides[side].reference, max(1, 2**15 // costs.shape[1])  # the memory
        return joint_log_evidence_many(reference, log_wealth, len(costs), margin, at_once=at_once)

    def _difference_lower(self, side: int, costs: Array) -> Array:
        level = self.levels[side]
        if self.certificate.binary:
            seen = counts_of(self.certificate, side)
            return self._by_count(costs, lambda m, j: rate_difference_lower(*seen, m, j, level))
        sizes, log_shares = bounds.fixed_bets(costs.shape[-1])
        wagers = [Wager(sizes, log_shares, row, np.ones(row.size)) for row in costs]
        reference = self._sides[side].reference
        return np.array([joint_difference_lower(reference, wager, level) for wager in wagers])


Judge = TailJudge | JointJudge
"""Weighs datasets, one per row: the part of a fixed-sample detector that depends on the tail."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings on many datasets of equal size: the fields of `Finding`, as arrays."""

    verdict: NDArray[np.str_]
    n: int
    mean_cost: Array
    p_adverse: Array
    p_benign: Array
    false_positive_rate: float
    false_negative_rate: float
    detector: str
    tail: TailName
    margin: float | None
    _judge: Judge
    _costs: Array

    def __repr__(self) -> str:
        shown = {"datasets": self.verdict.size, "n": self.n, "detector": self.detector, "tail": self.tail}
        return one_line(self, shown | {each.value: int((self.verdict == each).sum()) for each in Verdict})

    def __str__(self) -> str:
        counts = ", ".join(f"{(self.verdict == each).sum()} {each.name}" for each in Verdict)
        return f"Findings on {self.verdict.size} datasets of {self.n} episodes: {counts}"

    # Limits take longer than p-values, most of all by betting, and many callers only count verdicts.
    @cached_property
    def shift_lower(self) -> Array:
        """Lower limits on the shift, computed when first asked for."""
        return self._judge.shift_lower(self._costs)

    @cached_property
    def shift_upper(self) -> Array:
        """Upper limits on the shift, computed when first asked for."""
        return self._judge.shift_upper(self._costs)

    @cached_property
    def no_worse(self) -> NDArray[np.bool_] | None:
        """Where it is shown that the cost rose by no more than the margin; None without a margin."""
        if self.margin is None:
            return None
        return np.asarray(self._judge.p_margin(self._costs, self.margin) <= self._judge.levels[1])


@dataclass(frozen=True)
class FixedSampleDetector(ABC):
    """Base of the detectors that look once, at a number of episodes fixed in advance."""

    certificate: Certificate
    tail: TailName | None = field(default=None, kw_only=True)
    margin: float | None = field(default=None, kw_only=True)
    name: ClassVar[str]
    by_limits: ClassVar[bool] = False
    """Whether the verdict is read off the limits on the shift, where they and the p-values may differ."""

    def __post_init__(self) -> None:
        require_certificate(self.certificate)
        _ = self.tail_name  # refuses one that does not fit
        if self.margin is not None:
            object.__setattr__(self, "margin", check_margin(self.margin))

    def __str__(self) -> str:
        adverse, benign = self.levels
        levels = f"levels of {adverse:g} (ADVERSE) and {benign:g} (BENIGN)"
        return f"{type(self).__name__} with the {self.tail_name} tail, at {levels}, for one look"

    def _store_level(self, name: str) -> float:
        """Check a probability and keep it as a float, whatever kind of number it came as."""
        level = check_level(getattr(self, name), name)
        object.__setattr__(self, name, level)
        return level

    @cached_property
    def tail_name(self) -> TailName:
        """The tail in use, asked for or chosen."""
        return choose_tail(self.tail, self.certificate)

    @property
    @abstractmethod
    def levels(self) -> tuple[float, float]:
        """What the test itself may spend on a wrong ADVERSE and on a wrong BENIGN, delta not included."""

    def decide(self, costs: ArrayLike) -> Finding:
        """Judge one dataset of n new episodes, with costs of the kind that was certified.

        n must depend neither on the costs nor, where they are judged jointly, on the certificate's. What is
        suspicious about `Episodes` is said as a Python warning; the certificate's own are refused.
        """
        refuse_tasks(self.certificate)
        many = self._judge(new_costs(costs, self.certificate)[None])
        known: dict[str, Any] = {name: getattr(many, name) for name in _OF_ALL}
        known |= {name: float(getattr(many, name)[0]) for name in _NUMBERS}
        return Finding(
            **known,
            verdict=Verdict(str(many.verdict[0])),
            binary=self.certificate.binary,
            shares_of=self.certificate.shares_of,
            no_worse=None if many.no_worse is None else bool(many.no_worse[0]),
        )

    def decide_many(self, costs: ArrayLike) -> Findings:
        """Judge each row of a (datasets, n) array; the guarantee holds for each, not for all at once."""
        refuse_tasks(self.certificate)
        return self._judge(self.certificate.check_costs(costs, ndim=2))

    def could_alarm(self, n: int) -> bool:
        """Return whether n costs are ADVERSE if all of them are 1."""
        return self._is_adverse(n, n)

    def fewest_adverse(self, n: int) -> int | None:
        """Return how many of n costs must be 1, the others 0, to be ADVERSE; None if even all are too few."""
        _, judge = self._choose_judge()
        if isinstance(judge, JointJudge) and self.certificate.binary and not self.by_limits:
            fewest = fewest_that_differ(*counts_of(self.certificate, 0), n, judge.levels[0])
            return fewest if fewest <= n else None
        if not self.could_alarm(n):
            return None
        # More failures are never less evidence, so the answer can be found by halving.
        return bisect_left(range(n + 1), True, key=lambda failures: self._is_adverse(n, failures))

    def _is_adverse(self, n: int, failures: int) -> bool:
        costs = (np.arange(n) < failures).astype(np.float64)
        # As one of many: unlike a single finding, these leave out the limits until somebody asks for them.
        return bool(self._judge(costs[None]).verdict[0] == Verdict.ADVERSE)

    @property
    def _totals(self) -> tuple[float, float]:
        adverse, benign = self.levels
        return adverse + self.certificate.delta_upper, benign + self.certificate.delta_lower

    def _choose_judge(self) -> tuple[TailName, Judge]:
        certificate, name, totals = self.certificate, self.tail_name, self._totals
        if name == "joint" and max(totals) < 1:
            return name, JointJudge(certificate, totals)
        name = ("exact" if certificate.binary else "betting") if name == "joint" else name
        return name, TailJudge(certificate.lower, certificate.upper, self.levels, TAILS[name])

    def _judge(self, values: Array) -> Findings:
        name, judge = self._choose_judge()
        totals, levels = self._totals, judge.levels
        p_adverse, p_benign = judge.p_values(values)
        if self.by_limits and isinstance(judge, JointJudge) and self.certificate.binary:
            adverse, benign = judge.shift_lower(values) > 0, judge.shift_upper(values) <= 0
        else:  # limits are never sharper than p-values
            # As in Lemma 1; the printed Algorithm 1 swaps its levels in its WD branch (docs/errata.md).
            # By duality Delta C_A > 0 means p_A < delta'_A, and Delta C_B >= 0 means p_B <= delta'_B.
            adverse = p_adverse < levels[0] if self.by_limits else p_adverse <= levels[0]
            benign = p_benign <= levels[1]
        return Findings(
            verdict=np.where(adverse, Verdict.ADVERSE, np.where(benign, Verdict.BENIGN, Verdict.WITHIN)),
            n=values.shape[-1],
            mean_cost=values.mean(axis=-1),
            p_adverse=p_adverse,
            p_benign=p_benign,
            false_positive_rate=min(totals[0], 1.0),
            false_negative_rate=min(totals[1], 1.0),
            detector=self.name,
            tail=name,
            margin=self.margin,
            _judge=judge,
            _costs=values,
        )


def choose_tail(tail: TailName | None, certificate: Certificate) -> TailName:
    """Return the tail asked for, or the one with the most power on average (measured in docs/anytime.md)."""
    is_joint = reference_of(certificate) is not None
    if tail is None:
        return "joint" if is_joint else "exact" if certificate.binary else "betting"
    check_choice(tail, "tail", get_args(TailName))
    if tail == "joint" and not is_joint:
        problem = (
            "needs a certificate from held-out costs that it keeps, of a number fixed in advance that is at "
            f"most {MOST_REFERENCE_TRIALS:,}"
        )
        raise InvalidSetting(problem, name="tail", value=tail, remedy="leave it out")
    if tail == "exact" and not certificate.binary:
        remedy = "certify with binary=True, or use 'kl'"
        raise InvalidSetting("needs a certificate for binary costs", name="tail", value=tail, remedy=remedy)
    return tail
