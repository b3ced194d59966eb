"""Certification while trials come in: look after every trial, stop by any rule, and hold a certificate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.notebook import InTable
from boundwatch._support.schema import Level, Probability, convert
from boundwatch._support.validation import check_costs, check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.drafting import PLAIN, fields_of, split_delta
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, Refusal, SchemaMismatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _State:
    """What `Campaign.state_dict` returns."""

    kind: Literal["Campaign"]
    version: Literal[1]
    delta_upper: Level
    delta_lower: Level
    binary: bool
    costs: list[Probability]


class Campaign(InTable):
    """Bounds a finished policy's expected cost after every trial, and certifies it whenever you stop.

    **Guarantee**: with probability at least 1 - `delta` over the draw of the trials, the expected cost lies
    between `lower` and `upper` after *every* trial. So the certificate made when you stop holds with at least
    that probability, whatever made you stop: the width, the upper limit, the end of the day.
    **Assumes**: costs in [0, 1] (0 or 1 if `binary`) whose expected value, given all earlier trials, is the
    same (i.i.d. trials are a special case); a policy that was final before the first one; every trial counts.

    The limits are those of the trials so far, in whatever order they came: the interval may widen after a
    surprise. Keeping the narrowest limits seen would be valid, too, but nobody could derive them again from
    what a certificate keeps.

    Parameters
    ----------
    delta
        Probability with which either limit may ever fail; each side gets half of it.
    binary
        Promise that costs are 0 or 1: narrower limits.
    delta_upper, delta_lower
        Give each side its own failure probability; both or neither. `delta` is then ignored.

    Examples
    --------
    >>> import boundwatch as bw
    >>> campaign = bw.Campaign(delta=0.01, binary=True)
    >>> for cost in [0, 0, 1, 0] * 30:
    ...     if campaign.update(cost).width < 0.3:
    ...         break
    >>> campaign
    Campaign(n=108, failures=27, lower=0.1217, upper=0.4213, delta=0.01)
    >>> campaign.certificate().method
    'anytime'
    """

    def __init__(
        self,
        delta: float = 0.01,
        *,
        binary: bool = False,
        delta_upper: float | None = None,
        delta_lower: float | None = None,
    ) -> None:
        self.delta, self.delta_upper, self.delta_lower = split_delta(
            "held-out", delta, delta_upper, delta_lower
        )
        self.binary = check_flag(binary, "binary")
        self._costs: list[float] = []
        self._limits: tuple[float, float] | None = (0.0, 1.0)

    @property
    def n(self) -> int:
        """How many trials there were."""
        return len(self._costs)

    @property
    def lower(self) -> float:
        """The lower limit on the expected cost; 0 before the first trial."""
        return self._derived()[0]

    @property
    def upper(self) -> float:
        """The upper limit on the expected cost; 1 before the first trial."""
        return self._derived()[1]

    @property
    def width(self) -> float:
        """How far the limits are apart."""
        return self.upper - self.lower

    @property
    def mean_cost(self) -> float | None:
        """The mean of the costs so far; None before the first trial."""
        return float(np.mean(self._costs)) if self._costs else None

    def update(self, cost: float) -> Campaign:
        """Count one more trial; returns the campaign itself.

        Parameters
        ----------
        cost
            Its cost. One that is not allowed raises `InvalidCost` and is not counted.
        """
        return self.update_many([cost])

    def update_many(self, costs: ArrayLike) -> Campaign:
        """Count several trials, in their order; returns the campaign itself.

        Parameters
        ----------
        costs
            At least one cost. If one of them is invalid, none is counted.
        """
        self._costs += check_costs(costs, binary=self.binary).tolist()
        self._limits = None
        return self

    def certificate(
        self,
        *,
        seed: int | None = None,
        policy: str | os.PathLike[str] | None = None,
        measure: Measure | None = None,
        design: Design | None = None,
    ) -> Certificate:
        """Return a certificate from the trials so far; it is valid at any time, whatever made you stop.

        Parameters
        ----------
        seed, policy, measure
            As in `Certificate.from_held_out`.
        design
            How trials relate to each other, to be kept.
        """
        if not self._costs:
            raise InvalidCost("no trial has been counted; call update(cost) first")
        fields = fields_of(
            "held-out",
            self._costs,
            (self.delta, self.delta_upper, self.delta_lower),
            binary=self.binary,
            seed=seed,
            policy=policy,
            method="anytime",
            measure=measure,
            design=design or PLAIN,
        )
        return Certificate._of(fields)

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain JSON values."""
        names = ("n", "mean_cost", "lower", "upper", "width", "delta", "delta_upper", "delta_lower", "binary")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> campaign = Campaign(binary=True).update_many([0, 1, 0])
        >>> Campaign.from_state_dict(campaign.state_dict()).upper == campaign.upper
        True
        """
        levels = {"delta_upper": self.delta_upper, "delta_lower": self.delta_lower}
        return {"kind": "Campaign", "version": 1, **levels, "binary": self.binary, "costs": list(self._costs)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Campaign:
        """Return the campaign that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, possibly through a JSON file.
        """
        found = convert(_State, state, "state")
        try:
            campaign = cls(binary=found.binary, delta_upper=found.delta_upper, delta_lower=found.delta_lower)
            return campaign.update_many(found.costs) if found.costs else campaign
        except Refusal as error:
            raise SchemaMismatch(f"the state is damaged: {error}") from error

    def plot(self) -> Figure:
        """Draw the interval (extra ``plot``)."""
        return self.certificate().plot()

    def _derived(self) -> tuple[float, float]:
        if self._limits is None:
            made = self.certificate()
            self._limits = made.lower, made.upper
        return self._limits

    def __repr__(self) -> str:
        failed = f", failures={round(sum(self._costs))}" if self.binary else ""
        return (
            f"Campaign(n={self.n}{failed}, lower={self.lower:.4g}, upper={self.upper:.4g}, "
            f"delta={self.delta:g})"
        )
