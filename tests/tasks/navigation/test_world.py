"""Environments in quantity: acceptance, published costs, determinism, wind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.drone import every_rollout
from reproduction.recorded import DIFFICULTIES

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation import (
    NAMED,
    TRAINING,
    Distribution,
    Environments,
    Recordings,
    Wind,
    World,
    clearance,
    difficulty,
    distribution,
    place_obstacles,
)

FIELDS = ("obstacles", "rollouts", "clearances", "images", "flights")


@pytest.fixture(scope="module")
def world():
    return World()


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def test_acceptance_is_the_recorded_one(world):
    """0.878 in the published experiment; 20,000 candidates tell it from 0.868 and 0.888 at 4 sigma."""
    rng = np.random.default_rng(0)
    obstacles = place_obstacles(world.scene, 20_000, 9, rng)
    everyone = every_rollout(world, obstacles)
    drawn = world.recordings.draw(20_000, rng)
    best = np.take_along_axis(everyone, drawn[:, :, None], axis=2)[:, :, 0].max(axis=1)
    assert np.mean(best > 0.1) == pytest.approx(0.878, abs=0.01)


def test_costs_of_simple_policies_are_the_recorded_ones(world):
    """Published: best sampled 0.257, knowing the obstacles but not the rollout 0.277, random 0.81."""
    environments = world.draw(TRAINING, 20_480, seed=0, images=False)
    costs = environments.costs(0.5)
    expected = np.clip(1 - every_rollout(world, environments.obstacles) / 0.5, 0, 1).mean(axis=2)
    aware = np.take_along_axis(costs, expected.argmin(axis=1)[:, None], axis=1)
    assert costs.min(axis=1).mean() == pytest.approx(0.257, abs=0.01)
    assert aware.mean() == pytest.approx(0.277, abs=0.01)
    assert costs.mean() == pytest.approx(0.81, abs=0.01)


def test_the_same_environments_whatever_the_number_and_the_workers(world):
    two = world.draw(TRAINING, 2100, seed=3, workers=2)
    assert same(two, world.draw(TRAINING, 2100, seed=3, workers=1))
    assert same(two.head(1500), world.draw(TRAINING, 1500, seed=3))
    assert same(two, Environments.join(list(world.stream(TRAINING, 2100, seed=3))))
    assert not np.array_equal(two.obstacles, world.draw(TRAINING, 2100, seed=4, images=False).obstacles)
    assert not np.array_equal(two.obstacles[:1024], two.obstacles[1024:2048])


SAME = [np.int64(0), np.uint8(0), np.array(0), (0,), [np.int64(0)], np.array([0])]


def test_a_seed_is_the_same_however_it_is_written_and_not_with_zeros_behind(world):
    """The prior's environments have the seed (0, 0); whoever evaluates with seed 0 must not meet them."""
    alone, two, three = (world.draw(TRAINING, 5, seed=seed) for seed in (0, (0, 0), (0, 1)))
    assert all(same(world.draw(TRAINING, 5, seed=seed), alone) for seed in SAME)
    assert not np.array_equal(alone.obstacles, two.obstacles)
    assert not np.array_equal(two.obstacles, three.obstacles)


FIRST = [(0, -0.39139986), (7, -1.3514024), ((0, 0), 1.9929566), ((0, 1), 3.2443027)]


@pytest.mark.parametrize(("seed", "first"), [*FIRST, ([3, 2**40], -0.92633796), ((0, 2, 5), 0.2014885)])
def test_streams_stay_what_they_were(world, seed, first):
    """Every published number rests on them."""
    assert world.draw(TRAINING, 1, seed=seed, images=False).obstacles[0, 0, 0] == np.float32(first)


def test_clearances_are_those_of_the_whole_flights(world):
    """Flights are cut to the steps that matter; nothing may be lost by it."""
    environments = world.draw(TRAINING, 300, seed=1, images=False, flights=True)
    for primitive in range(world.primitives):
        whole = clearance(world.scene, environments.flights[:, primitive], environments.obstacles)
        assert np.array_equal(whole, environments.clearances[:, primitive])


def test_cutting_flights_is_exact_for_distant_obstacles_too(world):
    rng = np.random.default_rng(2)
    obstacles = place_obstacles(world.scene, 5000, 1, rng)
    cut = every_rollout(world, obstacles)
    for primitive, flights in enumerate(world.recordings.paths):
        for rollout, flight in enumerate(flights.astype(np.float32)):
            whole = clearance(world.scene, flight, obstacles)
            assert np.array_equal(whole, cut[:, primitive, rollout])


@pytest.mark.parametrize("name", [*NAMED, "difficulty:-9", "difficulty:4.4", "difficulty:9", "obstacles:2"])
def test_named_distributions_keep_their_rules(world, name):
    named = distribution(name)
    environments = world.draw(named, 64, seed=0, images=False)
    assert environments.obstacles.shape == (64, named.obstacles, 2)
    if named.wind is None:  # the rule is about calm air
        best = environments.clearances.max(axis=1)
        assert np.all((best > named.gap_above) & (best <= named.gap_below))


