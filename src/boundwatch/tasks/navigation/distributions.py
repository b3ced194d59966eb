"""Distributions over environments, by name: the training one and those that the policy is then deployed in.

An environment is accepted when M, the clearance of the best primitive (with the rollouts drawn for it, in
calm air), lies in an interval; it and the number of obstacles make the difficulty. Wind changes the flight,
not the acceptance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.drone import Wind

DIFFICULTIES = (
    -9.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5, 3.8, 3.9, 4.0, 4.05, 4.1, 4.15, 4.2, 4.25, 4.3,
    4.4, 9.0,
)  # fmt: skip
"""The difficulty sweep of the paper's figures; 0 is as hard as training."""


@dataclass(frozen=True)
class Distribution:
    """A distribution over environments."""

    name: str
    """What the command line calls it."""
    obstacles: int = 9
    """Cylinders in the field."""
    gap_above: float = 0.1
    """Accepted when the best primitive keeps more than this, meters."""
    gap_below: float = np.inf
    """And at most this, meters."""
    wind: Wind | None = None
    """What blows, unseen by the sensor."""

    def __post_init__(self) -> None:
        if self.obstacles < 0:
            raise InvalidSetting(f"obstacles = {self.obstacles} is below 0")
        if not self.gap_above < self.gap_below:
            raise InvalidSetting(f"gap_above = {self.gap_above} is not below gap_below = {self.gap_below}")


TRAINING = Distribution("training")
NAMED = {
    "training": TRAINING,
    "easier": Distribution("easier", obstacles=6, gap_above=0.3),
    "harder": Distribution("harder", gap_above=0.0, gap_below=0.3),
    "task-irrelevant": Distribution("task-irrelevant", obstacles=4, gap_below=0.55),
    "windy": Distribution("windy", wind=Wind(speed=5.0)),
}


def difficulty(v: float) -> Distribution:
    """Return one point of the difficulty sweep.

    9 + round(v) obstacles; accepted for v < 0 if M > 100 - 10 v mm, else if 100 - 12 v < M < 100 max(20 -
    v^2, 1) mm.
    """
    if not -9.0 <= v <= 9.0:
        raise InvalidSetting(f"difficulty = {v} is outside [-9, 9]")
    name, obstacles = f"difficulty:{v:g}", 9 + round(v)
    if v < 0.0:
        return Distribution(name, obstacles, gap_above=(100.0 - 10.0 * v) / 1000.0)
    below = 100.0 * max(20.0 - v * v, 1.0) / 1000.0
    return Distribution(name, obstacles, gap_above=(100.0 - 12.0 * v) / 1000.0, gap_below=below)


def distribution(name: str) -> Distribution:
    """Return the distribution of that name.

    Names are those in `NAMED`, ``difficulty:V`` with V in [-9, 9], ``windy:SPEED`` with a speed in [0, 5]
    m/s, ``windy:SPEED@PLACE`` with a fan that stands elsewhere along the way (meters; 3 otherwise), and
    ``obstacles:K``, the training distribution with another number of them.

    Examples
    --------
    >>> distribution("windy:2.5").wind.speed, distribution("windy:5@4").wind.center
    (2.5, 4.0)
    """
    if name in NAMED:
        return NAMED[name]
    kind, _, value = name.partition(":")
    try:
        if kind == "difficulty":
            return difficulty(float(value))
        if kind == "windy":
            speed, _, place = value.partition("@")
            wind = Wind(speed=float(speed), center=float(place)) if place else Wind(speed=float(speed))
            return replace(NAMED["windy"], name=name, wind=wind)
        if kind == "obstacles":
            return replace(TRAINING, name=name, obstacles=int(value))
    except InvalidSetting:
        raise
    except ValueError as error:
        raise InvalidSetting(f"distribution = {name!r}: {value!r} is not a number") from error
    raise InvalidSetting(
        f"distribution = {name!r} is unknown; choose {', '.join(NAMED)}, "
        "difficulty:V with V from -9 to 9, windy:SPEED with 0 to 5 m/s, or obstacles:K"
    )
