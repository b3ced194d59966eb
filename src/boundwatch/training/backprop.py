"""Algorithm 3: minimize the PAC-Bayes bound by backpropagation.

::

    Input: prior N(ψ₀), seed, training environments S, learning rate γ          l. 1-2
    while not converged:                                                         l. 4
        sample w_i ~ N(ψ), i = 1 … k                                             l. 5
        B <- 1/(mk) Σ_E Σ_i C_E(π_{w_i}) + √R                                    l. 6
        ψ <- ψ - γ ∇B                                                            l. 7

Where the paper runs over all of S in each step, we take a minibatch of it, and B may be any of the bounds
in `boundwatch.training.objectives`. The algorithm stays deterministic, which is all that the theorem asks.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.training import objectives
from boundwatch.training.determinism import Stream, generator, minibatch, single_thread
from boundwatch.training.environments import as_tensors, environment_hash
from boundwatch.training.posterior import GaussianPosterior
from boundwatch.training.run import History, Optimizer, OptimizerName, Run, check_theorem

Surrogate = Callable[..., Tensor | tuple[Tensor, Tensor]]
Costs = Callable[[Tensor, list[Tensor]], tuple[Tensor, Tensor]]


def train_backprop(  # noqa: PLR0913  (the settings of Algorithm 3)
    posterior: GaussianPosterior,
    surrogate: Surrogate,
    data: Sequence[Tensor | NDArray[Any]],
    *,
    steps: int,
    bound: Bound = "pointwise",
    delta: float = 0.01,
    samples: int = 2,
    batch_size: int = 256,
    optimizer: OptimizerName = "adam",
    learning_rate: float = 0.05,
    variance_rate: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
) -> History:
    """Train a posterior in place by Algorithm 3.

    Parameters
    ----------
    posterior
        Where training starts (usually at its prior) and what it changes.
    surrogate
        ``surrogate(policy, *batch)`` returns a differentiable cost for each environment of a minibatch, as a
        (b,) tensor: ``policy`` maps observations to the module's outputs, ``batch`` holds rows of ``data``.
        It may return a pair (surrogate, true) with the costs that will be certified beside it; these go into
        the history. Costs in [0, 1], except that the bound ``"pinsker"`` takes any surrogate.
    data
        The m training environments: tensors or arrays with m rows each.
    steps
        Number of steps. Fixed in advance: nothing stops early by looking at a certificate.
    bound, delta
        Those that `boundwatch.training.certify` will use: ``"pointwise"``, ``"kl"`` or ``"pinsker"``, see
        `boundwatch.training.objectives`, and the probability with which the certificate may fail.
    samples, batch_size
        Policies (k) and environments per step, of the latter at most m.
    optimizer
        ``"adam"``, or ``"sgd"``, plain gradient descent. Adam moves every parameter about equally far, which
        costs divergence over many parameters; descent may do better there.
    learning_rate, variance_rate
        Rates for the mean, in standard deviations of the prior, and for ln s; the second is the first if left
        out, and 0 keeps the variances.
    seed
        The same seed, data and settings give the same posterior, byte for byte, whatever ``jobs``, on one
        kind of processor.
    jobs
        Threads; the k policies are shared among them.
    checkpoint, checkpoint_every
        File that keeps the training through interruptions, and how many steps lie between two writes. If it
        exists, training continues from it.

    **Guarantee**: deterministic, as Theorem 1 asks of the algorithm.
    **Assumes**: the prior was chosen without the training environments.

    Examples
    --------
    Steer left or right, the better side being the sign of the observation:

    >>> x = torch.linspace(-3, 3, 2000)[:, None]
    >>> costs = torch.cat([x > 0, x < 0], 1).float()
    >>> def surrogate(policy, x, costs):
    ...     return (policy(x).softmax(-1) * costs).sum(-1)
    >>> posterior = GaussianPosterior.over(torch.nn.Linear(1, 2), prior_variance=1.0)
    >>> history = train_backprop(posterior, surrogate, (x, costs), steps=100)
    >>> history.upper[-1] < history.upper[0]
    True
    """
    tensors, m = as_tensors(data)
    delta = check_theorem(bound, delta, m)
    batch_size = min(batch_size, m)
    if min(samples, batch_size, jobs) < 1:
        raise InvalidSetting(f"{samples = }, {batch_size = }, {jobs = } must all be at least 1")
    content = None if checkpoint is None else environment_hash(tensors)  # only a checkpoint keeps it
    settings = {"algorithm": "backprop", "data": content, "delta": delta, "seed": seed}
    settings |= {"samples": samples, "batch_size": batch_size}
    descent = Optimizer(optimizer, learning_rate, variance_rate, posterior.dim)
    run = Run(posterior, descent, bound, steps, settings, checkpoint, checkpoint_every)
    deviation = posterior.prior_variance.sqrt()
    with single_thread(), run, _workers(posterior, surrogate, jobs) as costs_of:
        for step in run.remaining():
            mean, log_variance = posterior.mean.requires_grad_(), posterior.log_variance.requires_grad_()
            shift, log_ratio = posterior.shift, posterior.log_ratio
            # Alg. 3, l. 5: sample w_i ~ N(ψ)
            rng = generator(seed, Stream.TRAINING, step)
            noise = torch.from_numpy(rng.standard_normal((samples, posterior.dim)))
            weights = posterior.weights(noise)
            # Alg. 3, l. 6: B <- mean cost + regularizer
            rows = minibatch(m, batch_size, seed, step)
            costs, true_costs = costs_of(weights, [part[rows] for part in tensors])
            divergence = objectives.divergence(bound, noise, shift, log_ratio)
            c = objectives.budget(bound, m, delta, divergence)
            upper, true_upper = objectives.upper_bound(bound, torch.stack([costs, true_costs]), c).mean(-1)
            # Alg. 3, l. 7: ψ <- ψ - γ ∇B
            by_mean, by_log_variance = torch.autograd.grad(upper, (mean, log_variance))
            run.advance(
                torch.stack([deviation * by_mean, by_log_variance]),
                cost=float(true_costs.mean()),
                divergence=float(divergence.detach().mean()),
                upper=float(true_upper.detach()),
            )
    return run.history


@contextmanager
def _workers(posterior: GaussianPosterior, surrogate: Surrogate, jobs: int) -> Iterator[Costs]:
    """Yield a function that has threads compute costs and gradients, one policy each at a time, in order.

    For weights (k, d) it returns the mean surrogate costs (k,), differentiable in them, and the true ones.
    """
    # A module cannot be called with two sets of parameters at the same time: one for each thread.
    free = [posterior, *(copy.deepcopy(posterior) for _ in range(jobs - 1))]
    pool = ThreadPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,))

    def cost_of(weights: Tensor, batch: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        mine = free.pop()
        try:
            weights = weights.requires_grad_()
            result = surrogate(partial(mine.call, weights), *batch)
            costs, true_costs = result if isinstance(result, tuple) else (result, result)
            for name, part in (("surrogate", costs), ("true costs", true_costs)):
                if part.shape != (len(batch[0]),):
                    raise InvalidCost(
                        f"the {name} has shape {tuple(part.shape)} for {len(batch[0])} environments; "
                        "return one cost for each"
                    )
            cost = costs.double().mean()
            (gradient,) = torch.autograd.grad(cost, weights)
            return cost.detach(), gradient, true_costs.detach().double().mean()
        finally:
            free.append(mine)

    def costs_of(weights: Tensor, batch: list[Tensor]) -> tuple[Tensor, Tensor]:
        each = pool.map if jobs > 1 else map  # a pool of one thread is only slower than none
        results = list(each(partial(cost_of, batch=batch), weights.detach()))
        values, gradients, true_values = (torch.stack(parts) for parts in zip(*results, strict=True))
        # A function with this value and this gradient: the threads have done the differentiation.
        return values + ((weights - weights.detach()) * gradients).sum(-1), true_values

    try:
        yield costs_of
    finally:
        pool.shutdown(cancel_futures=True)