@pytest.mark.parametrize("v", DIFFICULTIES)
def test_difficulty_sweep_follows_the_published_formula(v):
    point = difficulty(v)
    assert point.obstacles == 9 + round(v)
    if v < 0:
        assert point.gap_above == pytest.approx(0.1 - 0.01 * v)
        assert np.isinf(point.gap_below)
    else:
        assert point.gap_above == pytest.approx(0.1 - 0.012 * v)
        assert point.gap_below == pytest.approx(0.1 * max(20 - v**2, 1))


def test_costs_rise_along_the_sweep(world):
    worlds = [world.draw(difficulty(v), 512, seed=0, images=False) for v in (-9, -3, 0, 4.1)]
    means = [each.costs(0.5).min(axis=1).mean() for each in worlds]
    assert means[0] == 0.0
    assert means == sorted(means)


UNKNOWN = {"nope": "'nope'", "difficulty:x": "'x'", "difficulty:10": "10.0", "windy:7": "7.0"}
UNKNOWN |= {"obstacles:two": "'two'", "obstacles:-1": "-1"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_distributions_are_refused(name):
    with pytest.raises(InvalidSetting, match=UNKNOWN[name]):
        distribution(name)


def test_wind_bends_the_path_and_is_not_seen(world):
    calm, windy = (
        world.draw(distribution(name), 256, seed=5, flights=True) for name in ("training", "windy")
    )
    assert np.array_equal(calm.obstacles, windy.obstacles)
    assert np.array_equal(calm.images, windy.images)
    drift = windy.flights[:, :, 200, 0] - calm.flights[:, :, 200, 0]
    assert np.all(drift > 0.1)
    assert not np.allclose(calm.clearances, windy.clearances, atol=0.1)


def test_leaving_the_obstacle_field_is_free(world):
    """There are no walls: what is blown far past the side costs nothing, and the guide says so."""
    everywhere = replace(TRAINING, wind=Wind(5.0, width=np.inf))
    environments = world.draw(everywhere, 256, seed=5, images=False, flights=True)
    x, y = np.moveaxis(environments.flights, -1, 0)
    amid = (y >= world.scene.y_range[0] - 1) & (y <= world.scene.y_range[1] + 1)
    outside = np.all((x > world.scene.x_range[1] + 1) | ~amid, axis=2)
    assert outside.mean() > 0.05
    assert np.all(environments.costs(0.5)[outside] == 0.0)


def test_no_wind_is_calm(world):
    calm, still = (
        world.draw(distribution(name), 128, seed=5, flights=True) for name in ("training", "windy:0")
    )
    assert np.allclose(calm.flights, still.flights, atol=1e-5)
    assert np.allclose(calm.clearances, still.clearances, atol=1e-5)


def test_stronger_wind_costs_more(world):
    """For whoever chooses the best primitive of calm air."""
    calm = world.draw(TRAINING, 1024, seed=6, images=False)
    choice = calm.clearances.argmax(axis=1)[:, None]
    winds = [distribution(name) for name in ("training", "windy:1", "windy:2.5", "windy:5")]
    costs = [world.draw(wind, 1024, seed=6, images=False).costs(0.5) for wind in winds]
    means = [np.take_along_axis(each, choice, 1).mean() for each in costs]
    assert np.all(np.diff(means) > 0.02)


def test_recorded_trajectories_replace_the_model(world):
    recorded = World(recordings=world.recordings)
    assert same(recorded.draw(TRAINING, 100, seed=0), world.draw(TRAINING, 100, seed=0))
    with pytest.raises(InvalidSetting, match="recorded trajectories cannot fly"):
        recorded.draw(distribution("windy"), 10, seed=0)
    with pytest.raises(InvalidSetting, match="both given"):
        World(drone=world.drone, recordings=world.recordings)


def test_other_numbers_of_primitives_and_rollouts(world):
    paths = world.recordings.paths
    few = Recordings((paths[1][:2], paths[3], paths[5][:1]))
    environments = World(recordings=few).draw(TRAINING, 500, seed=0, images=False)
    assert environments.clearances.shape == (500, 3)
    assert environments.rollouts.max(axis=0).tolist() == [1, 4, 0]


def test_impossible_requests_are_refused(world, monkeypatch):
    with pytest.raises(InvalidSetting, match="n = 0 is below 1"):
        world.draw(TRAINING, 0, seed=0)
    for seed in (-1, (), (1, -1), 0.0, "0", (0, 0.5), None):
        with pytest.raises(InvalidSetting, match="seed = "):
            world.draw(TRAINING, 10, seed=seed)
    with pytest.raises(InvalidSetting, match="is not below gap_below"):
        Distribution("none", gap_above=0.5, gap_below=0.4)
    monkeypatch.setattr("boundwatch.tasks.navigation.world.HOPELESS", 2)
    with pytest.raises(InvalidSetting, match="accepts 0 of 2560"):
        world.draw(Distribution("impossible", obstacles=40, gap_above=1.0), 10, seed=0)
