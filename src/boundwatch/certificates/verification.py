"""Whether a certificate's numbers follow from each other, and from its costs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.files import sha256_file
from boundwatch.certificates import limits
from boundwatch.certificates.provenance import costs_digest
from boundwatch.certificates.record import CostRecord
from boundwatch.errors import CertificateError, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.certificates.certificate import Certificate

# Another machine's logarithm may differ in the last digits; a number that was altered differs by more.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Check:
    """One thing that `Certificate.verify` looked at."""

    name: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        return f"{self.name} {'ok' if self.ok else 'FAILED'}: {self.detail}"


def verify(
    certificate: Certificate, costs: ArrayLike | None, policy: str | os.PathLike[str] | None
) -> list[Check]:
    """Derive every number again; see `boundwatch.Certificate.verify`."""
    checks, facts = _examine(certificate, costs, policy)
    return checks if facts is None else [*checks, *_same_limits(certificate, limits.derive(**facts))]


def verify_all(certificates: Sequence[Certificate]) -> list[list[Check]]:
    """Derive every number of many certificates again, without their costs."""
    examined = [_examine(certificate, None, None) for certificate in certificates]
    derived = iter(limits.derive_all([facts for _, facts in examined if facts is not None]))
    return [
        checks if facts is None else [*checks, *_same_limits(certificate, next(derived))]
        for certificate, (checks, facts) in zip(certificates, examined, strict=True)
    ]


def _examine(
    certificate: Certificate, costs: ArrayLike | None, policy: str | os.PathLike[str] | None
) -> tuple[list[Check], dict[str, Any] | None]:
    """Check all but the limits; return also what these are derived from, None if they cannot be."""
    checks = [_check_delta(certificate)]
    if policy is not None:
        checks.append(
            _same_digest("policy_sha256", sha256_file(policy), certificate.provenance.policy_sha256)
        )
    if certificate.source == "external":
        if costs is not None:
            raise ProvenanceMismatch(
                "costs: this certificate uses a bound proved elsewhere; verify it without costs"
            )
        return [*checks, _in_order(certificate, "taken over from elsewhere")], None
    n, mean, record = certificate.n, certificate.mean_cost, certificate.record
    if costs is not None:
        values = certificate.check_costs(costs)
        if certificate.method == "anytime" and certificate.n is not None and values.size > certificate.n:
            # A campaign stops in the middle of what may be a longer file.
            checks.append(Check("stopped", True, f"after {certificate.n} of these {values.size} costs"))
            values = values[: certificate.n]
        checks.append(_same_digest("costs_sha256", costs_digest(values), certificate.provenance.costs_sha256))
        n, mean = values.size, float(values.mean())
        checks += [_agreement("n", n, certificate.n), _agreement("mean_cost", mean, certificate.mean_cost)]
        if record is not None:
            checks.append(_same_record(CostRecord.of(values), record))
            record = CostRecord.of(values)
    elif record is not None:
        checks.append(_matching_record(record, n, mean or 0.0))
    facts = {name: getattr(certificate, name) for name in limits.FACTS}
    return checks, facts | {"n": n, "mean_cost": mean, "record": record}


def _same_limits(certificate: Certificate, derived: tuple[float, float]) -> list[Check]:
    return [
        _agreement(name, limit, getattr(certificate, name))
        for name, limit in zip(("lower", "upper"), derived, strict=True)
    ]


def refuse_altered(checks: Sequence[Check]) -> None:
    """Raise `CertificateError` if anything does not follow."""
    if failed := [f"{check.name}: {check.detail}" for check in checks if not check.ok]:
        raise CertificateError(f"{', '.join(failed)}; the file was altered; certify again from the costs")


def on_trust(certificate: Certificate) -> str:
    """Return which numbers nothing in the certificate lets one derive again; nothing if there are none."""
    if certificate.source == "external":
        return "both limits, which were proved elsewhere"
    if certificate.renyi is not None:
        return "renyi, from which they follow"
    if certificate.log_ratio is not None:
        return "log_ratio, from which they follow"
    return ""


def _in_order(certificate: Certificate, reason: str) -> Check:
    mean = certificate.lower if certificate.mean_cost is None else certificate.mean_cost
    ok = 0 <= certificate.lower <= mean <= certificate.upper <= 1
    return Check("limits", ok, f"in order; not derived again: {reason}" if ok else "out of order")


def _check_delta(certificate: Certificate) -> Check:
    """Held-out limits fail apart from each other; those of PAC-Bayes fail on one event."""
    if certificate.source == "held-out":
        return _agreement("delta", certificate.delta_upper + certificate.delta_lower, certificate.delta)
    larger = max(certificate.delta_upper, certificate.delta_lower)
    if certificate.source == "external" and larger <= certificate.delta:
        return Check("delta", True, f"{certificate.delta:.10g}")
    return _agreement("delta", larger, certificate.delta)


def _agreement(name: str, derived: float, stored: float | None) -> Check:
    if stored is None:  # the schema does not let this through; a certificate built by hand might
        return Check(name, False, f"{derived:.10g}, but the certificate keeps none to compare with")
    ok = abs(derived - stored) <= _TOLERANCE
    return Check(name, ok, f"{stored:.10g}" if ok else f"{stored:.10g} is stored, {derived:.10g} follows")


def _matching_record(record: CostRecord, n: int | None, mean: float) -> Check:
    if record.n == n and abs(record.mean - mean) <= _TOLERANCE:
        return Check("record", True, f"{len(record.values)} values")
    fault = f"{record.n} costs of mean {record.mean:.10g} do not match n and mean_cost"
    return Check("record", False, fault)


def _same_record(derived: CostRecord, stored: CostRecord) -> Check:
    ok = len(derived.values) == len(stored.values) and all(
        np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)
        for a, b in zip(derived.arrays(), stored.arrays(), strict=True)
    )
    return Check("record", ok, f"{len(stored.values)} values" if ok else "not of these costs")


def _same_digest(name: str, digest: str, stored: str | None) -> Check:
    if stored is None:
        return Check(name, False, f"{digest}, but the certificate keeps none to compare with")
    return Check(name, digest == stored, digest if digest == stored else f"{digest}, not as certified")
