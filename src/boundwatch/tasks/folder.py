"""What a training leaves on disk: claimed by one process, resumed after a kill, loaded and checked again.

A training is a folder. ``settings.json`` comes first and says what it is; ``checkpoints/`` holds what an
interrupted one continues from; `boundwatch.training.certify` writes policy and certificate; ``summary.json``
comes last and says that all of it is there. Our own tasks use these functions, and so may yours.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch._support.files import make_folder, read_bytes, sha256_file, write_text
from boundwatch._support.locks import locked
from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import BoundwatchError, InvalidSetting, ProvenanceMismatch, SchemaMismatch

POLICY, CERTIFICATE = "policy.safetensors", "certificate.json"


@dataclass(frozen=True)
class Claim:
    """A folder that belongs to one training for as long as it runs."""

    folder: Path
    finished: bool
    """Whether the folder holds this training already, to the end."""
    started: str = ""
    """When it started first, UTC in ISO 8601; an interruption does not change it."""

    def __str__(self) -> str:
        return (
            f"The folder {self.folder}, {'with a finished training' if self.finished else 'claimed to train'}"
        )

    @property
    def checkpoints(self) -> Path:
        """Where to keep what an interrupted training continues from; `finish` removes it."""
        return self.folder / "checkpoints"

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, which makes the training whole, and drop the checkpoints."""
        write_text(self.folder / "summary.json", json.dumps(summary, indent=2) + "\n")
        shutil.rmtree(self.checkpoints)


@contextmanager
def claim(folder: str | Path, task: str, settings: Mapping[str, Any]) -> Iterator[Claim]:
    """Claim a folder for a training with these settings, before minutes are spent on it.

    Parameters
    ----------
    folder
        Where the training goes. A finished one with the same settings is kept, whatever version trained it.
        What a killed one of this version left is kept, to continue; any other makes way as long as it has not
        drawn its policy.
    task
        The task's name.
    settings
        Everything that determines the training, as plain JSON values.

    Raises
    ------
    InvalidSetting
        If the folder holds an unfinished training of another version, or one with other settings, that has
        drawn its policy, or if another process is training there.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with claim(folder, "coin", {"seed": 1}) as claimed:
    ...     claimed.finish({"cost": 0.5})
    >>> with claim(folder, "coin", {"seed": 1}) as claimed:
    ...     claimed.finished
    True
    """
    path = Path(folder)
    text = json.dumps({"boundwatch": __version__, "task": task, **settings}, indent=2) + "\n"
    wanted = json.loads(text)
    alike = _stored(path) | {"boundwatch": __version__} == wanted
    if alike and (path / "summary.json").exists():
        yield Claim(path, finished=True)  # read only: it may lie where nothing can be written
        return
    with locked(path, "training"):
        stored = _stored(path)
        same = stored == wanted
        if (path / "draw.json").exists() and not same:
            other = f"by boundwatch {stored.get('boundwatch')}" if alike else "with other settings"
            raise InvalidSetting(f"{path} already holds a training {other}; choose another folder")
        checkpoints = path / "checkpoints"
        if not same:
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

    def __repr__(self) -> str:
        return one_line(self, {"policy": str(self.policy), "certificate": self.certificate})

    def __str__(self) -> str:
        return f"A finished training in {self.policy.parent}. {self.certificate}"


def load(folder: str | Path, task: str) -> Saved:
    """Load a finished training of a task.

    Raises
    ------
    SchemaMismatch
        If the folder does not hold a whole training of this task.
    ProvenanceMismatch
        If its policy is not the one that its certificate speaks of.

    Examples
    --------
    >>> load("no/such/folder", "navigation")
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: no/such/folder holds no settings.json; give the folder that ...
    """
    path = Path(folder)
    if not (path / "settings.json").is_file():
        raise SchemaMismatch(f"{path} holds no settings.json; give the folder that `boundwatch train` wrote")
    with whole(path, task):
        settings = dict(json.loads(read_bytes(path / "settings.json")))
        if settings["task"] != task:
            raise SchemaMismatch(f"{path} holds a training of {settings['task']!r}, not of {task}")
    if not (path / "summary.json").is_file():
        raise SchemaMismatch(f"{path} holds a training that has not finished; run the same command again")
    with whole(path, task):
        summary = dict(json.loads(read_bytes(path / "summary.json")))
    certificate = Certificate.load(path / CERTIFICATE)
    if certificate.provenance.policy_sha256 != sha256_file(path / POLICY):
        raise ProvenanceMismatch(f"{path / POLICY} is not the policy that {path / CERTIFICATE} certifies")
    return Saved(settings, summary, certificate, path / POLICY)


@contextmanager
def whole(folder: Path, task: str) -> Iterator[None]:
    """Say in one line that a folder is damaged if what is read from it inside the block has a wrong shape.

    Examples
    --------
    >>> with whole(Path("run"), "navigation"):
    ...     {}["recipe"]
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: run is not a whole training of navigation ('recipe'); train again
    """
    try:
        yield
    except BoundwatchError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaMismatch(f"{folder} is not a whole training of {task} ({error}); train again") from error


def three_bounds(cost: float, n: int, delta: float, *, renyi: float, log_ratio: float) -> dict[str, float]:
    """Return all three upper limits beside each other. Only the one chosen in advance is certified.

    Examples
    --------
    >>> limits = three_bounds(0.2, 1000, 0.01, renyi=2.0, log_ratio=1.0)
    >>> {name: round(value, 3) for name, value in limits.items()}
    {'cost': 0.2, 'renyi': 2.0, 'log_ratio': 1.0, 'upper_pinsker': 0.305, ...}
    """
    return {
        "cost": cost,
        "renyi": renyi,
        "log_ratio": log_ratio,
        "upper_pinsker": float(bounds.pac_bayes_upper(cost, n, delta, renyi, "pinsker")),
        "upper_kl": float(bounds.pac_bayes_upper(cost, n, delta, renyi, "kl")),
        "upper_pointwise": float(bounds.pointwise_upper(cost, n, delta, log_ratio)),
    }


def compare_bounds(limits: Mapping[str, float], certified: str) -> str:
    """Say the three limits in one sentence each.

    Examples
    --------
    >>> compare_bounds({"upper_pinsker": 0.31, "upper_kl": 0.3, "upper_pointwise": 0.25}, "kl")
    'Upper limits by Theorem 1: 0.3100, by its kl-inverse: 0.3000, pointwise: 0.2500. Only the one ...'
    """
    return (
        f"Upper limits by Theorem 1: {limits['upper_pinsker']:.4f}, by its kl-inverse: "
        f"{limits['upper_kl']:.4f}, pointwise: {limits['upper_pointwise']:.4f}. "
        f"Only the one chosen in advance ({certified}) is certified."
    )


def _stored(folder: Path) -> dict[str, Any]:
    """Return the settings that a folder holds; none if it holds no such file, or a damaged one."""
    path = folder / "settings.json"
    try:
        return dict(json.loads(read_bytes(path))) if path.exists() else {}
    except (ValueError, TypeError):
        return {}
