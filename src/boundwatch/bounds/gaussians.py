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
    place of its inverse (docs/errata.md, item 1).

    Parameters
    ----------
    mean, variance
        Mean and variances of the posterior P.
    prior_mean, prior_variance
        Mean and variances of the prior P0; all four broadcast.

    Returns
    -------
    The divergence, >= 0; ``inf`` where a variance reaches twice the prior's.

    Examples
    --------
    >>> round(renyi_divergence([0.8], [1.2], [0.0], [1.0]), 6)
    0.820411
    >>> renyi_divergence([0.0], [2.0], [0.0], [1.0])
    inf
    """
    difference, variance, prior_variance = _broadcast(mean, variance, prior_mean, prior_variance)
    if np.any(variance >= 2 * prior_variance):
        return float("inf")
    # With r = s/s0 - 1, |Σ2||Σ|/|Σ0|² is the product of 1 - r²: log1p keeps what 10^6 dimensions add up.
    ratio = (variance - prior_variance) / prior_variance
    terms = difference**2 / (2 * prior_variance - variance) - 0.5 * np.log1p(-(ratio**2))
    return float(np.sum(terms))


def kl_divergence(
    mean: ArrayLike, variance: ArrayLike, prior_mean: ArrayLike, prior_variance: ArrayLike
) -> float:
    """Return the Kullback-Leibler divergence of N(mean, diag(variance)) from the prior Gaussian.

    Parameters are those of `renyi_divergence`, which is never smaller.

    Examples
    --------
    >>> kl_divergence([1.0], [1.0], [0.0], [1.0])
    0.5
    """
    difference, variance, prior_variance = _broadcast(mean, variance, prior_mean, prior_variance)
    ratio = (variance - prior_variance) / prior_variance
    return float(np.sum(0.5 * (difference**2 / prior_variance + (ratio - np.log1p(ratio)))))


def log_density_ratio(
    sample: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    prior_mean: ArrayLike,
    prior_variance: ArrayLike,
) -> float:
    """Return ln P(w)/P0(w) for a sample w, the price of the pointwise bound.

    Parameters
    ----------
    sample
        The parameters w that were drawn.
    mean, variance, prior_mean, prior_variance
        As in `renyi_divergence`.

    Examples
    --------
    >>> log_density_ratio([1.0], [1.0], [1.0], [0.0], [1.0])
    0.5
    """
    w, m, v, m0, v0 = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (sample, mean, variance, prior_mean, prior_variance))
    )
    return float(np.sum(0.5 * ((w - m0) ** 2 / v0 - (w - m) ** 2 / v - np.log(v / v0))))


def _broadcast(
    mean: ArrayLike, variance: ArrayLike, prior_mean: ArrayLike, prior_variance: ArrayLike
) -> tuple[Array, Array, Array]:
    difference = np.asarray(mean, dtype=np.float64) - np.asarray(prior_mean, dtype=np.float64)
    d, v, v0 = np.broadcast_arrays(
        difference, np.asarray(variance, dtype=np.float64), np.asarray(prior_variance, dtype=np.float64)
    )
    return d, v, v0
