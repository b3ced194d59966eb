"""The ledger: which costs were judged by which certificate, when, and at which levels.

One line of JSON per look. A fixed-sample verdict holds for one look at a number of episodes fixed in advance;
the ledger is how anybody can tell whether there were more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boundwatch._support import files
from boundwatch._support.schema import convert, decode
from boundwatch.certificates.record import costs_digest
from boundwatch.detectors.base import Finding
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.errors import Place, SchemaMismatch


@dataclass(frozen=True)
class Look:
    """One look at new costs."""

    time: str
    certificate: str
    n: int
    costs_sha256: str
    detector: str
    levels: tuple[float, float]
    verdict: str
    kind: Literal["look"] = "look"

    @classmethod
    def at(cls, detector: FixedSampleDetector, finding: Finding, costs: NDArray[np.float64]) -> Look:
        """Return the look that is taken now."""
        return cls(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            certificate=detector.certificate.fingerprint,
            n=finding.n,
            costs_sha256=costs_digest(costs),
            detector=f"{finding.detector}, {finding.tail} tail",
            levels=detector.levels,
            verdict=finding.verdict.value,
        )

    def describe(self) -> str:
        """Say it in one line."""
        return (
            f"{self.time}: {self.n} episodes, {self.verdict.upper()}, levels {self.levels[0]:g} and "
            f"{self.levels[1]:g} ({self.detector}), costs {self.costs_sha256[:12]}"
        )


def read_ledger(path: str | os.PathLike[str]) -> list[Look]:
    """Return the looks in a ledger; none if there is no such file yet."""
    if not Path(path).exists():
        return []
    looks: list[Look] = []
    for line in files.read_bytes(path).splitlines():
        try:
            looks.append(convert(Look, decode(line)))
        except SchemaMismatch as error:
            place = Place(str(path), "line", len(looks) + 1)
            problem = "is not a look that `check` wrote"
            raise SchemaMismatch(problem, where=place, remedy="name another file") from error
    return looks


def add_look(path: str | os.PathLike[str], look: Look) -> None:
    """Write a look at the end of a ledger, whole or not at all."""
    before = files.read_bytes(path) if Path(path).exists() else b""
    files.write_bytes(path, before + json.dumps(asdict(look)).encode() + b"\n")


def earlier_looks(looks: Sequence[Look], certificate: str, costs: NDArray[np.float64]) -> list[str]:
    """Say which looks were at the beginning of these costs, or at all of them."""
    warnings, n = [], costs.size
    for look in looks:
        before = f"were judged before, at {look.time}"
        if look.certificate != certificate or look.n > n:
            continue
        if look.costs_sha256 != costs_digest(costs[: look.n]):
            continue
        if look.n == n:
            warnings.append(f"the same {n} episodes {before}; it is one look, not two")
        else:
            warnings.append(
                f"the first {look.n} of these {n} episodes {before}: a verdict from episodes that were added "
                "after a look has no guarantee; use `boundwatch watch`"
            )
    return warnings
