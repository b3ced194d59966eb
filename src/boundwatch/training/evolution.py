"""Algorithm 4: minimize the PAC-Bayes bound by evolutionary strategies, for simulators without gradients.

::

    Input: prior N(ψ₀), seed, training environments S, learning rate γ          l. 1-2
    while not converged:                                                         l. 4
        sample w_i ~ N(ψ), i = 1 … k                                             l. 5
        grad <- 1/(mk) Σ_E Σ_i C̃_E(w_i)                                          l. 6
        ψ <- ψ - γ grad                                                          l. 7

C̃_E(w) is (cost + price of w) ∇ ln P(w): the gradients of the cost and of the regularizer come from the same
samples. For C + √R the price is e^(ln P(w)/P₀(w) - D₂) / (2 m √R). The paper prints 4 m √R: the density ratio
inside the expectation depends on ψ too, so its gradient counts twice.
"""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import Tensor

from boundwatch._support.validation import check_costs, check_flag
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidSetting
from boundwatch.training import objectives
from boundwatch.training.determinism import Stream, generator, single_thread
from boundwatch.training.posterior import GaussianPosterior
from boundwatch.training.rollouts import TrainingCosts
from boundwatch.training.run import History, Optimizer, OptimizerName, Run, check_theorem


def train_evolution(  # noqa: PLR0913  (the settings of Algorithm 4)
    posterior: GaussianPosterior,
    rollouts: TrainingCosts,
    *,
    steps: int,
    bound: Bound = "pointwise",
    delta: float = 0.01,
    samples: int = 16,
    per_environment: bool = False,
    antithetic: bool = True,
    baseline: bool = True,
    natural: bool = False,
    optimizer: OptimizerName = "adam",
    learning_rate: float = 0.05,
    variance_rate: float | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
) -> History:
    """Train a posterior in place by Algorithm 4.

    Parameters
    ----------
    posterior, rollouts
        Where training starts and what it changes; the simulator with the m training environments,
        `boundwatch.training.Rollouts`.
    steps
        Number of steps, fixed in advance. The posterior after the last one is the result; to choose one by
        its certificate, pass several to `boundwatch.training.certify`, which pays for it.
    bound, delta, optimizer, learning_rate, variance_rate, seed, checkpoint, checkpoint_every
        As in `boundwatch.training.train_backprop`.
    samples
        Number k of policies per step; even if antithetic.
    per_environment
        Draw k policies for each environment, rather than k that all environments share. A step then runs m k
        rollouts of m k different policies, which is the better use of the same number of rollouts.
    antithetic
        Draw policies in pairs μ ± √s z.
    baseline
        Subtract from each policy's cost the mean of the others'; changes the variance, not the mean.
    natural
        Follow the natural gradient: the gradient divided by the Fisher information of P.

    **Guarantee**: deterministic, as Theorem 1 asks of the algorithm, whatever the number of workers.
    **Assumes**: the prior was chosen without the training environments.

    Examples
    --------
    >>> from boundwatch.training.rollouts import Rollouts
    >>> def rollout(policy, environment, rng):
    ...     return min(1.0, abs(float(policy(torch.tensor([environment])))))
    >>> net = torch.nn.Linear(1, 1)
    >>> _ = torch.nn.init.constant_(net.bias, 0.8)
    >>> posterior = GaussianPosterior.over(net, prior_variance=0.1)
    >>> history = train_evolution(posterior, Rollouts(rollout, [0.1, -0.1] * 50), steps=20)
    >>> history.cost[-1] < history.cost[0]
    True
    """
    m = len(rollouts)
    delta = check_theorem(bound, delta, m)
    flags = {"antithetic": antithetic, "baseline": baseline, "natural": natural}
    for name, flag in (flags | {"per_environment": per_environment}).items():
        check_flag(flag, name)
    if samples < 1 or (antithetic and samples % 2):
        raise InvalidSetting(f"samples = {samples} must be at least 1, and even if antithetic")
    data = None if checkpoint is None else rollouts.fingerprint  # only a checkpoint keeps it
    drawn = [samples, per_environment, antithetic, baseline, natural]
    settings = {"algorithm": "evolution", "data": data, "delta": delta, "samples": drawn, "seed": seed}
    descent = Optimizer(optimizer, learning_rate, variance_rate, posterior.dim)
    run = Run(posterior, descent, bound, steps, settings, checkpoint, checkpoint_every)
    every = np.arange(m)
    indices = np.repeat(every[:, None], samples, 0) if per_environment else np.tile(every, (samples, 1))
    with single_thread(), run:
        for step in run.remaining():
            # Alg. 4, l. 5: sample w_i ~ N(ψ)
            noise = _noise(len(indices), posterior.dim, antithetic, generator(seed, Stream.TRAINING, step))
            costs = rollouts.costs(posterior, posterior.weights(noise), indices)
            cost = torch.from_numpy(check_costs(costs, ndim=2).mean(-1))
            # Alg. 4, l. 6: grad <- mean of C̃_E(w_i)
            shift, log_ratio = posterior.shift, posterior.log_ratio
            upper, divergence, price, by_cost, by_divergence = _linearize(
                bound, m, delta, cost.mean(), noise, shift, log_ratio
            )
            values = by_cost * cost + by_divergence * price
            if baseline:
                values = values - _mean_of_others(values, antithetic)
            gradient = _mean_score(values, noise, log_ratio)
            if natural:
                # The Fisher information of P is s₀/s for the shift and 1/2 for ln s.
                gradient = gradient * torch.stack([log_ratio.exp(), torch.full_like(log_ratio, 2.0)])
            # Alg. 4, l. 7: ψ <- ψ - γ grad
            run.advance(gradient, cost=float(cost.mean()), divergence=divergence, upper=upper)
    return run.history


