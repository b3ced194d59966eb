"""A good place to start from: train a module on environments that the guarantee never sees."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.files import make_folder
from boundwatch._support.progress import progress_bar
from boundwatch.errors import InvalidSetting, ProvenanceMismatch
from boundwatch.training import tensorfile
from boundwatch.training.data import as_tensors, digest, minibatch
from boundwatch.training.environments import check_disjoint
from boundwatch.training.threads import single_thread

_SECONDS = 5.0  # between two checkpoints: what a kill may cost


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
    generator: torch.Generator | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    label: str = "prior",
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
    generator
        The one that ``loss`` draws from, if it draws: a checkpoint keeps where it is.
    checkpoint
        File that keeps the training through interruptions, written every few seconds. If it exists, training
        continues from it, and ends with the same parameters as without the interruption.
    label
        What the progress bar says.

    Raises
    ------
    ProvenanceMismatch
        If the checkpoint is of a training with other data, settings or first parameters.

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
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    losses: list[float] = []
    kept = None
    if checkpoint is not None:
        settings = [digest(tensors), digest([*module.state_dict().values()]), batch_size, learning_rate, seed]
        kept = _Checkpoint(Path(checkpoint), settings, module, optimizer, generator)
        losses = kept.resume()
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
            if kept is not None and (step == steps - 1 or time.monotonic() - saved > _SECONDS):
                kept.save(losses)
                saved = time.monotonic()
    return losses


class _Checkpoint:
    """Everything that the next step depends on, in one file that is replaced whole."""

    def __init__(
        self,
        path: Path,
        settings: list[object],
        module: nn.Module,
        optimizer: torch.optim.Adam,
        generator: torch.Generator | None,
    ) -> None:
        self._path, self._module, self._optimizer, self._generator = path, module, optimizer, generator
        if generator is not None:
            settings = [*settings, digest([generator.get_state()])]
        self._training = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
        make_folder(path.parent)

    def save(self, losses: list[float]) -> None:
        """Write the module, Adam's moments, where the generator is, and the losses."""
        tensors = {f"module.{name}": value for name, value in self._module.state_dict().items()}
        for number, moments in self._optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
        if self._generator is not None:
            tensors["generator"] = self._generator.get_state()
        tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
        tensorfile.save(self._path, tensors, {"training": self._training})

    def resume(self) -> list[float]:
        """Go to where the file left off, if there is one; return the losses up to there."""
        if not self._path.exists():
            return []
        tensors, metadata = tensorfile.load(self._path)
        if metadata.get("training") != self._training:
            raise ProvenanceMismatch(
                f"{self._path} belongs to a training with other data, settings or first parameters; "
                "give the same ones to continue it, or another path to start over"
            )
        parts: dict[str, dict[str, Tensor]] = {"module": {}, "adam": {}}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            if rest:
                parts[kind][rest] = value
        self._module.load_state_dict(parts["module"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in parts["adam"].items():
            number, _, moment = name.partition(".")
            moments.setdefault(int(number), {})[moment] = value
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})
        if self._generator is not None:
            self._generator.set_state(tensors["generator"])
        losses: list[float] = tensors["losses"].tolist()
        return losses
