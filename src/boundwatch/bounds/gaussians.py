"""Divergences between diagonal Gaussians, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def renyi_divergence(
    mean: ArrayLike, variance: ArrayLike, prior_mean: ArrayLike, prior_variance: ArrayLike
) -> float:
    """Return the Rényi divergence of order 2 of N(mean, diag(variance)) from the prior Gaussian.

    D2(P || P0) = (μ-μ0)ᵀ Σ2⁻¹ (μ-μ0) - ½ ln(|Σ2| |Σ| / |Σ0|²) with Σ2 = 2Σ0 - Σ. The paper prints Σ2 in
    place of its inverse (docs/errata.md, item 1). It is ``inf`` where a variance reaches twice the prior's.
    Arguments broadcast.

    Examples
    --------
    >>> round(renyi_divergence([0.8], [1.2], [0.0], [1.0]), 6)
    0.820411
    >>> renyi_divergence([0.0], [2.0], [0.0], [1.0])
    inf
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

    `renyi_divergence` is never smaller.

    Examples
    --------
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

    Examples
    --------
    >>> log_density_ratio([1.0], [1.0], [1.0], [0.0], [1.0])
    0.5
    """
    w, m, v, m0, v0 = _broadcast(sample, mean, variance, prior_mean, prior_variance)
    return float(np.sum(0.5 * ((w - m0) ** 2 / v0 - (w - m) ** 2 / v - np.log(v / v0))))


def _broadcast(*values: ArrayLike) -> tuple[Array, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))
