"""How the drone was calibrated: fit each primitive's commands and noise to the published recordings."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from benchmarks.drone import LINES, SPREADS, TARGETS, lateral
from boundwatch.tasks.navigation.drone import SWING_PRIMITIVES, DroneSettings, Primitive, fly


def run() -> dict[str, Any]:
    """Fit, and return the numbers beside those in use."""
    fitted = [fit(target, spread) for target, spread in zip(TARGETS, SPREADS, strict=True)]
    return {
        "fitted": [asdict(primitive) for primitive in fitted],
        "in_use": [asdict(primitive) for primitive in SWING_PRIMITIVES],
    }


def fit(target: tuple[int, int, int], spread: int) -> Primitive:
    """Find the two bank angles and the length of the second phase, then the trim noise."""
    first = target[0] / 1000
    if abs(first) < 0.1:  # straight ahead: two angles suffice, and no length is better than another
        solved = least_squares(lambda v: miss(Primitive(*v, 0.5, 0.0), target), [0.0, 0.0], diff_step=1e-3)
        commands = Primitive(*solved.x.tolist(), 0.5, 0.0)
    else:
        starts = [
            least_squares(
                lambda v: miss(Primitive(*v, 0.0), target),
                [12 * first, -10 * first, time_back],
                x_scale=[5.0, 5.0, 0.2],
                bounds=([-45, -45, 0.1], [45, 45, 1.2]),
                diff_step=1e-3,
            )
            for time_back in (0.3, 0.5, 0.8)
        ]
        commands = Primitive(*min(starts, key=lambda solved: solved.cost).x.tolist(), 0.0)
    crossings = [cross(replace(commands, trim_noise=1.0), LINES[1], trim) for trim in (-1.0, 1.0)]
    return replace(commands, trim_noise=spread / ((crossings[1] - crossings[0]) / 2))


def miss(primitive: Primitive, target: tuple[int, int, int]) -> np.ndarray:
    """Return by how much a primitive misses its targets, mm."""
    return np.array([cross(primitive, y) for y in LINES]) - np.array(target)


def cross(primitive: Primitive, y: float, trim: float = 0.0) -> float:
    """Return where a flight with this trim error crosses a line, mm."""
    drone = DroneSettings(primitives=(primitive,))
    return lateral(fly(drone, np.array([0]), np.array([[0.0, trim, 0.0]]))[0], y)


def show(result: dict[str, Any]) -> None:
    """Print fitted and rounded values."""
    for fitted, used in zip(result["fitted"], result["in_use"], strict=True):
        print("  " + "  ".join(f"{name} {fitted[name]:7.2f} ({used[name]:g})" for name in fitted))
