"""The demo, end to end at a tiny size."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

from boundwatch.demo import drawings, flow
from boundwatch.demo.result_page import render
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation import TRAINING, World
from doctored.tiny import RECIPE
from pages import Page

DETECTORS = ["test, hoeffding", "test, betting", "interval, hoeffding", "interval, betting", "sequential"]


@pytest.fixture(scope="module")
def demo(trained_drone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(trained_drone, folder / "run")
    return flow.run_demo(folder, recipe=RECIPE, trials=12)


def test_every_detector_judges_every_world(demo):
    content = demo.to_dict()
    assert [world["world"] for world in content["worlds"]] == list(flow.WORLDS)
    for world in content["worlds"]:
        assert list(world["findings"]) == DETECTORS
        for finding in world["findings"].values():
            assert finding["verdict"] in ("adverse", "benign", "within")
            assert finding["n"] == 12
            assert finding["false_positive_rate"] == pytest.approx(0.05)
    json.dumps(content, allow_nan=False)


def test_page_stands_alone_and_is_wellformed(demo):
    html = render(demo)
    assert not set(Page(html).tags) & {"script", "link", "img", "iframe"}
    assert not re.search(r"https?://|url\(", html)
    # Evidence, and flight and image of three trials in five worlds.
    assert html.count("<svg") == 2 + 2 * 3 * 5
    for world in flow.WORLDS:
        assert f"<th>{world}</th>" in html


def test_flight_picture_shows_every_obstacle_and_primitive():
    world = World()
    environments = world.draw(TRAINING, 1, seed=0, flights=True)
    svg = drawings.draw_flight(
        environments.obstacles[0], environments.flights[0], 2, (0.2, 0.17), collided=False
    )
    assert 'class="hit"' not in svg
    assert svg.count('class="obstacle"') == 9
    assert svg.count('class="option"') == 6
    assert svg.count('class="flown"') == 1


def test_depth_picture_has_every_near_pixel():
    image = np.full((4, 4), 7.0)
    image[1, 2] = 3.0
    svg = drawings.draw_depth(image, 7.0)
    assert svg.count("h1v1h-1z") == 1
    assert "M2 2h1" in svg  # rows count from below


def test_labels_of_the_evidence_do_not_cover_each_other():
    svg = drawings.draw_evidence([(name, [1.0, 1.0]) for name in flow.WORLDS], 25.0, "evidence")
    heights = [float(y) for y in re.findall(r'<text x="532" y="([\d.]+)"', svg)]
    assert len(heights) == 6  # the worlds, and the level of the alarm
    assert np.diff(sorted(heights)).min() >= 14


def test_too_few_trials_are_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="trials = 2 is below 3"):
        flow.run_demo(tmp_path, recipe=RECIPE, trials=2)


def test_demo_command(run, trained_drone, tmp_path, monkeypatch):
    monkeypatch.setattr(flow.run_demo, "__kwdefaults__", {"recipe": RECIPE, "trials": 12})
    shutil.copytree(trained_drone, tmp_path / "here" / "run")
    code, out, err = run("demo", "-o", "here")
    assert (code, err) == (0, "")
    assert "task-irrelevant" in out
    assert "here/report.html" in out
    assert (tmp_path / "here" / "report.html").read_text().startswith("<!DOCTYPE html>")
    code, check, _ = run("check", "here/run/certificate.json", "here/costs/windy.csv")
    assert code == 0
    assert "12, mean cost" in check
    code, out, err = run("demo", "-o", "here", "--json")  # the same demo once more, in the same folder
    stored = json.loads((tmp_path / "here" / "findings.json").read_text())
    assert json.loads(out)["worlds"] == stored["worlds"]
