"""Environments of the grasping task: one piece of crockery, somewhere on the table.

Mugs and bowls are made of boxes, capsules and a cylinder, with random dimensions: those of household
stoneware, chosen before any policy was tried on them; ``docs/grasping.md`` gives the reasons. The parts
overlap where they meet, so each has a mass of its own: that of the piece of crockery which it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import check_choice
from boundwatch.errors import InvalidSetting

CENTER = (0.5, 0.0)
"""Where the camera looks, meters from the base of the arm; the middle of every placement."""
PLACEMENTS = {number: 0.05 * number for number in range(1, 7)}
"""The paper's six distributions: half the side, meters, of the square where the object stands. 1 is
training."""
MUG_SIDES = 20
BOWL_SIDES = 24
BOWL_RINGS = 3
HANDLE_PARTS = 5
HANDLE_RADIUS = 0.005
"""Half the thickness of a mug's handle, meters."""
BASE = 0.005
"""Thickness of the bottom, meters."""
LIP_HEIGHT = 0.006
"""Of the lip of a varied mug, meters."""
FAMILIES = {
    "straight": ((0.93, 1.0), (1.0, 1.0)),
    "cone": ((0.6, 0.9), (1.0, 1.0)),
    "barrel": ((0.75, 0.95), (1.08, 1.25)),
    "waisted": ((0.85, 1.0), (0.85, 0.95)),
}
"""Of varied mugs: ranges of the foot's radius over the rim's, and of the belly's over a straight wall's."""


