"""One training from its first step to its last, through interruptions: optimizer, checkpoints, history."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, get_args

import torch
from rich.console import Console
from torch import Tensor

from boundwatch._support.describing import one_line
from boundwatch._support.files import make_folder, write_text
from boundwatch._support.parallel import progress_bar
from boundwatch._support.validation import check_choice, check_level
from boundwatch.bounds.pac_bayes import MIN_ENVIRONMENTS, Bound
from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.training import tensorfile
from boundwatch.training.posterior import GaussianPosterior

OptimizerName = Literal["adam", "sgd"]
Tensors = dict[str, Tensor]
_SERIES = ("cost", "divergence", "upper")
_KIND = "boundwatch.checkpoint/1"
_DECAY_FIRST, _DECAY_SECOND, _EPSILON = 0.9, 0.999, 1e-12


def check_theorem(bound: Bound, delta: float, m: int) -> float:
    """Return ``delta`` as a number; refuse what no certificate could be issued for."""
    check_choice(bound, "bound", get_args(Bound))
    if m < MIN_ENVIRONMENTS:
        raise InvalidSetting(f"{m} training environments; the theorem needs at least {MIN_ENVIRONMENTS}")
    return check_level(delta, "delta")


@dataclass
class History:
    """Numbers of a training, one of each per step, estimated from the policies and environments of that step.

    They guide the eye. Only `boundwatch.training.certify` issues a guarantee.

    Attributes
    ----------
    bound
        Which bound was minimized.
    cost
        Mean training cost of the sampled policies; the true cost where the surrogate gave it.
    divergence
        D₂(P‖P₀). For the pointwise bound, ln P(w)/P₀(w): the mean over the sampled policies in
        Algorithm 3, the expectation KL(P‖P₀) in Algorithm 4.
    upper
        The mean of the sampled policies' bounds, or the bound at their mean cost and that divergence.
    """

    bound: Bound
    cost: list[float] = field(default_factory=list)
    divergence: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        last = {name: getattr(self, name)[-1] for name in ("cost", "divergence", "upper") if len(self)}
        return one_line(self, {"bound": self.bound, "steps": len(self)} | last)

    def __str__(self) -> str:
        if not len(self):
            return f"History of a training by the {self.bound} bound, before its first step"
        costs = f"training cost {self.cost[0]:.4g} at first, {self.cost[-1]:.4g} at last"
        return f"History of {len(self)} steps: {costs}; {self.bound} bound {self.upper[-1]:.4g}"

    def append(self, *, cost: float, divergence: float, upper: float) -> None:
        """Add the numbers of one step."""
        self.cost.append(cost)
        self.divergence.append(divergence)
        self.upper.append(upper)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON."""
        write_text(path, json.dumps(asdict(self), indent=1) + "\n")


class Optimizer:
    """Adam (Kingma and Ba, 2015) or plain gradient descent on ψ, a step meaning the same for every parameter.

    Gradients and steps are (2, d) tensors: the first row for the shift (μ - μ₀)/√s₀, the second for ln(s/s₀).
    So learning rates are in standard deviations of the prior. The state is a few tensors, replaced and never
    changed in place, which is what a checkpoint needs.
    """

    def __init__(
        self, name: OptimizerName, learning_rate: float, variance_rate: float | None, dim: int
    ) -> None:
        check_choice(name, "optimizer", get_args(OptimizerName))
        variance_rate = learning_rate if variance_rate is None else variance_rate
        for label, rate in (("learning_rate", learning_rate), ("variance_rate", variance_rate)):
            if not 0 <= rate < float("inf"):
                raise InvalidSetting(f"{label} = {rate!r} is not a number >= 0; choose e.g. 0.05")
        self.settings = [name, learning_rate, variance_rate]
        self._rates = torch.tensor([[learning_rate], [variance_rate]], dtype=torch.float64)
        moments = {"first": (2, dim), "second": (2, dim), "count": ()} if name == "adam" else {}
        self.state = {key: torch.zeros(shape, dtype=torch.float64) for key, shape in moments.items()}

    def step(self, gradient: Tensor) -> Tensor:
        """Return what to subtract from (shift, log ratio) for this gradient, and update the state."""
        if not self.state:  # plain descent
            return self._rates * gradient
        count = self.state["count"] + 1
        first = _DECAY_FIRST * self.state["first"] + (1 - _DECAY_FIRST) * gradient
        second = _DECAY_SECOND * self.state["second"] + (1 - _DECAY_SECOND) * gradient**2
        self.state = {"first": first, "second": second, "count": count}
        first = first / (1 - _DECAY_FIRST**count)
        second = second / (1 - _DECAY_SECOND**count)
        return self._rates * first / (second.sqrt() + _EPSILON)


