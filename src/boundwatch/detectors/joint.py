"""Joint evidence: the new costs weighed together with those of the certificate, not against its limits.

That needs far fewer new episodes. Costs of 0 and 1 alarm at the exact line of
`boundwatch.bounds.joint_region`, others when the e-value of `boundwatch.bounds.joint_evidence` reaches one
over the level.
"""

from __future__ import annotations

import math
from functools import lru_cache

from boundwatch.bounds.joint_evidence import JointSide, Reference, references_of, sides_against
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS, SMALLEST_TOTAL
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import CostRecord

Pair = tuple[float, float]


def joint_levels(certificate: Certificate, alphas: Pair, sharing: int) -> Pair:
    """Return what each of the streams that share a certificate may spend: of its delta an equal part.

    Against the limits they all fail together, so delta is spent once. Judged jointly each stream fails by
    itself, and spends what it may.
    """
    return alphas[0] + certificate.delta_upper / sharing, alphas[1] + certificate.delta_lower / sharing


def is_joint(certificate: Certificate, alphas: Pair, sharing: int = 1) -> bool:
    """Return whether new costs are judged jointly with the certificate's, so that no delta comes on top.

    That takes totals below 1 and, for the exact lines of costs of 0 and 1, of at least a millionth.
    `sharing` is the number of streams between which the certificate's delta is divided.
    """
    levels = joint_levels(certificate, alphas, sharing)
    smallest = SMALLEST_TOTAL if certificate.binary else 0.0
    return reference_of(certificate) is not None and smallest <= min(levels) and max(levels) < 1


def reference_of(certificate: Certificate) -> CostRecord | None:
    """Return the costs behind a certificate, or None if it cannot be judged jointly with new ones.

    That takes a fixed number of held-out episodes and a record of their costs, and not so many that the
    certificate's limits say as much.
    """
    if certificate.source != "held-out" or certificate.method in ("anytime", "rounds", "predicted-anytime"):
        return None
    n, mean = certificate.n, certificate.mean_cost
    if n is None or mean is None or n > MOST_REFERENCE_TRIALS:
        return None
    if not certificate.binary:
        return certificate.record
    return CostRecord.of_failures(n, round(n * mean))


def counts_of(certificate: Certificate, side: int) -> tuple[int, int]:
    """Return the trials of a certificate, and its failures or (of the other side) its successes."""
    n, mean = certificate.n or 0, certificate.mean_cost or 0.0
    return n, n - round(n * mean) if side else round(n * mean)


@lru_cache(maxsize=64)  # 0.1 s, and the streams of a fleet share a certificate
def _references(record: CostRecord) -> tuple[Reference, Reference]:
    return references_of(*record.arrays())


def sides_of(certificate: Certificate, levels: Pair, margin: float | None) -> list[JointSide]:
    """Return both sides of a certificate that can be judged jointly and, with a margin, the third."""
    record = reference_of(certificate)
    assert record is not None  # noqa: S101  (asked before, where joint evidence was chosen)
    return sides_against(_references(record), levels, margin, binary=certificate.binary)


def joint_p_value(log_e_value: float, level: float, *, reached: bool) -> float:
    """Return a p-value from an e-value and an alarm that is rarer than `level` but does not follow from it.

    A p-value of a or less means an e-value of 1/a or more if a is below the level, else an alarm
    or an e-value of 1/(a - level): under the hypothesis either has a probability of at most a.
    """
    inverse = math.exp(-max(log_e_value, 0.0))
    return min(level, inverse) if reached else min(level + inverse, 1.0)


def cost_p_value(log_e_value: float, level: float, *, reached: bool) -> float:
    """Return 1 over an e-value, or the level once an e-value has reached it."""
    return min(math.exp(-max(log_e_value, 0.0)), level if reached else 1.0)
