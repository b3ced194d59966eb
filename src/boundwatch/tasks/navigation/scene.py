"""What the drone flies through and what it sees: cylinders, distances to them, depth images.

Everything is vectorized over environments; obstacles have shape (environments, obstacles, 2), in meters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import check_choices
from boundwatch.errors import InvalidSetting

Floats = NDArray[np.float32]

CHUNK = 1024  # obstacles times all steps of a flight, in single precision, stay in a core's cache


@dataclass(frozen=True)
class Scene:
    """The obstacle field, the depth sensor and the cost; the defaults are the published experiment's."""

    x_range: tuple[float, float] = (-3.297, 3.297)
    """Where obstacle centers lie across the way, meters (the paper prints +-3.5)."""
    y_range: tuple[float, float] = (4.203, 6.797)
    """Where they lie along the way, meters (the paper prints 4.5 to 7)."""
    obstacle_radius: float = 0.2029
    """Radius of a cylinder, meters."""
    drone_radius: float = 0.1675
    """Radius of the drone, meters."""
    field_of_view: float = 120.0
    """Of the depth sensor, degrees, horizontally and vertically."""
    pixels: int = 50
    """Rays of the depth sensor along either side of the image."""
    depth_range: float = 7.0
    """Depths are clipped here, meters."""
    distance: Literal["exact", "sensor"] = "exact"
    """Minimum distance to the obstacles from the state, or the smallest one that the depth sensor sees in
    flight."""

    def __post_init__(self) -> None:
        for name in ("x_range", "y_range"):
            low, high = getattr(self, name)
            if not low < high:
                raise InvalidSetting(f"{name} = ({low}, {high}) is empty; give the lower end first")
        for name in ("obstacle_radius", "drone_radius", "depth_range"):
            if not getattr(self, name) > 0.0:
                raise InvalidSetting(f"{name} = {getattr(self, name)} is not above 0; give it in meters")
        if not 0.0 < self.field_of_view < 180.0:
            raise InvalidSetting(f"field_of_view = {self.field_of_view} is outside (0, 180) degrees")
        if self.pixels < 2:
            raise InvalidSetting(f"pixels = {self.pixels} is below 2")
        check_choices(self)

    @property
    def rays(self) -> NDArray[np.float64]:
        """Angles of the sensor's rays, radians; the same for azimuth and elevation."""
        half = np.radians(self.field_of_view) / 2.0
        return np.linspace(-half, half, self.pixels)


def cost(clearance: NDArray[np.floating], d_thresh: float) -> NDArray[np.float64]:
    """Return the cost of a flight, ``clip(1 - d_min / d_thresh, 0, 1)``."""
    if not d_thresh > 0.0:
        raise InvalidSetting(f"d_thresh = {d_thresh} is not above 0; give it in meters")
    return np.clip(1.0 - clearance.astype(np.float64) / d_thresh, 0.0, 1.0)


def place_obstacles(scene: Scene, n: int, obstacles: int, rng: np.random.Generator) -> Floats:
    """Place cylinders uniformly at random."""
    unit = rng.random((n, obstacles, 2), dtype=np.float32)
    low, high = np.transpose([scene.x_range, scene.y_range]).astype(np.float32)
    placed: Floats = low + unit * (high - low)
    return placed


def depth_images(scene: Scene, obstacles: Floats) -> Floats:
    """Return what the depth sensor sees from the start: meters, shape (environments, rows, columns).

    Rows run over elevation, columns over azimuth from left to right. The cylinders are vertical and have no
    end, so that a ray of elevation e meets one at its horizontal distance / cos(e): one row of distances
    makes the image.
    """
    stretch = (1.0 / np.cos(scene.rays)).astype(np.float32)
    images: Floats = horizontal_depth(scene, obstacles)[:, None, :] * stretch[:, None]
    np.minimum(images, np.float32(scene.depth_range), out=images)
    return images