class Checkpoint:
    """A file that keeps the last finished step of one training, and refuses every other; None keeps nothing.

    ``settings`` are all that decides how the training goes besides where it starts, as JSON values; ``start``
    is the fingerprint of what is trained, as it is now: before the first step, or after the last one kept.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, settings: Mapping[str, object], start: str
    ) -> None:
        self.path = None if path is None else Path(path)
        self._settings = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._start = start
        if self.path is not None:
            make_folder(self.path.parent)

    def save(self, tensors: Mapping[str, Tensor], *, step: int, state: str) -> None:
        """Replace the file; ``state`` is the fingerprint of what is trained after this step."""
        if self.path is not None:
            metadata = {"settings": self._settings, "start": self._start, "state": state, "step": str(step)}
            tensorfile.save(self.path, tensors, {"kind": _KIND} | metadata)

    def load(self) -> tuple[int, Tensors] | None:
        """Return the last finished step and its tensors; None if there is no file."""
        if self.path is None or not self.path.exists():
            return None
        tensors, metadata = tensorfile.load(self.path, _KIND)
        # The state after the last step, too: the same object, given again after an interruption.
        known = metadata.get("start"), metadata.get("state")
        if metadata.get("settings") != self._settings or self._start not in known:
            raise ProvenanceMismatch(
                f"{self.path} belongs to a training with another start, other data or other settings; "
                "give the same ones to continue it, or another path to start over"
            )
        self._start = metadata["start"]
        if not metadata.get("step", "").isdecimal():
            raise self.damaged()
        return int(metadata["step"]), tensors

    def damaged(self) -> SchemaMismatch:
        """Return the refusal of a file that lacks something."""
        return SchemaMismatch(f"{self.path} is not a whole checkpoint; remove it to start over")


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
        done, tensors = self._finished
        self._posterior.move(tensors["psi.mean"], tensors["psi.log_variance"])
        if kind is KeyboardInterrupt or done > 0:
            self._save()
        if kind is KeyboardInterrupt:
            where = f"{self._checkpoint.path} holds it; run the same command again to continue"
            if self._checkpoint.path is None:
                where = "no checkpoint was asked for, so this training is lost"
            console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
            console.print(f"interrupted after step {done} of {self._steps}: {where}")

    def _snapshot(self) -> tuple[int, Tensors]:
        # The next step replaces these tensors and changes none: it costs nothing to keep them.
        psi = {"psi.mean": self._posterior.mean, "psi.log_variance": self._posterior.log_variance}
        moments = {f"optimizer.{name}": value for name, value in self._optimizer.state.items()}
        return len(self.history), psi | moments

    def _save(self) -> None:
        if self._checkpoint.path is None:
            return
        done, tensors = self._finished
        numbers = {name: getattr(self.history, name)[:done] for name in _SERIES}
        series = {f"history.{name}": torch.tensor(n, dtype=torch.float64) for name, n in numbers.items()}
        self._checkpoint.save(tensors | series, step=done, state=self._posterior.sha256())

    def _resume(self) -> None:
        """Go to where the checkpoint left off, if there is one."""
        found = self._checkpoint.load()
        if found is None:
            return
        done, tensors = found
        if done > self._steps:
            path = self._checkpoint.path
            raise InvalidSetting(f"steps = {self._steps} is below the {done} that {path} has; raise it")
        expected = self._snapshot()[1] | {f"history.{name}": torch.empty(done) for name in _SERIES}
        if {name: t.shape for name, t in tensors.items()} != {name: t.shape for name, t in expected.items()}:
            raise self._checkpoint.damaged()
        self._posterior.move(tensors["psi.mean"], tensors["psi.log_variance"])
        self._optimizer.state = {name: tensors[f"optimizer.{name}"] for name in self._optimizer.state}
        for name in _SERIES:
            setattr(self.history, name, tensors[f"history.{name}"].tolist())
