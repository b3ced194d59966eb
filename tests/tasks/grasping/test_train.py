"""The arm's training: a trained_arm one from end to end, and the reduced setting behind the marker slow."""

import csv
import dataclasses
import json
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

import boundwatch as bw
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.tasks.grasping import VariedMug
from boundwatch.tasks.grasping import train as training
from boundwatch.tasks.grasping.scenes import draw_scenes
from boundwatch.tasks.grasping.train import FEATURES, HARDER, SMALL, Draw, Recipe, load_run
from doctored.tiny import GRASPING
from invoking import invoke

TINY = GRASPING.recipe
QUICK = dataclasses.replace(Recipe(), **(FEATURES | SMALL))
SIZES = {
    name: getattr(TINY, name)
    for name in ("clone_batch", "demonstrations", "clone_steps", "environments", "steps")
} | {"prior_environments": 2}
PRODUCTS = ("posterior.safetensors", "policy.safetensors", "costs.csv")
PRODUCTS += ("draw.json", "summary.json", "training.json")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick") / "run"
    done = invoke(["train", "grasping", "-o", str(folder), "--quick", "--jobs", "2"])
    assert done.exit_code == 0, done.output
    return folder, done.stdout


@pytest.mark.slow
def test_quick_training_learns_and_certifies(quick):
    folder, printed = quick
    run = load_run(folder)
    assert run.recipe == QUICK
    assert run.summary["expert_success"] >= 0.98
    assert run.summary["prior_cost"] < 0.5  # an untrained network fails always
    assert run.certificate.binary
    assert run.certificate.n == QUICK.environments
    assert run.certificate.upper == pytest.approx(run.summary["upper_pointwise"])
    assert run.summary["upper_pointwise"] < run.summary["upper_kl"] < run.summary["upper_pinsker"]
    assert all(check.ok for check in run.certificate.verify())
    assert "kl-inverse" in printed
    assert not (folder / "checkpoints").exists()


@pytest.mark.slow
def test_worse_placements_fail_more(quick):
    run = load_run(quick[0])
    near, far = (run.deploy(40, placement=placement, jobs=2).costs.mean() for placement in (1, 6))
    assert near < far
    assert far >= 0.5


@pytest.fixture(scope="module")
def harder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("harder") / "run"
    return folder, training.train(dataclasses.replace(HARDER, **SIZES), folder)


def test_the_harder_world_is_trained_and_deployed_in(harder):
    folder, run = harder
    assert load_run(folder).recipe == run.recipe
    assert run.recipe.objects == "varied-mugs"
    assert all(check.ok for check in run.certificate.verify())
    deployed = run.deploy(2)
    assert all(isinstance(scene.item, VariedMug) for scene in deployed.scenes)
    assert deployed.images[0][:20].any()  # the bare table is not black: the camera's noise
    assert run.deploy(2, objects="mugs").scenes != deployed.scenes


@pytest.mark.parametrize("kept", [True, False])
def test_unsorted_demonstrations_are_cloned_with_their_failures(tmp_path, monkeypatch, kept):
    clone = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(training, "_clone", clone)
    recipe = dataclasses.replace(HARDER, **SIZES, unsteadiness=0.03, sorted=kept)
    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, tmp_path / "run")
    assert (len(clone.call_args.args[2][0]) == recipe.demonstrations) == (not kept)


@pytest.mark.parametrize(
    ("flags", "network", "batch"),
    [
        ([], "points", 16),
        (["--network", "features"], "features", 128),
        (["--quick"], "features", 128),
        (["--quick", "--network", "points"], "points", 16),
        (["--harder"], "features", 32),
        (["--harder", "--network", "points"], "points", 16),
    ],
)
def test_each_network_is_cloned_by_a_recipe_of_its_own(tmp_path, monkeypatch, flags, network, batch):
    train = Mock(side_effect=BoundwatchError)
    monkeypatch.setattr("boundwatch.tasks.grasping.train.train", train)
    invoke(["train", "grasping", "-o", str(tmp_path / "run"), *flags])
    recipe = train.call_args.args[0]
    assert (recipe.network, recipe.clone_batch) == (network, batch)
    assert recipe.objects == ("varied-mugs" if "--harder" in flags else "mugs")


