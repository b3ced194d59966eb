"""The advertised error rates of a certificate's detectors, simulated where they are hardest to keep."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonVerdict
from boundwatch.detectors import Verdict
from boundwatch.detectors.verdicts import LOOK_LEVEL
from boundwatch.errors import InvalidSetting
from boundwatch.selftest.claims import claims_given_limits, claims_over_labs
from boundwatch.selftest.designs import claims_of_designs
from boundwatch.selftest.exact import claims_of_outcomes
from boundwatch.selftest.worlds import Claim, Levels

RUNS = 6000
"""Enough to notice an error rate of one and a half times any level of 0.04 or more, nearly always."""
# How unlikely a count must be under the promise before the promise is called broken. Some 200 promises are
# tried, so a false cry has a chance of 2e-4.
UNBELIEVABLE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A promised rate and what the simulation says about it.

    Attributes
    ----------
    detector, verdict, world
        Who promises not to declare what, in which world; `world` has no such shift.
    promised
        The largest probability of declaring it: if the certificate holds, or, where `world` says that the
        lab is drawn, too, over the draw of both.
    rate, low, high, runs
        The simulated rate with its 95 % interval, and of how many datasets or streams.
    sees, kept
        The smallest true rate that would be called broken with 99 % probability. Not kept: a count this high
        has a chance below one in a million under the promise.
    """

    detector: str
    verdict: Verdict | ComparisonVerdict
    world: str
    promised: float
    rate: float
    low: float
    high: float
    runs: int
    sees: float
    kept: bool

    def __str__(self) -> str:
        simulated = f"simulated {self.rate:.4g}, promised at most {self.promised:.4g}"
        outcome = "kept" if self.kept else "BROKEN"
        return f"{self.detector}, wrong {self.verdict.name} ({self.world}): {simulated}, {outcome}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self) | {"verdict": self.verdict.value}


def simulate_promises(
    certificate: Certificate,
    *,
    alpha_adverse: float = LOOK_LEVEL,
    alpha_benign: float = LOOK_LEVEL,
    runs: int = RUNS,
    seed: int = 0,
) -> list[Promise]:
    """Simulate how often each detector errs where its promise is hardest to keep.

    A wrong ADVERSE is counted in worlds with the largest mean that is still certified, a wrong BENIGN in
    those with the smallest, and so is every limit on the shift that excludes it; there the limits are true,
    and the certificate's delta comes on top. Of a held-out certificate the trials are drawn again as well:
    there the totals are tried, delta included. Comparisons do not depend on the certificate.

    Parameters
    ----------
    certificate
        The certificate whose detectors are tried.
    alpha_adverse, alpha_benign
        Levels of the two sides; comparisons have that of ADVERSE.
    runs, seed
        Datasets or streams for each promise, and the seed of their draw.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> all(promise.kept for promise in simulate_promises(certificate, runs=10))
    True
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InvalidSetting(f"runs = {runs!r} is not a whole number of at least 1")
    rng = np.random.default_rng(seed)
    levels = {Verdict.ADVERSE: alpha_adverse, Verdict.BENIGN: alpha_benign}
    return [_judge(claim, rng, runs) for claim in all_claims(certificate, levels)]


def all_claims(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return all promises of the detectors of a certificate, and those that need none."""
    names = ("lower", "upper", "delta", "delta_upper", "delta_lower", "binary")
    limits = Certificate.from_bounds(**{name: getattr(certificate, name) for name in names})
    yield from claims_given_limits(limits, levels)
    if certificate.source == "held-out" and not certificate.strata:
        yield from claims_over_labs(certificate, levels)
    yield from claims_of_designs(certificate, levels)
    yield from claims_of_outcomes(limits, certificate, levels)


def _judge(claim: Claim, rng: np.random.Generator, runs: int) -> Promise:
    runs = math.ceil(runs * claim.scale)
    hits = claim.count(rng, runs)
    return Promise(
        detector=claim.detector,
        verdict=claim.verdict,
        world=claim.world,
        promised=claim.promised,
        rate=hits / runs,
        low=float(bounds.clopper_pearson_lower(hits, runs, 0.025)),
        high=float(bounds.clopper_pearson_upper(hits, runs, 0.025)),
        runs=runs,
        sees=visible_rate(claim.promised, runs),
        kept=bool(binom.sf(hits - 1, runs, claim.promised) >= UNBELIEVABLE),
    )


def visible_rate(promised: float, runs: int) -> float:
    """Return the smallest true rate that so many runs call broken with a probability of 99 %."""
    needed = int(binom.isf(UNBELIEVABLE, runs, promised)) + 1
    # P[at least `needed` of runs] = 0.99 is an incomplete beta function of the rate.
    return 1.0 if needed > runs else float(betaincinv(needed, runs - needed + 1, 0.99))
