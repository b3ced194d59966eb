import dataclasses
import math
import re

import mujoco
import numpy as np
import pytest

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.grasping import Bowl, Mug, Physics, Scene, VariedMug, draw_scenes, panda, photograph
from boundwatch.tasks.grasping.camera import CAMERA_HEIGHT, FULL_SCALE, PIXELS, VIEW
from boundwatch.tasks.grasping.scenes import CENTER, FAMILIES, PLACEMENTS
from boundwatch.tasks.grasping.world import OBJECT_GROUP, arm_alone, compile_scene

MUG = Mug(radius=0.045, height=0.1, wall=0.005, taper=0.9, handle_reach=0.035, handle_height=0.55)
HANDLE = {"handle_radius": 0.006, "handle_middle": 0.5, "handle_power": 0.6}
BARREL = VariedMug(**vars(MUG) | {"taper": 0.8, "belly": 1.2, "lip": 0.0} | HANDLE)


def denavit_hartenberg(joint, angle):
    """Craig's convention: turn by alpha about x, move by a along x, turn by the angle about z, move by d."""
    ca, sa, ct, st = math.cos(joint.alpha), math.sin(joint.alpha), math.cos(angle), math.sin(angle)
    return np.array(
        [
            [ct, -st, 0.0, joint.a],
            [st * ca, ct * ca, -sa, -joint.d * sa],
            [st * sa, ct * sa, ca, joint.d * ca],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def test_arm_has_the_published_kinematics():
    model, data = arm_alone()
    rng = np.random.default_rng(0)
    for _ in range(5):
        angles = rng.uniform([j.low for j in panda.JOINTS], [j.high for j in panda.JOINTS])
        data.qpos[:7] = angles
        mujoco.mj_kinematics(model, data)
        pose = np.eye(4)
        for joint, angle in zip(panda.JOINTS, angles, strict=True):
            pose = pose @ denavit_hartenberg(joint, angle)
        tip = pose @ [0.0, 0.0, panda.FLANGE + panda.PALM + panda.FINGER_LENGTH, 1.0]
        np.testing.assert_allclose(data.site("tip").xpos, tip[:3], atol=1e-9)


def way_to(item, start, direction):
    """Return how far a ray goes until it meets the object, which stands at x = 0.5."""
    model = compile_scene(Scene(item, 0.5, 0.0, 0.0), Physics())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    hit, groups = np.zeros(1, dtype=np.int32), np.zeros(6, dtype=np.uint8)
    groups[OBJECT_GROUP] = 1
    return mujoco.mj_ray(model, data, np.array(start), np.array(direction), groups, True, -1, hit)


@pytest.mark.parametrize("item", [MUG, BARREL, Bowl(radius=0.075, height=0.06, wall=0.005, foot=0.5)])
def test_objects_have_their_dimensions(item):
    # Rays from above and from the side opposite the handle find the rim's height and the outer radius.
    down = way_to(item, [0.5 - item.radius + 0.5 * item.wall, 0.0, 1.0], [0.0, 0.0, -1.0])
    assert 1.0 - down == pytest.approx(item.height, abs=1e-3)
    across = way_to(item, [0.0, 0.0, 0.97 * item.height], [1.0, 0.0, 0.0])
    assert 0.5 - across == pytest.approx(item.radius, abs=2e-3)


def test_mass_follows_density():
    scene = Scene(MUG, 0.5, 0.0, 0.0)
    light, heavy = (compile_scene(scene, Physics(density=d)).body("object").mass[0] for d in (1150.0, 2300.0))
    assert heavy == pytest.approx(2.0 * light)
    assert 0.2 < heavy < 0.5


@pytest.mark.parametrize("objects", ["mugs", "varied-mugs", "bowls"])
def test_overlapping_parts_do_not_weigh_twice(objects):
    # Points in a box around the object tell its volume, without the handle.
    rng = np.random.default_rng(0)
    for item in [scene.item for scene in draw_scenes(3, rng, objects=objects)]:
        model = compile_scene(Scene(item, 0.0, 0.0, 0.0), Physics(density=1000.0))
        ours = [geom for geom in range(model.ngeom) if model.geom_group[geom] == OBJECT_GROUP]
        round_ones = [geom for geom in ours if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CAPSULE]
        mass = sum(
            float(found)
            for found in re.findall(r'(?:box|cylinder)".*?mass="(.*?)"', "\n".join(item.geoms(1000.0)))
        )
        corner = np.array([1.02 * item.radius, 1.02 * item.radius, item.height + 0.004])
        points = rng.uniform([-1.0, -1.0, -0.1], 1.0, (200_000, 3)) * corner
        inside = np.zeros(len(points), dtype=bool)
        overlaps = 0
        for geom in round_ones:
            axes = np.zeros(9)
            mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
            local = (points - model.geom_pos[geom]) @ axes.reshape(3, 3)
            size = model.geom_size[geom]
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
                within = (np.abs(local) <= size).all(1)
            else:
                within = (np.hypot(local[:, 0], local[:, 1]) <= size[0]) & (np.abs(local[:, 2]) <= size[1])
            overlaps += int(within.sum())
            inside |= within
        volume = 4.4 * corner.prod()
        assert mass == pytest.approx(1000.0 * volume * inside.mean(), rel=0.05)
        assert 1000.0 * volume * overlaps / len(points) > 1.05 * mass  # what the parts weighed one by one


def test_varied_mugs_have_every_family_lip_and_handle():
    mugs = [scene.item for scene in draw_scenes(200, np.random.default_rng(0), objects="varied-mugs")]
    for (low, high), (thin, wide) in FAMILIES.values():
        alike = [mug for mug in mugs if low <= mug.taper <= high and thin <= mug.belly <= wide]
        assert len(alike) >= 25
    assert 60 <= sum(mug.lip > 0.0 for mug in mugs) <= 140
    assert min(mug.handle_power for mug in mugs) < 0.5 < 1.4 < max(mug.handle_power for mug in mugs)
    for mug in mugs:
        half = 0.5 * mug.handle_height * mug.height + mug.handle_radius
        assert half < mug.handle_middle * mug.height < mug.height - half  # the handle ends on the wall


def test_a_lip_and_a_belly_stand_out():
    def widest(item, height):
        return 0.5 - way_to(item, [0.0, 0.0, height], [1.0, 0.0, 0.0])

    lipped = dataclasses.replace(BARREL, lip=0.003)
    assert widest(lipped, 0.098) - widest(BARREL, 0.098) == pytest.approx(0.003, abs=5e-4)
    straight = dataclasses.replace(BARREL, belly=1.0)
    assert widest(BARREL, 0.05) / widest(straight, 0.05) == pytest.approx(1.2, abs=0.03)


@pytest.mark.parametrize("mug", [MUG, BARREL])
def test_handle_does_not_reach_inside(mug):
    model = compile_scene(Scene(mug, 0.0, 0.0, 0.0), Physics())
    ends = []
    for geom in range(model.ngeom):
        if model.geom_group[geom] == OBJECT_GROUP and model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
            axes = np.zeros(9)
            mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
            radius, half = model.geom_size[geom, :2]
            for side in (-half, half):
                x, _, z = model.geom_pos[geom] + side * axes.reshape(3, 3)[:, 2]
                middle = 0.5 * (1.0 + mug.taper) * getattr(mug, "belly", 1.0)
                corners = [0.0, 0.5 * mug.height, mug.height]
                outside = mug.radius * np.interp(z, corners, [mug.taper, middle, 1.0])
                ends.append(x - radius - (outside - mug.wall))
    assert min(ends) == pytest.approx(0.0, abs=1e-4)  # the handle begins at the inside of the wall


@pytest.mark.parametrize("name", ["pad_friction", "table_friction", "density", "grip_force", "timestep"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_physics_refuses_what_is_not_positive(name, value):
    with pytest.raises(InvalidSetting, match=name):
        Physics(**{name: value})


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_placements_fill_their_square(placement):
    scenes = draw_scenes(400, np.random.default_rng(placement), placement=placement)
    away = np.array([(scene.x - CENTER[0], scene.y - CENTER[1]) for scene in scenes])
    half = 0.05 * placement
    assert np.abs(away).max() <= half
    assert np.abs(away).max() > 0.98 * half
    assert np.abs(away.mean(0)).max() < 0.15 * half
    yaws = np.array([scene.yaw for scene in scenes])
    assert np.histogram(yaws, bins=4, range=(-math.pi, math.pi))[0].min() > 60


@pytest.mark.parametrize(("name", "value"), [("objects", "plates"), ("placement", 0), ("n", 0)])
def test_unknown_distributions_are_refused(name, value):
    with pytest.raises(InvalidSetting, match=f"{name} = {value!r}"):
        draw_scenes(**({"n": 1, "rng": np.random.default_rng(0)} | {name: value}))


def test_camera_sees_the_mug_where_it_stands():
    x, y = 0.53, -0.04
    image = photograph(Scene(MUG, x, y, math.pi / 2))  # the handle toward +y
    assert image.max() / 255 * FULL_SCALE == pytest.approx(MUG.height, abs=1e-3)
    rows, columns = np.nonzero(image)
    # The rim is nearer than the table and appears further out from the middle of the view.
    stretch = 0.7 / (0.7 - MUG.height)
    middle = (rows.min() + rows.max()) / 2
    assert (middle + 0.5) / PIXELS * VIEW - VIEW / 2 == pytest.approx((x - CENTER[0]) * stretch, abs=0.006)
    handle = columns.max() - np.median(columns)
    assert handle > 1.5 * (np.median(columns) - columns.min())
    assert photograph(Scene(MUG, 0.8, 0.3, 0.0)).max() == 0  # what is far is not seen


def test_noise_has_the_published_size():
    scenes = [Scene(MUG, 0.8, 0.3, yaw) for yaw in (0.0, 1.0)]  # the bare table
    first, second = (photograph(scene, noisy=True) / 255 * FULL_SCALE for scene in scenes)
    # Heights below the table are cut off, so that half of a normal distribution is left: at 0.7 m its
    # standard deviation is 1.37 mm, and the rounding to 0.8 mm adds a little.
    deviation = math.sqrt(2.0 * np.mean(first**2))
    assert deviation == pytest.approx(0.0012 + 0.0019 * (CAMERA_HEIGHT - 0.4) ** 2, rel=0.06)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05  # every scene has its own noise
    np.testing.assert_array_equal(first, photograph(scenes[0], noisy=True) / 255 * FULL_SCALE)  # always


def test_noise_blurs_edges_and_steep_walls():
    scene = Scene(MUG, 0.5, 0.0, 0.0)
    clean, noisy = (
        photograph(scene, noisy=noise).astype(float) / 255 * FULL_SCALE for noise in (False, True)
    )
    error = np.abs(noisy - clean)
    edge = np.zeros_like(clean, dtype=bool)
    edge[1:-1, 1:-1] = (
        np.ptp([np.roll(clean, k, axis=(0, 1)) for k in ((1, 0), (-1, 0), (0, 1), (0, -1))], 0)[1:-1, 1:-1]
        > 0.04
    )
    assert np.mean(error[edge] > 0.01) > 0.1  # a ray that goes astray passes the rim
    assert np.mean(error[~edge] > 0.01) < 0.02
