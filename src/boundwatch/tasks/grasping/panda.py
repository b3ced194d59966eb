"""The Franka Panda with its hand, as MJCF made from published constants; no meshes.

Kinematics (modified Denavit-Hartenberg rows), limits of joint positions, velocities, accelerations and
torques: Franka Robotics, "Franka Control Interface documentation: robot and interface specifications".
Masses of the links: C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification
of the Franka Emika Panda robot with retrieval of feasible parameters using penalty-based optimization", IEEE
RA-L 4(4), 2019, rounded. Shapes of the links are capsules of about the right size; they carry the mass and
are what the pictures show.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_RIGHT = 0.5 * math.pi


class Joint(NamedTuple):
    """A row of the arm's constants: the frame (a, d, alpha), the limits, the servo."""

    a: float
    d: float
    alpha: float
    low: float
    high: float
    speed: float
    acceleration: float
    torque: float
    stiffness: float
    """Of the position servo, Nm/rad."""


JOINTS = (
    Joint(0.0, 0.333, 0.0, -2.8973, 2.8973, 2.175, 15.0, 87.0, 4000.0),
    Joint(0.0, 0.0, -_RIGHT, -1.7628, 1.7628, 2.175, 7.5, 87.0, 4000.0),
    Joint(0.0, 0.316, _RIGHT, -2.8973, 2.8973, 2.175, 10.0, 87.0, 3500.0),
    Joint(0.0825, 0.0, _RIGHT, -3.0718, -0.0698, 2.175, 12.5, 87.0, 3500.0),
    Joint(-0.0825, 0.384, -_RIGHT, -2.8973, 2.8973, 2.610, 15.0, 12.0, 600.0),
    Joint(0.0, 0.0, _RIGHT, -0.0175, 3.7525, 2.610, 20.0, 12.0, 600.0),
    Joint(0.088, 0.0, _RIGHT, -2.8973, 2.8973, 2.610, 20.0, 12.0, 600.0),
)
DAMPING_TIME = 0.03
"""Damping of a servo over its stiffness, seconds: the reference leads the arm by this times its velocity."""
HOME = np.array([0.0, -0.25 * math.pi, 0.0, -0.75 * math.pi, 0.0, 0.5 * math.pi, 0.25 * math.pi])
"""The manufacturer's ready posture, gripper down; inverse kinematics starts from it."""

FLANGE = 0.107
"""From the last joint to the flange, meters."""
PALM = 0.0584
"""From the flange to the palm, meters."""
FINGER_LENGTH, FINGER_WIDTH, FINGER_DEPTH = 0.087, 0.0254, 0.0135
"""Of our fingers: longer than the stock ones, so that a rim fits between tip and palm; meters."""
OPENING = 0.04
"""Travel of each finger, meters."""

_LINKS = (
    # Mass in kg, then capsules: from, to, radius, in the frame of the joint.
    (4.97, "0 0 -0.19 0 0 0", 0.07),
    (0.65, "0 0 0 0 -0.12 0", 0.07),
    (3.23, "0 0 -0.19 0 0 0", 0.065),
    (3.59, "0 0 0 -0.0825 0.09 0", 0.065),
    (1.23, "0 0.06 -0.24 0 0 0", 0.055),
    (1.67, "0 0 0 0.088 0 0", 0.055),
    (0.74, "0 0 0 0 0 0.085", 0.045),
)


def arm_xml() -> str:
    """Return the arm as an MJCF body at the origin."""
    opened, closed = "", ""
    for number, (joint, (mass, ends, radius)) in enumerate(zip(JOINTS, _LINKS, strict=True), 1):
        sin, cos = math.sin(joint.alpha), math.cos(joint.alpha)
        opened += (
            f'<body name="link{number}" pos="{joint.a} {-sin * joint.d:.9f} {cos * joint.d:.9f}" '
            f'euler="{joint.alpha:.12f} 0 0" gravcomp="1">'
            f'<joint name="joint{number}" range="{joint.low} {joint.high}" armature="0.1"/>'
            f'<geom class="link" type="capsule" fromto="{ends}" size="{radius}" mass="{mass}"/>'
        )
        closed += "</body>"
    return (
        '<geom class="link" type="cylinder" pos="-0.03 0 0.07" size="0.09 0.07" mass="0"/>'
        f"{opened}{_hand_xml()}{closed}"
    )


def _hand_xml() -> str:
    half = (0.5 * FINGER_WIDTH, 0.5 * FINGER_DEPTH, 0.5 * FINGER_LENGTH)
    size, around = (" ".join(f"{value + margin:.6f}" for value in half) for margin in (0.0, 0.005))
    middle = f"0 {half[1]:.6f} {half[2]:.6f}"
    fingers = "".join(
        f'<body name="{name}" pos="0 0 {PALM}" euler="0 0 {turn:.12f}" gravcomp="1">'
        f'<joint name="{name}" type="slide" axis="0 1 0" range="0 {OPENING}" armature="0.1" damping="80"/>'
        f'<geom name="{name}" class="finger" type="box" size="{size}" pos="{middle}" mass="0.03"/>'
        f'<site name="{name}" type="box" size="{around}" pos="{middle}"/></body>'
        for name, turn in (("finger_left", 0.0), ("finger_right", math.pi))
    )
    # The hand is mounted with a twist of -45 degrees; the fingers close along its y axis.
    return (
        f'<body name="hand" pos="0 0 {FLANGE}" euler="0 0 {-0.25 * math.pi:.12f}" gravcomp="1">'
        f'<geom class="link" name="palm" type="box" size="0.0315 0.102 {0.5 * PALM:.6f}" '
        f'pos="0 0 {0.5 * PALM:.6f}" mass="0.73"/>'
        # Sites a little larger than the parts are where their touch sensors feel.
        f'<site name="palm" type="box" size="0.0365 0.107 {0.5 * PALM + 0.005:.6f}" '
        f'pos="0 0 {0.5 * PALM:.6f}"/>'
        f'<site name="tip" pos="0 0 {PALM + FINGER_LENGTH:.6f}"/>{fingers}</body>'
    )


def actuators_xml(grip_force: float) -> str:
    """Return the servos: one for each joint, one for each finger, the latter limited to the grip force."""
    servos = "".join(
        f'<position joint="joint{number}" kp="{joint.stiffness}" kv="{DAMPING_TIME * joint.stiffness}" '
        f'forcerange="{-joint.torque} {joint.torque}"/>'
        for number, joint in enumerate(JOINTS, 1)
    )
    fingers = "".join(
        f'<position joint="{name}" kp="1000" forcerange="{-grip_force} {grip_force}"/>'
        for name in ("finger_left", "finger_right")
    )
    return servos + fingers
