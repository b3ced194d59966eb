"""The overhead depth camera, by ray casting: no graphics, no OpenGL."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from boundwatch.tasks.grasping.scenes import CENTER, Scene
from boundwatch.tasks.grasping.world import OBJECT_GROUP, TABLE_GROUP, Physics, compile_scene

PIXELS = 128
VIEW = 0.35
"""Side of the square of table in view, meters."""
CAMERA_HEIGHT = 0.7
"""Above the table, meters."""
FULL_SCALE = 0.2
"""Height of the whitest pixel, meters: 0.8 mm for each of the 255 steps."""

Image = NDArray[np.uint8]


def look(model: mujoco.MjModel, data: mujoco.MjData) -> Image:
    """Return the depth image of a scene as heights above the table; the arm has swung out of view.

    Rows run along x, away from the base, and columns along y, to its left.
    """
    eye = np.array([*CENTER, CAMERA_HEIGHT])
    aims = _aims()
    groups = np.zeros(6, dtype=np.uint8)
    groups[[TABLE_GROUP, OBJECT_GROUP]] = 1
    distance = np.empty(PIXELS**2)
    hit = np.empty(PIXELS**2, dtype=np.int32)
    mujoco.mj_multiRay(model, data, eye, aims.ravel(), groups, True, -1, hit, distance, None, len(hit), 10.0)
    height = CAMERA_HEIGHT * (1.0 - distance)  # an aim of length 1 in distance ends on the table
    scaled = np.clip(height / FULL_SCALE, 0.0, 1.0)
    return np.rint(255.0 * scaled).astype(np.uint8).reshape(PIXELS, PIXELS)


def _aims() -> NDArray[np.float64]:
    """Return the vectors from the camera to the points on the table that its pixels aim at."""
    across = (np.arange(PIXELS) + 0.5) / PIXELS * VIEW - 0.5 * VIEW
    x, y = np.meshgrid(across, across, indexing="ij")
    return np.stack([x, y, np.full_like(x, -CAMERA_HEIGHT)], axis=-1).reshape(-1, 3)


def photograph(scene: Scene) -> Image:
    """Return the depth image of a scene.

    Examples
    --------
    >>> from boundwatch.tasks.grasping import draw_scenes
    >>> image = photograph(draw_scenes(1, np.random.default_rng(0))[0])
    >>> image.shape, image.dtype
    ((128, 128), dtype('uint8'))
    """
    model = compile_scene(scene, Physics())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return look(model, data)
