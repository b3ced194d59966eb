"""The overhead depth camera, by ray casting: no graphics, no OpenGL."""

from __future__ import annotations

import hashlib
import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from boundwatch.tasks.grasping.scenes import CENTER, Scene
from boundwatch.tasks.grasping.world import (
    OBJECT_GROUP,
    TABLE_GROUP,
    Array,
    Physics,
    cast_rays,
    compile_scene,
)

PIXELS = 128
VIEW = 0.35
"""Side of the square of table in view, meters."""
CAMERA_HEIGHT = 0.7
"""Above the table, meters."""
FULL_SCALE = 0.2
"""Height of the whitest pixel, meters: 0.8 mm for each of the 255 steps."""
FOCAL_LENGTH = 585.0
"""Of the Kinect, in its pixels: its lateral noise is given in these."""
STEEPEST = math.radians(80.0)
"""Largest angle between a ray and a surface's normal in the noise model, which has a pole at 90 degrees."""

Image = NDArray[np.uint8]


def photograph(scene: Scene, *, noisy: bool = False) -> Image:
    """Return the depth image of a scene as heights above the table; the arm has swung out of view.

    Rows run along x, away from the base, and columns along y, to its left. ``noisy`` is as a Kinect sees it:
    every ray goes astray sideways, and its length is misread. The noise belongs to the scene, so that the
    same scene gives the same image.
    """
    model = compile_scene(scene, Physics())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    aims = _aims()
    share, slant = _cast(model, data, aims)
    if noisy:
        noise = np.random.default_rng(list(hashlib.sha256(repr(scene).encode()).digest()))
        astray = _lateral_deviation(slant)[:, None] * noise.standard_normal((len(aims), 2))
        aims[:, :2] += CAMERA_HEIGHT / FOCAL_LENGTH * astray
        share, slant = _cast(model, data, aims)
        depth = CAMERA_HEIGHT * share
        share = share + _axial_deviation(depth, slant) / CAMERA_HEIGHT * noise.standard_normal(len(aims))
    height = CAMERA_HEIGHT * (1.0 - share)
    scaled = np.clip(height / FULL_SCALE, 0.0, 1.0)
    return np.rint(255.0 * scaled).astype(np.uint8).reshape(PIXELS, PIXELS)


def _cast(model: mujoco.MjModel, data: mujoco.MjData, aims: Array) -> tuple[Array, Array]:
    """Return the share of the way to its aim that each ray goes, and its angle to the normal it meets."""
    eye = np.array([*CENTER, CAMERA_HEIGHT])
    _, share, normals = cast_rays(model, data, eye, aims, (TABLE_GROUP, OBJECT_GROUP))
    cosine = np.abs((normals * aims).sum(1)) / np.linalg.norm(aims, axis=1)
    return share, np.arccos(np.clip(cosine, math.cos(STEEPEST), 1.0))


def _lateral_deviation(slant: Array) -> Array:
    """Return the standard deviation of where a ray goes, in pixels of the Kinect (Nguyen et al. 2012)."""
    return 0.8 + 0.035 * slant / (0.5 * math.pi - slant)


def _axial_deviation(depth: Array, slant: Array) -> Array:
    """Return the standard deviation of a depth, meters (Nguyen et al. 2012)."""
    steep = (slant / (0.5 * math.pi - slant)) ** 2
    return 0.0012 + 0.0019 * (depth - 0.4) ** 2 + 0.0001 / np.sqrt(depth) * steep


def _aims() -> Array:
    """Return the vectors from the camera to the points on the table that its pixels aim at."""
    across = (np.arange(PIXELS) + 0.5) / PIXELS * VIEW - 0.5 * VIEW
    x, y = np.meshgrid(across, across, indexing="ij")
    return np.stack([x, y, np.full_like(x, -CAMERA_HEIGHT)], axis=-1).reshape(-1, 3)
