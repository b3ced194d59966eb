"""What a training leaves on disk: claimed by one process, resumed after a kill, loaded and checked again.

A training is a folder. ``settings.json`` comes first and says what it is; ``checkpoints/`` holds what an
interrupted one continues from; `boundwatch.training.certify` writes policy and certificate; ``summary.json``
comes last and says that all of it is there. Our own tasks use these functions, and so may yours.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import nn

from boundwatch import bounds
from boundwatch._support.files import locked, make_folder, read_bytes, sha256_file, write_text
from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import BoundwatchError, InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.training import GaussianPosterior, certify, tensorfile

POLICY, CERTIFICATE = "policy.safetensors", "certificate.json"


@dataclass(frozen=True)
class Claim:
    """A folder that belongs to one training for as long as it runs."""

    folder: Path
    finished: bool
    """Whether the folder holds this training already, to the end."""
    started: str = ""
    """When it started first, UTC in ISO 8601; an interruption does not change it."""

    @property
    def checkpoints(self) -> Path:
        """Where to keep what an interrupted training continues from; `finish` removes it."""
        return self.folder / "checkpoints"

    def certify(
        self, posterior: GaussianPosterior, costs_of: Callable[[nn.Module], ArrayLike], **options: Any
    ) -> dict[str, float]:
        """Draw a policy and certify it as `boundwatch.training.certify` does; return its `three_bounds`."""
        certificate = certify(posterior, costs_of, self.folder, created=self.started, **options)
        drawn = posterior.flatten(tensorfile.load(self.folder / POLICY)[0])
        return three_bounds(
            float(certificate.mean_cost or 0.0),
            int(certificate.n or 0),
            certificate.delta,
            renyi=posterior.renyi_divergence(),
            log_ratio=posterior.log_density_ratio(drawn),
        )

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, which makes the training whole, and drop the checkpoints."""
        write_text(self.folder / "summary.json", json.dumps(summary, indent=2) + "\n")
        shutil.rmtree(self.checkpoints)


@contextmanager
def claim(folder: str | Path, task: str, settings: Mapping[str, Any]) -> Iterator[Claim]:
    """Claim a folder for a training, before minutes are spent on it.

    ``settings`` are everything that determines the training, as plain JSON values. A training with the same
    ones, by this version, is kept, and continued if it was killed; any other makes way as long as it has not
    drawn its policy.
    """
    path = Path(folder)
    text = json.dumps({"boundwatch": __version__, "task": task, **settings}, indent=2) + "\n"
    if _is_stored(path, text) and (path / "summary.json").exists():
        yield Claim(path, finished=True)  # read only: it may lie where nothing can be written
        return
    with locked(path, "training"):
        checkpoints = path / "checkpoints"
        if not _is_stored(path, text):
            if (path / "draw.json").exists():
                raise InvalidSetting(
                    f"{path} already holds a training with other settings, or by another version than "
                    f"{__version__}; choose another folder"
                )
            shutil.rmtree(checkpoints, ignore_errors=True)
        make_folder(checkpoints)
        write_text(path / "settings.json", text)
        started = checkpoints / "started"
        if not started.exists():
            write_text(started, datetime.now(UTC).isoformat(timespec="seconds"))
        yield Claim(path, finished=False, started=read_bytes(started).decode())


@dataclass(frozen=True)
class Saved:
    """A finished training as it lies on disk, checked."""

    settings: dict[str, Any]
    summary: dict[str, Any]
    certificate: Certificate
    policy: Path
    """The file of the certified policy, for `boundwatch.training.load_policy`."""


def load(folder: str | Path, task: str) -> Saved:
    """Load a finished training of a task; refuse a damaged one, and a policy that was not certified."""
    path = Path(folder)
    if not (path / "settings.json").is_file():
        raise SchemaMismatch(f"{path} holds no settings.json; give the folder that `boundwatch train` wrote")
    with whole(path, task):
        settings = dict(json.loads(read_bytes(path / "settings.json")))
        if settings["task"] != task:
            raise SchemaMismatch(f"{path} holds a training of {settings['task']!r}, not of {task}")
        if not (path / "summary.json").is_file():
            raise SchemaMismatch(f"{path} holds a training that has not finished; run the same command again")
        summary = dict(json.loads(read_bytes(path / "summary.json")))
    certificate = Certificate.load(path / CERTIFICATE)
    if certificate.provenance.policy_sha256 != sha256_file(path / POLICY):
        raise ProvenanceMismatch(f"{path / POLICY} is not the policy that {path / CERTIFICATE} certifies")
    return Saved(settings, summary, certificate, path / POLICY)


@contextmanager
def whole(folder: Path, task: str) -> Iterator[None]:
    """Say in one line that a folder is damaged if what is read from it inside the block has a wrong shape."""
    try:
        yield
    except BoundwatchError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaMismatch(f"{folder} is not a whole training of {task} ({error}); train again") from error


def three_bounds(cost: float, n: int, delta: float, *, renyi: float, log_ratio: float) -> dict[str, float]:
    """Return all three upper limits beside each other. Only the one chosen in advance is certified."""
    return {
        "cost": cost,
        "renyi": renyi,
        "log_ratio": log_ratio,
        "upper_pinsker": float(bounds.pac_bayes_upper(cost, n, delta, renyi, "pinsker")),
        "upper_kl": float(bounds.pac_bayes_upper(cost, n, delta, renyi, "kl")),
        "upper_pointwise": float(bounds.pointwise_upper(cost, n, delta, log_ratio)),
    }


def compare_bounds(limits: Mapping[str, float], certified: str) -> str:
    """Say the three limits of `three_bounds` in words."""
    return (
        f"Upper limits by Theorem 1: {limits['upper_pinsker']:.4f}, by its kl-inverse: "
        f"{limits['upper_kl']:.4f}, pointwise: {limits['upper_pointwise']:.4f}. "
        f"Only the one chosen in advance ({certified}) is certified."
    )


def _is_stored(folder: Path, settings: str) -> bool:
    path = folder / "settings.json"
    return path.exists() and read_bytes(path) == settings.encode()
