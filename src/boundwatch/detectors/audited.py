"""One look at new episodes that a machine judged and people audited: labels decide, whatever the judge."""

from __future__ import annotations

import numpy as np

from boundwatch.bounds.audit import (
    GRID,
    Audited,
    RateCurve,
    audit_p_value,
    difference_lower,
    difference_p_value,
)
from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import AuditRecord
from boundwatch.detectors.joint import Pair, counts_of, joint_levels, reference_of
from boundwatch.detectors.verdicts import EvidenceName, Finding, TailName, Verdict, refuse_tasks
from boundwatch.errors import InvalidSetting


def decide_audited(
    certificate: Certificate, audit: AuditRecord, alphas: Pair, margin: float | None, tail: TailName | None
) -> Finding:
    """Judge an audit jointly with the trials or the audit behind a certificate, else against its limits.

    **Guarantee** and **Assumes**: those of `boundwatch.HypothesisTest`, over the draw of the labels, too.
    """
    refuse_tasks(certificate)
    if certificate.shares_of is not None or not (certificate.binary or certificate.source == "external"):
        raise InvalidSetting("is not of single trials that fail or not", name="certificate")
    if tail not in (None, "joint", "exact"):
        raise InvalidSetting("does not go with an audit", name="tail", value=tail, remedy="leave it out")
    totals, counts = joint_levels(certificate, alphas, 1), audit.failures
    new, lab = RateCurve.of_audit(counts, min(alphas)), _reference(certificate, min(alphas))
    known: EvidenceName = "exact"
    if lab is not None and tail != "exact" and max(totals) < 1:
        known = "joint"
        good, better = lab.mirrored(), new.mirrored()
        p_values = [difference_p_value(lab, new), difference_p_value(good, better)]
        if certificate.audit is None:  # sharper: no rate of the lab is refuted by itself
            p_values = [_beside_lab(certificate, counts, side, min(alphas)) for side in (0, 1)]
        shift = difference_lower(lab, new, totals[0]), -difference_lower(good, better, totals[1])
        p_values += [] if margin is None else [difference_p_value(good, better, -margin)]
        levels = totals
    else:
        lower, upper, levels = certificate.lower, certificate.upper, alphas
        p_values = [float(new.at_most[np.searchsorted(GRID, upper)]), _at_least(new, lower)]
        shift = new.lower(alphas[0]) - upper, new.upper(alphas[1]) - lower
        p_values += [] if margin is None else [_at_least(new, lower + margin)]
    adverse, benign, *beyond = [p <= levels[min(side, 1)] for side, p in enumerate(p_values)]
    return Finding(
        verdict=Verdict.ADVERSE if adverse else Verdict.BENIGN if benign else Verdict.WITHIN,
        n=sum(counts.judged),
        labels=audit.n,
        mean_cost=audit.mean,
        p_adverse=p_values[0],
        p_benign=p_values[1],
        shift_lower=shift[0],
        shift_upper=shift[1],
        false_positive_rate=min(totals[0], 1.0),
        false_negative_rate=min(totals[1], 1.0),
        detector="hypothesis-test",
        tail=known,
        binary=True,
        margin=margin,
        no_worse=beyond[0] if beyond else None,
    )


def _reference(certificate: Certificate, level: float) -> RateCurve | None:
    """Return what was seen in the lab, if the certificate keeps it."""
    if certificate.audit is not None and certificate.audit.counts is not None:
        return RateCurve.of_audit(certificate.audit.counts, level)
    if certificate.binary and reference_of(certificate) is not None:
        return RateCurve.of_counts(*counts_of(certificate, 0))
    return None


def _beside_lab(certificate: Certificate, counts: Audited, side: int, level: float) -> float:
    """Return the p-value of "no more failures than in the lab" or, of the other side, successes."""
    n, seen = counts_of(certificate, side)
    judged = sum(counts.judged)
    audited = counts.mirrored() if side else counts
    return audit_p_value(audited, level, n, lambda k: rate_difference_p_value(n, seen, judged, k))


def _at_least(curve: RateCurve, rate: float) -> float:
    """Return the p-value of "the rate is at least this"."""
    return float(curve.at_least[np.searchsorted(GRID, rate, "right") - 1]) if rate <= 1 else 0.0
