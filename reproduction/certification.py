"""Which certificate a figure's detectors compare with: our pointwise bound, or Theorem 1 as printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from boundwatch import Certificate
from boundwatch.readers import read_costs
from reproduction.artifacts import Cache
from reproduction.figure import BaseSettings

CertificateName = Literal["pointwise", "theorem-1"]
RECORDED, AUTHORS = "recorded-flights", "authors"
LABELS: dict[str, str] = {
    "pointwise": "pointwise",
    "theorem-1": "Theorem 1",
    RECORDED: "pointwise, recorded flights",
    AUTHORS: "the authors' own data",
}
"""What claims are judged with: each certificate of the model's policies, a policy of recorded flights, and
what the authors published."""


@dataclass(frozen=True)
class Certified(BaseSettings):
    """What every figure of a trained policy has among its settings."""

    certificate: CertificateName = field(default="pointwise", kw_only=True)
    """What the detectors compare with. Both are of the same policy, from the same training environments."""


@dataclass(frozen=True)
class Limits:
    """A certificate's limits, and the upper limit of each kind."""

    kind: CertificateName
    lower: float
    upper: float
    delta: float
    theorem_1: float
    pointwise: float

    @classmethod
    def of(cls, settings: Any, cache: Cache, **more: Any) -> Self:
        """Return those of settings with a policy, with more numbers of a figure's own."""
        certificate, bounds = certificate_of(settings, cache), bounds_of(settings.policy.load(cache))
        return cls(
            settings.certificate,
            certificate.lower,
            certificate.upper,
            certificate.delta,
            bounds["upper_pinsker"],
            bounds["upper_pointwise"],
            **more,
        )

    @property
    def note(self) -> str:
        """Say which bound a figure's policy is certified with, for its caption.

        Examples
        --------
        >>> print(Limits("pointwise", 0.25, 0.31, 0.01, theorem_1=0.334, pointwise=0.31).note)
        The certificate is our pointwise bound, [0.250, 0.310], not Theorem 1, whose upper limit would be
        0.334.
        >>> print(Limits("theorem-1", 0.23, 0.334, 0.01, theorem_1=0.334, pointwise=0.31).note)
        The certificate is Theorem 1 as printed, [0.230, 0.334]; our pointwise bound's upper limit is 0.310.
        """
        limits = f"[{self.lower:.3f}, {self.upper:.3f}]"
        if self.kind == "pointwise":
            other = f", not Theorem 1, whose upper limit would be {self.theorem_1:.3f}"
            return f"The certificate is our pointwise bound, {limits}{other}."
        other = f"our pointwise bound's upper limit is {self.pointwise:.3f}"
        return f"The certificate is Theorem 1 as printed, {limits}; {other}."


def bounds_of(trained: Any) -> dict[str, float]:
    """Return what a training says of its policy: cost, divergences, and the upper limit of each bound."""
    bounds: dict[str, float] = trained.summary.get("trained", trained.summary)
    return bounds


def certificate_of(settings: Any, cache: Cache) -> Certificate:
    """Return that of the settings' policy. Each kind is valid by itself; none is chosen by its value."""
    trained = settings.policy.load(cache)
    certificate: Certificate = trained.certificate
    pointwise = settings.certificate == "pointwise"
    return certificate if pointwise else theorem_1(trained, cache.folder(settings.policy))


def theorem_1(trained: Any, folder: Path) -> Certificate:
    """Certify a trained policy once more, by Theorem 1 as printed."""
    return Certificate.from_pac_bayes(
        read_costs(folder / "costs.csv").costs,
        trained.recipe.delta,
        renyi=bounds_of(trained)["renyi"],
        method="pinsker",
        binary=trained.certificate.binary,
    )
