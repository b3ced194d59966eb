"""What the paper's authors recorded and published: numbers beside ours (see ``recordings/README.md``)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundwatch import Certificate

FOLDER = Path(__file__).parent / "recordings"
HARDWARE, CURVES, FLIGHTS = "hardware.json", "published-curves.json", "drone-trajectories.npz"


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
    """Return what the authors certified before the trials; they published no lower limit.

    Examples
    --------
    >>> certificate("drone").upper, certificate("arm").binary
    (0.22216, True)
    """
    promise = _read(HARDWARE)[robot]
    return Certificate.from_bounds(
        lower=0.0, upper=promise["bound"], delta=promise["delta"], binary=robot == "arm"
    )


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


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return content
