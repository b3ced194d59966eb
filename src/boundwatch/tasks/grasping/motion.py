"""From a grasp to a motion of the joints: inverse kinematics, a spline, and references for the servos.

The hand comes straight down over the grasp and goes straight up again, so that one vertical line of postures
serves both ways. Where a joint would exceed its speed or acceleration, the motion takes longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from boundwatch.tasks.grasping import panda
from boundwatch.tasks.grasping.world import arm_alone

APPROACH = 0.15
"""How far above the grasp the hand starts, and how far it lifts, meters."""
DESCEND, CLOSE, LIFT, HOLD = 0.4, 0.3, 0.5, 0.1
"""Duration of the four phases, seconds; of descending and lifting the least."""
WAYPOINTS = 7
TOLERANCE = 1e-4
"""Of inverse kinematics: meters, and radians."""
_ITERATIONS = 60
_INSTANTS = np.linspace(0.0, 1.0, 201)
_LOW, _HIGH, _SPEEDS, _ACCELERATIONS = (
    np.array([getattr(joint, name) for joint in panda.JOINTS])
    for name in ("low", "high", "speed", "acceleration")
)
_DAMPING = 1e-3
_DOWN = np.array([0.0, 0.0, -1.0])
_CLOSED = -panda.OPENING  # far enough beyond to press with full force

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grasp:
    """What a policy decides: where the fingertips go, and along which direction they close."""

    x: float
    y: float
    z: float
    """Height of the fingertips above the table, meters."""
    yaw: float
    """Direction in which the fingers close, radians from +x; a half turn makes no difference."""


@dataclass(frozen=True)
class Motion:
    """References for the servos, one row for each time step."""

    start: Floats
    """Positions of the nine joints at the start."""
    controls: Floats
    """References (steps, 9)."""
    descent: int
    """How many of the steps come before the fingers close."""


def plan(grasp: Grasp, timestep: float) -> Motion | None:
    """Return the motion for a grasp, or None if the arm cannot reach it."""
    heights = np.linspace(0.0, APPROACH, WAYPOINTS)
    postures = reach_line(grasp, heights)
    if postures is None:
        return None
    line = CubicSpline(heights, postures)
    fastest = _shortest(line)
    durations = (max(DESCEND, fastest), CLOSE, max(LIFT, fastest), HOLD)
    phases = [math.ceil(duration / timestep - 1e-9) for duration in durations]
    down, up = (_ease(np.arange(1, steps + 1) / steps) for steps in (phases[0], phases[2]))
    height = APPROACH * np.concatenate([1.0 - down[0], np.zeros(phases[1]), up[0], np.ones(phases[3])])
    rates = (-down[1] / phases[0], np.zeros(phases[1]), up[1] / phases[2], np.zeros(phases[3]))
    velocities = line(height, 1) * (APPROACH / timestep * np.concatenate(rates))[:, None]
    fingers = np.full((len(height), 2), _CLOSED)
    fingers[: phases[0]] = panda.OPENING
    # Velocity feed-forward: without it the servos' damping holds the arm back, centimeters at this speed.
    controls = np.hstack([line(height) + panda.DAMPING_TIME * velocities, fingers])
    return Motion(np.append(line(APPROACH), [panda.OPENING] * 2), controls, phases[0])


def _ease(t: Floats) -> tuple[Floats, Floats, Floats]:
    """Return progress from 0 to 1 with the least jerk over a time from 0 to 1, and its two derivatives."""
    progress = t**3 * (10.0 - 15.0 * t + 6.0 * t**2)
    return progress, 30.0 * t**2 * (1.0 - t) ** 2, 60.0 * t * (1.0 - t) * (1.0 - 2.0 * t)


def _shortest(line: CubicSpline) -> float:
    """Return the least time, seconds, in which the joints run along the line within their limits."""
    height, rate, change = (APPROACH * part for part in _ease(_INSTANTS))
    slope, bend = line(height, 1), line(height, 2)
    speeds = np.abs(slope * rate[:, None]).max(0)
    accelerations = np.abs(bend * rate[:, None] ** 2 + slope * change[:, None]).max(0)
    # Twice the time halves the speeds and quarters the accelerations.
    times = [speeds / _SPEEDS, np.sqrt(accelerations / _ACCELERATIONS)]
    return float(np.max(times))


def reach_line(grasp: Grasp, heights: Floats) -> Floats | None:
    """Return postures (n, 7) with the fingertips at these heights above a grasp, or None out of reach."""
    posture = panda.HOME.copy()
    posture[0] = math.atan2(grasp.y, grasp.x)
    # At home the fingers close along y; a half turn of the hand is the same grasp, so the nearer one.
    turn = (posture[0] + 0.5 * math.pi - grasp.yaw) % math.pi
    posture[6] += turn if turn < 0.5 * math.pi else turn - math.pi
    postures = []
    for height in heights[::-1]:  # from above, each starting from the one before
        found = reach(np.array([grasp.x, grasp.y, grasp.z + height]), grasp.yaw, posture)
        if found is None:
            return None
        postures.append(posture := found)
    return np.array(postures[::-1])


def reach(tip: Floats, yaw: float, posture: Floats) -> Floats | None:
    """Solve inverse kinematics by damped least squares from a posture nearby; None without a solution."""
    model, data = arm_alone()
    site = model.site("tip").id
    closing = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    jacobian = np.empty((6, model.nv))
    posture = posture.copy()
    for _ in range(_ITERATIONS):
        data.qpos[:7] = posture
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        axes = data.site_xmat[site].reshape(3, 3)
        # Whichever of the two opposite directions of the fingers is the nearer one counts.
        wanted = closing if axes[:, 1] @ closing >= 0.0 else -closing
        turn = 0.5 * (_cross(axes[:, 1], wanted) + _cross(axes[:, 2], _DOWN))
        turn += 0.5 * _cross(axes[:, 0], _cross(wanted, _DOWN))
        error = np.concatenate([tip - data.site_xpos[site], turn])
        if np.abs(error).max() < TOLERANCE:
            return posture
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], site)
        arm = jacobian[:, :7]
        step = arm.T @ np.linalg.solve(arm @ arm.T + _DAMPING * np.eye(6), error)
        posture = np.clip(posture + np.clip(step, -0.3, 0.3), _LOW, _HIGH)
    return None


def _cross(a: Floats, b: Floats) -> Floats:
    """Return the cross product of two vectors: numpy's takes any shape, and ten times as long."""
    (a1, a2, a3), (b1, b2, b3) = a.tolist(), b.tolist()
    return np.array([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1])
