"""Bounds on the expected cost of one policy drawn from a trained posterior.

Both complexities bound kl(C_S || C_D), the relative entropy from the training cost to the expected cost,
with probability 1 - delta over the training environments S and the policy drawn. One such event gives the
upper and the lower bound together, so one delta pays for both sides (docs/errata.md, item 9).

**Guarantee** of each limit: with probability at least 1 - delta over S and the policy drawn, both limits on
its expected cost C_D hold together. **Assumes** everywhere in this file: i.i.d. training environments, costs
in [0, 1], a prior chosen before the environments were seen, a deterministic training algorithm, and m >= 8
environments.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.validation import check_choice
from boundwatch.bounds.kl import kl_inverse_lower, kl_inverse_upper
from boundwatch.errors import InvalidSetting

Variant = Literal["kl", "pinsker"]
"""How Theorem 1 is solved for the expected cost."""
Bound = Literal["pointwise", "kl", "pinsker"]
"""What training minimizes and certifies: the pointwise bound, or a `Variant` of Theorem 1."""
MIN_ENVIRONMENTS = 8
"""Maurer's lemma, E exp(m kl) <= 2 sqrt(m), needs this many; every bound here rests on it."""


def renyi_divergence(
    mean: ArrayLike, variance: ArrayLike, prior_mean: ArrayLike, prior_variance: ArrayLike
) -> float:
    """Return the Rényi divergence of order 2 of N(mean, diag(variance)) from the prior Gaussian.

    D2(P || P0) = (μ-μ0)ᵀ Σ2⁻¹ (μ-μ0) - ½ ln(|Σ2| |Σ| / |Σ0|²) with Σ2 = 2Σ0 - Σ. The paper prints Σ2 in
    place of its inverse (docs/errata.md, item 1). It is ``inf`` where a variance reaches twice the prior's.

    >>> round(renyi_divergence([0.8], [1.2], [0.0], [1.0]), 6)
    0.820411
    """
    m, v, m0, v0 = _broadcast(mean, variance, prior_mean, prior_variance)
    if np.any(v >= 2 * v0):
        return float("inf")
    # With r = s/s0 - 1, |Σ2||Σ|/|Σ0|² is the product of 1 - r²: log1p keeps what 10^6 dimensions add up.
    ratio = (v - v0) / v0
    return float(np.sum((m - m0) ** 2 / (2 * v0 - v) - 0.5 * np.log1p(-(ratio**2))))


def kl_divergence(
    mean: ArrayLike, variance: ArrayLike, prior_mean: ArrayLike, prior_variance: ArrayLike
) -> float:
    """Return the Kullback-Leibler divergence of N(mean, diag(variance)) from the prior Gaussian.

    >>> kl_divergence([1.0], [1.0], [0.0], [1.0])
    0.5
    """
    m, v, m0, v0 = _broadcast(mean, variance, prior_mean, prior_variance)
    ratio = (v - v0) / v0
    return float(np.sum(0.5 * ((m - m0) ** 2 / v0 + (ratio - np.log1p(ratio)))))


def log_density_ratio(
    sample: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    prior_mean: ArrayLike,
    prior_variance: ArrayLike,
) -> float:
    """Return ln P(w)/P0(w) for the parameters w that were drawn, the price of the pointwise bound.

    >>> log_density_ratio([1.0], [1.0], [1.0], [0.0], [1.0])
    0.5
    """
    w, m, v, m0, v0 = _broadcast(sample, mean, variance, prior_mean, prior_variance)
    return float(np.sum(0.5 * ((w - m0) ** 2 / v0 - (w - m) ** 2 / v - np.log(v / v0))))


def _broadcast(*values: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))


def pac_bayes_complexity(m: int, delta: float, renyi: float) -> float:
    """Return c of Theorem 1 before Pinsker: kl(C_S || C_D) <= c = (D2 + ln(2√m / (δ/2)³)) / m.

    `renyi` is D2(P || P0), see `renyi_divergence`.

    >>> round(pac_bayes_complexity(10_000, 0.01, 0.0), 6)
    0.002119
    """
    _require_environments(m)
    return (renyi + math.log(2 * math.sqrt(m)) - 3 * math.log(delta / 2)) / m


def pointwise_complexity(m: int, delta: float, log_ratio: float) -> float:
    """Return c of the pointwise bound: kl(C_S || C_D) <= c = (ln P(w)/P0(w) + ln(2√m / δ)) / m.

    Rivasplata, Kuzborskij, Szepesvári and Shawe-Taylor (2020), Theorem 1(i): Markov's inequality on
    E_S E_{w~P0} exp(m kl) <= 2√m, after a change of measure from P to P0 for the very w that was drawn.
    `log_ratio` is ln P(w)/P0(w), see `log_density_ratio`.

    >>> round(pointwise_complexity(10_000, 0.01, 0.0), 6)
    0.00099
    """
    _require_environments(m)
    # A policy that the prior finds much likelier than the posterior does could push this below 0;
    # 0 is then still a valid, larger budget.
    return max((log_ratio + math.log(2 * math.sqrt(m) / delta)) / m, 0.0)


def pac_bayes_upper(mean: float, m: int, delta: float, renyi: float, method: Variant = "kl") -> float:
    """Return Theorem 1's upper bound on the expected cost of the policy drawn.

    `mean` is its mean cost C_S on the m training environments. The method ``"kl"`` inverts the relative
    entropy; ``"pinsker"`` relaxes it to C_S + √R as the paper prints.

    >>> [round(pac_bayes_upper(0.3, 10_000, 0.01, 0.0, method), 4) for method in ("kl", "pinsker")]
    [0.3304, 0.3326]
    """
    check_choice(method, "method", get_args(Variant))
    c = pac_bayes_complexity(m, delta, renyi)
    return min(mean + math.sqrt(c / 2), 1.0) if method == "pinsker" else float(kl_inverse_upper(mean, c))


def pac_bayes_lower(mean: float, m: int, delta: float, renyi: float, method: Variant = "kl") -> float:
    """Return Corollary 1's lower bound, on the same event as `pac_bayes_upper`."""
    check_choice(method, "method", get_args(Variant))
    c = pac_bayes_complexity(m, delta, renyi)
    return max(mean - math.sqrt(c / 2), 0.0) if method == "pinsker" else float(kl_inverse_lower(mean, c))


def pointwise_upper(mean: float, m: int, delta: float, log_ratio: float) -> float:
    """Return the pointwise upper bound on the expected cost of the policy drawn.

    >>> [round(of(0.3, 10_000, 0.01, 0.0), 4) for of in (pointwise_lower, pointwise_upper)]
    [0.2799, 0.3206]
    """
    return float(kl_inverse_upper(mean, pointwise_complexity(m, delta, log_ratio)))


def pointwise_lower(mean: float, m: int, delta: float, log_ratio: float) -> float:
    """Return the pointwise lower bound, on the same event as `pointwise_upper`."""
    return float(kl_inverse_lower(mean, pointwise_complexity(m, delta, log_ratio)))


def _require_environments(m: int) -> None:
    if m < MIN_ENVIRONMENTS:
        raise InvalidSetting(
            f"m = {m} training environments are too few: the theorem needs at least {MIN_ENVIRONMENTS}; "
            "use a held-out certificate, or more environments."
        )
