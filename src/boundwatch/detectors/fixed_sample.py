"""What the two fixed-sample detectors share: tail bounds, and how a dataset is judged.

A fixed-sample detector has `decide` and no `update`: its guarantee is for one look at a number of episodes
that was fixed beforehand. Looking after every episode needs `boundwatch.SequentialTest`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tail:
    """A family of tail bounds on the mean of costs, with one dataset a row.

    Attributes
    ----------
    p_value
        Of "the mean is at most `null_mean`", from costs and `null_mean`.
    lower
        The lower confidence limit that is dual to it, from costs and its failure probability.
    """

    p_value: Callable[[Array, float], Array]
    lower: Callable[[Array, float], Array]


TAILS: dict[str, Tail] = {
    "hoeffding": Tail(
        lambda costs, null_mean: bounds.hoeffding_p_value(costs.mean(axis=-1), costs.shape[-1], null_mean),
        lambda costs, delta: bounds.hoeffding_lower(costs.mean(axis=-1), costs.shape[-1], delta),
    ),
    "kl": Tail(
        lambda costs, null_mean: bounds.chernoff_p_value(costs.mean(axis=-1), costs.shape[-1], null_mean),
        lambda costs, delta: bounds.chernoff_lower(costs.mean(axis=-1), costs.shape[-1], delta),
    ),
    "exact": Tail(
        lambda costs, null_mean: bounds.binomial_p_value(costs.sum(axis=-1), costs.shape[-1], null_mean),
        lambda costs, delta: bounds.clopper_pearson_lower(costs.sum(axis=-1), costs.shape[-1], delta),
    ),
    "betting": Tail(bounds.betting_p_value, bounds.betting_lower),
}
"""The tails by name. ``hoeffding`` is the paper's; ``exact`` needs binary costs."""


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
    tail: str
    _costs: Array
    _levels: tuple[float, float]
    _interval: tuple[float, float]

    def __repr__(self) -> str:
        shown = {"datasets": self.verdict.size, "n": self.n, "detector": self.detector, "tail": self.tail}
        return one_line(self, shown | {verdict.value: self._count(verdict) for verdict in Verdict})

    def __str__(self) -> str:
        counts = ", ".join(f"{self._count(verdict)} {verdict.name}" for verdict in Verdict)
        return f"Findings on {self.verdict.size} datasets of {self.n} episodes: {counts}"

    def _count(self, verdict: Verdict) -> int:
        return int((self.verdict == verdict).sum())

    # Limits take longer than p-values, most of all by betting, and many callers only count verdicts.
    @cached_property
    def shift_lower(self) -> Array:
        """Lower limits on the shift, computed when first asked for."""
        return TAILS[self.tail].lower(self._costs, self._levels[0]) - self._interval[1]

    @cached_property
    def shift_upper(self) -> Array:
        """Upper limits on the shift, computed when first asked for."""
        return 1 - TAILS[self.tail].lower(1 - self._costs, self._levels[1]) - self._interval[0]


@dataclass(frozen=True)
class FixedSampleDetector(ABC):
    """Base of the detectors that look once, at a number of episodes fixed beforehand."""

    certificate: Certificate
    tail: str | None = field(default=None, kw_only=True)
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.certificate, Certificate):
            raise InvalidSetting(f"certificate = {self.certificate!r} is not a Certificate; make or load one")
        _choose_tail(self.tail, self.certificate)

    def __str__(self) -> str:
        adverse, benign = self.levels
        levels = f"levels of {adverse:g} (ADVERSE) and {benign:g} (BENIGN)"
        return f"{type(self).__name__} with the {self.tail_name} tail, at {levels}, for one look"

    def _store_level(self, name: str) -> float:
        """Check a probability and keep it as a float, whatever kind of number it came as."""
        level = check_level(getattr(self, name), name)
        object.__setattr__(self, name, level)
        return level

    @property
    def tail_name(self) -> str:
        """The tail in use, asked for or chosen."""
        return _choose_tail(self.tail, self.certificate)

    @property
    @abstractmethod
    def levels(self) -> tuple[float, float]:
        """What the test itself may spend on a wrong ADVERSE and on a wrong BENIGN, delta not included."""

    @abstractmethod
    def _declares(self, p_adverse: Array, p_benign: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where ADVERSE and where BENIGN is declared."""

    def decide(self, costs: ArrayLike) -> Finding:
        """Judge one dataset.

        Parameters
        ----------
        costs
            The costs of n new episodes, of the kind that was certified. n must not depend on the costs.
        """
        many = self._judge(self.certificate.check_costs(costs)[None])
        return Finding(
            verdict=Verdict(str(many.verdict[0])),
            n=many.n,
            mean_cost=float(many.mean_cost[0]),
            p_adverse=float(many.p_adverse[0]),
            p_benign=float(many.p_benign[0]),
            shift_lower=float(many.shift_lower[0]),
            shift_upper=float(many.shift_upper[0]),
            false_positive_rate=many.false_positive_rate,
            false_negative_rate=many.false_negative_rate,
            detector=many.detector,
            tail=many.tail,
        )

    def decide_many(self, costs: ArrayLike) -> Findings:
        """Judge many datasets of equal size at once.

        Parameters
        ----------
        costs
            A (datasets, n) array. Each row is one dataset; the guarantee holds for each, not for all at once.
        """
        return self._judge(self.certificate.check_costs(costs, ndim=2))

    def _judge(self, values: Array) -> Findings:
        certificate, tail = self.certificate, TAILS[self.tail_name]
        p_adverse = tail.p_value(values, certificate.upper)
        p_benign = tail.p_value(1 - values, 1 - certificate.lower)
        adverse, benign = self._declares(p_adverse, p_benign)
        alpha_adverse, alpha_benign = self.levels
        return Findings(
            verdict=np.where(adverse, Verdict.ADVERSE, np.where(benign, Verdict.BENIGN, Verdict.WITHIN)),
            n=values.shape[-1],
            mean_cost=values.mean(axis=-1),
            p_adverse=p_adverse,
            p_benign=p_benign,
            false_positive_rate=min(alpha_adverse + certificate.delta_upper, 1.0),
            false_negative_rate=min(alpha_benign + certificate.delta_lower, 1.0),
            detector=self.name,
            tail=self.tail_name,
            _costs=values,
            _levels=self.levels,
            _interval=(certificate.lower, certificate.upper),
        )


def _choose_tail(tail: str | None, certificate: Certificate) -> str:
    """Return the tail asked for, or the one with the most power on average (measured in docs/anytime.md)."""
    if tail is None:
        return "exact" if certificate.binary else "betting"
    if tail not in TAILS:
        raise InvalidSetting(f"tail = {tail!r} is unknown; choose one of {', '.join(TAILS)}")
    if tail == "exact" and not certificate.binary:
        raise InvalidSetting(
            "tail = 'exact' needs a certificate for binary costs; certify with binary=True, or use 'kl'"
        )
    return tail