def test_rollout_writes_costs_that_check_reads(trained_arm, tmp_path):
    output, pictures = tmp_path / "costs.csv", tmp_path / "pictures"
    command = ["rollout", "grasping", "--policy", str(trained_arm), "--objects", "bowls", "--placement", "4"]
    command += ["-n", "1", "-o", str(output), "--json"]
    done = invoke([*command, "--render", str(pictures)])
    assert done.exit_code == 0, done.output
    result = json.loads(done.out)
    costs = bw.read_costs(output, binary=True).costs
    assert result["failures"] == costs.sum()
    assert result["columns"] == ["cost", "rise", "reason", "film"]
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [row["film"] for row in rows] == [str(pictures / "01.gif")]
    assert all(row["reason"] and float(row["rise"]) < 1 for row in rows)
    with Image.open(pictures / "01.gif") as film:
        assert film.n_frames > 5
        assert len(film.convert("RGB").getcolors(1 << 20)) > 50  # not blank
    again = invoke([*command, "--force"])
    assert again.exit_code == 0
    assert np.array_equal(bw.read_costs(output, binary=True).costs, costs)


def test_deployment_is_new_and_the_same_under_other_physics(trained_arm):
    run = load_run(trained_arm)
    training_set = draw_scenes(TINY.environments, TINY.generator(Draw.TRAINING))
    new = run.deploy(3)
    assert not set(new.scenes) & set(training_set)
    slippery = run.deploy(3, physics=dataclasses.replace(run.physics, pad_friction=0.02))
    assert slippery.scenes == new.scenes
    assert slippery.costs.mean() == 1.0
    assert run.deploy(3, seed=1).scenes != new.scenes


def assert_same_bytes(ours, other):
    for name in PRODUCTS:
        assert (ours / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize(
    ("stage", "jobs"), [("train_prior", 2), ("train_evolution", 1), ("folders.certify", 1)]
)
def test_an_interrupted_training_ends_with_the_same_bytes(trained_arm, tmp_path, monkeypatch, stage, jobs):
    with monkeypatch.context() as patch:
        patch.setattr(f"boundwatch.tasks.grasping.train.{stage}", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            training.train(TINY, tmp_path / "run")
    training.train(TINY, tmp_path / "run", jobs=jobs)
    assert_same_bytes(tmp_path / "run", trained_arm)


def test_a_kill_costs_one_part_of_the_demonstrations(trained_arm, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_PART", 8)
    shown = []

    def killed_in_the_third(task, scenes, grasps, **kwargs):
        shown.append(len(scenes))
        if len(shown) == 3:
            raise KeyboardInterrupt
        return attempts(task, scenes, grasps, **kwargs)

    attempts = training.Grasping.attempts
    with monkeypatch.context() as patch:
        patch.setattr(training.Grasping, "attempts", killed_in_the_third)
        with pytest.raises(KeyboardInterrupt):
            training.train(TINY, tmp_path / "run")
        shown += [None]
        training.train(TINY, tmp_path / "run")
    assert shown[:5] == [8, 8, 8, None, 8]  # the third part alone was shown again
    assert_same_bytes(tmp_path / "run", trained_arm)


def test_every_purpose_has_mugs_of_its_own():
    purposes = (Draw.DEMONSTRATIONS, Draw.PRIOR, Draw.TRAINING, Draw.DEPLOYMENT)
    drawn = [draw_scenes(50, recipe.generator(purpose)) for recipe in (TINY, QUICK) for purpose in purposes]
    drawn.append(draw_scenes(50, np.random.default_rng(TINY.seed)))  # what somebody else draws with this seed
    drawn.append(draw_scenes(50, dataclasses.replace(TINY, seed=1).generator(Draw.TRAINING)))
    mugs = [scene.item for scenes in drawn for scene in scenes]
    assert TINY.seed == QUICK.seed
    assert len(set(mugs)) == len(mugs) - 4 * 50


def test_shared_environments_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Recipe, "generator", lambda recipe, _purpose: np.random.default_rng(recipe.seed))
    with pytest.raises(InvalidSetting, match="the prior set shares"):
        training.train(TINY, tmp_path)


IMPOSSIBLE = {
    "environments": 7, "steps": 0, "demonstrations": 10, "seed": -1, "delta": 2.0, "bound": "hoeffding",
    "rate": 0.0, "clone_rate": float("nan"), "unsteadiness": -0.01, "objects": "bowls",
    "network": "transformer", "optimizer": "newton",
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_recipes_are_refused(name):
    with pytest.raises(BoundwatchError, match=name):
        Recipe(**{name: IMPOSSIBLE[name]})


def test_an_expert_that_fails_is_an_error(tmp_path):
    slippery = dataclasses.replace(training.Physics(), pad_friction=0.01)
    with pytest.raises(InvalidSetting, match="the expert succeeded"):
        training.train(TINY, tmp_path, slippery)
