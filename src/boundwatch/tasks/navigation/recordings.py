"""Recorded flights of each primitive: from the model, or from a file of one's own.

A file holds positions in meters, the drone starting at the origin and flying along +y, all flights sampled
alike.

CSV
    Columns ``primitive``, ``rollout``, ``x``, ``y`` (others are ignored), one row per time step, rows of one
    flight in the order of time, every flight equally long. Primitives and rollouts are numbered from 0.
NPZ
    One array ``positions`` of shape (primitives, rollouts, steps, 2 or 3). A rollout that is missing is all
    NaN.
"""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.files import write_bytes
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.drone import DroneSettings, fly, recorded_noise

LONGEST_FLIGHT = 100.0  # meters; with a depth sensor of 7 m, a longer one means a file in millimeters


@dataclass(frozen=True, eq=False)
class Recordings:
    """Flights of each primitive, drawn from at random whenever the policy selects it."""

    paths: tuple[NDArray[np.float64], ...]
    """For each primitive an array of shape (rollouts, steps, 2): x and y in meters."""

    def __post_init__(self) -> None:
        if len(self.paths) < 2:
            raise InvalidSetting(
                f"{len(self.paths)} primitives recorded; a policy needs at least 2 to choose from"
            )
        for number, path in enumerate(self.paths):
            _check_path(path, f"primitive {number}")

    def __repr__(self) -> str:
        return one_line(self, {"counts": self.counts})

    @classmethod
    def from_drone(cls, drone: DroneSettings) -> Recordings:
        """Fly the model in calm air, once for each recorded rollout."""
        noise = recorded_noise(drone)
        primitive = np.repeat(np.arange(len(drone.primitives))[:, None], drone.rollouts, axis=1)
        return cls(tuple(fly(drone, primitive, noise)))

    @classmethod
    def load(cls, path: str | Path) -> Recordings:
        """Read a CSV or NPZ file of recorded flights (formats: this module's description)."""
        path = Path(path)
        try:
            return cls(_READERS[path.suffix.lower()](path))
        except (OSError, UnicodeDecodeError, KeyError) as error:
            problem = f"trajectories = {path} cannot be read ({error})"
            raise InvalidSetting(f"{problem}; pass a file ending in .csv or .npz") from error
        except InvalidSetting as error:
            raise InvalidSetting(f"trajectories = {path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the flights to an NPZ file that `load` reads."""
        positions = np.full((len(self.paths), max(self.counts), self.paths[0].shape[1], 2), np.nan)
        for number, flights in enumerate(self.paths):
            positions[number, : len(flights)] = flights
        buffer = io.BytesIO()
        np.savez_compressed(buffer, positions=positions)
        write_bytes(path, buffer.getvalue())

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rollouts of each primitive were recorded."""
        return tuple(len(flights) for flights in self.paths)

    def sha256(self) -> str:
        """Return a fingerprint of all positions, to a hundredth of a millimeter."""
        digest = hashlib.sha256()
        for flights in self.paths:
            digest.update(f"{flights.shape}".encode())
            digest.update(np.rint(flights * 1e5).astype("<i8").tobytes())
        return digest.hexdigest()

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw for each of `n` environments which rollout every primitive would fly, uniformly."""
        drawn: NDArray[np.intp] = (rng.random((n, len(self.paths))) * np.array(self.counts)).astype(np.intp)
        return drawn


def _check_path(path: NDArray[np.float64], where: str) -> None:
    if path.ndim != 3 or path.shape[0] < 1 or path.shape[1] < 2 or path.shape[2] != 2:
        raise InvalidSetting(f"{where} has shape {path.shape}; it must be (rollouts >= 1, steps >= 2, 2)")
    if not np.all(np.isfinite(path)):
        rollout, step, _ = np.argwhere(~np.isfinite(path))[0]
        place = f"{where}, rollout {rollout}, step {step}"
        raise InvalidSetting(f"{place} is not finite; leave out whole rollouts only")
    if np.abs(path).max() > LONGEST_FLIGHT:
        raise InvalidSetting(
            f"{where} reaches {np.abs(path).max():g}; positions must be meters within {LONGEST_FLIGHT:g} "
            "of the start (are they millimeters?)"
        )


def _from_npz(path: Path) -> tuple[NDArray[np.float64], ...]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            positions = np.asarray(archive["positions"], dtype=np.float64)
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        problem = f"no numeric array 'positions' in it ({error})"
        raise InvalidSetting(f"{problem}; save one with numpy.savez") from error
    if positions.ndim != 4 or positions.shape[-1] not in (2, 3):
        wanted = "(primitives, rollouts, steps, 2 or 3)"
        raise InvalidSetting(f"positions has shape {positions.shape}; it must be {wanted}")
    return tuple(flights[~np.isnan(flights).all(axis=(1, 2))][..., :2] for flights in positions)


def _from_csv(path: Path) -> tuple[NDArray[np.float64], ...]:
    flights: dict[tuple[int, int], list[tuple[float, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = {"primitive", "rollout", "x", "y"} - set(reader.fieldnames or ())
        if missing:
            wanted = "the header must name primitive, rollout, x, y"
            raise InvalidSetting(f"column {min(missing)!r} is missing; {wanted}")
        for row in reader:
            try:
                key = int(row["primitive"]), int(row["rollout"])
                flights.setdefault(key, []).append((float(row["x"]), float(row["y"])))
            except (TypeError, ValueError) as error:
                where = f"line {reader.line_num}"
                raise InvalidSetting(f"{where} is not four numbers ({error}); correct it") from error
    names = sorted({primitive for primitive, _ in flights})
    if names != list(range(len(names))):
        raise InvalidSetting(f"primitives are numbered {names}; they must be 0, 1, 2, ... without gaps")
    lengths = sorted((len(flight), *key) for key, flight in flights.items())
    if lengths and lengths[0][0] != lengths[-1][0]:
        short, long = (f"primitive {p}, rollout {r} has {n} steps" for n, p, r in (lengths[0], lengths[-1]))
        raise InvalidSetting(f"{short} and {long}; cut every flight to the same length")
    return tuple(np.array([flights[key] for key in sorted(flights) if key[0] == name]) for name in names)


_READERS = {".npz": _from_npz, ".csv": _from_csv}
