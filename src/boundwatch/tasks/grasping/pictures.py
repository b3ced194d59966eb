"""Pictures of a grasp, drawn by ray casting in the physics engine: no OpenGL, no display.

A frame shows the arm and the object from the side, with shadows, and beside it what the overhead camera saw
with the grasp that was chosen.
"""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from boundwatch.errors import MissingExtra
from boundwatch.tasks.grasping import panda
from boundwatch.tasks.grasping.attempt import Outcome, attempt
from boundwatch.tasks.grasping.camera import CAMERA_HEIGHT, VIEW, Image
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.scenes import CENTER, Scene
from boundwatch.tasks.grasping.world import ARM_GROUP, OBJECT_GROUP, Physics, cast_rays, compile_scene

try:
    from PIL import Image as Pillow
    from PIL import ImageDraw
except ImportError as error:
    raise MissingExtra("drawing grasps", "plot") from error

WIDTH, HEIGHT = 400, 300
"""Of the view from the side, pixels."""
SPEED = 0.5
"""Of a film, against the simulation's time."""
FRAMES_A_SECOND = 12
_LIGHT = np.array([0.2, -1.2, 1.8])
_SKY = np.array([236.0, 239.0, 243.0])
_COLORS = {"table": (214, 205, 190), "object": (96, 160, 225), "arm": (225, 225, 222), "finger": (70, 70, 70)}
_GRASP_COLOR = (230, 120, 20)
_BORDER = 24
_FRONT, _SWING = math.radians(-60.0), math.radians(55.0)  # where the spectator stands, and may go to

Pixels = NDArray[np.uint8]


def film(
    scene: Scene, image: Image, grasp: Grasp, physics: Physics, path: str | Path, title: str = ""
) -> Outcome:
    """Simulate a grasp again and draw it as a GIF.

    ``image`` is what the overhead camera saw, ``title`` the line under the picture, before the outcome.
    """
    views: list[Pixels] = []
    every = max(1, round(SPEED / (FRAMES_A_SECOND * physics.timestep)))
    steps = 0

    def watch(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        nonlocal steps
        if steps % every == 0:
            views.append(view(model, data, grasp))
        steps += 1
        last[:] = [(model, data)]

    last: list[tuple[mujoco.MjModel, mujoco.MjData]] = []
    outcome = attempt(scene, grasp, physics, observer=watch)
    model, data = last[0] if last else at_home(scene, physics)  # out of reach, the arm does not move
    views.append(view(model, data, grasp))
    text = f"{title}{outcome.reason}: rise {round(1000.0 * outcome.rise)} mm, cost {outcome.cost:.0f}"
    eye = overhead(image, grasp)
    frames = [_frame(picture, eye, text) for picture in views]
    pause = 1500  # milliseconds on the last frame
    duration = [round(1000 / FRAMES_A_SECOND)] * (len(frames) - 1) + [pause]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=duration, loop=0)
    return outcome


