"""The drone: calibration to the recorded primitives, and the physics behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.drone import LINES, SPREADS, TARGETS, lateral

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.drone import DroneSettings, Primitive, Wind, fly, recorded_noise
from boundwatch.tasks.navigation.recordings import Recordings

STRAIGHT = DroneSettings(primitives=(Primitive(0.0, 0.0, 0.5, 0.0),) * 2)


@pytest.fixture(scope="module")
def recordings():
    return Recordings.from_drone(DroneSettings())


def test_means_are_within_60_mm_of_the_recordings(recordings):
    for flights, targets in zip(recordings.paths, TARGETS, strict=True):
        means = [np.mean([lateral(flight, y) for flight in flights]) for y in LINES]
        assert np.abs(np.subtract(means, targets)).max() < 60


def test_recordings_and_fresh_flights_spread_as_the_recorded_ones_did(recordings):
    """Fresh noise, too, not only the standardized draw of the recordings."""
    rng = np.random.default_rng(0)
    for number, target in enumerate(SPREADS):
        fresh = fly(DroneSettings(), np.full(200, number), rng.standard_normal((200, 3)))
        for flights in (recordings.paths[number], fresh):
            spread = np.std([lateral(flight, 5.5) for flight in flights], ddof=1)
            assert target / 1.5 < spread < target * 1.5


def test_speed_ramps_up_to_the_recorded_plateau(recordings):
    paths = np.concatenate(recordings.paths)
    steps = 1000 * np.linalg.norm(np.diff(paths, axis=1), axis=2)
    assert paths.shape == (35, 341, 2)
    assert np.all(paths[:, 0] == 0.0)
    assert np.all(steps[:, :20] == 0.0)  # the motors have not started
    assert 42 <= steps[:, 150:270].mean() <= 44
    assert 10.0 < paths[:, -1, 1].min() < paths[:, -1, 1].max() < 11.6


def test_recorded_noise_is_standardized():
    noise = recorded_noise(DroneSettings())
    assert np.allclose(noise.mean(axis=1), 0)
    covariance = np.einsum("prk,prl->pkl", noise, noise) / 4
    assert np.allclose(covariance, np.eye(3))
    with pytest.raises(InvalidSetting, match="rollouts = 3 is below 4"):
        recorded_noise(DroneSettings(rollouts=3))


def test_speed_settles_where_thrust_and_drag_balance():
    drone = replace(STRAIGHT, steps=2000)
    path = fly(drone, np.array([0]), np.zeros((1, 3)))[0]
    speed = (path[-1, 1] - path[-2, 1]) / drone.time_step
    assert speed == pytest.approx(np.sqrt(drone.cruise / drone.drag), rel=1e-3)


def test_without_drag_the_drone_accelerates_for_ever():
    drone = replace(STRAIGHT, drag=0.0, boost=2.0, cruise=2.0, start_delay=0.0)
    path = fly(drone, np.array([0]), np.zeros((1, 3)))[0]
    time = drone.time_step * (drone.steps - 1)
    assert path[-1, 1] == pytest.approx(0.5 * 2.0 * time**2, rel=0.01)


def test_time_step_hardly_matters():
    coarse = DroneSettings()
    fine = replace(coarse, time_step=0.0025, steps=1361)
    calm = np.zeros((7, 3))
    ends = [fly(drone, np.arange(7), calm)[:, -1] for drone in (coarse, fine)]
    assert np.abs(ends[0] - ends[1]).max() < 0.05


def test_a_steady_tail_wind_is_a_change_of_frame():
    """Drag acts against the air: after a long time in it, the drone is faster by the wind's speed."""
    drone = replace(STRAIGHT, steps=3000)
    wind = Wind(speed=2.0, direction=90.0, gust=0.0, width=np.inf)
    speeds = []
    for air in (None, wind):
        path = fly(drone, np.array([0]), np.zeros((1, 3)), air, np.random.default_rng(0))[0]
        speeds.append((path[-1, 1] - path[-2, 1]) / drone.time_step)
    assert speeds[1] - speeds[0] == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(("direction", "sign"), [(0.0, 1.0), (180.0, -1.0)])
def test_cross_wind_drifts_the_path_with_it(direction, sign):
    calm = fly(STRAIGHT, np.array([0]), np.zeros((1, 3)))[0]
    drift = []
    for speed in (1.0, 2.5, 5.0):
        rng, wind = np.random.default_rng(1), Wind(speed, direction)
        path = fly(STRAIGHT, np.array([0]), np.zeros((1, 3)), wind, rng)[0]
        drift.append(sign * (lateral(path, 5.5) - lateral(calm, 5.5)))
    assert 50 < drift[0] < drift[1] < drift[2]


def test_the_jet_of_the_fan_has_an_end():
    wind = Wind(speed=5.0, gust=0.0, center=100.0)
    calm = fly(STRAIGHT, np.array([0]), np.zeros((1, 3)))
    assert np.allclose(fly(STRAIGHT, np.array([0]), np.zeros((1, 3)), wind, np.random.default_rng(0)), calm)


def test_gusts_differ_between_flights_and_repeat_with_the_seed():
    flights = [
        fly(STRAIGHT, np.array([0, 1]), np.zeros((2, 3)), Wind(5.0), np.random.default_rng(seed))
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(flights[0], flights[1])
    assert not np.array_equal(flights[0], flights[2])
    assert not np.array_equal(flights[0][0], flights[0][1])


IMPOSSIBLE = [("speed", 6.0), ("speed", -1.0), ("speed", np.nan), ("width", 0.0), ("gust", -0.1)]


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_impossible_winds_are_refused(name, value):
    with pytest.raises(InvalidSetting, match=f"{name} = {value}"):
        Wind(**{"speed": 1.0} | {name: value})


def test_gusts_need_a_generator():
    with pytest.raises(InvalidSetting, match="rng = None"):
        fly(STRAIGHT, np.array([0]), np.zeros((1, 3)), Wind(1.0))
