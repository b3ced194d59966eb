"""The whole reproduction at the smallest sizes: it runs, repeats itself, remembers, and survives a kill."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from unittest.mock import Mock

import pytest
from reproduction.artifacts import Cache, key
from reproduction.certification import AUTHORS
from reproduction.index import PRINTED
from reproduction.runner import EXPERIMENTS, Computed, reproduce
from reproduction.source import source_digest, sources

from doctored.made_up import filled
from doctored.tiny import SWEEP, tiny_settings
from reproduction import difficulty, runner


def results(folder, name):
    return json.loads((folder / name / "results.json").read_text())


HOLDS = {"yes", "partly", "no", "not checkable here"}


def test_every_experiment_writes_numbers_and_figures(folder):
    for name in EXPERIMENTS:
        content = results(folder, name)
        assert content["experiment"] == name
        assert content["claims"]
        assert {claim["holds"] for claim in content["claims"]} <= HOLDS
        assert all(len(text) > 20 for text in content["caption"].values())
        assert (folder / name / "figure.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (folder / name / "figure.svg").read_bytes()


def test_the_page_shows_everything_and_needs_nothing(folder):
    text = (folder / "index.html").read_text()
    seen: list[tuple[str, str]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.extend((tag, value) for name, value in attributes if name in ("src", "href") and value)

    Reader().feed(text)
    images = [value for tag, value in seen if tag == "img"]
    certified = [name for name in EXPERIMENTS if (folder / name / f"{PRINTED}.svg").exists()]
    assert len(images) == len(EXPERIMENTS) + len(certified)
    assert len(certified) == 9
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for _, value in seen)
    assert all(f'id="{name}"' in text for name in EXPERIMENTS)
    assert "False declarations against the guaranteed rates" in text


def test_two_runs_give_the_same_numbers_whatever_the_processes(folder, tmp_path, with_policies):
    names = ["difficulty", "mug-placement"]
    reproduce(names, with_policies(tmp_path), tiny_settings(), jobs=2)
    for name in names:
        for file in ("results.json", "figure.png", "figure.svg"):
            assert (tmp_path / name / file).read_bytes() == (folder / name / file).read_bytes(), (name, file)


@pytest.fixture
def two(folder, tmp_path, monkeypatch):
    """Return a folder with the same cache, and the settings; let there be two figures: others take long."""
    settings, names = tiny_settings(), ["difficulty", "mug-placement"]
    monkeypatch.setattr(runner, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in names})
    shutil.copytree(folder / "cache", tmp_path / "cache")
    return tmp_path, settings


def test_nothing_is_computed_twice(two, monkeypatch):
    output, settings = two
    before = {path.name: path.stat().st_mtime_ns for path in (output / "cache").iterdir()}

    monkeypatch.setattr(difficulty, "run", Mock(side_effect=AssertionError("computed again")))
    todo = []
    page = reproduce(["mug-placement"], output, settings, started=todo.append)
    assert todo == [[]]
    assert page.read_text().count("<img") == 4  # what earlier runs computed stays on the page, both ways
    assert {path.name: path.stat().st_mtime_ns for path in (output / "cache").iterdir()} == before
    # The control: with other settings, it would have been.
    changed = settings | {"difficulty": replace(settings["difficulty"], alpha=0.1)}
    with pytest.raises(AssertionError, match="computed again"):
        reproduce(["difficulty"], output, changed)


def test_what_is_half_written_is_not_taken_for_whole(tmp_path, monkeypatch):
    computed, cache = Computed("difficulty", tiny_settings()["difficulty"]), Cache(tmp_path)
    monkeypatch.setattr(Computed, "needs", lambda _self: ())
    monkeypatch.setattr(difficulty, "run", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        cache.folder(computed)
    assert not (tmp_path / key(computed)).exists()
    whole = filled(difficulty.Results, expected_cost=0.5)
    monkeypatch.setattr(difficulty, "run", lambda _settings, _cache: whole)
    assert computed.load(cache) == whole


def test_the_key_depends_on_every_setting():
    settings = tiny_settings()["difficulty"]
    changes = [{"seed": 5}, {"environments": 7}, {"datasets": 3}, {"settings": ("training",)}]
    changes += [{"policy": replace(SWEEP.policy, recipe=replace(SWEEP.policy.recipe, rate=0.06))}, {}]
    keys = {key(Computed("difficulty", replace(settings, sweep=replace(SWEEP, **each)))) for each in changes}
    assert len(keys | {key(Computed("rates", settings))}) == 7


def test_the_key_depends_on_the_source_that_makes_the_artifact_and_on_no_other(tmp_path):
    package = tmp_path / "robot"
    (package / "parts").mkdir(parents=True)
    files = {
        "__init__.py": "from robot.parts import arm",
        "policy.py": "from robot.parts import arm\ndef make():\n    import robot.wheels",
        "parts/__init__.py": "",
        "parts/arm.py": "from robot.limits import FORCE",
        "limits.py": "FORCE = 1",
        "wheels.py": "",
        "figure.py": "import robot.policy\nCAPTION = 'policies'",
    }

    def digests(changes: dict[str, str]) -> list[str]:
        for name, text in (files | changes).items():
            (package / name).write_text(text)
        source_digest.cache_clear()
        return [source_digest(f"robot.{name}", (package,)) for name in ("policy", "figure")]

    policy, figure = digests({})
    assert [policy, figure] == digests({})
    for name in ("policy.py", "parts/arm.py", "limits.py", "wheels.py"):  # those inside functions included
        changed = digests({name: "# changed\n" + files[name]})
        assert changed[0] != policy, name
        assert changed[1] != figure, name
    assert digests({"figure.py": "import robot.policy\nCAPTION = 'all policies'"})[0] == policy
    source_digest.cache_clear()


def test_policies_depend_on_their_task_and_not_on_what_draws_and_explains():
    drone, arm, figure = (set(sources(f"reproduction.{name}")) for name in ("navigation", "grasping", "wind"))
    # The defaults of worlds, scenes and drones are not among the settings; their source is.
    names = ("world", "scene", "drone", "recordings", "train")
    world = {f"boundwatch.tasks.navigation.{name}" for name in names}
    assert world | {"boundwatch.bounds.pac_bayes", "boundwatch.training.certify"} <= drone
    assert {"boundwatch.tasks.grasping.world", "boundwatch.tasks.grasping.scenes"} <= arm
    assert not world & arm
    assert drone | {"reproduction.wind", "boundwatch.detectors.hypothesis_test"} <= figure
    explains = {f"reproduction.{name}" for name in ("wind", "style", "index")}
    assert not (explains | {"boundwatch.reporting.page", "boundwatch.reporting.plots"}) & (drone | arm)


def test_quick_and_full_settings_cover_the_same_experiments():
    full, quick = (runner.all_settings(quick=quick) for quick in (False, True))
    assert quick.keys() == full.keys() == EXPERIMENTS.keys()
    assert full["theorem-3"].datasets == 500_000
    assert full["difficulty"].sweep.datasets == 2000
    assert len(full["difficulty"].sweep.settings) == 21
    for first in (full["mug-placement"], quick["mug-placement"]):
        for settings in (first, runner._with_seed(first, 1)):  # every policy has grasps beyond its datasets
            assert settings.environments > settings.trials * settings.datasets


def test_variants_change_the_policy_and_how_often_it_is_tried():
    full = runner.all_settings(quick=False)
    found = runner.variants(full["mug-placement"], 2, "theorem-1")
    assert list(found) == ["theorem-1", "pointwise"]  # the one that is drawn comes first
    first, second = found["pointwise"]
    assert first == full["mug-placement"]
    assert second.policy.recipe == replace(first.policy.recipe, seed=first.policy.recipe.seed + 1)
    assert replace(second, policy=first.policy, environments=1000) == first
    assert second.environments == 500
    first, second = (found.sweep for found in runner.variants(full["difficulty"], 2)["pointwise"])
    assert (first.environments, first.datasets) == (100_000, 2000)
    assert replace(second, policy=first.policy) == replace(first, environments=50_000, datasets=1000)
    first, second = runner.variants(full["mugs-and-bowls"], 2)["pointwise"]
    assert [len(each.frictions) for each in (first, second)] == [5, 0]  # of the first policy, and no claim's
    recorded_too = runner.variants(full["rates"], 2, recorded_flights=True)
    assert list(recorded_too) == ["pointwise", "theorem-1", "recorded-flights"]
    (flown,) = recorded_too["recorded-flights"]
    assert flown.sweep.policy == full["rates"].sweep.policy.on_recorded_flights()
    assert list(runner.variants(full["wind"], 2, recorded_flights=True)) == ["pointwise", "theorem-1"]
    # Five policies are in that figure already; what is ours is judged once.
    assert [len(each) for each in runner.variants(full["cost-function"], 5).values()] == [1, 1]
    for name in ("posterior", "labels", "power", "certificates", "hardware", "stronger-baselines"):
        assert runner.variants(full[name], 5) == {"": [full[name]]}


def test_every_policy_is_computed_and_has_a_vote(folder, tmp_path, monkeypatch):
    """With the first policy's numbers for each, as if all had been trained: training takes long."""
    computed, settings = [], tiny_settings()
    found = results(folder, "difficulty")["results"]

    def run(settings, _cache):
        computed.append((settings.certificate, settings.sweep.policy.recipe.seed))
        return found

    monkeypatch.setattr(difficulty.Settings, "artifacts", lambda _settings: ())
    monkeypatch.setattr(difficulty, "run", run)
    monkeypatch.setattr(runner, "EXPERIMENTS", {"difficulty": difficulty})
    reproduce([], tmp_path, settings, policies=2)
    seed = SWEEP.policy.recipe.seed
    assert sorted(computed) == [(kind, s) for kind in ("pointwise", "theorem-1") for s in (seed, seed + 1)]
    for claim in results(tmp_path, "difficulty")["claims"]:
        votes = {kind: len(votes) for kind, votes in claim["votes"].items()}
        assert votes == {AUTHORS: 1, "pointwise": 2, "theorem-1": 2}


def test_theorem_1_is_drawn_when_it_is_asked_for(two):
    (output, settings), todo = two, []
    page = reproduce([], output, settings, certificate="theorem-1", started=todo.append)
    assert todo == [[]]  # every certificate was computed for the claims
    for name in runner.EXPERIMENTS:
        content = results(output, name)
        interval = content["results"]["certificate"]
        assert interval["kind"] == "theorem-1"
        assert interval["upper"] == pytest.approx(interval["theorem_1"])
        assert interval["upper"] >= interval["pointwise"]  # the arm's eight mugs show nothing
        # Some claims are checked on the authors' data, too.
        assert content["claims"][0]["votes"].keys() - {"authors"} == {"pointwise", "theorem-1"}
    assert "The certificate is Theorem 1 as printed" in page.read_text()
