"""Which certificate a figure's detectors compare with: our pointwise bound, or Theorem 1 as printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from boundwatch import Certificate
from boundwatch.episodes import read_costs
from reproduction.artifacts import Cache, Policy
from reproduction.figure import Results

CertificateName = Literal["pointwise", "theorem-1"]
RECORDED = "recorded-flights"
LABELS: dict[str, str] = {
    "pointwise": "pointwise",
    "theorem-1": "Theorem 1",
    RECORDED: "pointwise, recorded flights",
}
"""What claims are judged with: each certificate of the model's policies, and a policy of recorded flights."""


@dataclass(frozen=True)
class Certified:
    """What every figure of a trained policy has among its settings."""

    certificate: CertificateName = field(default="pointwise", kw_only=True)
    """What the detectors compare with. Both are of the same policy, from the same training environments."""


def bounds_of(trained: Any) -> dict[str, float]:
    """Return what a training says of its policy: cost, divergences, and the upper limit of each bound."""
    bounds: dict[str, float] = trained.summary.get("trained", trained.summary)
    return bounds


def certificate_of(kind: CertificateName, policy: Policy, cache: Cache) -> Certificate:
    """Return the certificate of a policy. Each kind is valid by itself; none is chosen by its value."""
    trained = policy.load(cache)
    certificate: Certificate = trained.certificate
    return certificate if kind == "pointwise" else theorem_1(trained, cache.folder(policy))


def theorem_1(trained: Any, folder: Path) -> Certificate:
    """Certify a trained policy once more, by Theorem 1 as printed."""
    return Certificate.from_pac_bayes(
        read_costs(folder / "costs.csv").costs,
        trained.recipe.delta,
        renyi=bounds_of(trained)["renyi"],
        method="pinsker",
        binary=trained.certificate.binary,
    )


def limits_of(kind: CertificateName, policy: Policy, cache: Cache) -> Results:
    """Return a certificate's limits, for a figure's results, and the upper limit of the other kind."""
    certificate, bounds = certificate_of(kind, policy, cache), bounds_of(policy.load(cache))
    return {
        "kind": kind,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "delta": certificate.delta,
        "theorem_1": bounds["upper_pinsker"],
        "pointwise": bounds["upper_pointwise"],
    }


def certificate_note(interval: Results) -> str:
    """Say which bound a figure's policy is certified with, for its caption.

    Examples
    --------
    >>> print(certificate_note({"kind": "pointwise", "lower": 0.25, "upper": 0.31, "theorem_1": 0.334}))
    The certificate is our pointwise bound, [0.250, 0.310], not Theorem 1, whose upper limit would be 0.334.
    >>> print(certificate_note({"kind": "theorem-1", "lower": 0.23, "upper": 0.334, "pointwise": 0.31}))
    The certificate is Theorem 1 as printed, [0.230, 0.334]; our pointwise bound's upper limit is 0.310.
    """
    limits = f"[{interval['lower']:.3f}, {interval['upper']:.3f}]"
    if interval["kind"] == "pointwise":
        other = f", not Theorem 1, whose upper limit would be {interval['theorem_1']:.3f}"
        return f"The certificate is our pointwise bound, {limits}{other}."
    other = f"our pointwise bound's upper limit is {interval['pointwise']:.3f}"
    return f"The certificate is Theorem 1 as printed, {limits}; {other}."
