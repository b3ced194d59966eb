"""One grasp in simulation: descend, close, lift, and see whether the object came along; and the expert's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco

from boundwatch.tasks.grasping.motion import Grasp, plan
from boundwatch.tasks.grasping.scenes import Scene
from boundwatch.tasks.grasping.world import Physics, compile_scene

REFLEX = 100.0
"""Force, newtons, on a finger at which the arm stops on its way down, as the real one's collision reflex
does; any force on the palm does. Of 200 noisy grasps none felt between 30 (brushing a wall) and 100
(landing on a rim)."""
DEPTH = 0.035
"""How far the fingertips reach below the rim, meters."""
ARC = 0.5 * math.pi
"""Largest angle, either way, between the grasp and the point of the rim opposite the handle, radians."""
LIFTED = 0.1
"""The object's center of mass must rise by this much, meters."""

Observer = Callable[[mujoco.MjModel, mujoco.MjData], None]


@dataclass(frozen=True)
class Outcome:
    """How a grasp went."""

    rise: float
    """How far the object's center of mass rose, meters."""
    reason: str
    """``"lifted"``, ``"not lifted"``, ``"collision"`` (on the way down) or ``"out of reach"``."""

    @property
    def cost(self) -> float:
        """0 if the object was lifted, else 1."""
        return 0.0 if self.reason == "lifted" else 1.0


def attempt(
    scene: Scene, grasp: Grasp, physics: Physics | None = None, *, observer: Observer | None = None
) -> Outcome:
    """Simulate one grasp.

    ``observer(model, data)`` is called after every time step; it must not change anything.

    **Guarantee**: the same arguments give the same outcome, bit for bit, in every process on one machine.
    """
    physics = Physics() if physics is None else physics
    motion = plan(grasp, physics.timestep)
    if motion is None:
        return Outcome(0.0, "out of reach")
    model = compile_scene(scene, physics)
    data = mujoco.MjData(model)
    data.qpos[:9] = motion.start
    mujoco.mj_forward(model, data)
    body = model.body("object").id
    before = float(data.subtree_com[body, 2])
    for step, control in enumerate(motion.controls):
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        if observer is not None:
            observer(model, data)
        if step < motion.descent and (data.sensordata[0] > 0.0 or data.sensordata.max() > REFLEX):
            return Outcome(0.0, "collision")
    mujoco.mj_forward(model, data)
    rise = float(data.subtree_com[body, 2]) - before
    return Outcome(rise, "lifted" if rise >= LIFTED else "not lifted")


def expert_grasp(scene: Scene, angle: float, *, outward: float = 0.0, upward: float = 0.0) -> Grasp:
    """Return the grasp of a scripted expert who knows the object: of the rim, closing along the radius.

    The angle says which point of the rim: 0 is opposite the handle. Demonstrations draw it between -ARC and
    ARC. Over the whole circle the demonstrations of an object would form a ring, which the Gaussian latent
    space of the policy can only cover with a hole in its middle; and the handle is in the way. ``outward``
    and ``upward`` say how far off an unsteady expert grasps, along the radius and in height, meters.
    """
    direction = scene.yaw + math.pi + angle
    radius = scene.item.radius - 0.5 * scene.item.wall + outward
    return Grasp(
        x=scene.x + radius * math.cos(direction),
        y=scene.y + radius * math.sin(direction),
        z=scene.item.height - DEPTH + upward,
        yaw=direction,
    )
