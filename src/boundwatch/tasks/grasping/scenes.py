"""Environments of the grasping task: one object, somewhere on the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boundwatch._support.validation import check_choice
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.grasping.objects import Bowl, Item, Mug, VariedMug

CENTER = (0.5, 0.0)
"""Where the camera looks, meters from the base of the arm; the middle of every placement."""
PLACEMENTS = {number: 0.05 * number for number in range(1, 7)}
"""The paper's six distributions: half the side, meters, of the square where the object stands. 1 is
training."""

DRAWS: dict[str, Callable[[np.random.Generator], Item]] = {
    "mugs": Mug.draw,
    "varied-mugs": VariedMug.draw,
    "bowls": Bowl.draw,
    "wide-bowls": Bowl.draw_wide,
}


@dataclass(frozen=True)
class Scene:
    """One environment: an object upright on the table."""

    item: Item
    x: float
    """Away from the base of the arm, meters."""
    y: float
    """To its left, meters."""
    yaw: float
    """Turn of the object about the vertical, radians."""


def draw_scenes(
    n: int, rng: np.random.Generator, *, objects: str = "mugs", placement: int = 1
) -> list[Scene]:
    """Draw environments, independently of each other.

    Parameters
    ----------
    n, rng
        How many, and where the randomness comes from.
    objects
        ``"mugs"``, ``"varied-mugs"`` (many shapes), ``"bowls"`` (12-18 cm), ``"wide-bowls"`` (15-21 cm).
    placement
        1 (training) to 6: uniform on a square with a side of 10 to 60 cm around (0.5, 0) m, at any yaw.

    Examples
    --------
    >>> scenes = draw_scenes(100, np.random.default_rng(0), placement=2)
    >>> bool(max(abs(scene.x - 0.5) for scene in scenes) <= 0.1)
    True
    >>> draw_scenes(1, np.random.default_rng(0), objects="plates")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: objects = 'plates' is unknown; choose one of mugs, ...
    """
    check_distribution(objects, placement)
    if n < 1:
        raise InvalidSetting(f"n = {n} is below 1; ask for at least one environment")
    half = PLACEMENTS[placement]
    scenes = []
    for _ in range(n):
        item = DRAWS[objects](rng)
        x, y = (float(middle + rng.uniform(-half, half)) for middle in CENTER)
        scenes.append(Scene(item, x, y, float(rng.uniform(-math.pi, math.pi))))
    return scenes


def check_distribution(objects: str, placement: int) -> None:
    """Refuse objects and placements that do not exist."""
    check_choice(objects, "objects", DRAWS)
    if placement not in PLACEMENTS:
        raise InvalidSetting(f"placement = {placement} is unknown; choose 1 (training) to {len(PLACEMENTS)}")
