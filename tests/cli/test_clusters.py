"""Repeats of a scene on the command line: each scene counts once."""

import json

import numpy as np
import pytest


@pytest.fixture
def sheets(tmp_path):
    """A lab of 20 scenes x 10 repeats, and a new site of 12 x 5 where more trials fail."""
    for name, scenes, repeats, rate in (("lab", 20, 10, 0.2), ("new", 12, 5, 0.8)):
        rng = np.random.default_rng(len(name) + scenes)
        rows = [f"{name}{s},{int(rng.random() >= rate)}" for s in range(scenes) for _ in range(repeats)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["scene,ok", *rows]) + "\n")
    return tmp_path


def test_scenes_are_certified_and_checked_without_saying_so_twice(run, sheets):
    lab, new, certificate = sheets / "lab.csv", sheets / "new.csv", sheets / "c.json"
    made = run("certify", lab, "--success", "ok", "--cluster", "scene", "-o", certificate)
    assert "of trials on average over scenes (99 % confidence)" in made.out
    assert "20 scenes x 10 repeats: 200 trials, " in made.out
    content = json.loads(certificate.read_text())
    assert (content["n"], content["trials"]["n"], content["design"]) == (20, 200, {"cluster": "scene"})
    checked = run("check", certificate, new)
    assert checked.out.startswith("ADVERSE: worse than in the lab; at least ")
    assert "12 scenes x 5 repeats: 60 trials, " in checked.out
    assert "on average over 12 scenes" in checked.out
    assert json.loads(run("check", certificate, new, "--json").out)["n"] == 12
    (sheets / "bare.csv").write_text("ok\n1\n0\n")
    refused = run("check", certificate, sheets / "bare.csv")
    assert "there is no column 'scene'; name another with --cluster COL" in refused.err
    assert "report.html" in run("report", certificate, new, "-o", sheets / "report.html").out


def test_the_scenes_of_two_policies_are_matched_only_if_declared(run, sheets):
    one, other = sheets / "lab.csv", sheets / "other.csv"
    other.write_text(one.read_text())
    options = ("compare", one, other, "--success", "ok", "--cluster", "scene")
    assert "on which " in run(*options).err
    said = run(*options, "--paired").out
    assert said.startswith("UNDECIDED")
    assert "20 scenes x 10 repeats" in said


@pytest.mark.parametrize(
    "words",
    [
        ("certify", "lab.csv", "--follow", "--until-width", "0.3", "-o", "p.json", "--success", "ok"),
        ("watch", "c.json", "new.csv", "--state", "s"),
        ("compare", "lab.csv", "new.csv", "--follow", "--success", "ok"),
    ],
)
def test_trials_read_line_by_line_have_no_clusters(run, sheets, words):
    assert run("certify", "lab.csv", "--success", "ok", "-o", "c.json").code == 0
    refused = run(*words, "--cluster", "scene")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "--cluster does not go with" in refused.err
    assert not (sheets / "p.json").exists()


@pytest.mark.parametrize("command", ["check", "watch"])
@pytest.mark.usefixtures("sheets")
def test_clusters_are_not_judged_by_a_certificate_of_trials(run, command):
    assert run("certify", "lab.csv", "--success", "ok", "-o", "c.json").code == 0
    refused = run(command, "c.json", "new.csv", "--cluster", "scene")
    assert (refused.code, refused.out) == (1, "")
    assert (
        "of single trials, and these are counted once for each scene; certify with --cluster" in refused.err
    )


@pytest.mark.usefixtures("sheets")
def test_a_certificate_of_clusters_judges_no_trials_line_by_line(run):
    assert run("certify", "lab.csv", "--success", "ok", "--cluster", "scene", "-o", "c.json").code == 0
    refused = run("watch", "c.json", "new.csv", "--state", "s")
    assert (refused.code, refused.out) == (1, "")
    assert "the certificate counts a cluster of trials once" in refused.err
