"""The physical world: settings, and a scene compiled for the physics engine."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np
from numpy.typing import NDArray

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.grasping import panda
from boundwatch.tasks.grasping.scenes import Scene

TABLE_GROUP, OBJECT_GROUP, ARM_GROUP = 0, 1, 2

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Physics:
    """Constants of the world, fixed on physical grounds before any policy was tried."""

    pad_friction: float = 0.5
    """Between finger pads (rubber) and the object (glazed stoneware, dry)."""
    table_friction: float = 0.3
    """Between the object and the table (wood, varnished)."""
    density: float = 2300.0
    """Of stoneware, kg/m³; a mug weighs 0.2-0.5 kg."""
    grip_force: float = 20.0
    """Of each finger, newtons; the hand could do 70."""
    timestep: float = 0.004
    """Of the simulation, seconds."""

    def __post_init__(self) -> None:
        for name in ("pad_friction", "table_friction", "density", "grip_force", "timestep"):
            value = getattr(self, name)
            if not 0.0 < value < float("inf"):
                raise InvalidSetting(
                    f"{name} = {value} is not a positive number; the default is {getattr(Physics, name)}"
                )


def scene_xml(scene: Scene | None, physics: Physics) -> str:
    """Return the MJCF of a scene, or of the arm alone.

    The objects collide with the arm, the hand and the table, and the arm with the table, but not with itself.
    A contact takes the larger friction of its two geoms; that of objects is nil, so pads and table decide.
    """
    item = ""
    if scene is not None:
        parts = "".join(scene.item.geoms(physics.density))
        item = (
            f'<body name="object" pos="{scene.x:.9f} {scene.y:.9f} 0" euler="0 0 {scene.yaw:.9f}">'
            f"<freejoint/>{parts}</body>"
        )
    return f"""<mujoco>
<compiler angle="radian" eulerseq="XYZ"/>
<option timestep="{physics.timestep}" integrator="implicitfast" cone="elliptic" impratio="10"
  jacobian="dense"/>
<default>
  <geom condim="4" friction="{physics.table_friction} 0.005 0.0001" solref="0.008 1"
    solimp="0.95 0.99 0.001"/>
  <default class="link"><geom contype="2" conaffinity="1" group="{ARM_GROUP}"/></default>
  <default class="finger">
    <geom contype="2" conaffinity="1" group="{ARM_GROUP}" friction="{physics.pad_friction} 0.005 0.0001"/>
  </default>
  <default class="object">
    <geom contype="1" conaffinity="0" group="{OBJECT_GROUP}" friction="0 0.005 0.0001"/>
  </default>
</default>
<worldbody>
  <geom name="table" type="plane" size="1.5 1.5 0.1" contype="0" conaffinity="3" group="{TABLE_GROUP}"/>
  {panda.arm_xml()}{item}
</worldbody>
<equality><joint joint1="finger_left" joint2="finger_right" polycoef="0 1 0 0 0"/></equality>
<actuator>{panda.actuators_xml(physics.grip_force)}</actuator>
<sensor><touch site="palm"/><touch site="finger_left"/><touch site="finger_right"/></sensor>
</mujoco>"""


def compile_scene(scene: Scene, physics: Physics) -> mujoco.MjModel:
    """Return the engine's model of a scene: nine joints of the arm and the hand, then the object's pose."""
    return mujoco.MjModel.from_xml_string(scene_xml(scene, physics))


def cast_rays(
    model: mujoco.MjModel, data: mujoco.MjData, eye: Array, aims: Array, groups: tuple[int, ...] | None = None
) -> tuple[NDArray[np.int32], Array, Array]:
    """Return which geom (of these groups) each ray meets, or -1, how far away in aims, and its normal."""
    n = len(aims)
    hit, distance, normals = np.empty(n, dtype=np.int32), np.empty(n), np.zeros((n, 3))
    seen = None if groups is None else np.isin(np.arange(6), groups).astype(np.uint8)
    directions = np.ascontiguousarray(aims).ravel()
    mujoco.mj_multiRay(model, data, eye, directions, seen, True, -1, hit, distance, normals.ravel(), n, 1e3)
    return hit, distance, normals


def arm_alone() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a model of the arm without anything to grasp, for kinematics; one for each thread."""
    return _arm_of(threading.get_ident())


@lru_cache(maxsize=64)
def _arm_of(thread: int) -> tuple[mujoco.MjModel, mujoco.MjData]:  # noqa: ARG001  (whoever has it writes into it)
    model = mujoco.MjModel.from_xml_string(scene_xml(None, Physics()))
    return model, mujoco.MjData(model)
