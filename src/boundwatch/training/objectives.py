"""What training minimizes: the certified upper bound itself, differentiable.

==============  ==============================================================================================
``pinsker``     C + √R with R = c/2, Theorem 1 as the paper prints it
``kl``          the largest p with kl(C‖p) <= c, Theorem 1 before Pinsker's inequality; never larger
``pointwise``   the same with the c of the policy drawn: ln P(w)/P₀(w) in place of D₂; nearly always smallest
==============  ==============================================================================================

And the divergences between diagonal Gaussians in it, the torch twins of `boundwatch.bounds`' functions of the
same names, in float64, for gradients. Certificates never use them; a test ties the two together.

All take the *shift* v = (μ - μ₀)/√s₀ and the *log ratio of variances* u = ln(s/s₀), because in these
coordinates nothing cancels: with t = s/s₀ - 1,

    D₂(P‖P₀)       = Σ v²/(1 - t) - ½ Σ ln(1 - t²)
    KL(P‖P₀)       = ½ Σ (v² + t - u)
    ln P(w)/P₀(w)  = ½ Σ (z₀² - z² - u),     z = (w - μ)/√s,  z₀ = (w - μ₀)/√s₀

The first one is the closed form of the paper's appendix with its mean term corrected: Σ₂ enters inverted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import xlogy
from torch import Tensor

from boundwatch import bounds
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidCost

_SMALLEST_COST = 1e-9
"""Below it the slope of the kl-inverse, infinite at 0, is that at this cost."""
_BELOW_ONE = 1 - 2.0**-53
_NEWTON_STEPS = 12


def renyi_divergence(shift: Tensor, log_ratio: Tensor) -> Tensor:
    """Return the Rényi divergence of order 2, D₂(P‖P₀); infinite if any variance reaches twice its prior."""
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


def divergence(bound: Bound, noise: Tensor, shift: Tensor, log_ratio: Tensor) -> Tensor:
    """Return the divergence that each of k policies w = μ + √s z pays for, as a (k,) tensor.

    It is ln P(w)/P₀(w), its own for each policy, for ``"pointwise"``, and D₂(P‖P₀), the same for all, for the
    others. The posterior is given in the coordinates of the divergences.
    """
    if bound == "pointwise":
        return log_density_ratio(noise, shift, log_ratio)
    return renyi_divergence(shift, log_ratio).expand(len(noise))


def budget(bound: Bound, m: int, delta: float, divergence: Tensor) -> Tensor:
    """Return c in kl(C_S‖C_D) <= c for a divergence; the functions of `boundwatch.bounds`, differentiable."""
    # Both are linear in the divergence; the constants are those of the certificates.
    if bound == "pointwise":
        return torch.clamp(bounds.pointwise_complexity(m, delta, 0.0) + divergence / m, min=0.0)
    return bounds.pac_bayes_complexity(m, delta, 0.0) + divergence / m


def upper_bound(bound: Bound, cost: Tensor, c: Tensor) -> Tensor:
    """Return the upper bound on the expected cost from training costs C and complexities c."""
    if bound == "pinsker":
        return cost + torch.sqrt(c / 2)
    outside = cost.detach()[~((cost >= 0) & (cost <= 1))]
    if outside.numel():
        raise InvalidCost(
            f"the mean cost {outside.flatten()[0]:.6g} is outside [0, 1], where kl is defined; "
            "scale the surrogate, or use bound='pinsker'"
        )
    result: Tensor = KlInverseUpper.apply(cost, c.expand_as(cost))  # type: ignore[no-untyped-call]  # torch has no types here
    return result


class KlInverseUpper(torch.autograd.Function):
    """p(q, c), the largest p with kl(q‖p) <= c, with its gradient by implicit differentiation.

    On the curve kl(q‖p) = c: ∂p/∂c = 1/kl_p and ∂p/∂q = -kl_q/kl_p, where kl_p = (p - q)/(p (1 - p)) and
    kl_q = ln(q/p) - ln((1-q)/(1-p)). The value agrees with that of `boundwatch.bounds.kl_inverse_upper` to
    1e-9, without its outward rounding, and takes a tenth of the time.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, c: Tensor) -> Tensor:
        """Return p, elementwise for q and c of the same shape."""
        q = q.detach().double()
        p = torch.as_tensor(_kl_inverse_upper(q.numpy(), c.detach().double().numpy()))
        ctx.save_for_backward(q, p)
        return p

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients with respect to q and c."""
        q, p = ctx.saved_tensors
        q, p = q.clamp(_SMALLEST_COST, 1 - _SMALLEST_COST), p.clamp(_SMALLEST_COST, _BELOW_ONE)
        gap = (p - q).clamp(min=1e-12)  # at c = 0 the slope in c is infinite, that in q is 1
        kl_p = gap / (p * (1 - p))
        kl_q = -torch.log1p(gap / q) - torch.log1p(gap / (1 - p))
        return -gradient * kl_q / kl_p, gradient / kl_p


def _kl_inverse_upper(q: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve kl(q‖p) = c for p >= q by Newton's method.

    kl is convex in p, so from any point right of the solution the iterates approach it from the right. Two
    such points: Pinsker's q + √(c/2), and the solution with 0 in place of -q ln p.
    """
    negative_entropy = xlogy(q, q) + xlogy(1 - q, 1 - q)
    far = -np.expm1((negative_entropy - c) / np.maximum(1 - q, 1e-30))
    p: NDArray[np.float64] = np.clip(np.minimum(q + np.sqrt(c / 2), far), 1e-300, _BELOW_ONE)
    for _ in range(_NEWTON_STEPS):
        kl = negative_entropy - q * np.log(p) - (1 - q) * np.log1p(-p)
        step = (kl - c) * p * (1 - p) / np.maximum(p - q, 1e-300)
        p = np.minimum(np.maximum(p - np.maximum(step, 0.0), q), _BELOW_ONE)
    return p
