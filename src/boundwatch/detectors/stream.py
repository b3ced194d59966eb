"""What the detectors that may be read after every episode share. Only these have `update`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

from numpy.typing import ArrayLike

from boundwatch._support.describing import arguments, one_line
from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors import state as states
from boundwatch.detectors.base import Verdict
from boundwatch.episodes.episodes import compatible as fitting
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
    alpha_adverse: float
    alpha_benign: float
    n: int
    verdict: Verdict
    first_alarm: int | None
    _total: float
    _kind: ClassVar[str]
    """What its states are called."""
    _oldest: ClassVar[int] = states.VERSION
    """The first version of the states that it reads."""

    def _accept(self, certificate: Certificate, alpha_adverse: float, alpha_benign: float) -> None:
        self.certificate = require_certificate(certificate)
        self.alpha_adverse = check_level(alpha_adverse, "alpha_adverse")
        self.alpha_benign = check_level(alpha_benign, "alpha_benign")

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

    def reset(self) -> None:
        """Forget all costs and any alarm: what follows is a new watch, with its own chance of a false one."""
        self.n = 0
        self.first_alarm = None
        self.verdict = Verdict.WITHIN
        self._total = 0.0
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> import json
        >>> import boundwatch as bw
        >>> test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = test.update_many([0.3, 0.1, 0.4])
        >>> again = bw.SequentialTest.from_state_dict(json.loads(json.dumps(test.state_dict())))
        >>> again.update(0.2).e_adverse == test.update(0.2).e_adverse
        True
        """
        content = {
            "alpha_adverse": self.alpha_adverse,
            "alpha_benign": self.alpha_benign,
            **self._settings(),
            "n": self.n,
            "total": self._total,
            "verdict": self.verdict.value,
            "first_alarm": self.first_alarm,
            **self._evidence_state(),
        }
        return states.seal(self._kind, self.certificate, content)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], certificate: Certificate | None = None) -> Self:
        """Return the detector that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, possibly through a JSON file.
        certificate
            If given, the state must belong to it, or `ProvenanceMismatch` is raised.
        """
        stored = states.unseal(cls._kind, state, certificate, oldest=cls._oldest)
        detector = cls(stored, **states.levels(state), **cls._settings_in(state))  # type: ignore[call-arg]
        detector.n = states.count(state, "n") or 0
        detector._total = states.number(state, "total")
        detector.verdict, detector.first_alarm = states.alarm(state, detector.n)
        detector._restore(state)
        return detector

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor besides certificate and levels, as JSON values."""
        return {}

    @classmethod
    def _settings_in(cls, state: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003  (of those that have some)
        """Return the same from a state, checked."""
        return {}

    @abstractmethod
    def _forget(self) -> None:
        """Begin with evidence for nothing."""

    @abstractmethod
    def _evidence_state(self) -> dict[str, Any]:
        """Return what besides counts and alarms is to be stored, as JSON values."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `_evidence_state` returned."""

    @abstractmethod
    def _step(self, cost: float) -> None:
        """Count a cost that has been checked."""

    @abstractmethod
    def _finding(self) -> Found:
        """Return the finding after at least one episode."""

    def _check(self, cost: float) -> float:
        # The common case first: this runs once per episode, and the careful check takes longer than the test.
        if (
            isinstance(cost, float | int)
            and not isinstance(cost, bool)
            and 0 <= cost <= 1
            and (not self.certificate.binary or cost in (0, 1))
        ):
            return float(cost)
        return float(self.certificate.check_costs([cost])[0])