def at_home(scene: Scene, physics: Physics) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a scene before the arm moves, for `view`."""
    model = compile_scene(scene, physics)
    data = mujoco.MjData(model)
    data.qpos[:7], data.qpos[7:9] = panda.HOME, panda.OPENING
    mujoco.mj_forward(model, data)
    return model, data


def view(model: mujoco.MjModel, data: mujoco.MjData, grasp: Grasp) -> Pixels:
    """Return the scene from the side as an RGB array, so that both fingers are seen where possible."""
    target = np.array([0.5 * (CENTER[0] + grasp.x), 0.5 * grasp.y, 0.16])
    # Across the direction in which the fingers close, but not from behind the arm.
    turn = (grasp.yaw + 0.5 * math.pi - _FRONT + 0.5 * math.pi) % math.pi - 0.5 * math.pi
    angle = _FRONT + min(max(turn, -_SWING), _SWING)
    eye = target + np.array([0.7 * math.cos(angle), 0.7 * math.sin(angle), 0.3])
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    slope = math.tan(math.radians(18.0))
    across = np.linspace(-slope, slope, WIDTH) * WIDTH / HEIGHT
    along = np.linspace(slope, -slope, HEIGHT)
    aims = (forward + across[None, :, None] * right + along[:, None, None] * up).reshape(-1, 3)
    hit, distance, normal = cast_rays(model, data, eye, aims)
    seen = hit >= 0
    points = eye + distance[:, None] * aims
    to_light = _LIGHT - points
    to_light /= np.linalg.norm(to_light, axis=1, keepdims=True)
    facing = np.sign((normal * -aims).sum(1))[:, None]  # some surfaces are seen from within
    diffuse = np.clip((facing * normal * to_light).sum(1), 0.0, 1.0)
    # What the light meets first, other than the point itself, keeps it in the shade.
    _, reach, _ = cast_rays(model, data, _LIGHT, points - _LIGHT)
    lit = np.where(reach < 0.985, 0.35, 1.0)
    shade = 0.45 + 0.55 * diffuse * lit
    colors = _colors(model)[hit] * shade[:, None]
    return np.where(seen[:, None], colors, _SKY).clip(0, 255).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)


def _colors(model: mujoco.MjModel) -> NDArray[np.float64]:
    colors = np.full((model.ngeom, 3), _COLORS["table"], dtype=np.float64)
    colors[model.geom_group == OBJECT_GROUP] = _COLORS["object"]
    colors[model.geom_group == ARM_GROUP] = _COLORS["arm"]
    for name in ("finger_left", "finger_right"):
        colors[model.geom(name).id] = _COLORS["finger"]
    return colors


def overhead(image: Image, grasp: Grasp, size: int = HEIGHT - _BORDER) -> Pillow.Image:
    """Return the depth image, enlarged, with the fingers drawn in, as seen by somebody behind the arm."""
    bright = 255.0 - 215.0 * np.exp(-image[::-1, ::-1].astype(np.float64) / 90.0)  # low things stay visible
    picture = Pillow.fromarray(bright.astype(np.uint8)).convert("RGB").resize((size, size))
    draw = ImageDraw.Draw(picture)
    scale = size / VIEW
    # The tips are nearer to the camera than the table, so that they appear further out.
    stretch = CAMERA_HEIGHT / (CAMERA_HEIGHT - grasp.z)

    def pixel(x: float, y: float) -> tuple[float, float]:
        return 0.5 * size - (y - CENTER[1]) * stretch * scale, 0.5 * size - (x - CENTER[0]) * stretch * scale

    cos, sin = math.cos(grasp.yaw), math.sin(grasp.yaw)
    for side in (-1.0, 1.0):
        inner, outer = side * panda.OPENING, side * (panda.OPENING + panda.FINGER_DEPTH)
        half = 0.5 * panda.FINGER_WIDTH
        corners = [(inner, -half), (inner, half), (outer, half), (outer, -half)]
        outline = [pixel(grasp.x + a * cos - b * sin, grasp.y + a * sin + b * cos) for a, b in corners]
        draw.polygon(outline, outline=_GRASP_COLOR, width=2)
    ends = [pixel(grasp.x + a * cos, grasp.y + a * sin) for a in (-panda.OPENING, panda.OPENING)]
    draw.line(ends, fill=_GRASP_COLOR, width=1)
    return picture


def _frame(side: Pixels, eye: Pillow.Image, text: str) -> Pillow.Image:
    frame = Pillow.new("RGB", (WIDTH + eye.width, HEIGHT + _BORDER), (255, 255, 255))
    frame.paste(Pillow.fromarray(side), (0, 0))
    frame.paste(eye, (WIDTH, _BORDER))
    draw = ImageDraw.Draw(frame)
    draw.text((WIDTH + 6, 6), "overhead depth image, grasp in orange", fill=(60, 60, 60))
    draw.text((6, HEIGHT + 6), text, fill=(0, 0, 0))
    return frame
