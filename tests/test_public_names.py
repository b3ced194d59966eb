"""What `import boundwatch` offers: its names, how objects describe themselves, what it leaves alone."""

import dataclasses
import enum
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from torch import nn

import boundwatch as bw
from boundwatch._support.describing import InTable
from boundwatch.planning.mean_over_tasks import TasksPlan
from boundwatch.selftest.simulation import Promise
from boundwatch.server.client import Rejected
from boundwatch.tasks import folder, grasping, navigation
from boundwatch.tasks.grasping import train as grasping_train
from boundwatch.tasks.grasping.train import Recipe as GraspingRecipe
from boundwatch.tasks.navigation import train as navigation_train
from boundwatch.tasks.navigation.train import Recipe as NavigationRecipe

PATH = bw.Measure("cost", "path", (0, 10))
CERTIFICATE = bw.Certificate.from_held_out(np.linspace(0, 0.4, 500), measure=PATH)
BINARY = bw.Certificate.from_held_out([0, 0, 0, 1] * 25, binary=True)
FAMILY = bw.CertificateFamily({"pick": CERTIFICATE, "place": BINARY})
NEW = np.linspace(0.1, 0.9, 20)


# Where users meet classes: what these export, or, where they export nothing, what they define.
MODULES = ["", "comparison", "detectors", "episodes", "gym", "planning", "prediction", "testing", "training"]
MODULES += ["certificates.verification", "comparison.ranking", "detectors.verdicts"]
MODULES += ["selftest.simulation", "server.client", "tasks.folder"]
TASKS = ("tasks.grasping", "tasks.navigation")
MODULES += [task + part for task in TASKS for part in ("", ".train")]


def public_classes():
    """Return every class that users meet, except those that describe themselves."""
    for name in MODULES:
        module = importlib.import_module(f"boundwatch.{name}".removesuffix("."))
        exported = getattr(module, "__all__", None) if name else module.__dir__()
        for found in (getattr(module, each) for each in exported or vars(module) if not each.startswith("_")):
            if (
                inspect.isclass(found)
                and (exported is not None or found.__module__ == module.__name__)
                and not issubclass(found, enum.Enum | nn.Module)
                and not getattr(found, "_is_protocol", False)
            ):
                yield found


def fail(policy, environment, rng):  # noqa: ARG001  (what a rollout is called with)
    return 1.0


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    """One of every public class."""
    campaign = bw.Campaign(delta=0.01)
    campaign.update(0.3)
    fleet = bw.Fleet(BINARY)
    fleet.update(["arm-1", "arm-2"], [0, 1])
    watching = [test(CERTIFICATE) for test in (bw.SequentialTest, bw.ChangeDetector, bw.PredictedTest)]
    judged = bw.JudgedTest(CERTIFICATE, seed=1)
    comparison = bw.PolicyComparison(binary=True, paired=False)
    protocol = bw.Protocol(question="compare", policies=["v1", "v2"], most_rounds=9)
    return [
        *(CERTIFICATE, BINARY, FAMILY, PATH, CERTIFICATE.provenance, CERTIFICATE.record),
        *(bw.Episodes(np.linspace(0, 1, 5000), source="lab.csv"), bw.Design(strata="task")),
        *(campaign, fleet, fleet.finding("arm-1"), *watching),
        *(judged, judged.update(0), bw.JudgedCampaign(seed=1)),
        *(test.update_many(NEW) for test in watching[:2]),
        watching[2].update(0.3),
        *(
            bw.HypothesisTest(BINARY),
            bw.ConfidenceInterval(BINARY),
            bw.HypothesisTest(CERTIFICATE).decide(NEW),
        ),
        bw.HypothesisTest(CERTIFICATE).decide_many(np.stack([NEW, NEW])),
        bw.FamilyTest(FAMILY),
        bw.FamilyTest(FAMILY).decide({"pick": NEW, "place": [0, 1]}),
        bw.FamilyTest(FAMILY).decide({"pick": NEW}).tasks["pick"],
        bw.plan(BINARY, cost=0.6),
        bw.plan_trials(cost=0.1, new_cost=0.6, lab_trials=30),
        bw.plan_width(0.1),
        TasksPlan(cost=0.2, tasks=3, check={0.9: 8}, watch={0.9: 16}, seed=0),
        *(comparison, comparison.update(0, 1)),
        bw.compare_once({name: bw.Episodes([0, 1], strata=["mug", "can"]) for name in ("v1", "v2")}),
        *(protocol, bw.Evaluation.start(None, protocol)),
        bw.rank({"v1": NEW, "v2": NEW / 2}),
        bw.plan_comparison(cost_a=0.1, cost_b=0.6),
        *of_calls(tmp_path_factory.mktemp("client")),
        *(*of_gym(), *of_predictors(), *of_training(), *of_tasks()),
    ]


