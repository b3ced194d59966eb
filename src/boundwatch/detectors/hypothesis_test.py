"""Algorithm 1: detection by hypothesis testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from numpy.typing import ArrayLike

from boundwatch.certificates.record import AuditRecord
from boundwatch.detectors.audited import decide_audited
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.strata import decide_strata
from boundwatch.detectors.verdicts import LOOK_LEVEL, Finding
from boundwatch.errors import InvalidSetting


@dataclass(frozen=True)
class HypothesisTest(FixedSampleDetector):
    """Declares a shift when a bound on its p-value is at most the chosen level (Theorem 2, Algorithm 1).

    **Guarantee**: ADVERSE is declared with probability at most `alpha_adverse` + the certificate's
    `delta_upper` in any world that is not worse, BENIGN with at most `alpha_benign` + `delta_lower` in any
    that is, over the draw of the certificate's costs and of the new ones; with a margin, `no_worse` is
    wrongly True with at most the latter, too. **Assumes**: i.i.d. episodes, one look at a number of them
    fixed in advance, an unchanged policy.

    Parameters
    ----------
    alpha_adverse, alpha_benign
        Levels of the two tests. The certificate's delta comes on top: see the finding's totals.
    tail
        ``"joint"`` judges the new costs together with those of a held-out certificate, for the same totals
        and with far more power; it is the default where there are such costs. The others compare with the
        certificate's limits: ``"hoeffding"`` (the paper's), ``"kl"``, ``"exact"`` (binary costs only, and
        then the default elsewhere) and ``"betting"`` (the default elsewhere).
    margin
        How much worse is acceptable, in expected cost; see the finding's `no_worse`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.22216, delta=0.01)
    >>> test = bw.HypothesisTest(certificate, tail="hoeffding")
    >>> finding = test.decide([0.5123] * 10)
    >>> finding.verdict.value, round(1 - finding.p_adverse, 3)
    ('within', 0.814)
    """

    alpha_adverse: float = field(default=LOOK_LEVEL, kw_only=True)
    alpha_benign: float = field(default=LOOK_LEVEL, kw_only=True)
    name: ClassVar[str] = "hypothesis-test"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store_level("alpha_adverse")
        self._store_level("alpha_benign")

    def decide(self, costs: ArrayLike | Mapping[str, ArrayLike] | AuditRecord) -> Finding:
        """Judge one dataset; of a certificate of the mean over tasks, all together and each by itself.

        The number of episodes must not depend on their costs. Of several tasks: `Episodes` that say which
        task each is of, or a mapping of tasks to costs; all certified tasks, and no other. Of episodes that
        a machine judged: `Audit.record` of their labels; the judge may be better or worse than in the lab.

        Examples
        --------
        >>> import boundwatch as bw
        >>> tasks = ["mug"] * 40 + ["bowl"] * 40
        >>> lab = bw.Episodes([0] * 38 + [1] * 2 + [0] * 30 + [1] * 10, strata=tasks, binary=True)
        >>> finding = bw.HypothesisTest(bw.Certificate.from_held_out(lab)).decide(
        ...     {"mug": [0] * 10 + [1] * 10, "bowl": [0] * 15 + [1] * 5}
        ... )
        >>> finding.verdict.value, finding.tasks["mug"].verdict.value, finding.tasks["bowl"].verdict.value
        ('adverse', 'adverse', 'within')
        """
        if isinstance(costs, AuditRecord):
            return decide_audited(self.certificate, costs, self.levels, self.margin, self.tail)
        if self.certificate.strata:
            return decide_strata(self.certificate, costs, self.levels, self.margin, self.tail)
        if isinstance(costs, Mapping):
            remedy = "give the costs as they are, or judge tasks by FamilyTest"
            raise InvalidSetting(
                "are of several tasks, and the certificate is not", name="costs", remedy=remedy
            )
        return super().decide(costs)

    @property
    def levels(self) -> tuple[float, float]:
        """The two levels as given."""
        return self.alpha_adverse, self.alpha_benign
