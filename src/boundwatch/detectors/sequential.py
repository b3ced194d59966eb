"""The anytime-valid test: look after every episode, stop whenever you like."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boundwatch._support.text import shown
from boundwatch._support.validation import check_margin
from boundwatch.bounds.bets import Bets
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import saving
from boundwatch.detectors.anytime import SIDES, AnytimeDetector, overrides
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.evidence import CertifiedEvidence, Evidence
from boundwatch.detectors.joint import evidence_for
from boundwatch.errors import InvalidSetting, SchemaMismatch

_SIDES = {"e_adverse": 0, "e_benign": 1, "p_adverse": 0, "p_benign": 1, "shift_lower": 0, "shift_upper": 1}


@dataclass(frozen=True, kw_only=True)
class SequentialFinding(Finding):
    """A finding that is valid whenever it is read.

    **Guarantee**: that of `Finding`, for "ever declared, however long you look". Each shift limit holds for
    all times at once, except with probability at most the total of its side. E-values, p-values and limits
    are computed when first asked for (milliseconds; limits of bounded costs take a tenth of a second).

    With binary costs the alarm may come before the limits exclude a shift of zero: the alarm is exact, the
    limits hold at every margin.

    Attributes
    ----------
    e_adverse, e_benign
        E-values against "the expected cost did not rise" and "it did rise": large is evidence. If new costs
        are judged jointly with those of the certificate, the expected value under the hypothesis is at most
        1 over the draw of both, at any stopping time. Against the limits of another certificate it is at
        most 1 while the limit of that side holds. (When it does not, which has a chance of at most its
        `delta`, there is no limit.)
    p_adverse, p_benign
        Anytime-valid p-values: jointly over the draw of both, else while the certificate's limit holds, and
        its `delta` comes on top.
    first_alarm
        The episode, counted from 1, at which the verdict was reached; None while it is WITHIN.
    """

    e_adverse: float
    e_benign: float
    first_alarm: int | None

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> SequentialFinding:
        """Return a finding whose other fields are computed when they are first read."""
        finding = cls.__new__(cls)
        finding.__dict__.update(fields)  # one call: this is made once per episode
        return finding

    def _computed(self, name: str) -> float:
        side = _SIDES.get(name)
        if side is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        evidence, snapshot = self.__dict__["_evidence"]
        if side == 1:  # of a peek: what low costs show comes from the episodes that ended
            snapshot = self.__dict__.get("_ended", snapshot)
        number = self.__dict__[name] = _number(name, side, evidence, snapshot)
        return number

    if not TYPE_CHECKING:  # it would let every name pass
        __getattr__ = _computed


def _number(name: str, side: int, evidence: Evidence, snapshot: Any) -> float:
    if name.startswith("e_"):
        return bounded_exp(evidence.log_e_value(side, snapshot))
    return (evidence.p_value if name.startswith("p_") else evidence.shift_limit)(side, snapshot)


class SequentialTest(AnytimeDetector[SequentialFinding]):
    """Watches a stream of costs and may be read after every episode.

    New costs are judged jointly with those of a held-out certificate, otherwise against its limits: see
    `boundwatch.detectors.joint` and `evidence`.

    **Guarantee**: ADVERSE is ever declared with probability at most `alpha_adverse` + the certificate's
    `delta_upper` in any world that is not worse, BENIGN with at most `alpha_benign` + `delta_lower` in any
    that is, over the draw of the certificate's costs and of the stream, however long it runs and whatever
    makes one stop. With a margin, `no_worse` is wrongly True with at most the latter, too. **Assumes**: costs
    of the certified kind whose expected value, given all earlier episodes, does not exceed the certified one
    (i.i.d. episodes are a special case), and an unchanged policy.

    Of m streams whose tests share a certificate and have `sharing` = m, any is ever wrongly called ADVERSE
    with probability at most the sum of their `alpha_adverse` + one `delta_upper`, and likewise BENIGN,
    however the streams depend on each other. Without `sharing` that takes up to m times `delta_upper`.

    Alarms latch: the verdict stays until `reset`, which starts a new test with its own levels, except that
    ADVERSE still replaces BENIGN. Each side has its own level, so no promise pays for that. A shift that
    begins late is `ChangeDetector`'s task: here, the evidence against a shift that was gathered before must
    first be used up.

    Parameters
    ----------
    certificate
        The promise to compare with.
    alpha_adverse, alpha_benign
        Levels of the two tests. The certificate's delta comes on top: see the finding's totals.
    margin
        How much worse is acceptable, in expected cost; the finding's `no_worse` says when it is shown that
        the cost did not rise by more.
    sharing
        Between how many streams the certificate's delta is divided, this one included.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> test = bw.SequentialTest(certificate)
    >>> for cost in [0.7, 0.4, 0.9, 0.8, 0.6]:
    ...     finding = test.update(cost)
    >>> finding.verdict.value, finding.first_alarm, round(finding.e_adverse), round(finding.shift_lower, 2)
    ('adverse', 4, 149, 0.09)
    """

    _kind = "SequentialTest"
    _oldest = 1

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = 0.04,
        alpha_benign: float = 0.04,
        margin: float | None = None,
        sharing: int = 1,
    ) -> None:
        self._accept(certificate, alpha_adverse, alpha_benign)
        self.margin = None if margin is None else check_margin(margin)
        if isinstance(sharing, bool) or not isinstance(sharing, int) or sharing < 1:
            raise InvalidSetting(f"sharing = {shown(sharing)} is not a whole number of at least 1")
        self.sharing = sharing
        self.bets = Bets.for_costs(binary=certificate.binary)
        alphas = self.alpha_adverse, self.alpha_benign
        self._judge_by(evidence_for(certificate, alphas, self.margin, sharing))
        self.reset()

    def _judge_by(self, evidence: Evidence) -> None:
        certificate, self._evidence = self.certificate, evidence
        by_limits = isinstance(evidence, CertifiedEvidence)
        parts = 1 if by_limits else self.sharing
        self._constant = {
            "false_positive_rate": min(self.alpha_adverse + certificate.delta_upper / parts, 1.0),
            "false_negative_rate": min(self.alpha_benign + certificate.delta_lower / parts, 1.0),
            "detector": "sequential-test",
            "tail": "mixture" if by_limits else "joint",
            "binary": certificate.binary,
            "margin": self.margin,
        }

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """The e-values at which ADVERSE and BENIGN are declared; None if counts alarm at an exact line."""
        return self._evidence.thresholds

    def _forget(self) -> None:
        self._evidence.reset()

    def peek(self, partial_cost: float) -> SequentialFinding:
        """Return what would be found if the running episode ended now; count nothing.

        **Guarantee**: costs only add up, so the episode will cost at least `partial_cost`, and the evidence
        for a rise grows with the cost. An ADVERSE peek is therefore final: whatever the rest of the episode
        brings, `update` will say the same. Alarms by peeks and updates together keep the level of the
        updates. A running episode is no evidence for low costs, as it may still cost more: BENIGN,
        `no_worse`, `e_benign`, `p_benign` and `shift_upper` are those of the episodes that ended.

        Parameters
        ----------
        partial_cost
            What the running episode has cost so far, of the certified kind; the final cost must not be lower.

        Examples
        --------
        >>> import boundwatch as bw
        >>> test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = test.update_many([0.7, 0.4, 0.9])
        >>> test.peek(0.1).verdict.value, test.peek(0.5).verdict.value, test.n
        ('within', 'adverse', 3)
        """
        trial = copy.deepcopy(self)
        trial._step(self._check(partial_cost))
        if trial.verdict is Verdict.BENIGN and self.verdict is not Verdict.BENIGN:
            trial.verdict, trial.first_alarm = self.verdict, self.first_alarm
        fields = dict(trial._finding().__dict__)
        fields["no_worse"] = None if self.margin is None else self._evidence.no_worse
        if self.n:
            fields["_ended"] = self._evidence.snapshot()
        else:
            fields |= {"e_benign": 1.0, "p_benign": 1.0, "shift_upper": 1.0 - self.certificate.lower}
        return SequentialFinding._of(fields)

    def _finding(self) -> SequentialFinding:
        return SequentialFinding._of(
            {
                "verdict": self.verdict,
                "n": self.n,
                "mean_cost": self._total / self.n,
                **self._constant,
                "no_worse": None if self.margin is None else self._evidence.no_worse,
                "first_alarm": self.first_alarm,
                "_evidence": (self._evidence, self._evidence.snapshot()),
            }
        )

    def _settings(self) -> dict[str, Any]:
        return {"margin": self.margin, "sharing": self.sharing}

    @classmethod
    def _settings_in(cls, state: Mapping[str, Any]) -> dict[str, Any]:
        sharing = 1 if "sharing" not in state else saving.count(state, "sharing") or 0  # older ones have none
        if sharing < 1:
            raise SchemaMismatch("state['sharing'] is below 1; the state is damaged")
        return {"margin": saving.margin(state), "sharing": sharing}

    def _evidence_state(self) -> dict[str, Any]:
        return self._evidence.state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["version"] == 1:  # begun against the limits: a test does not change its rule on the way
            self._judge_by(CertifiedEvidence(self.certificate, (self.alpha_adverse, self.alpha_benign), None))
            state = _since_version_2(state, self.verdict)
        self._evidence.restore(state)

    def _step(self, cost: float) -> None:
        self.n += 1
        self._total += cost
        evidence = self._evidence
        evidence.step(cost)
        for side in (0, 1):
            if evidence.reached[side] and overrides(side, self.verdict):
                self.first_alarm = self.n
                self.verdict = SIDES[side]


def _since_version_2(state: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
    """Return a state of version 1 as version 2 has it."""
    names = {"n": "n", "log": "wealth", "best": "best", "logs": "logs", "product": "product"}
    wealth = {name: state.get(old) for name, old in names.items()}
    # BENIGN may have been reached before ADVERSE replaced it; only whether ADVERSE was matters from here on.
    return {**state, "wealth": wealth, "reached": [verdict is side for side in SIDES] + [False]}


def bounded_exp(log: float) -> float:
    """Return exp(log), or the largest float: JSON has no infinity."""
    return math.exp(log) if log < 709.0 else sys.float_info.max