@dataclass(frozen=True)
class Mug:
    """A mug with a handle toward +x of its own frame, whose origin is the middle of its bottom; meters."""

    radius: float
    """Outer radius at the rim."""
    height: float
    """From the table to the rim."""
    wall: float
    """Thickness of the wall."""
    taper: float
    """Radius at the bottom over radius at the rim."""
    handle_reach: float
    """How far the handle stands out from the wall."""
    handle_height: float
    """Height of the handle over that of the mug."""

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Mug:
        """Draw a mug."""
        body = {"radius": (0.036, 0.052), "height": (0.075, 0.115), "wall": (0.0035, 0.006)}
        handle = {"handle_reach": (0.028, 0.045), "handle_height": (0.45, 0.65)}
        return cls(**_uniform(rng, body | {"taper": (0.85, 1.0)} | handle))

    def geoms(self, density: float) -> Iterator[str]:
        """Yield the parts, of a material with this density, kg/m³, as MJCF."""
        bottom = self.taper * self.radius
        yield _base(bottom, self.wall, density)
        yield from _ring(MUG_SIDES, (bottom, 0.0), (self.radius, self.height), self.wall, density)
        yield from self._handle(density)

    def _outside(self, heights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outer radius at heights."""
        return self.radius * (self.taper + (1.0 - self.taper) * heights / self.height)

    def _handle(
        self, density: float, radius: float = HANDLE_RADIUS, middle: float = 0.5, power: float = 1.0
    ) -> Iterator[str]:
        half = 0.5 * self.handle_height * self.height
        turns = np.linspace(-0.5 * math.pi, 0.5 * math.pi, HANDLE_PARTS + 1)
        up, away = (np.sign(part) * np.abs(part) ** power for part in (np.sin(turns), np.cos(turns)))
        heights = middle * self.height + half * up
        # Its ends are round, and must not show inside the mug.
        out = self._outside(heights) - self.wall + radius + self.handle_reach * away
        yield from _rod(out, heights, radius, density)


@dataclass(frozen=True)
class VariedMug(Mug):
    """A mug of one of four families, whose wall bends at half its height: straight, cone, barrel or waisted.

    Its lip, and the shape, thickness and place of its handle vary as well.
    """

    belly: float
    """Radius at half the height over that of a straight wall there."""
    lip: float
    """How far a lip stands out from the rim; 0 for none."""
    handle_radius: float
    """Half the thickness of the handle."""
    handle_middle: float
    """Height of the handle's middle over that of the mug."""
    handle_power: float
    """1 makes the handle half an ellipse, less squarer, more pointed."""

    @classmethod
    def draw(cls, rng: np.random.Generator) -> VariedMug:
        """Draw a mug: first its family, each as likely as the others."""
        foot, belly = FAMILIES[list(FAMILIES)[rng.integers(len(FAMILIES))]]
        lip = float(rng.uniform(0.001, 0.003))
        body = {"radius": (0.036, 0.052), "height": (0.070, 0.120), "wall": (0.0025, 0.007), "taper": foot}
        handle = {"handle_reach": (0.020, 0.050), "handle_height": (0.35, 0.65)}
        sizes = _uniform(rng, body | handle | {"belly": belly})
        sizes["lip"] = lip if rng.random() < 0.5 else 0.0
        shape = {"handle_radius": (0.004, 0.0065), "handle_middle": (0.45, 0.55), "handle_power": (0.4, 1.5)}
        return cls(**sizes | _uniform(rng, shape))

    def geoms(self, density: float) -> Iterator[str]:
        """Yield the parts, of a material with this density, kg/m³, as MJCF."""
        heights = np.array([0.0, 0.5 * self.height, self.height])
        foot, middle, rim = zip(self._outside(heights), heights, strict=True)
        yield _base(foot[0], self.wall, density)
        yield from _ring(MUG_SIDES, foot, middle, self.wall, density)
        yield from _ring(MUG_SIDES, middle, rim, self.wall, density)
        if self.lip:
            edge = self.radius + self.lip
            lower, upper = (edge, self.height - LIP_HEIGHT), (edge, self.height)
            yield from _ring(MUG_SIDES, lower, upper, self.lip, density)
        yield from self._handle(density, self.handle_radius, self.handle_middle, self.handle_power)

    def _outside(self, heights: NDArray[np.float64]) -> NDArray[np.float64]:
        middle = 0.5 * (1.0 + self.taper) * self.belly
        corners = np.array([0.0, 0.5 * self.height, self.height])
        return self.radius * np.interp(heights, corners, [self.taper, middle, 1.0])


@dataclass(frozen=True)
class Bowl:
    """A round bowl, its frame's origin in the middle of its bottom; meters."""

    radius: float
    """Outer radius at the rim."""
    height: float
    """From the table to the rim."""
    wall: float
    """Thickness of the wall."""
    foot: float
    """Radius at the bottom over radius at the rim."""

    @classmethod
    def draw(cls, rng: np.random.Generator, radius: tuple[float, float] = (0.060, 0.090)) -> Bowl:
        """Draw a bowl, by default for cereal or soup, 12 to 18 cm across."""
        sizes = {"radius": radius, "height": (0.045, 0.075), "wall": (0.0035, 0.006), "foot": (0.40, 0.55)}
        return cls(**_uniform(rng, sizes))

    def geoms(self, density: float) -> Iterator[str]:
        """Yield the parts, of a material with this density, kg/m³, as MJCF."""
        turns = np.linspace(0.0, 0.5 * math.pi, BOWL_RINGS + 1)
        foot = self.foot * self.radius
        # A quarter of an ellipse, cut at the foot: flat below, steep at the rim.
        radii = foot + (self.radius - foot) * np.sin(turns)
        heights = self.height * (1.0 - np.cos(turns))
        yield _base(foot, self.wall, density)
        for i in range(BOWL_RINGS):
            lower, upper = (radii[i], heights[i]), (radii[i + 1], heights[i + 1])
            yield from _ring(BOWL_SIDES, lower, upper, self.wall, density)


Item = Mug | Bowl


def _uniform(rng: np.random.Generator, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    return {name: float(rng.uniform(*ends)) for name, ends in ranges.items()}


def _base(radius: float, wall: float, density: float) -> str:
    half = 0.5 * BASE
    mass = density * math.pi * (radius - wall) ** 2 * BASE  # within the wall, which weighs for itself
    form = f'type="cylinder" size="{radius:.6f} {half}" pos="0 0 {half}"'
    return f'<geom class="object" {form} mass="{mass:.9f}"/>'


def _rod(
    out: NDArray[np.float64], heights: NDArray[np.float64], radius: float, density: float
) -> Iterator[str]:
    """Yield capsules along a line in the plane y = 0."""
    for i in range(len(out) - 1):
        ends = f"{out[i]:.6f} 0 {heights[i]:.6f} {out[i + 1]:.6f} 0 {heights[i + 1]:.6f}"
        length = math.hypot(out[i + 1] - out[i], heights[i + 1] - heights[i])
        mass = density * math.pi * radius**2 * length
        form = f'type="capsule" fromto="{ends}" size="{radius}"'
        yield f'<geom class="object" {form} mass="{mass:.9f}"/>'


def _ring(
    sides: int, lower: tuple[float, float], upper: tuple[float, float], wall: float, density: float
) -> Iterator[str]:
    """Yield boxes whose outer faces make a ring between two (radius, height) circles."""
    (r0, z0), (r1, z1) = lower, upper
    length = math.hypot(r1 - r0, z1 - z0)
    lean = math.atan2(r1 - r0, z1 - z0)
    # The middle of the box lies half a wall inside the outer face.
    radius = 0.5 * (r0 + r1) - 0.5 * wall * math.cos(lean)
    height = 0.5 * (z0 + z1) + 0.5 * wall * math.sin(lean)
    width = max(r0, r1) * math.tan(math.pi / sides)
    size = f"{0.5 * wall:.6f} {width:.6f} {0.5 * length:.6f}"
    mass = density * 2.0 * math.pi * radius * length * wall / sides  # Pappus: a rectangle goes round
    for i in range(sides):
        turn = 2.0 * math.pi * (i + 0.5) / sides
        position = f"{radius * math.cos(turn):.6f} {radius * math.sin(turn):.6f} {height:.6f}"
        yield (
            f'<geom class="object" type="box" size="{size}" pos="{position}" '
            f'euler="0 {lean:.6f} {turn:.6f}" mass="{mass:.9f}"/>'
        )


DRAWS: dict[str, Callable[[np.random.Generator], Item]] = {
    "mugs": Mug.draw,
    "varied-mugs": VariedMug.draw,
    "bowls": Bowl.draw,
    "wide-bowls": lambda rng: Bowl.draw(rng, (0.075, 0.105)),  # for pasta or salad
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

    Objects are ``"mugs"``, ``"varied-mugs"`` (many shapes), ``"bowls"`` (12-18 cm) or ``"wide-bowls"`` (15-21
    cm). A placement of 1 (training) to 6 is uniform on a square with a side of 10 to 60 cm, at any yaw.
    """
    check_choice(objects, "objects", DRAWS)
    if placement not in PLACEMENTS:
        raise InvalidSetting(f"placement = {placement} is unknown; choose 1 (training) to {len(PLACEMENTS)}")
    if n < 1:
        raise InvalidSetting(f"n = {n} is below 1; ask for at least one environment")
    half = PLACEMENTS[placement]
    scenes = []
    for _ in range(n):
        item = DRAWS[objects](rng)
        x, y = (float(middle + rng.uniform(-half, half)) for middle in CENTER)
        scenes.append(Scene(item, x, y, float(rng.uniform(-math.pi, math.pi))))
    return scenes
