"""The base of the detectors that may be read after every episode. Only these have `update`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from numpy.typing import ArrayLike

from boundwatch._support.describing import arguments, one_line
from boundwatch._support.validation import check_level
from boundwatch.bounds.bets import Rows
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors import saving
from boundwatch.detectors.verdicts import Finding, Verdict, new_costs
from boundwatch.errors import InvalidCost, SchemaMismatch

Found = TypeVar("Found", bound=Finding)
SIDES = (Verdict.ADVERSE, Verdict.BENIGN)
"""The two sides in the order in which every anytime-valid detector keeps them."""
ONLY = slice(0, 1)
"""The row of the one stream."""


class AnytimeDetector(saving.Kept, Generic[Found]):
    """Base of the detectors that count one episode at a time and stay valid however often you look."""

    alpha_adverse: float
    alpha_benign: float
    n: int
    verdict: Verdict
    first_alarm: int | None
    _total: float
    _rows: Rows
    """All else that is known of the one stream."""

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
        """Count one more episode and return the finding; an invalid cost raises `InvalidCost`, uncounted."""
        self._step(self._check(cost))
        return self._finding()

    def update_many(self, costs: ArrayLike) -> Found:
        """Count many episodes in their order; the result is that of `update` on each.

        If one cost is invalid, none is counted. What is suspicious about `Episodes` is said as a Python
        warning; the certificate's own are refused.
        """
        for cost in new_costs(costs, self.certificate).tolist():
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
        self._rows.begin(ONLY)

    def content(self) -> dict[str, Any]:
        """Return the state without what says whose it is, for those who keep that themselves."""
        return {
            "settings": saving.settings(self),
            "n": self.n,
            "total": self._total,
            "verdict": self.verdict.value,
            "first_alarm": self.first_alarm,
            "evidence": self._evidence_state(),
        }

    @classmethod
    def from_content(cls, state: Mapping[str, Any], certificate: Certificate) -> Self:
        """Return the detector whose `content` that was."""
        known = saving.read(saving.Content, state)
        first, within = known.first_alarm, known.verdict is Verdict.WITHIN
        if (first is None) != within or not (first is None or 1 <= first <= known.n):
            problem = f"does not go with {known.verdict.value!r}"
            raise SchemaMismatch(problem, name="state.first_alarm", value=first, remedy=saving.DAMAGED)
        detector = saving.remade(cls, certificate, known.settings)
        detector.n, detector._total = known.n, known.total
        detector.verdict, detector.first_alarm = known.verdict, known.first_alarm
        detector._restore(known.evidence)
        return detector

    def _evidence_state(self) -> dict[str, Any]:
        return saving.pack_rows(self._rows, 1)

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `_evidence_state` returned."""
        saving.unpack_rows(self._rows, state, 1)

    @abstractmethod
    def _step(self, cost: float) -> None:
        """Count a cost that has been checked."""

    @abstractmethod
    def _finding(self) -> Found:
        """Return the finding after at least one episode."""

    def _known(self) -> dict[str, Any]:
        """Return the fields of a finding that every detector has."""
        certificate = self.certificate
        return {
            "verdict": self.verdict,
            "n": self.n,
            "mean_cost": self._total / max(self.n, 1),
            "first_alarm": self.first_alarm,
            "false_positive_rate": min(self.alpha_adverse + certificate.delta_upper, 1.0),
            "false_negative_rate": min(self.alpha_benign + certificate.delta_lower, 1.0),
            "tail": "mixture",
            "binary": certificate.binary,
        }

    def _alarm(self, side: int) -> bool:
        """Take an alarm of a side; return whether it changed the verdict.

        Alarms latch, but BENIGN must not silence ADVERSE: each side spends its own level, whatever the other
        did.
        """
        if self.verdict is not Verdict.WITHIN and (side == 1 or self.verdict is Verdict.ADVERSE):
            return False
        self.first_alarm, self.verdict = self.n, SIDES[side]
        return True

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
