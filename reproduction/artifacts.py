"""What is computed once and kept: policies, their costs, results, each under the hash of what determines it.

An artifact is a frozen dataclass with a method that writes its content to a folder. Its fields and its source
code determine the content. The cache makes that folder, and whoever asks again, in this run or a later one,
gets the same folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from numpy.typing import NDArray

from boundwatch._support.files import locked, write_bytes, write_text
from boundwatch._support.parallel import workers
from boundwatch._version import __version__
from boundwatch.errors import InvalidSetting
from reproduction.processor import instructions
from reproduction.source import source_digest

Array = NDArray[np.float64]

CHANGED = "the source changed during the run; run the command again, what is whole is kept"


class Artifact(ABC):
    """What a cache can keep."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]
    """What it is, the first part of its folder's name."""
    slow: ClassVar[bool] = False
    """Whether making one takes many minutes: those start first, and no core waits for the last of them."""

    @property
    def module(self) -> str:
        """The module whose code makes it, with all that it imports from this package."""
        return type(self).__module__

    def needs(self) -> Sequence[Artifact]:
        """Return the artifacts that it is made from: those among its fields."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return [value for value in values if isinstance(value, Artifact)]

    @abstractmethod
    def make(self, folder: Path, cache: Cache) -> None:
        """Write it to a folder, which may hold what an interrupted attempt left."""


class Policy(Artifact):
    """A trained policy."""

    @abstractmethod
    def load(self, cache: Cache) -> Any:
        """Return the training: certificate, recipe and summary."""


def key(artifact: Artifact) -> str:
    """Return the name of an artifact's folder: its kind, and the hash of what determines its content.

    That is settings, source, version, and the instruction set that numbers are computed with.

    Examples
    --------
    >>> from reproduction.navigation import NavigationPolicy
    >>> key(NavigationPolicy()) == key(NavigationPolicy()), key(NavigationPolicy()).split("-")[0]
    (True, 'navigation')
    """
    return f"{artifact.kind}-{hashlib.sha256(_settings_text(artifact).encode()).hexdigest()[:16]}"


class Cache:
    """Artifacts in a folder.

    **Guarantee**: a folder under an artifact's key is complete; it appears by a rename after everything in it
    was written. What a killed run left unfinished lies under another name, where the next run picks it up.

    Parameters
    ----------
    root
        The folder; only one run at a time may write to it, a second one is refused.
    jobs
        Processes.

    Examples
    --------
    >>> import tempfile
    >>> Cache(Path(tempfile.mkdtemp())).missing([])
    []
    """

    def __init__(self, root: Path, *, jobs: int = 1) -> None:
        self.root = root
        self.jobs = jobs

    def folder(self, artifact: Artifact) -> Path:
        """Return the artifact's folder, after making it if it is not there."""
        final = self.root / key(artifact)
        if final.exists():
            return final
        for needed in artifact.needs():
            self.folder(needed)
        partial = self.root / f"unfinished-{key(artifact)}"
        partial.mkdir(parents=True, exist_ok=True)
        artifact.make(partial, self)
        # Processes that `make` started, and what it imported late, have read the source as it was then.
        if source_digest.__wrapped__(artifact.module) != source_digest(artifact.module):
            shutil.rmtree(partial)
            raise InvalidSetting(CHANGED)
        write_text(partial / "artifact.json", _settings_text(artifact) + "\n")
        partial.rename(final)
        return final

    def missing(self, artifacts: Iterable[Artifact]) -> list[list[Artifact]]:
        """Return what is not there yet, everything that it needs included: level by level, needs first."""
        levels: dict[str, tuple[int, Artifact]] = {}

        def visit(artifact: Artifact) -> int:
            name = key(artifact)
            if (self.root / name).exists():
                return -1
            if name not in levels:
                level = 1 + max((visit(needed) for needed in artifact.needs()), default=-1)
                levels[name] = (level, artifact)
            return levels[name][0]

        for artifact in artifacts:
            visit(artifact)
        depth = 1 + max((level for level, _ in levels.values()), default=-1)
        return [[item for level, item in levels.values() if level == wanted] for wanted in range(depth)]

    def build(self, artifacts: Iterable[Artifact], done: Callable[[Artifact], None]) -> None:
        """Make what is missing on `jobs` processes; call `done` after each."""
        wanted = list(artifacts)
        if not self.missing(wanted):
            return
        with locked(self.root, "run"):
            for level in self.missing(wanted):
                self._build(level, done)

    def _build(self, level: Sequence[Artifact], done: Callable[[Artifact], None]) -> None:
        ordered = sorted(level, key=lambda artifact: not artifact.slow)
        # Processes, not threads: torch's number of threads and the garbage of a training are per process.
        with workers(self.jobs, return_as="generator_unordered", pre_dispatch=self.jobs) as pool:
            for artifact in pool(delayed(_make)(self.root, artifact, key(artifact)) for artifact in ordered):
                done(artifact)


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write an array whole or not at all; `numpy.load` reads it."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def load_array(path: Path) -> Array:
    """Read an array of numbers as `save_array` wrote it."""
    return np.load(path, allow_pickle=False).astype(np.float64)  # type: ignore[no-any-return]


def _settings_text(artifact: Artifact) -> str:
    content = {
        "kind": artifact.kind,
        "boundwatch": __version__,
        "instructions": instructions(),
        "source": source_digest(artifact.module),
        "settings": dataclasses.asdict(artifact),
    }
    return json.dumps(content, sort_keys=True, allow_nan=False)


def _make(root: Path, artifact: Artifact, expected: str) -> Artifact:
    """Make an artifact in a process that may have been started, and have read the source, after the first."""
    if key(artifact) != expected:
        raise InvalidSetting(CHANGED)
    Cache(root).folder(artifact)
    return artifact
