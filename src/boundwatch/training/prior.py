"""A good place to start from: train a module on environments that the guarantee never sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.progress import progress_bar
from boundwatch.errors import InvalidSetting
from boundwatch.training.data import as_tensors, minibatch
from boundwatch.training.environments import check_disjoint
from boundwatch.training.threads import single_thread


def train_prior(
    module: nn.Module,
    loss: Callable[..., Tensor],
    data: Sequence[Tensor | NDArray[Any]],
    *,
    disjoint_from: Iterable[Any],
    steps: int,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> list[float]:
    """Train a module's parameters in place, by plain supervised learning with Adam; return the losses.

    Its parameters are then the mean of a good prior, `GaussianPosterior.over`.

    Parameters
    ----------
    module
        The policy's network.
    loss
        ``loss(policy, *batch)`` returns a differentiable scalar or one value for each environment, as the
        surrogate of `boundwatch.training.train_backprop` does.
    data
        The prior environments: tensors or arrays with one row for each. The rows of the first part (the
        observations, usually) are what is compared with ``disjoint_from``.
    disjoint_from
        The training environments S, as rows like those of ``data[0]``. Refused if they share one: the bound
        holds for a prior chosen without S only. ``()`` says that you have compared them yourself, by
        `boundwatch.training.check_disjoint`.
    steps, batch_size, learning_rate, seed
        Of Adam. The same ones give the same parameters.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> net = nn.Linear(1, 1)
    >>> def loss(policy, x, y):
    ...     return (policy(x) - y) ** 2
    >>> losses = train_prior(net, loss, (x, 2 * x), disjoint_from=x + 9, steps=500, learning_rate=0.05)
    >>> round(float(net.weight.detach()), 2)
    2.0
    """
    tensors, n = as_tensors(data)
    if steps < 1 or batch_size < 1:
        raise InvalidSetting(f"steps = {steps}, batch_size = {batch_size} must both be at least 1")
    if not isinstance(disjoint_from, tuple) or disjoint_from:
        check_disjoint(tensors[0], disjoint_from)
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    losses = []
    with single_thread(), progress_bar("prior") as progress:
        task = progress.add_task("", total=steps, note="")
        for step in range(steps):
            rows = minibatch(n, min(batch_size, n), seed, step)
            value = loss(module, *(part[rows] for part in tensors)).mean()
            optimiser.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            optimiser.step()
            losses.append(float(value.detach()))
            progress.update(task, advance=1, note=f"loss {losses[-1]:.4f}")
    return losses
