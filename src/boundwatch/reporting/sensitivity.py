"""Numbers that pages show beside a finding: the interval of the new mean, and what would have been noticed.

Computed here by the detector itself, so that words and drawings only say them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Finding
from boundwatch.detectors.family import TaskFinding
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector

POWER = 0.9
"""The chance of ADVERSE from which on a shift counts as noticed."""


def new_interval(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the confidence interval of the new expected cost, at the rates that a finding states.

    That of a task is its own, at 5 % for each side: the rates of its finding are those of all tasks.
    """
    of_task = isinstance(finding, TaskFinding)
    if not of_task and finding.tail != "joint":
        return finding.shift_lower + certificate.upper, finding.shift_upper + certificate.lower
    above, below = (0.05, 0.05) if of_task else (finding.false_positive_rate, finding.false_negative_rate)
    tail = TAILS["exact" if certificate.binary else "betting"]
    return float(tail.lower(costs[None], above)[0]), 1 - float(tail.lower(1 - costs[None], below)[0])


@dataclass(frozen=True)
class Noticed:
    """What n episodes with costs of 0 and 1 would have shown."""

    n: int
    fewest: int
    """The fewest failures among them that are ADVERSE."""
    rate: float
    """The expected cost from which on ADVERSE is declared with a probability of `POWER`."""
    beyond: float
    """How much that is above the certified mean if it is judged jointly, else above the certified limit."""

    @classmethod
    def by(cls, detector: FixedSampleDetector, finding: Finding) -> Self | None:
        """Return what a detector would have noticed; None if even failures throughout are not ADVERSE."""
        n, fewest, certificate = finding.n, detector.fewest_adverse(finding.n), detector.certificate
        if fewest is None:
            return None
        rate = float(betaincinv(fewest, n - fewest + 1, POWER))  # P[Binomial(n, rate) >= fewest] = POWER
        certified = (certificate.mean_cost or 0.0) if finding.tail == "joint" else certificate.upper
        return cls(n, fewest, rate, rate - certified)

    def curve(self) -> list[tuple[float, float]]:
        """Return expected costs from 0 to 1, each with the probability of ADVERSE."""
        rates = np.linspace(0, 1, 101)
        return list(zip(rates.tolist(), bdtrc(self.fewest - 1, self.n, rates).tolist(), strict=True))
