"""What training minimises: the certified upper bound itself, differentiable.

==============  ==============================================================================================
``pinsker``     C + √R with R = c/2, Theorem 1 as the paper prints it
``kl``          the largest p with kl(C‖p) <= c, Theorem 1 before Pinsker's inequality; never larger
``pointwise``   the same with the c of the policy drawn: ln P(w)/P₀(w) in place of D₂; nearly always smallest
==============  ==============================================================================================
"""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor

from boundwatch import bounds
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.training import gaussians

Objective = Literal["pinsker", "kl", "pointwise"]

_SMALLEST_COST = 1e-9
"""Below it the slope of the kl-inverse, infinite at 0, is that at this cost."""


def check_objective(name: str, argument: str = "objective") -> Objective:
    """Return the name of an objective, or raise an error that lists them.

    Examples
    --------
    >>> check_objective("kl")
    'kl'
    >>> check_objective("mcallester")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: objective = 'mcallester' is unknown; choose pinsker, kl or pointwise
    """
    *first, last = get_args(Objective)
    if name in (*first, last):
        return cast("Objective", name)
    raise InvalidSetting(f"{argument} = {name!r} is unknown; choose {', '.join(first)} or {last}")


def complexity(
    objective: Objective, m: int, delta: float, noise: Tensor, shift: Tensor, log_ratio: Tensor
) -> Tensor:
    """Return c in kl(C_S‖C_D) <= c for each of k policies w = μ + √s z, as a (k,) tensor.

    Parameters
    ----------
    objective
        ``"pointwise"`` takes the c of each policy; the others that of Theorem 1, the same for all.
    m, delta
        Number of training environments, and the probability with which the bound may fail.
    noise
        z, one row for each policy.
    shift, log_ratio
        The posterior in the coordinates of `boundwatch.training.gaussians`; c is differentiable in them.

    Examples
    --------
    >>> zero = torch.zeros(1)
    >>> complexity("kl", 10_000, 0.01, torch.zeros(2, 1), zero, zero)
    tensor([0.0021, 0.0021], dtype=torch.float64)
    """
    if objective == "pointwise":
        # At a ratio of 1 the complexity is that of the constants alone, and it is linear in the log ratio.
        ratios = gaussians.log_density_ratio(noise, shift, log_ratio)
        return torch.clamp(bounds.pointwise_complexity(m, delta, 0.0) + ratios / m, min=0.0)
    divergence = gaussians.renyi_divergence(shift, log_ratio)
    return (bounds.pac_bayes_complexity(m, delta, 0.0) + divergence / m).expand(len(noise))


def upper_bound(objective: Objective, cost: Tensor, budget: Tensor) -> Tensor:
    """Return the upper bound on the expected cost from training costs C and complexities c.

    Examples
    --------
    >>> cost, budget = torch.tensor(0.3), torch.tensor(0.002)
    >>> [round(float(upper_bound(name, cost, budget)), 4) for name in ("pinsker", "kl")]
    [0.3316, 0.3295]
    """
    if objective == "pinsker":
        return cost + torch.sqrt(budget / 2)
    if not bool(((cost >= 0) & (cost <= 1)).all()):
        worst = float(cost.detach().flatten()[int((cost.detach() - 0.5).abs().argmax())])
        raise InvalidCost(
            f"the mean cost {worst:.6g} is outside [0, 1], where kl is defined; "
            "scale the surrogate, or use objective='pinsker'"
        )
    result: Tensor = KlInverseUpper.apply(cost, budget)  # type: ignore[no-untyped-call]  # torch has no types here
    return result


class KlInverseUpper(torch.autograd.Function):
    """p(q, c), the largest p with kl(q‖p) <= c, with its gradient by implicit differentiation.

    On the curve kl(q‖p) = c: ∂p/∂c = 1/kl_p and ∂p/∂q = -kl_q/kl_p, where kl_p = (p - q)/(p (1 - p)) and
    kl_q = ln(q/p) - ln((1-q)/(1-p)). The value is that of `boundwatch.bounds.kl_inverse_upper`, in float64.

    Examples
    --------
    >>> cost = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    >>> KlInverseUpper.apply(cost, torch.tensor([0.01]))
    tensor([0.1477], dtype=torch.float64, grad_fn=<KlInverseUpperBackward>)
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, c: Tensor) -> Tensor:
        """Return p, elementwise; q and c have the same shape."""
        q, c = q.detach().double(), c.detach().double()
        p = torch.from_numpy(np.asarray(bounds.kl_inverse_upper(q.numpy(), c.numpy())))
        ctx.save_for_backward(q, p)
        return p

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients with respect to q and c."""
        q, p = ctx.saved_tensors
        q, p = q.clamp(_SMALLEST_COST, 1 - _SMALLEST_COST), p.clamp(_SMALLEST_COST, 1 - 1e-16)
        gap = (p - q).clamp(min=1e-12)  # at c = 0 the slope in c is infinite, that in q is 1
        kl_p = gap / (p * (1 - p))
        kl_q = -torch.log1p(gap / q) - torch.log1p(gap / (1 - p))
        return -gradient * kl_q / kl_p, gradient / kl_p
