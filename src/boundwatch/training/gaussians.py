"""Divergences between diagonal Gaussians, differentiable.

The torch twins of `boundwatch.bounds`' functions of the same names, in float64, for gradients. Certificates
never use them; a test ties the two together.

All take the *shift* v = (μ - μ₀)/√s₀ and the *log ratio of variances* u = ln(s/s₀), because in these
coordinates nothing cancels: with t = s/s₀ - 1,

    D₂(P‖P₀)       = Σ v²/(1 - t) - ½ Σ ln(1 - t²)
    KL(P‖P₀)       = ½ Σ (v² + t - u)
    ln P(w)/P₀(w)  = ½ Σ (z₀² - z² - u),     z = (w - μ)/√s,  z₀ = (w - μ₀)/√s₀

The first one is the closed form of the paper's appendix with its mean term corrected: Σ₂ enters inverted.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def renyi_divergence(shift: Tensor, log_ratio: Tensor) -> Tensor:
    """Return the Rényi divergence of order 2, D₂(P‖P₀); infinite if any variance reaches twice its prior.

    Examples
    --------
    >>> renyi_divergence(torch.tensor([1.0]), torch.tensor([0.0])).item()
    1.0
    >>> renyi_divergence(torch.tensor([0.0]), torch.tensor([0.7])).item()   # s = 2.01 s₀
    inf
    """
    if bool((log_ratio >= math.log(2)).any()):
        return torch.tensor(torch.inf, dtype=torch.float64)
    excess = torch.expm1(log_ratio.double())
    return (shift.double() ** 2 / (1 - excess)).sum() - 0.5 * torch.log1p(-(excess**2)).sum()


def kl_divergence(shift: Tensor, log_ratio: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence KL(P‖P₀), the mean of ln P(w)/P₀(w) under P."""
    log_ratio = log_ratio.double()
    return 0.5 * (shift.double() ** 2 + torch.expm1(log_ratio) - log_ratio).sum()


def log_density_ratio(noise: Tensor, shift: Tensor, log_ratio: Tensor) -> Tensor:
    """Return ln P(w)/P₀(w) for w = μ + √s z, one for each row z of ``noise``.

    With the noise rather than w as the argument, the result carries the gradient of a reparameterized sample.
    """
    noise, shift, log_ratio = noise.double(), shift.double(), log_ratio.double()
    prior_noise = shift + torch.exp(0.5 * log_ratio) * noise
    return 0.5 * (prior_noise**2 - noise**2 - log_ratio).sum(-1)
