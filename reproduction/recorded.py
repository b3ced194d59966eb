"""What the paper's authors recorded and published: numbers beside ours (see ``recordings/README.md``)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.certificate import Certificate

FOLDER = Path(__file__).parent / "recordings"
HARDWARE, CURVES, FLIGHTS = "hardware.json", "published-curves.json", "drone-trajectories.npz"
DIFFICULTIES = (
    -9.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5, 3.8, 3.9, 4.0, 4.05, 4.1, 4.15, 4.2, 4.25, 4.3,
    4.4, 9.0,
)  # fmt: skip
"""The difficulty sweep of the paper's figures; 0 is as hard as training."""
THRESHOLDS = (0.1, 0.3, 0.5, 0.75, 1.0)
"""The paper's five d_thresh, meters."""


@dataclass(frozen=True)
class Trials:
    """Costs of one hardware experiment, ten in each setting."""

    robot: str
    setting: str
    costs: tuple[float, ...]


def digest(name: str) -> str:
    """Return the SHA-256 of a recorded file, for the settings of what is computed from it.

    Examples
    --------
    >>> len(digest(HARDWARE))
    64
    """
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()


def certificate(robot: str) -> Certificate:
    """Return what the authors certified before the trials.

    Corollary 1 puts the lower limit as far below the training cost as Theorem 1 puts the upper one above it:
    for the drone that is the same in all policies that the authors published. Of the arm it says nothing.

    Examples
    --------
    >>> drone, arm = certificate("drone"), certificate("arm")
    >>> drone.upper, round(drone.lower, 4), arm.upper, arm.lower, arm.binary
    (0.22216, 0.1568, 0.1, 0.0, True)
    """
    promise, gap = _read(HARDWARE)[robot], thresholds()["500"]
    lower = promise["bound"] - (gap["upper"] - gap["lower"]) if robot == "drone" else 0.0
    return Certificate.from_bounds(
        lower=lower, upper=promise["bound"], delta=promise["delta"], binary=robot == "arm"
    )


def thresholds() -> dict[str, dict[str, float]]:
    """Return the authors' training cost and limits by d_thresh in millimeters.

    Examples
    --------
    >>> thresholds()["500"]["upper"]
    0.33491
    """
    found: dict[str, dict[str, float]] = _read(CURVES)["drone_bounds_mm"]
    return found


def simulated_placements() -> dict[int, NDArray[np.float64]]:
    """Return the authors' simulated grasps at the six placements: costs of shape (20 datasets, 10).

    Examples
    --------
    >>> {placement: float(costs.mean()) for placement, costs in simulated_placements().items()}
    {1: 0.005, 2: 0.105, 3: 0.425, 4: 0.66, 5: 0.785, 6: 0.855}
    """
    found = _read(CURVES)["arm_simulated"]["placements_20_datasets_of_10"]
    return {round(10 * float(side)): np.array(costs, dtype=float) for side, costs in found.items()}


def simulated() -> list[Trials]:
    """Return the authors' simulated grasps of ten mugs and ten bowls.

    Examples
    --------
    >>> [(trials.setting, sum(trials.costs)) for trials in simulated()]
    [('mugs, simulated', 0.0), ('bowls, simulated', 7.0)]
    """
    found = _read(CURVES)["arm_simulated"]
    return [Trials("arm", f"{name}, simulated", tuple(map(float, found[name]))) for name in ("mugs", "bowls")]


def hardware() -> list[Trials]:
    """Return all hardware trials.

    Examples
    --------
    >>> [trials.setting for trials in hardware() if trials.robot == "arm"]
    ['10 cm', '20 cm', '30 cm', '40 cm', '50 cm', 'mugs', 'bowls']
    """
    content = _read(HARDWARE)
    drone, arm = content["drone"]["settings"], content["arm"]
    sides = {f"{100 * float(side):.0f} cm": costs for side, costs in arm["placement_side_m"].items()}
    return [
        Trials(robot, setting, tuple(map(float, costs)))
        for robot, settings in (("drone", drone), ("arm", sides | arm["objects"]))
        for setting, costs in settings.items()
    ]


@dataclass(frozen=True)
class Published:
    """What the authors' code plotted for one setting of difficulty: shares of 2000 datasets of 50."""

    shift: float
    shares: dict[str, float]

    def share(self, detector: str, verdict: str = "adverse") -> float:
        """Return the share of a verdict, in our words for the detectors."""
        name = {"hypothesis-test": "p", "confidence-interval": "deltaC", "max-logit": "maxlogit"}.get(
            detector, detector
        )
        return self.shares[name if detector in ("msp", "max-logit") else f"{name}_ood_{verdict[0]}"]


def published(figure: str, key: str = "500") -> dict[str, Published]:
    """Return a published curve, by our names of the settings.

    Parameters
    ----------
    figure
        Of the file: ``figure_4_difficulty``, ``figure_5_rates`` or ``figure_6_baselines``.
    key
        The threshold in millimeters; of the rates, the permitted one less delta.

    Examples
    --------
    >>> curve = published("figure_4_difficulty")
    >>> curve["difficulty:4"].shift, curve["difficulty:4"].share("confidence-interval")
    (0.337707, 1.0)
    """
    columns = _read(CURVES)[figure][key]
    shifts = columns["x"]
    return {
        f"difficulty:{v:g}": Published(
            shifts[i], {name: values[i] for name, values in columns.items() if name != "x"}
        )
        for i, v in enumerate(DIFFICULTIES)
    }


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return content
