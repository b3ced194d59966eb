"""Numbers that pages show beside a finding: the interval of the new mean, and what would have been noticed.

Computed here by the detector itself, so that words and drawings only say them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, betaincinv

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.family import TaskFinding
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector

POWER = 0.9
"""The chance of ADVERSE from which on a shift counts as noticed."""


def new_interval(certificate: Certificate, finding: Finding, costs: ArrayLike) -> tuple[float, float]:
    """Return the confidence interval of the new expected cost, at the rates that a finding states.

    That of a task is its own, at 5 % for each side: the rates of its finding are those of all tasks.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> costs = [0.5] * 50
    >>> finding = bw.HypothesisTest(certificate, tail="hoeffding").decide(costs)
    >>> [round(end, 3) for end in new_interval(certificate, finding, costs)]
    [0.327, 0.673]
    """
    of_task = isinstance(finding, TaskFinding)
    if not of_task and finding.tail != "joint":
        return finding.shift_lower + certificate.upper, finding.shift_upper + certificate.lower
    values = certificate.check_costs(costs)[None]
    above, below = (0.05, 0.05) if of_task else (finding.false_positive_rate, finding.false_negative_rate)
    tail = TAILS["exact" if certificate.binary else "betting"]
    return float(tail.lower(values, above)[0]), 1 - float(tail.lower(1 - values, below)[0])


def could_alarm(detector: FixedSampleDetector, n: int, failures: int | None = None) -> bool:
    """Return whether n costs are ADVERSE if so many of them, or all, are 1 and the others 0."""
    costs = (np.arange(n) < (n if failures is None else failures)).astype(float)
    # As one of many: unlike a single finding, these leave out the limits until somebody asks for them.
    return bool(detector.decide_many(costs[None]).verdict[0] == Verdict.ADVERSE)


@dataclass(frozen=True)
class Noticed:
    """What n episodes with costs of 0 and 1 would have shown, if anything.

    Attributes
    ----------
    n, fewest
        The episodes, and the fewest failures among them that are ADVERSE.
    rate
        The expected cost from which on ADVERSE is declared with a probability of `POWER`.
    beyond
        How much that is above the certified mean if it is judged jointly, else above the certified limit.
    joint
        Whether the new costs are judged jointly with the certificate's.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> Noticed.by(bw.HypothesisTest(certificate), 12).fewest
    6
    >>> Noticed.by(bw.HypothesisTest(certificate), 1) is None
    True
    """

    n: int
    fewest: int
    rate: float
    beyond: float
    joint: bool

    @classmethod
    def by(cls, detector: FixedSampleDetector, n: int) -> Self | None:
        """Return what a detector would have noticed; None if even failures throughout are not ADVERSE."""
        if not could_alarm(detector, n):
            return None
        # More failures are never less evidence, so the answer can be found by halving.
        fewest = bisect_left(range(n + 1), True, key=lambda failures: could_alarm(detector, n, failures))
        rate = float(betaincinv(fewest, n - fewest + 1, POWER))  # P[Binomial(n, rate) >= fewest] = POWER
        joint, certificate = detector.tail_name == "joint", detector.certificate
        certified = (certificate.mean_cost or 0.0) if joint else certificate.upper
        return cls(n, fewest, rate, rate - certified, joint)

    def chances(self, rates: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of ADVERSE at each expected cost."""
        return np.asarray(bdtrc(self.fewest - 1, self.n, rates), dtype=np.float64)
