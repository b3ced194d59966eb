"""Algorithm 2: detection by confidence intervals on the shift."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.verdicts import LOOK_LEVEL
from boundwatch.errors import InvalidLevel


@dataclass(frozen=True)
class ConfidenceInterval(FixedSampleDetector):
    """Declares a shift when its confidence interval excludes zero (Theorem 3, Algorithm 2).

    **Guarantee**: ADVERSE is declared with probability at most `false_positive_rate` in any world that is not
    worse, BENIGN with at most `false_negative_rate` in any that is; and each limit on the shift fails with at
    most the same probability. The rates are totals, and must exceed the certificate's `delta_upper` and
    `delta_lower`: the rest goes into the interval. **Assumes**: i.i.d. episodes, one look at a number of them
    fixed in advance, an unchanged policy. `tail` and `margin` are as in `HypothesisTest`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.22216, delta=0.01)
    >>> detector = bw.ConfidenceInterval(certificate, tail="hoeffding")
    >>> finding = detector.decide([0.5123] * 10)
    >>> finding.verdict.value, round(finding.shift_lower, 3)
    ('within', -0.111)
    """

    false_positive_rate: float = field(default=LOOK_LEVEL, kw_only=True)
    false_negative_rate: float = field(default=LOOK_LEVEL, kw_only=True)
    name: ClassVar[str] = "confidence-interval"
    by_limits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_spent("false_positive_rate", self.certificate.delta_upper)
        self._refuse_spent("false_negative_rate", self.certificate.delta_lower)

    @property
    def levels(self) -> tuple[float, float]:
        """What delta leaves of the rates: the paper's delta'_A and delta'_B."""
        return (
            self.false_positive_rate - self.certificate.delta_upper,
            self.false_negative_rate - self.certificate.delta_lower,
        )

    def _refuse_spent(self, name: str, delta: float) -> None:
        rate = self._store_level(name)
        if rate <= delta:
            problem = f"is already spent by the certificate's delta of {delta:g}"
            remedy = "choose a larger rate, or certify with a smaller delta"
            raise InvalidLevel(problem, name=name, value=rate, remedy=remedy)
