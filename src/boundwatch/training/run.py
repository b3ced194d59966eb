"""One training from its first step to its last, through interruptions: checkpoints, progress, history."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import torch
from rich.console import Console
from torch import Tensor

from boundwatch._support.files import make_folder
from boundwatch._support.progress import progress_bar
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.training import tensorfile
from boundwatch.training.history import History
from boundwatch.training.optimizers import Optimizer
from boundwatch.training.posterior import GaussianPosterior

_KIND = "boundwatch.checkpoint/1"
_SERIES = ("cost", "divergence", "upper")


class Run:
    """A training's state: which step it is at, where ψ and the optimizer are, what it saw.

    Use as a context manager around the loop::

        with Run(...) as run:
            for step in run.remaining():
                run.advance(gradient, cost=..., divergence=..., upper=...)

    **Guarantee**: killed at any moment and started again with the same arguments, it continues from its last
    checkpoint and ends with the same bytes as if it had not been killed, provided that a step's randomness
    depends on the number of the step alone. Checkpoints are replaced whole. Ctrl-C, and any error, saves the
    last finished step; "the same arguments" include the posterior then left behind.
    """

    def __init__(
        self,
        posterior: GaussianPosterior,
        optimizer: Optimizer,
        *,
        bound: Bound,
        steps: int,
        settings: Mapping[str, object],
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: int,
    ) -> None:
        if steps < 1 or checkpoint_every < 1:
            raise InvalidSetting(
                f"steps = {steps}, checkpoint_every = {checkpoint_every} must both be at least 1"
            )
        self.posterior = posterior
        self.optimizer = optimizer
        self.history = History(bound)
        self._steps = steps
        self._path = None if checkpoint is None else Path(checkpoint)
        self._every = checkpoint_every
        self._settings = {"bound": bound, **settings}
        self._start = {"start.mean": posterior.mean, "start.log_variance": posterior.log_variance}
        self._fingerprint = "" if self._path is None else self._identify()
        self._progress = progress_bar("training")
        if self._path is not None:
            make_folder(self._path.parent)
            if self._path.exists():
                self._resume(self._path)
        self._finished = self._snapshot()

    def remaining(self) -> Iterator[int]:
        """Yield the numbers of the steps that are left, from 0."""
        task = self._progress.add_task("", total=self._steps, completed=len(self.history), note="")
        for step in range(len(self.history), self._steps):
            yield step
            self._progress.update(task, advance=1, note=f"bound {self.history.upper[-1]:.4f}")

    def advance(self, gradient: Tensor, *, cost: float, divergence: float, upper: float) -> None:
        """Take one step against the gradient (2, d) in (shift, ln s/s₀), and note the numbers."""
        if not bool(gradient.isfinite().all()):
            raise InvalidSetting(
                f"the gradient at step {len(self.history)} is not finite; lower the learning rates, "
                "or look for NaN in the costs"
            )
        move = self.optimizer.step(gradient)
        deviation = self.posterior.prior_variance.sqrt()
        self.posterior.move(
            self.posterior.mean - deviation * move[0], self.posterior.log_variance - move[1]
        )  # ψ <- ψ - γ grad, projected into s < 2 s₀
        self.history.append(cost=cost, divergence=divergence, upper=upper)
        self._finished = self._snapshot()
        if len(self.history) % self._every == 0 or len(self.history) == self._steps:
            self._save()

    def __enter__(self) -> Run:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if kind is None:
            return
        # Posterior and checkpoint at the last finished step, so that the same call continues from there.
        tensors, metadata = self._finished
        done = metadata["step"]
        self.posterior.move(tensors["mean"], tensors["log_variance"])
        if kind is KeyboardInterrupt or done != "0":
            self._save()
        if kind is KeyboardInterrupt:
            where = (
                "no checkpoint was asked for, so this training is lost"
                if self._path is None
                else f"{self._path} holds it; run the same command again to continue"
            )
            Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(
                f"interrupted after step {done} of {self._steps}: {where}"
            )

    def _identify(self) -> str:
        """Return the SHA-256 of all that decides how a training goes: prior, start, data and settings."""
        start = copy.copy(self.posterior)
        start.mean, start.log_variance = self._start.values()
        content = {"posterior": start.sha256(), **self._settings}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    # Every tensor in a snapshot is replaced, never changed, by the next step: it costs nothing to keep one.

    def _snapshot(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        tensors = {"mean": self.posterior.mean, "log_variance": self.posterior.log_variance}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizer.state.items()}
        return tensors, {"kind": _KIND, "training": self._fingerprint, "step": str(len(self.history))}

    def _save(self) -> None:
        if self._path is None:
            return
        tensors, metadata = self._finished
        done = int(metadata["step"])
        series = {
            f"history.{name}": torch.tensor(getattr(self.history, name)[:done], dtype=torch.float64)
            for name in _SERIES
        }
        tensorfile.save(self._path, tensors | series | self._start, metadata)

    def _resume(self, path: Path) -> None:
        tensors, metadata = tensorfile.load(path)
        if metadata.get("kind") != _KIND:
            raise SchemaMismatch(f"{path} is not a checkpoint of boundwatch; choose another path")
        psi = {"mean": self.posterior.mean, "log_variance": self.posterior.log_variance}
        if all(name in tensors and torch.equal(tensors[name], value) for name, value in psi.items()):
            # The posterior of that very training, after an interruption: it started elsewhere.
            self._start = {name: tensors.get(name, value) for name, value in self._start.items()}
            self._fingerprint = self._identify()
        if metadata.get("training") != self._fingerprint:
            raise ProvenanceMismatch(
                f"{path} belongs to a training with another prior, other data or other settings; "
                "give the same ones to continue it, or another path to start over"
            )
        expected = self._snapshot()[0]
        done = int(metadata["step"]) if metadata.get("step", "").isdecimal() else -1
        if done > self._steps:
            raise InvalidSetting(
                f"steps = {self._steps} is below the {done} that {path} has already; raise it"
            )
        series = {name: tensors.get(f"history.{name}", torch.empty(0)) for name in _SERIES}
        if any(tensors.get(k, torch.empty(0)).shape != v.shape for k, v in expected.items()) or any(
            len(values) != done for values in series.values()
        ):
            raise SchemaMismatch(f"{path} is not a whole checkpoint; remove it to start over")
        self.posterior.move(tensors["mean"], tensors["log_variance"])
        self.optimizer.state = {name: tensors[f"optimizer.{name}"] for name in self.optimizer.state}
        for name, values in series.items():
            setattr(self.history, name, values.tolist())
