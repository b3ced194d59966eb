"""One training from its first step to its last, through interruptions: checkpoints, progress, history."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import get_args

import torch
from rich.console import Console
from torch import Tensor

from boundwatch._support.progress import progress_bar
from boundwatch._support.validation import check_choice, check_level
from boundwatch.bounds.pac_bayes import MIN_ENVIRONMENTS, Bound
from boundwatch.errors import InvalidSetting
from boundwatch.training.checkpoints import Checkpoint
from boundwatch.training.history import History
from boundwatch.training.optimizers import Optimizer
from boundwatch.training.posterior import GaussianPosterior

_SERIES = ("cost", "divergence", "upper")


def check_theorem(bound: Bound, delta: float, m: int) -> float:
    """Return ``delta`` as a number; refuse what no certificate could be issued for."""
    check_choice(bound, "bound", get_args(Bound))
    if m < MIN_ENVIRONMENTS:
        raise InvalidSetting(f"{m} training environments; the theorem needs at least {MIN_ENVIRONMENTS}")
    return check_level(delta, "delta")


class Run:
    """A training's state: which step it is at, where ψ and the optimizer are, what it saw.

    Use as a context manager around the loop::

        with Run(...) as run:
            for step in run.remaining():
                run.advance(gradient, cost=..., divergence=..., upper=...)

    **Guarantee**: killed at any moment and started again with the same arguments, it continues from its last
    checkpoint and ends with the same bytes as if it had not been killed, provided that a step's randomness
    depends on the number of the step alone. Ctrl-C, and any error, saves the last finished step; "the same
    arguments" include the posterior then left behind.
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
        if min(steps, checkpoint_every) < 1:
            raise InvalidSetting(f"{steps = }, {checkpoint_every = } must both be at least 1")
        self._posterior, self._optimizer = posterior, optimizer
        self.history = History(bound)
        self._steps, self._every = steps, checkpoint_every
        start = "" if checkpoint is None else posterior.sha256()
        settings = {"bound": bound, "optimizer": optimizer.settings, **settings}
        self._checkpoint = Checkpoint(checkpoint, settings, start)
        self._progress = progress_bar("training")
        self._resume()
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
        posterior, move = self._posterior, self._optimizer.step(gradient)
        # ψ <- ψ - γ grad, projected into s < 2 s₀
        mean = posterior.mean - posterior.prior_variance.sqrt() * move[0]
        posterior.move(mean, posterior.log_variance - move[1])
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
        done, groups = self._finished
        self._posterior.move(**groups["psi"])
        if kind is KeyboardInterrupt or done > 0:
            self._save()
        if kind is KeyboardInterrupt:
            where = f"{self._checkpoint.path} holds it; run the same command again to continue"
            if self._checkpoint.path is None:
                where = "no checkpoint was asked for, so this training is lost"
            console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
            console.print(f"interrupted after step {done} of {self._steps}: {where}")

    def _snapshot(self) -> tuple[int, dict[str, dict[str, Tensor]]]:
        # The next step replaces these tensors and changes none: it costs nothing to keep them.
        psi = {"mean": self._posterior.mean, "log_variance": self._posterior.log_variance}
        return len(self.history), {"psi": psi, "optimizer": self._optimizer.state}

    def _save(self) -> None:
        if self._checkpoint.path is None:
            return
        done, groups = self._finished
        numbers = {name: getattr(self.history, name)[:done] for name in _SERIES}
        series = {name: torch.tensor(values, dtype=torch.float64) for name, values in numbers.items()}
        self._checkpoint.save(groups | {"history": series}, step=done, state=self._posterior.sha256())

    def _resume(self) -> None:
        """Go to where the checkpoint left off, if there is one."""
        found = self._checkpoint.load()
        if found is None:
            return
        done, groups = found
        if done > self._steps:
            path = self._checkpoint.path
            raise InvalidSetting(f"steps = {self._steps} is below the {done} that {path} has; raise it")
        expected = _shapes(self._snapshot()[1] | {"history": dict.fromkeys(_SERIES, torch.empty(done))})
        if _shapes(groups) != expected:
            raise self._checkpoint.damaged()
        self._posterior.move(**groups["psi"])
        self._optimizer.state = groups.get("optimizer", {})
        for name, values in groups["history"].items():
            setattr(self.history, name, values.tolist())


def _shapes(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[tuple[str, str], torch.Size]:
    return {(group, name): t.shape for group, parts in groups.items() for name, t in parts.items()}
