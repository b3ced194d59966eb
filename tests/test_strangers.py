"""Small parts of `python -m benchmarks.strangers`; its results and its page belong together."""

import json
import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks.strangers import detectors, report, rollouts, tasks
from benchmarks.strangers.rollouts import Pool


@pytest.fixture(scope="module")
def small():
    task = tasks.TASKS["CartPole"]
    training = task.training | {"steps": 256, "envs": 2, "n_epochs": 1, "batch_size": 64}
    return replace(task, training=training, episodes=(30, 8))


def test_episodes_are_kept_and_have_their_own_seeds(small, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Stable-Baselines3 warns of small settings
        one = rollouts.pool(small, "sensor noise, strong", tmp_path)
        names = {path.name for path in tmp_path.iterdir()}
        monkeypatch.setattr(rollouts, "drive", None)  # everything is on disk
        again = rollouts.pool(small, "sensor noise, strong", tmp_path)
    assert np.array_equal(one.features, again.features)
    assert one.failures.shape == (8,)
    assert one.features.shape == (8, 8)
    assert len(np.unique(one.features[:, 0])) == 8
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(names) == 4  # policy, its time, the usual world for the scale of the noise, and this one


def made_up(rng, count, rate, shift):
    return Pool(rng.random(count) < rate, rng.normal(shift, 1, (count, 4)), np.ones(2), 0.0)


@pytest.fixture(scope="module")
def compared():
    """Worlds that only look different, and only hurt; MAPIE and river take part if they are installed."""
    rng = np.random.default_rng(7)
    others = {"different": made_up(rng, 150, 0.1, 1.0), "worse": made_up(rng, 150, 0.6, 0.0)}
    data = detectors.Data(made_up(rng, 400, 0.1, 0.0), others)
    names = [name for name in detectors.DETECTORS if installed(name.split()[0].lower())]
    return data, detectors.compare(data, references=(50, 100), horizon=60, runs=20, names=names)


def installed(name):
    return name not in ("mapie", "river") or find_spec(name) is not None


def test_costs_show_what_hurts_and_observations_what_looks_different(compared):
    _, found = compared
    for name, per_size in found.items():
        worlds = per_size["100"]["worlds"]
        if name.startswith("observations"):
            assert worlds["different"]["found"] > 0.9
            assert worlds["worse"]["found"] < 0.5
        elif name == detectors.OURS:
            assert worlds["different"]["found"] < 0.5
            assert worlds["worse"]["found"] > 0.9


def test_a_reference_and_the_stream_of_its_world_share_no_episode(compared):
    data, _ = compared
    for draw in data.draws(10, 100, 60, salt=3):
        assert not set(draw.reference) & set(draw.streams[tasks.USUAL.name])
        assert len(set(draw.streams["worse"])) == 60


def test_the_page_shows_the_published_results():
    results = json.loads(report.RESULTS.read_text())["strangers"]
    page = report.PAGE.read_text()
    assert report.filled(page, results) == page
    assert report.WORLDS.read_text() == report.worlds_table(results)