def horizontal_depth(scene: Scene, obstacles: Floats) -> Floats:
    """Return the unclipped distance from the start to the nearest cylinder along each azimuth (inf: none)."""
    sin, cos = np.sin(scene.rays).astype(np.float32), np.cos(scene.rays).astype(np.float32)
    nearest = np.full((len(obstacles), scene.pixels), np.inf, dtype=np.float32)
    for k in range(obstacles.shape[1]):
        x, y = obstacles[:, k, :1], obstacles[:, k, 1:]
        across = x * cos - y * sin
        half_chord_squared = np.float32(scene.obstacle_radius**2) - across * across
        along = x * sin + y * cos
        entry = along - np.sqrt(np.maximum(half_chord_squared, 0.0))
        hit = (half_chord_squared > 0.0) & (along > 0.0)
        np.minimum(nearest, np.where(hit, np.maximum(entry, 0.0), np.float32(np.inf)), out=nearest)
    return nearest


def clearance(scene: Scene, path: Floats, obstacles: Floats) -> Floats:
    """Return how close flights come to the obstacles: surface to surface, negative in a collision.

    ``path`` holds positions: one flight for all environments, shape (steps, 2), or one each,
    (environments, steps, 2). The result, shape (environments,), is in meters; infinity where nothing is near
    or, with ``distance="sensor"``, was ever seen.
    """
    n, k, _ = obstacles.shape
    if n == 0 or k == 0:
        return np.full(n, np.inf, dtype=np.float32)
    x, y = np.ascontiguousarray(obstacles.reshape(n * k, 2).T)
    nearest = np.empty(n * k, dtype=np.float32)
    for start in range(0, n * k, CHUNK):
        part = slice(start, start + CHUNK)
        # Steps come first: the minimum over them is then taken between rows, which numpy does fastest.
        steps = path[:, None] if path.ndim == 2 else path[np.arange(n * k)[part] // k].swapaxes(0, 1)
        away_x = steps[..., 0] - x[part]
        away_y = steps[..., 1] - y[part]
        if scene.distance == "sensor":
            nearest[part] = _sensed(scene, -away_x, -away_y).min(axis=0)
            continue
        np.multiply(away_x, away_x, out=away_x)
        np.multiply(away_y, away_y, out=away_y)
        np.add(away_x, away_y, out=away_x)
        np.minimum.reduce(away_x, axis=0, out=nearest[part])
    to_center = scene.distance == "exact"
    surface = np.sqrt(nearest) - np.float32(scene.obstacle_radius) if to_center else nearest
    gap: Floats = surface.reshape(n, k).min(axis=1) - np.float32(scene.drone_radius)
    return gap


def _sensed(scene: Scene, away_x: Floats, away_y: Floats) -> Floats:
    """Return the smallest depth that the sensor reads of each obstacle at each step (inf: not in view).

    The drone keeps its heading (+y). The ray that reads the least is the one nearest to the direction of the
    center, and the least elevation stretches it least, so that no other ray needs to be cast.
    """
    rays = scene.rays
    spacing = rays[1] - rays[0]
    azimuth = np.arctan2(away_x, away_y)
    ray = np.clip(np.rint((azimuth - rays[0]) / spacing), 0, scene.pixels - 1)
    offset = azimuth - (rays[0] + ray * spacing)
    distance_squared = away_x * away_x + away_y * away_y
    along = np.sqrt(distance_squared) * np.cos(offset)
    half_chord_squared = scene.obstacle_radius**2 - (distance_squared - along * along)
    entry = along - np.sqrt(np.maximum(half_chord_squared, 0.0))
    # Inside the cylinder every ray starts in it, whatever the direction of its center.
    hit = ((half_chord_squared > 0.0) & (along > 0.0)) | (distance_squared <= scene.obstacle_radius**2)
    depth = np.maximum(entry, 0.0) / np.cos(np.abs(rays).min())
    seen: Floats = np.where(hit & (depth <= scene.depth_range), depth, np.inf).astype(np.float32)
    return seen