def of_calls(tmp_path):
    """What is returned, or is part of what is returned."""
    ranking = bw.rank({"v1": NEW, "v2": NEW / 2})
    client = bw.Client("http://me:secret@127.0.0.1:9", spool=tmp_path / "spool.sqlite")
    client.close(timeout=0)
    assert "secret" not in f"{client!r} {client}"
    promised = dict.fromkeys(("promised", "rate", "low", "high", "sees"), 0.05) | {"runs": 100, "kept": True}
    audit = bw.Audit(np.repeat([0.0, 1.0], [30, 10]), seed=1)
    found = audit.finding(dict.fromkeys(audit.draw(9), 0.0))
    return [
        client,
        Rejected("arm-1", "17", "cost is missing"),
        *(audit, found, *CERTIFICATE.verify()),
        ranking.policies[0],
        ranking.pairs[0],
        bw.HypothesisTest(CERTIFICATE).decide(NEW).shift_size,
        bw.plan(BINARY, cost=0.6).powers[0],
        bw.plan_trials(cost=0.1, new_cost=0.6, lab_trials=30).recommended,
        Promise(detector="hypothesis-test", verdict=bw.Verdict.ADVERSE, world="0 or 1", **promised),
    ]


def of_gym():
    single, vector = gymnasium.make("CartPole-v1"), gymnasium.make_vec("CartPole-v1", num_envs=3)
    return [
        bw.gym.Episode(3, 7, np.ones(500), [{"step": step} for step in range(500)], True, False),
        bw.gym.watch(single, bw.SequentialTest(CERTIFICATE), cost=(0, 500)),
        bw.gym.watch(vector, bw.SequentialTest(CERTIFICATE), cost=(0, 500)),
    ]


def of_predictors():
    scenes = bw.prediction.SceneWatch(NEW)
    return [
        bw.prediction.calibrate(lambda scenes: scenes, NEW, NEW),
        bw.prediction.Twin(fail, nn.Sequential(nn.Linear(3, 3), nn.Tanh())),
        scenes.update(NEW),
        scenes,
    ]


def of_training():
    history = bw.training.History("kl")
    for _ in range(500):
        history.append(cost=0.3, divergence=0.1, upper=0.4)
    module = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    return [
        bw.training.GaussianPosterior.over(module, prior_variance=0.1),
        bw.training.Rollouts(fail, list(range(500))),
        history,
    ]


