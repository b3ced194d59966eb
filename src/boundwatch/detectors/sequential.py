"""The anytime-valid test: look after every episode, stop whenever you like."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from boundwatch._support.validation import check_margin
from boundwatch.bounds.bets import Bets
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.anytime_detector import ONLY, AnytimeDetector
from boundwatch.detectors.evidence import EvidenceFinding, Row, evidence_for
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, Verdict
from boundwatch.errors import InvalidSetting, SchemaMismatch


class SequentialTest(AnytimeDetector[EvidenceFinding]):
    """Watches a stream of costs and may be read after every episode.

    **Guarantee**: ADVERSE is ever declared with probability at most `alpha_adverse` + the certificate's
    `delta_upper` in any world that is not worse, BENIGN with at most `alpha_benign` + `delta_lower` in any
    that is, over the draw of the certificate's costs and of the stream, however long it runs and whatever
    makes one stop. With a margin, `no_worse` is wrongly True with at most the latter, too. **Assumes**: costs
    of the certified kind whose expected value, given all earlier episodes, does not exceed the certified one
    (i.i.d. episodes are a special case), and an unchanged policy.

    Alarms latch until `reset`, which starts a new test with its own levels, except that ADVERSE still
    replaces BENIGN. For a shift that begins late take `ChangeDetector`: here, earlier evidence against a
    shift must first be used up. A certificate of the mean over tasks is watched in rounds, in which each task
    is run once (see `boundwatch.detectors.rounds`): ``update(cost, task)``.

    Parameters
    ----------
    alpha_adverse, alpha_benign
        Levels of the two tests. The certificate's delta comes on top: see the finding's totals.
    margin
        How much worse is acceptable, in expected cost; see the finding's `no_worse`.
    sharing
        Between how many streams, this one included, the certificate's delta is divided. Of m streams with one
        certificate and `sharing` = m, however they depend on each other, any is ever wrongly called ADVERSE
        with probability at most the sum of their `alpha_adverse` + one `delta_upper`, and likewise BENIGN;
        without it, up to m times `delta_upper`.

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

    def __new__(cls, certificate: Certificate | None = None, **_: Any) -> Self:
        """Return the test in rounds, if the certificate is of the mean over tasks."""
        if cls is SequentialTest and isinstance(certificate, Certificate) and certificate.strata:
            from boundwatch.detectors.rounds import RoundsTest

            return super().__new__(RoundsTest)  # type: ignore[return-value]  # which is a SequentialTest
        return super().__new__(cls)

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = ANYTIME_LEVEL,
        alpha_benign: float = ANYTIME_LEVEL,
        margin: float | None = None,
        sharing: int = 1,
    ) -> None:
        self._accept(certificate, alpha_adverse, alpha_benign)
        self.margin = None if margin is None else check_margin(margin)
        if isinstance(sharing, bool) or not isinstance(sharing, int) or sharing < 1:
            raise InvalidSetting("is not a whole number of at least 1", name="sharing", value=sharing)
        self.sharing = sharing
        self._prepare()
        self.reset()

    def _prepare(self) -> None:
        """Make what weighs costs."""
        certificate, sharing = self.certificate, self.sharing
        self.bets = Bets.for_costs(binary=certificate.binary)
        alphas = self.alpha_adverse, self.alpha_benign
        self._evidence = evidence_for(certificate, alphas, self.margin, sharing)
        self._rows = self._evidence.rows
        # Against the limits all streams fail together, and delta is spent once.
        parts = sharing if self._evidence.tail == "joint" else 1
        self._constant = {
            "false_positive_rate": min(self.alpha_adverse + certificate.delta_upper / parts, 1.0),
            "false_negative_rate": min(self.alpha_benign + certificate.delta_lower / parts, 1.0),
            "detector": "sequential-test",
            "tail": self._evidence.tail,
            "binary": certificate.binary,
            "margin": self.margin,
        }

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """The e-values at which ADVERSE and BENIGN are declared; None if counts alarm at an exact line."""
        return self._evidence.thresholds

    def update(self, cost: float, stratum: str | None = None) -> EvidenceFinding:
        """Count one more episode and return the finding; an invalid cost raises `InvalidCost`.

        An invalid cost is not counted. `stratum` is the episode's task, if the mean over several is
        certified.
        """
        if stratum is not None:
            problem = "goes with a certificate of the mean over tasks"
            raise InvalidSetting(problem, name="stratum", value=stratum, remedy="leave it out")
        return super().update(cost)

    def peek(self, partial_cost: float) -> EvidenceFinding:
        """Return what would be found if the running episode ended now; count nothing.

        **Guarantee**: an ADVERSE peek is final: whatever the rest of the episode brings, `update` will say
        the same, so alarms by peeks and updates together keep the level. BENIGN, `no_worse`, `e_benign`,
        `p_benign` and `shift_upper` are those of the episodes that ended. **Assumes**: costs only add up, so
        the episode will cost at least `partial_cost`.

        Examples
        --------
        >>> import boundwatch as bw
        >>> test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = test.update_many([0.7, 0.4, 0.9])
        >>> test.peek(0.1).verdict.value, test.peek(0.5).verdict.value, test.n
        ('within', 'adverse', 3)
        """
        trial = copy.copy(self)
        trial._evidence = self._evidence.copy()
        trial._step(self._check(partial_cost))
        if trial.verdict is Verdict.BENIGN and self.verdict is not Verdict.BENIGN:
            trial.verdict, trial.first_alarm = self.verdict, self.first_alarm
        nothing = {"e_benign": 1.0, "p_benign": 1.0, "shift_upper": 1.0 - self.certificate.lower}
        return trial._finding_with(self._evidence.row(0), {} if self.n else nothing)

    def _finding(self) -> EvidenceFinding:
        return self._finding_with(self._evidence.row(0), {})

    def _finding_with(self, ended: Row, known: dict[str, float]) -> EvidenceFinding:
        """Return the finding whose evidence of low costs comes from `ended`."""
        row = ended if ended["n"] == self.n else self._evidence.row(0)
        return EvidenceFinding.of(
            self._evidence,
            row,
            ended,
            verdict=self.verdict,
            n=self.n,
            mean_cost=self._total / self.n,
            no_worse=None if self.margin is None else bool(ended["reached"][2]),
            first_alarm=self.first_alarm,
            **self._constant,
            **known,
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._evidence.restore(state, 1)
        if self._rows["n"][0] != self.n:
            raise SchemaMismatch("state['n'] is not the number of its evidence; the state is damaged")

    def _step(self, cost: float) -> None:
        self.n += 1
        self._total += cost
        reached = self._evidence.count(ONLY, np.array([cost])).tolist()[0]
        for side in (0, 1):
            if reached[side]:
                self._alarm(side)
