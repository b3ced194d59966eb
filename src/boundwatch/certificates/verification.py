"""How a certificate's numbers follow from its costs, and whether the stored ones do."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch import bounds
from boundwatch._support.files import sha256_file
from boundwatch.certificates.provenance import costs_digest
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


def verify(
    certificate: Certificate, costs: ArrayLike | None, policy: str | os.PathLike[str] | None
) -> list[Check]:
    """Derive every number again; see `boundwatch.Certificate.verify`."""
    checks = [_check_delta(certificate)]
    if policy is not None:
        checks.append(
            _same_digest("policy_sha256", sha256_file(policy), certificate.provenance.policy_sha256)
        )
    values = None
    if costs is not None:
        if certificate.source == "external":
            raise ProvenanceMismatch(
                "costs: this certificate takes over a bound proved elsewhere; verify it without costs"
            )
        values = certificate.check_costs(costs)
        checks.append(_same_digest("costs_sha256", costs_digest(values), certificate.provenance.costs_sha256))
        checks.append(_agreement("n", values.size, _present(certificate.n)))
        checks.append(_agreement("mean_cost", float(values.mean()), _present(certificate.mean_cost)))
    if values is None and (certificate.source == "external" or certificate.method == "betting"):
        mean = certificate.lower if certificate.mean_cost is None else certificate.mean_cost
        ok = 0 <= certificate.lower <= mean <= certificate.upper <= 1
        reason = (
            "taken over from elsewhere" if certificate.source == "external" else "betting needs the costs"
        )
        return [
            *checks,
            Check("limits", ok, f"in order; not derived again: {reason}" if ok else "out of order"),
        ]
    subject = certificate
    if values is not None:
        subject = dataclasses.replace(certificate, n=values.size, mean_cost=float(values.mean()))
    lower, upper = derive_limits(subject, values)
    return [
        *checks,
        _agreement("lower", lower, certificate.lower),
        _agreement("upper", upper, certificate.upper),
    ]


def derive_limits(certificate: Certificate, costs: NDArray[np.float64] | None) -> tuple[float, float]:
    """Derive both limits: from the costs if given, else from what the certificate keeps of them."""
    if certificate.source == "external":
        return certificate.lower, certificate.upper
    if certificate.method == "betting":
        if costs is None:  # betting looks at every single cost, and a certificate is one page
            return certificate.lower, certificate.upper
        lower, upper = (
            bounds.betting_lower(costs, certificate.delta_lower),
            bounds.betting_upper(costs, certificate.delta_upper),
        )
        return float(lower), float(upper)
    n, mean = _present(certificate.n), _present(certificate.mean_cost)
    low, high = certificate.delta_lower, certificate.delta_upper
    match certificate.source, certificate.method:
        case "pac-bayes", method:
            renyi = _present(certificate.renyi)
            pair: tuple[Any, Any] = (
                bounds.pac_bayes_lower(mean, n, low, renyi, method),
                bounds.pac_bayes_upper(mean, n, high, renyi, method),
            )
        case "pointwise", _:
            ratio = _present(certificate.log_ratio)
            pair = (
                bounds.pointwise_lower(mean, n, low, ratio),
                bounds.pointwise_upper(mean, n, high, ratio),
            )
        case _, "exact":
            failures = round(mean * n)
            pair = (
                bounds.clopper_pearson_lower(failures, n, low),
                bounds.clopper_pearson_upper(failures, n, high),
            )
        case _, "kl":
            pair = bounds.chernoff_lower(mean, n, low), bounds.chernoff_upper(mean, n, high)
        case _:
            pair = bounds.hoeffding_lower(mean, n, low), bounds.hoeffding_upper(mean, n, high)
    return max(float(pair[0]), 0.0), min(float(pair[1]), 1.0)


def _check_delta(certificate: Certificate) -> Check:
    """Held-out limits fail apart from each other; those of PAC-Bayes fail on one event."""
    if certificate.source == "held-out":
        return _agreement("delta", certificate.delta_upper + certificate.delta_lower, certificate.delta)
    larger = max(certificate.delta_upper, certificate.delta_lower)
    if certificate.source == "external" and larger <= certificate.delta:
        return Check("delta", True, f"{certificate.delta:.10g}")
    return _agreement("delta", larger, certificate.delta)


def _agreement(name: str, derived: float, stored: float) -> Check:
    ok = abs(derived - stored) <= _TOLERANCE
    return Check(name, ok, f"{stored:.10g}" if ok else f"{stored:.10g} is stored, {derived:.10g} follows")


def _same_digest(name: str, digest: str, stored: str | None) -> Check:
    if stored is None:
        return Check(name, False, f"{digest}, but the certificate keeps none to compare with")
    return Check(name, digest == stored, digest if digest == stored else f"{digest}, not as certified")


def _present(value: float | None) -> Any:
    if value is None:  # the schema does not let this through; a certificate built by hand might
        raise CertificateError("the certificate lacks a number that its limits follow from; certify again")
    return value
