"""boundwatch audit, and certify with a judge and labels."""

import json

import numpy as np
import pytest

RNG = np.random.default_rng(2)
TRUTH = RNG.random(300) < 0.2
JUDGED = np.where(RNG.random(300) < 0.95, TRUTH, ~TRUTH)


@pytest.fixture
def folder(tmp_path):
    lines = [f"{i},clips/{i}.mp4,{'no' if failed else 'yes'}\n" for i, failed in enumerate(JUDGED)]
    (tmp_path / "judged.csv").write_text("episode,video,vlm\n" + "".join(lines))
    return tmp_path


def fill(folder, change=lambda lines: lines):
    """Label what was drawn as it really was."""
    head, names, *rows = (folder / "to_label.csv").read_text().splitlines()
    done = [f"{row}{'no' if TRUTH[int(row.split('/')[1].split('.')[0])] else 'yes'}" for row in rows]
    (folder / "labeled.csv").write_text("\n".join(change([head, names, *done])) + "\n")


AUDIT = ("audit", "judged.csv", "--judge", "vlm", "-n", "40", "--seed", "7", "-o", "to_label.csv")
CERTIFY = ("certify", "judged.csv", "--judge", "vlm", "--labels", "labeled.csv", "-o", "c.json")


def test_people_label_what_was_drawn_and_certify_says_what_it_proves(run, folder):
    assert "40 episodes of 300" in run(*AUDIT, "--show", "video").out
    head, names, first, *_ = (folder / "to_label.csv").read_text().splitlines()
    assert head.startswith("# boundwatch audit: 40 of 300 episodes seed 7 judged ")
    assert names == "row,video,label"
    assert "yes" not in first
    fill(folder)
    said = run(*CERTIFY).out
    assert "It fails in" in said
    assert "of the failures, and calls" in said
    assert "You have 40 labels; 20 more would narrow it from" in said
    kept = json.loads((folder / "c.json").read_text())
    assert (kept["source"], kept["n"], kept["delta"]) == ("audit", 40, 0.05)
    assert kept["measure"]["column"] == "label"  # not the judge's: new trials are not measured by it
    assert "not measured the way" in run("check", "c.json", "judged.csv", "--success", "vlm").err
    assert "; if a machine judged, give --judge COL --labels FILE" in run("check", "c.json", "judged.csv").err
    (folder / "new.csv").write_text("label\n" + "no\nyes\nno\nno\nno\nno\n")
    assert "ADVERSE" in run("check", "c.json", "new.csv").out
    assert run("verify", "c.json").code == 0


def test_more_labels_are_planned_from_the_certificate(run, folder):
    run(*AUDIT, "--show", "video")
    fill(folder)
    said = run(*CERTIFY).out
    widths = json.loads(run("plan", "c.json", "--audit", "-n", "60", "-n", "150", "--json").out)["widths"]
    assert list(widths) == ["40", "60", "150"]
    fewer = run("plan", "c.json", "--audit", "-n", "60", "-n", "20")  # which make nothing narrower
    assert (fewer.code, "-n 20: there are 40 labels of" in fewer.err) == (2, True)
    assert widths["40"] > widths["60"] > widths["150"] > 0
    assert f"narrow it from {100 * widths['40']:.0f} to about {100 * widths['60']:.0f} points" in said
    assert "50     60     90    140" in run("plan", "c.json", "--audit").out
    assert "needs the CERTIFICATE of an audit" in run("plan", "--audit").err
    assert "--cost does not go with --audit" in run("plan", "c.json", "--audit", "--cost", "0.1").err
    assert "--width does not go with --audit" in run("plan", "c.json", "--audit", "--width", "0.1").err


def test_a_second_labeler_semicolons_and_an_early_end_are_read(run, folder):
    run(*AUDIT, "--show", "video")
    fill(
        folder,
        lambda lines: [
            f"\ufeff{lines[0]};;;",  # as a spreadsheet saves it
            lines[1].replace(",", ";") + ";label2",
            *(line.replace(",", ";") + ";yes" for line in lines[2:32]),
            *(line.rpartition(",")[0].replace(",", ";") + ";;" for line in lines[32:]),
        ],
    )
    said = run(*CERTIFY).out
    assert "30 labels of 300 judged episodes" in said
    assert "Labelers disagree on" in said


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: lines[1:], "does not say which episodes were drawn"),
        (lambda lines: [lines[0].replace("seed 7", "seed 8"), *lines[1:]], "label"),
        (lambda lines: [*lines[:5], *lines[6:]], "who skips episodes chooses them"),
        (
            lambda lines: [lines[0], lines[1].replace("label", "human"), *lines[2:]],
            "has no columns row and label",
        ),
        (lambda lines: [*lines[:2], "9999,x,yes", *lines[3:]], "is no row that was judged"),
        (lambda lines: [*lines, lines[2]], "is labeled in two lines"),
        (
            lambda lines: [lines[0][:-3] + "abc", *lines[1:]],
            "give the file that was drawn from, unchanged and in its order",
        ),
        (
            lambda lines: [*lines[:2], lines[2].rpartition(",")[0] + ",maybe", *lines[3:]],
            "column 'label' = 'maybe'",
        ),
    ],
)
def test_labels_of_another_draw_are_refused(run, folder, change, why):
    run(*AUDIT, "--show", "video")
    fill(folder, change)
    result = run(*CERTIFY)
    assert result.code == 1
    assert why in result.err


