"""What the detectors that may be read after every episode share. Only these have `update`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from numpy.typing import ArrayLike

from boundwatch._support.describing import arguments, one_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.episodes.fit import fitting
from boundwatch.errors import InvalidCost

Found = TypeVar("Found")
SIDES = (Verdict.ADVERSE, Verdict.BENIGN)
"""The two sides in the order in which every stream detector keeps them."""


def overrides(side: int, verdict: Verdict) -> bool:
    """Return whether an alarm of a side would change the verdict.

    Alarms latch, but BENIGN must not silence ADVERSE: each side spends its own level, whatever the other did.
    """
    return verdict is Verdict.WITHIN or (side == 0 and verdict is Verdict.BENIGN)


class StreamDetector(ABC, Generic[Found]):
    """Base of the detectors that count one episode at a time and stay valid however often you look."""

    certificate: Certificate
    n: int
    verdict: Verdict
    first_alarm: int | None

    def __repr__(self) -> str:
        return one_line(self, arguments(self) | {"n": self.n, "verdict": self.verdict})

    def __str__(self) -> str:
        words = f"{type(self).__name__}: {self.verdict.name} after {self.n} episode{'s' * (self.n != 1)}"
        return words if self.first_alarm is None else f"{words}, since episode {self.first_alarm}"

    def update(self, cost: float) -> Found:
        """Count one more episode and return the finding.

        Parameters
        ----------
        cost
            Its cost, of the certified kind. A cost that is not raises `InvalidCost` and is not counted.
        """
        self._step(self._check(cost))
        return self._finding()

    def update_many(self, costs: ArrayLike) -> Found:
        """Count many episodes in their order; the result is that of `update` on each.

        Parameters
        ----------
        costs
            At least one cost. If one of them is invalid, none is counted. What is suspicious about `Episodes`
            is said as a Python warning; the certificate's own are refused.
        """
        for cost in self.certificate.check_costs(fitting(costs, self.certificate)).tolist():
            self._step(cost)
        return self._finding()

    def finding(self) -> Found:
        """Return what is known after the latest episode; at least one is needed."""
        if self.n == 0:
            raise InvalidCost("no cost has been counted; call update(cost) first")
        return self._finding()

    @abstractmethod
    def reset(self) -> None:
        """Forget all costs and any alarm: what follows is a new watch, with its own chance of a false one."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands."""

    @abstractmethod
    def _step(self, cost: float) -> None:
        """Count a cost that has been checked."""

    @abstractmethod
    def _finding(self) -> Found:
        """Return the finding after at least one episode."""

    def _check(self, cost: float) -> float:
        # The common case first: this runs once an episode, and the careful check takes longer than the test.
        if (
            isinstance(cost, float | int)
            and not isinstance(cost, bool)
            and 0 <= cost <= 1
            and (not self.certificate.binary or cost in (0, 1))
        ):
            return float(cost)
        return float(self.certificate.check_costs([cost])[0])