def _mean_score(values: Tensor, noise: Tensor, log_ratio: Tensor) -> Tensor:
    """Return the mean of values times ∇ ln P(w), with respect to (shift, ln s/s₀), as a (2, d) tensor."""
    # For w = μ + √s z these gradients are z √(s₀/s) and (z² - 1)/2.
    by_shift = (values @ noise) * torch.exp(-0.5 * log_ratio)
    by_log_ratio = 0.5 * (values @ (noise**2 - 1))
    return torch.stack([by_shift, by_log_ratio]) / len(values)


def _linearize(
    bound: Bound, m: int, delta: float, cost: Tensor, noise: Tensor, shift: Tensor, log_ratio: Tensor
) -> tuple[float, float, Tensor, Tensor, Tensor]:
    """Return the bound at the mean cost, the divergence D in it, and what its gradient is made of.

    That is: the samples' prices, whose product with ∇ ln P(w) has the mean ∇D, and the bound's derivatives by
    the cost and by D.
    """
    ratios = objectives.log_density_ratio(noise, shift, log_ratio)
    if bound == "pointwise":
        divergence = objectives.kl_divergence(shift, log_ratio)
        price = ratios  # ∇ E_P[ln P/P₀] = E_P[ln P/P₀ ∇ ln P]
    else:
        divergence = objectives.renyi_divergence(shift, log_ratio)
        price = 2 * torch.exp(ratios - divergence)  # ∇ ln E_P[P/P₀] = 2 e^-D₂ E_P[P/P₀ ∇ ln P]
    cost, divergence = cost.clone().requires_grad_(), divergence.clone().requires_grad_()
    upper = objectives.upper_bound(bound, cost, objectives.budget(bound, m, delta, divergence))
    by_cost, by_divergence = torch.autograd.grad(upper, (cost, divergence))
    return float(upper.detach()), float(divergence.detach()), price, by_cost, by_divergence


def _noise(n: int, dim: int, antithetic: bool, rng: np.random.Generator) -> Tensor:
    """Return n standard normal vectors; if antithetic, each followed by its opposite."""
    if not antithetic:
        return torch.from_numpy(rng.standard_normal((n, dim)))
    half = torch.from_numpy(rng.standard_normal((n // 2, dim)))
    return torch.stack([half, -half], dim=1).reshape(n, dim)


def _mean_of_others(values: Tensor, antithetic: bool) -> Tensor:
    """Return for each sample the mean over those drawn independently of it: not itself, not its opposite."""
    own = values.reshape(-1, 2).sum(1).repeat_interleave(2) if antithetic else values
    others = len(values) - (2 if antithetic else 1)
    return (values.sum() - own) / others if others else torch.zeros_like(values)