def test_tasks_and_repeats_of_scenes_widen_what_is_said_of_the_policy(run, folder):
    lines = (folder / "judged.csv").read_text().splitlines()
    more = [f"{line},{'mug' if i % 2 else 'bowl'},{i // 10}" for i, line in enumerate(lines[1:])]
    (folder / "judged.csv").write_text("\n".join([f"{lines[0]},task,scene", *more]) + "\n")
    run(*AUDIT, "--show", "video")
    fill(folder)
    kept = {}
    for option in (
        (),
        ("--strata", "task"),
        ("--cluster", "scene"),
        ("--strata", "task", "--cluster", "scene"),
    ):
        said = run(*CERTIFY, *option, "--force")
        assert said.code == 0, said.err
        assert "Of all 300 judged episodes 1" in said.out
        kept[option[-1] if len(option) == 2 else len(option)] = json.loads((folder / "c.json").read_text())
    assert kept["task"]["audit"]["units"] == 300
    assert kept["task"]["design"] == {"strata": "task"}
    assert (kept["scene"]["audit"]["units"], kept[4]["audit"]["units"]) == (30, 60)
    assert kept[0]["upper"] < kept["task"]["upper"] < kept[4]["upper"] < kept["scene"]["upper"]
    assert "audit the episodes of each task alone" in run("check", "c.json", "judged.csv").err
    run(*CERTIFY, "--cluster", "scene", "--force")
    (folder / "new.csv").write_text("label,scene\n" + "no,a\nno,a\nno,b\nno,b\nno,c\nno,d\n" * 4)
    assert "ADVERSE" in run("check", "c.json", "new.csv").out
    (folder / "judged.csv").write_text("\n".join([f"{lines[0]},task,scene", *more[:-1], "299,x,yes,mug,0"]))
    assert "are not repeated alike" in run(*CERTIFY, "--cluster", "scene", "--force").err


@pytest.mark.usefixtures("folder")
def test_wrong_usage(run):
    assert "go together" in run("certify", "judged.csv", "--judge", "vlm", "-o", "c.json").err
    assert "--cost does not go with --judge" in run(*AUDIT, "--cost", "x").err
    assert "name another with --judge COL" in run("audit", "judged.csv", "--judge", "nope", "-o", "x.csv").err
    assert "--show" not in run("audit", "judged.csv", "-o", "x.csv").err
    assert "name another with --show COL" in run(*AUDIT, "--show", "label").err
    assert "--show = 'vlm'" in run(*AUDIT, "--show", "video,vlm").err
    run(*AUDIT)
    assert "does not go with --judge" in run(*CERTIFY, "--at-most", "3").err


CHECK = ("check", "lab.json", "judged.csv", "--judge", "vlm", "--labels", "labeled.csv")


@pytest.mark.parametrize(("lab", "verdict", "code"), [(2, "ADVERSE", 3), (20, "WITHIN", 0)])
def test_new_episodes_are_judged_by_their_labels(run, folder, lab, verdict, code):
    (folder / "lab.csv").write_text("label\n" + "no\n" * lab + "yes\n" * (100 - lab))
    run("certify", "lab.csv", "--success", "label", "-o", "lab.json")
    run(*AUDIT, "--show", "video")
    fill(folder)
    result = run(*CHECK, "--exit-code")
    assert (result.out.split(":")[0], result.code, result.err) == (verdict, code, "")
    assert "of 300 failed, by 40 labels" in result.out
    assert "By the judge alone, which is no evidence: " in result.out
    assert json.loads(run(*CHECK, "--json").out)["labels"] == 40
    assert "--plot does not go with --judge" in run(*CHECK, "--plot", "x.png").err
    assert "--by does not go with --judge" in run(*CHECK, "--by", "video").err


@pytest.mark.usefixtures("folder")
def test_the_episodes_that_were_certified_are_not_new(run, folder):
    run(*AUDIT, "--show", "video")
    fill(folder)
    run(*CERTIFY)
    assert "that the certificate was made from" in run("check", "c.json", *CHECK[2:]).err


def test_two_policies_are_compared_by_their_labels(run, folder):
    run(*AUDIT, "--show", "video")
    fill(folder)
    flipped = (folder / "judged.csv").read_text().replace("no", "?").replace("yes", "no").replace("?", "yes")
    (folder / "other.csv").write_text(flipped)
    run("audit", "other.csv", *AUDIT[2:-1], "to_label.csv", "--show", "video", "--force")
    (folder / "mine.csv").write_text((folder / "labeled.csv").read_text())
    fill(folder)  # the other judge is inverted, and the policy the same
    both = ("compare", "judged.csv", "other.csv", "--once", "--judge", "vlm", "--labels", "mine.csv")
    result = run(*both, "--labels", "labeled.csv", "--exit-code")
    assert (result.out.split(":")[0], result.code, result.err) == ("UNDECIDED", 0, "")
    assert "other: Of all 300 judged episodes" in result.out
    assert "of 300 trials failed" in result.out
    run(*both, "--labels", "labeled.csv", "--plot", "two.svg")
    assert (folder / "two.svg").stat().st_size > 1000
    assert "--labels for each" in run(*both).err
    assert "--paired does not go with --judge" in run(*both, "--labels", "labeled.csv", "--paired").err
