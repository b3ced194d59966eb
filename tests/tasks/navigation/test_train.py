"""Training end to end: files, determinism, what the certificate says, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from boundwatch import bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import BoundwatchError, InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.tasks.navigation import TRAINING, Recordings, Scene, World
from boundwatch.tasks.navigation.policy import BATCH, Policy, logits_of
from boundwatch.tasks.navigation.train import (
    PAPERS_LABELS,
    Draw,
    Recipe,
    load_run,
    soft_labels,
    train,
)
from boundwatch.training import GaussianPosterior, tensorfile
from doctored.killed import train_until
from doctored.tiny import RECIPE
from processes import PROCESSES


@pytest.fixture(scope="module")
def run(trained_drone):
    return load_run(trained_drone)


@pytest.fixture(scope="module")
def environments():
    return World().draw(TRAINING, 50, seed=9)


def test_the_folder_holds_what_was_promised(trained_drone):
    names = {path.name for path in trained_drone.iterdir()} - {".lock"}
    documents = {f"{name}.json" for name in ("certificate", "draw", "settings", "summary", "training")}
    assert names == documents | {"costs.csv", "logits.npy", "policy.safetensors", "posterior.safetensors"}


def test_certificate_is_of_the_training_costs(run, trained_drone):
    costs = np.loadtxt(trained_drone / "costs.csv", skiprows=1)
    certificate = Certificate.load(trained_drone / "certificate.json")
    assert certificate.n == len(costs) == run.recipe.environments
    assert all(check.ok for check in certificate.verify(costs))
    training_set = run.world.draw(TRAINING, 300, seed=(run.recipe.seed, Draw.TRAINING))
    assert np.allclose(run.task().rollout(run.policy, training_set), costs)
    assert np.allclose(logits_of(run.policy, training_set.images), run.logits, atol=1e-5)


def test_summary_has_all_bounds_beside_the_untrained_draw(run):
    trained, untrained = run.summary["trained"], run.summary["prior_draw"]
    assert trained["cost"] == run.certificate.mean_cost
    assert trained["upper_pointwise"] == pytest.approx(run.certificate.upper, abs=1e-5)
    assert untrained["renyi"] == untrained["log_ratio"] == 0.0
    for row in (trained, untrained):
        assert row["cost"] < row["upper_pointwise"] < row["upper_kl"] < row["upper_pinsker"]
        complexity = (row["renyi"] + math.log(2 * math.sqrt(300) / 0.005**3)) / 300
        assert row["upper_pinsker"] == pytest.approx(row["cost"] + math.sqrt(complexity / 2))
        by_kl = bounds.pac_bayes_upper(row["cost"], 300, 0.01, row["renyi"], "kl")
        assert row["upper_kl"] == pytest.approx(float(by_kl))


def test_training_is_deterministic_down_to_the_bytes(trained_drone, tmp_path):
    train(RECIPE, tmp_path / "again")
    for name in ("policy.safetensors", "posterior.safetensors", "costs.csv", "summary.json", "logits.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (trained_drone / name).read_bytes()
    other = train(replace(RECIPE, seed=2), tmp_path / "other")
    assert other.summary["trained"]["cost"] != load_run(trained_drone).summary["trained"]["cost"]


def test_prior_training_set_and_deployment_are_different_environments(run):
    sets = [run.world.draw(TRAINING, 300, seed=(run.recipe.seed, stream), images=False) for stream in Draw]
    firsts = {tuple(part.obstacles[0].ravel().tolist()) for part in sets}
    assert len(firsts) == len(Draw)
    costs = run.deploy("training", 300, seed=run.recipe.seed).costs
    assert not np.array_equal(costs, run.task().costs(run.logits, sets[Draw.TRAINING]))


def test_deployment_repeats_and_its_length_changes_nothing(run):
    flown = run.deploy("training", 40, seed=2)
    assert flown.costs.shape == (40,)
    assert flown.logits.shape == (40, 7)
    again = run.deploy("training", 25, seed=2)
    assert np.array_equal(flown.costs[:25], again.costs)
    assert not np.array_equal(flown.costs, run.deploy("training", 40, seed=3).costs)


@pytest.mark.parametrize("name", ["obstacles:1", "difficulty:-9"])
def test_worlds_that_often_look_the_same_can_be_trained_in(tmp_path, name):
    """Blank images are equal; the environments behind them are not, or only by chance."""
    sizes = {"environments": 2000, "prior_environments": 2000}
    recipe = replace(RECIPE, distribution=name, prior_distribution=name, **sizes)
    assert train(recipe, tmp_path / "run").certificate.n == 2000


def test_a_prior_from_the_training_environments_is_refused(tmp_path, monkeypatch):
    same = SimpleNamespace(PRIOR=Draw.TRAINING, TRAINING=Draw.TRAINING)
    monkeypatch.setattr("boundwatch.tasks.navigation.train.Draw", same)
    with pytest.raises(InvalidSetting, match="300 of the 300"):
        train(RECIPE, tmp_path / "run")


def test_labels_are_the_papers_where_it_is_asked_for():
    clearances = np.array([[0.1, 0.7, -0.9, np.inf]], np.float32)
    usual = np.exp(np.array([1.0, 5.0, -5.0, 5.0]))
    assert soft_labels(Recipe(), clearances)[0].numpy() == pytest.approx(usual / usual.sum(), rel=1e-5)
    paper = np.exp(clearances[0, :3])
    papers = soft_labels(Recipe(**PAPERS_LABELS), clearances[:, :3])[0].numpy()
    assert papers == pytest.approx(paper / paper.sum(), rel=1e-5)
    clear = soft_labels(Recipe(**PAPERS_LABELS), clearances)[0].numpy()
    assert clear == pytest.approx([0.0, 0.0, 0.0, 1.0], abs=1e-6)


def test_all_weights_can_be_in_the_posterior(tmp_path):
    over = {"posterior": "weights", "prior_log_variance": -14.0, "bound": "pinsker", "rate": 5e-4}
    run = train(replace(RECIPE, **over), tmp_path / "run")
    posterior = GaussianPosterior.load(tmp_path / "run" / "posterior.safetensors", Policy(7))
    assert posterior.dim == sum(p.numel() for p in Policy(7).parameters()) - 7  # all but the adapter
    assert 0.0 < run.summary["trained"]["renyi"] == pytest.approx(posterior.renyi_divergence())
    assert run.certificate.upper == pytest.approx(run.summary["trained"]["upper_pinsker"], abs=1e-5)
    assert not torch.any(run.policy.adapter.weight)


def test_training_learns(tmp_path):
    run = train(replace(RECIPE, prior_environments=1000, prior_steps=250), tmp_path / "run")
    costs = run.deploy("training", 1024).costs
    assert costs.mean() < 0.45


def test_a_posterior_pays_when_the_prior_is_of_another_world(tmp_path):
    """A prior from calm air, trained in wind."""
    prior = {"prior_environments": 500, "prior_steps": 200, "prior_log_variance": -1.0}
    posterior = {"environments": 2000, "directions": 6, "steps": 150, "samples": 4, "rate": 0.1}
    recipe = replace(RECIPE, distribution="windy:2.5", **prior, **posterior)
    summary = train(recipe, tmp_path / "run").summary
    assert summary["trained"]["upper_pointwise"] < summary["prior_draw"]["upper_pointwise"] - 0.02
    costs = load_run(tmp_path / "run").deploy("windy:2.5", 1024).costs
    assert costs.mean() < summary["prior_draw"]["cost"] - 0.05


def test_a_run_loads_with_other_scenes_and_recordings(tmp_path):
    paths = Recordings.from_drone(World().drone).paths[1:6]
    world = World(Scene(pixels=20, distance="sensor"), recordings=Recordings(paths))
    recipe = replace(RECIPE, directions=3, environments=100, prior_environments=100)
    run = train(recipe, tmp_path / "run", world)
    again = load_run(tmp_path / "run")
    assert again.world.primitives == 5
    assert again.world.drone is None
    assert again.world.scene == world.scene
    images = world.draw(TRAINING, 5, seed=0).images
    assert np.array_equal(logits_of(again.policy, images), logits_of(run.policy, images))


def test_a_finished_training_is_loaded_and_not_repeated(trained_drone, monkeypatch):
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in trained_drone.iterdir()}
    fingerprint = load_run(trained_drone).certificate.fingerprint
    monkeypatch.delattr("boundwatch.tasks.navigation.train._train")
    assert train(RECIPE, trained_drone).certificate.fingerprint == fingerprint
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in trained_drone.iterdir()}
    assert after == before


def test_a_training_by_another_version_is_loaded_but_not_continued(trained_drone, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained_drone, folder)
    path = folder / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boundwatch": "0.0.9"}))
    assert load_run(folder).certificate == load_run(trained_drone).certificate
    with pytest.raises(InvalidSetting, match="another version"):
        train(RECIPE, folder)


@pytest.mark.parametrize("moment", ["train_backprop", "save_logits"])
def test_a_killed_training_continues_to_the_same_bytes(trained_drone, tmp_path, monkeypatch, moment):
    """Killed when the prior is finished, or all but the last files; what was finished is not made again."""
    folder = tmp_path / "run"
    process = PROCESSES.Process(target=train_until, args=(moment, RECIPE, folder))
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(SchemaMismatch, match=r"has not finished"):
        load_run(folder)
    kept = {}
    if moment == "save_logits":
        _, metadata = tensorfile.load(folder / "checkpoints" / "posterior.safetensors")
        assert int(metadata["step"]) == RECIPE.steps
        kept = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    # As if it had been killed yesterday: the certificate keeps the date of the first start.
    (folder / "checkpoints" / "started").write_text("2026-01-02T03:04:05+00:00")
    monkeypatch.setattr("boundwatch.tasks.navigation.train._cross_entropy", None)
    train(RECIPE, folder)
    assert {path.name for path in folder.iterdir()} == {path.name for path in trained_drone.iterdir()}
    for path in trained_drone.iterdir():
        if path.name != "certificate.json":  # it holds the date
            assert (folder / path.name).read_bytes() == path.read_bytes(), path.name
            assert kept.get(path.name, path.read_bytes()) == path.read_bytes(), path.name
    ours, other = (Certificate.load(place / "certificate.json") for place in (folder, trained_drone))
    assert ours.provenance.created == "2026-01-02T03:04:05+00:00"
    assert replace(ours, provenance=replace(ours.provenance, created=other.provenance.created)) == other


@pytest.fixture
def copied(trained_drone, tmp_path):
    return shutil.copytree(trained_drone, tmp_path / "run")


DAMAGES = [("settings.json", None), ("settings.json", b"{"), ("settings.json", b'{"task": "grasping"}')]


@pytest.mark.parametrize(("name", "damage"), [*DAMAGES, ("summary.json", b"[1"), ("logits.npy", b"x")])
def test_damaged_runs_are_refused(copied, name, damage):
    if damage is None:
        (copied / name).unlink()
    else:
        (copied / name).write_bytes(damage)
    with pytest.raises(SchemaMismatch):
        load_run(copied)


def test_another_policy_than_the_certified_one_is_refused(copied):
    tensors, metadata = tensorfile.load(copied / "policy.safetensors")
    name = min(tensors)
    tensorfile.save(copied / "policy.safetensors", tensors | {name: tensors[name] + 0.1}, metadata)
    with pytest.raises(ProvenanceMismatch):
        load_run(copied)


def test_altered_flights_are_refused(copied):
    settings = json.loads((copied / "settings.json").read_text())
    settings["drone"]["drag"] = 0.3
    (copied / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(SchemaMismatch, match="not those of the training"):
        load_run(copied)


IMPOSSIBLE = [("environments", 99), ("d_thresh", 0.0), ("d_thresh", math.inf)]
IMPOSSIBLE += [
    ("label_temperature", 0.0),
    ("posterior", "head"),
    ("distribution", "nope"),
    ("bound", "tight"),
    ("delta", 1),
    ("seed", -1),
]


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_impossible_recipes_are_refused(name, value):
    with pytest.raises(BoundwatchError, match=f"{name} = {value!r}"):
        Recipe(**{name: value})


def test_logits_are_the_same_bits_however_many_are_asked(run, environments):
    """Whole batches and the same rows among fewer; unpadded, the smallest differ in their last bits."""
    many = np.resize(environments.images, (2 * BATCH + 50, 50, 50))
    whole = logits_of(run.policy, many)
    for n in (1, 2, 3, 10, BATCH - 1, BATCH + 1):
        assert np.array_equal(logits_of(run.policy, many[:n]), whole[:n])
    for i in (0, 1, 17, 49):  # nor does an action depend on the other environments
        assert np.array_equal(logits_of(run.policy, many[i : i + 1]), whole[i : i + 1])


def test_adapter_starts_as_no_correction(environments):
    policy = Policy(primitives=7, directions=4)
    policy.choose_directions(torch.from_numpy(environments.images))
    images = torch.from_numpy(environments.images)
    scores, coordinates = policy.embed(images)
    assert torch.equal(policy(images), scores)
    assert coordinates.shape == (50, 4)
    assert torch.allclose(coordinates.mean(dim=0), torch.zeros(4), atol=1e-3)
    assert torch.allclose(torch.cov(coordinates.T), torch.eye(4), atol=1e-2)
    with pytest.raises(InvalidSetting, match="directions = 65"):
        Policy(primitives=7, directions=65)
