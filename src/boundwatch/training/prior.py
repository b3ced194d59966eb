"""A good place to start from: train a module on environments that the guarantee never sees."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.parallel import progress_bar
from boundwatch.errors import InvalidSetting
from boundwatch.training import tensorfile
from boundwatch.training.determinism import minibatch, single_thread
from boundwatch.training.environments import as_tensors, check_disjoint, environment_hash
from boundwatch.training.run import Checkpoint, Tensors

_SECONDS = 5.0  # between two checkpoints: what a kill may cost


def train_prior(  # noqa: PLR0913  (the settings of a training)
    module: nn.Module,
    loss: Callable[..., Tensor],
    data: Sequence[Tensor | NDArray[Any]],
    *,
    disjoint_from: Iterable[Any],
    steps: int,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
    generator: torch.Generator | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    label: str = "prior",
) -> list[float]:
    """Train a module's parameters in place, by plain supervised learning with Adam; return the losses.

    Its parameters are then the mean of a good prior, `GaussianPosterior.over`.

    Parameters
    ----------
    module, loss
        The policy's network; ``loss(policy, *batch)`` returns a differentiable scalar or one value for each
        environment, as the surrogate of `boundwatch.training.train_backprop` does.
    data
        The prior environments: tensors or arrays with one row for each. The rows of the first part (the
        observations, usually) are what is compared with ``disjoint_from``.
    disjoint_from
        The training environments S, as rows like those of ``data[0]``. Refused if they share one: the bound
        holds for a prior chosen without S only. ``()`` says that you have compared them yourself, by
        `boundwatch.training.check_disjoint`.
    steps, batch_size, learning_rate, seed
        Of Adam. The same ones give the same parameters.
    generator, checkpoint
        What ``loss`` draws from, if it draws; and a file, written every few seconds, that keeps the training
        through interruptions, to the same parameters. If it exists, training continues from it.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> net, loss = nn.Linear(1, 1), lambda policy, x, y: (policy(x) - y) ** 2
    >>> losses = train_prior(net, loss, (x, 2 * x), disjoint_from=x + 9, steps=500, learning_rate=0.05)
    >>> round(float(net.weight.detach()), 2)
    2.0
    """
    tensors, n = as_tensors(data)
    if min(steps, batch_size) < 1:
        raise InvalidSetting(f"{steps = }, {batch_size = } must both be at least 1")
    if not isinstance(disjoint_from, tuple) or disjoint_from:
        check_disjoint(tensors[0], disjoint_from)
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    losses: list[float] = []
    if checkpoint is not None:
        settings = {"data": environment_hash(tensors), "adam": [batch_size, learning_rate, seed]}
        kept = Checkpoint(checkpoint, settings, _fingerprint(_trained(module, generator)))
        if (found := kept.load()) is not None:
            losses = _restore(found[1], module, optimizer, generator)
    saved = time.monotonic()
    with single_thread(), progress_bar(label) as progress:
        task = progress.add_task("", total=steps, completed=len(losses), note="")
        for step in range(len(losses), steps):
            rows = minibatch(n, min(batch_size, n), seed, step)
            value = loss(module, *(part[rows] for part in tensors)).mean()
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            optimizer.step()
            losses.append(float(value.detach()))
            progress.update(task, advance=1, note=f"loss {losses[-1]:.4f}")
            if checkpoint is not None and (step == steps - 1 or time.monotonic() - saved > _SECONDS):
                trained = _trained(module, generator)
                trace = {"losses.values": torch.tensor(losses, dtype=torch.float64)}
                state = _fingerprint(trained)
                kept.save(trained | _moments(optimizer) | trace, step=len(losses), state=state)
                saved = time.monotonic()
    return losses


def _trained(module: nn.Module, generator: torch.Generator | None) -> Tensors:
    drawn = {} if generator is None else {"generator.state": generator.get_state()}
    return {f"module.{name}": value for name, value in module.state_dict().items()} | drawn


def _fingerprint(trained: Tensors) -> str:
    return tensorfile.sha256({name.partition(".")[2]: value for name, value in trained.items()})


def _moments(optimizer: torch.optim.Adam) -> Tensors:
    state = optimizer.state_dict()["state"].items()
    return {f"adam.{number}.{name}": value for number, parts in state for name, value in parts.items()}


def _restore(
    tensors: Tensors, module: nn.Module, optimizer: torch.optim.Adam, generator: torch.Generator | None
) -> list[float]:
    """Go to where the checkpoint left off; return the losses up to there."""
    module.load_state_dict({name: tensors[f"module.{name}"] for name in module.state_dict()})
    moments: dict[int, Tensors] = {}
    for place, value in tensors.items():
        if place.startswith("adam."):
            _, number, name = place.split(".")
            moments.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    if generator is not None:
        generator.set_state(tensors["generator.state"])
    losses: list[float] = tensors["losses.values"].tolist()
    return losses
