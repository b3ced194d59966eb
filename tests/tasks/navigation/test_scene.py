"""Distances and depth images against slow, independent ones."""

from __future__ import annotations

import numpy as np
import pytest

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.scene import Scene, clearance, cost, depth_images, place_obstacles

FIELD = place_obstacles(Scene(), 20, 9, np.random.default_rng(0))


def cast(origin, direction, centers, radius):
    """Return the length of a ray in space to the first of some vertical cylinders, one at a time."""
    nearest = np.inf
    for x, y in centers:
        # |origin + t direction - center| = radius in the plane: a quadratic in t.
        dx, dy = origin[0] - x, origin[1] - y
        a = direction[0] ** 2 + direction[1] ** 2
        b = 2 * (dx * direction[0] + dy * direction[1])
        c = dx**2 + dy**2 - radius**2
        if c <= 0:
            return 0.0
        discriminant = b**2 - 4 * a * c
        if discriminant > 0:
            t = (-b - np.sqrt(discriminant)) / (2 * a)
            if t > 0:
                nearest = min(nearest, t)
    return nearest


def ray(azimuth, elevation):
    return (np.sin(azimuth) * np.cos(elevation), np.cos(azimuth) * np.cos(elevation), np.sin(elevation))


def test_images_are_those_of_casting_every_ray():
    scene = Scene(pixels=11)
    images = depth_images(scene, FIELD)
    for centers, image in zip(FIELD.astype(float), images, strict=True):
        for row, elevation in enumerate(scene.rays):
            for column, azimuth in enumerate(scene.rays):
                length = cast((0, 0), ray(azimuth, elevation), centers, scene.obstacle_radius)
                assert image[row, column] == pytest.approx(min(length, 7.0), abs=2e-3)


def test_images_have_the_published_shape_and_left_is_left():
    image = depth_images(Scene(), np.array([[[-1.5, 5.0]]], dtype=np.float32))[0]
    assert image.shape == (50, 50)
    assert image.dtype == np.float32
    assert image.max() == 7.0
    assert image[:, :25].min() < 7.0 == image[:, 25:].min()
    assert np.allclose(image, image[::-1])  # a cylinder looks the same above and below
    behind = np.array([[[0.0, -5.0]]], dtype=np.float32)
    assert depth_images(Scene(), behind).min() == 7.0


def test_obstacles_are_uniform_in_the_region():
    field = place_obstacles(Scene(), 4000, 9, np.random.default_rng(0)).reshape(-1, 2)
    for axis, (low, high) in enumerate((Scene().x_range, Scene().y_range)):
        assert low <= field[:, axis].min() < field[:, axis].max() <= high
        counts = np.histogram(field[:, axis], 10, (low, high))[0]
        assert np.all(np.abs(counts - 3600) < 6 * 60)


def random_path(rng, steps=60):
    return np.cumsum(rng.normal([0.0, 0.12], 0.05, (steps, 2)), axis=0).astype(np.float32)


def test_clearance_is_that_of_trying_every_step_and_obstacle():
    scene = Scene()
    path = random_path(np.random.default_rng(1))
    fast = clearance(scene, path, FIELD)
    for value, centers in zip(fast, FIELD.astype(float), strict=True):
        slow = min(
            np.hypot(*(position - center)) - scene.obstacle_radius - scene.drone_radius
            for position in path.astype(float)
            for center in centers
        )
        assert value == pytest.approx(slow, abs=1e-5)


def test_sensor_clearance_is_that_of_casting_every_ray_at_every_step():
    scene = Scene(distance="sensor", pixels=20)
    path = random_path(np.random.default_rng(2), steps=25)
    fast = clearance(scene, path, FIELD)
    for value, centers in zip(fast, FIELD.astype(float), strict=True):
        readings = [
            cast(position, ray(azimuth, elevation), centers, scene.obstacle_radius)
            for position in path.astype(float)
            for azimuth in scene.rays
            for elevation in (scene.rays[9], scene.rays[10])  # the least stretched
        ]
        nearest = min((reading for reading in readings if reading <= scene.depth_range), default=np.inf)
        assert value == pytest.approx(nearest - scene.drone_radius, abs=2e-3)


def test_the_sensor_never_sees_more_than_there_is():
    path = random_path(np.random.default_rng(3))
    exact, seen = (clearance(Scene(distance=name), path, FIELD) for name in ("exact", "sensor"))
    assert np.all(seen >= exact - 1e-5)
    assert np.any(seen > exact + 0.01)  # what passes by the side leaves the field of view


def test_paths_and_environments_may_come_one_by_one():
    path = random_path(np.random.default_rng(4))
    each = np.broadcast_to(path, (len(FIELD), *path.shape))
    for scene in (Scene(), Scene(distance="sensor")):
        assert np.array_equal(clearance(scene, path, FIELD), clearance(scene, each, FIELD))
    many = np.concatenate([FIELD] * 20)  # more obstacles than one chunk holds
    single = [float(clearance(Scene(), path, field[None])[0]) for field in FIELD]
    assert np.array_equal(clearance(Scene(), path, many), np.tile(np.float32(single), 20))


def test_no_obstacles_are_infinitely_far():
    empty = np.empty((3, 0, 2), dtype=np.float32)
    assert np.all(np.isposinf(clearance(Scene(), random_path(np.random.default_rng(0)), empty)))
    assert depth_images(Scene(), empty).min() == 7.0


def test_cost_is_clipped_and_falls_with_distance():
    distances = np.array([-1.0, 0.0, 0.1, 0.25, 0.5, np.inf])
    assert cost(distances, 0.5).tolist() == [1.0, 1.0, 0.8, 0.5, 0.0, 0.0]
    with pytest.raises(InvalidSetting, match="d_thresh = 0"):
        cost(distances, 0.0)


IMPOSSIBLE = {"x_range": (1.0, 1.0), "y_range": (5.0, 4.0), "obstacle_radius": 0.0, "field_of_view": 180.0}
IMPOSSIBLE |= {"pixels": 1, "depth_range": -1.0, "distance": "guess"}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_scenes_are_refused(name):
    with pytest.raises(InvalidSetting, match=name):
        Scene(**{name: IMPOSSIBLE[name]})