def of_tasks():
    world = navigation.World()
    environments = world.draw(navigation.TRAINING, 20, seed=0)
    scene = grasping.draw_scenes(1, np.random.default_rng(0))[0]
    grasp, outcome = grasping.expert_grasp(scene, 0.0), grasping.Outcome(0.2, "lifted")
    image, physics, policy = np.zeros((50, 50)), grasping.Physics(), nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    recipe = NavigationRecipe()
    items = [
        grasping.draw_scenes(1, np.random.default_rng(0), objects=objects)[0].item
        for objects in ("mugs", "varied-mugs", "bowls")
    ]
    logits = np.zeros((50, 7))
    return [
        *items,
        folder.Claim(Path("run"), finished=True),
        folder.Saved({"steps": 3}, {"cost": 0.5}, CERTIFICATE, Path("run/policy.safetensors")),
        *(world, environments, world.recordings, world.drone, world.drone.primitives[0], world.scene),
        *(navigation.Wind(speed=2.0), navigation.TRAINING, recipe),
        navigation_train.Run(recipe, world, policy, CERTIFICATE, logits, {"trained": {"cost": 0.3}}),
        navigation_train.Deployment(np.zeros(50), logits),
        *(scene, grasp, outcome, physics, GraspingRecipe()),
        grasping_train.Run(GraspingRecipe(), physics, policy, CERTIFICATE, {"prior_cost": 0.3}),
        grasping_train.Deployment(physics, [scene] * 20, [image] * 20, [grasp] * 20, [outcome] * 20),
    ]


def test_no_public_class_is_forgotten(subjects):
    assert set(public_classes()) <= {type(subject) for subject in subjects}


def test_repr_is_one_line_and_str_is_in_words(subjects):
    for subject in subjects:
        line, words = repr(subject), str(subject)
        assert "\n" not in line
        assert len(line) < 800
        assert line.startswith(f"{type(subject).__name__}(")
        if is_setting(subject):
            continue
        assert "\n" not in words
        assert words != line
        assert not re.search(r"\w=|0x", words)
        assert len(words.split()) >= 3


def is_setting(subject):
    """Return whether somebody wrote the numbers of a simulated world down; they say all about it."""
    simulated = type(subject).__module__.startswith("boundwatch.tasks.")
    return simulated and dataclasses.is_dataclass(subject) and type(subject).__str__ is object.__str__


def test_repr_computes_nothing():
    finding = bw.SequentialTest(CERTIFICATE).update_many(NEW)
    assert "shift_lower" not in repr(finding)
    assert finding.shift_lower <= finding.shift_upper
    assert "shift_lower" in repr(finding)


def test_dir_shows_the_public_names_and_nothing_else():
    later = ["Client", "gym", "prediction", "testing", "training"]
    assert bw.__dir__() == sorted([*bw.__all__, *later])
    for module in later[1:]:
        assert getattr(bw, module).__name__ == f"boundwatch.{module}"
    others = {name for name in vars(bw) if not name.startswith("_")} - set(dir(bw))
    assert {getattr(bw, name).__name__ for name in others} == {f"boundwatch.{name}" for name in others}
    with pytest.raises(AttributeError, match="has no attribute 'views'"):
        _ = bw.views


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_leaves_heavy_libraries_alone():
    code = (
        "import sys, boundwatch as bw, boundwatch.prediction, boundwatch.tasks.base\n"
        "c = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)\n"
        "print({'boundwatch.reporting.plots', 'boundwatch.reporting.wording'} & set(sys.modules))\n"
        "str(c), repr(c), c._repr_html_()\n"
        "heavy = {'matplotlib', 'scipy.stats', 'torch', 'pandas', 'sqlalchemy', 'gymnasium', 'joblib'}\n"
        "print(heavy & set(sys.modules))\n"
        "c.plot(); print('matplotlib.figure' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    assert printed(code) == "set()\nset()\nTrue False\n"


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [("gymnasium", "gym", "gym"), ("torch", "training", "train"), ("mujoco", "tasks.grasping", "sim")],
)
def test_what_is_not_installed_is_named_as_an_extra(library, module, extra):
    code = f"""if True:
        import sys, importlib
        sys.modules[{library!r}] = None
        from boundwatch.errors import MissingExtra
        try:
            importlib.import_module("boundwatch.{module}")
        except MissingExtra as error:
            print(error)
    """
    assert f"boundwatch[{extra}]" in printed(code)


def test_an_object_without_a_view_of_its_own_is_described_by_its_fields():
    class Note(InTable):
        def __repr__(self) -> str:
            return "Note()"

    assert repr(Note()) == "Note()"
