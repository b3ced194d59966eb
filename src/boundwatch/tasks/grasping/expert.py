"""The scripted expert, who knows the object: grasps the rim, on the side away from the handle."""

from __future__ import annotations

import math

from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.scenes import Scene

DEPTH = 0.035
"""How far the fingertips reach below the rim, meters."""
ARC = 0.5 * math.pi
"""Largest angle, either way, between the grasp and the point of the rim opposite the handle, radians."""


def expert_grasp(scene: Scene, angle: float, *, outward: float = 0.0, upward: float = 0.0) -> Grasp:
    """Return a grasp of the rim, closing along the radius.

    Parameters
    ----------
    angle
        Which point of the rim: 0 is opposite the handle. Demonstrations draw it between -ARC and ARC. Over
        the whole circle the demonstrations of an object would form a ring, which the Gaussian latent space
        of the policy can only cover with a hole in its middle; and the handle is in the way.
    outward, upward
        How far from where it belongs an unsteady expert grasps, along the radius and in height, meters.

    Examples
    --------
    >>> from boundwatch.tasks.grasping import Mug
    >>> mug = Mug(radius=0.04, height=0.1, wall=0.004, taper=1.0, handle_reach=0.03, handle_height=0.5)
    >>> grasp = expert_grasp(Scene(mug, x=0.5, y=0.0, yaw=0.0), angle=0.0)
    >>> round(grasp.x, 3), round(grasp.y, 3), round(grasp.z, 3), round(grasp.yaw, 3)
    (0.462, 0.0, 0.065, 3.142)
    """
    direction = scene.yaw + math.pi + angle
    radius = scene.item.radius - 0.5 * scene.item.wall + outward
    return Grasp(
        x=scene.x + radius * math.cos(direction),
        y=scene.y + radius * math.sin(direction),
        z=scene.item.height - DEPTH + upward,
        yaw=direction,
    )
