"""`watch --predicted --unlabeled`: the same as `PredictedTest`, through files, states and mistakes."""

from __future__ import annotations

import json

import pytest

import boundwatch as bw

ROUNDS = [
    (1, 0.3, [0.2, 0.3, 0.1]),
    (1, 0.2, [0.3, 0.2, 0.2]),
    (0, 0.1, [0.4, 0.1]),
    (1, None, None),
    (1, 0.2, [0.3, 0.1, 0.4]),
]


@pytest.fixture
def certificate(tmp_path):
    made = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    made.save(tmp_path / "c.json")
    return made


def expected(certificate):
    test = bw.PredictedTest(certificate)
    for cost, scene, others in ROUNDS:
        finding = test.update(cost, predicted=scene, unlabeled=[] if others is None else others)
    return finding


def as_json(rounds):
    return "".join(json.dumps({"cost": c, "critic": p, "rest": u}) + "\n" for c, p, u in rounds)


def as_csv(rounds):
    lines = [f"{c},{'' if p is None else p},{' '.join(map(str, u or []))}" for c, p, u in rounds]
    return "\n".join(["cost,critic,rest", *lines]) + "\n"


OPTIONS = ("--predicted", "critic", "--unlabeled", "rest", "--json")


@pytest.mark.parametrize("write", [as_json, as_csv])
def test_lines_with_predictions_are_what_the_test_counts(run, tmp_path, certificate, write):
    (tmp_path / "log").write_text(write(ROUNDS))
    result = run("watch", "c.json", "log", *OPTIONS)
    assert result.code == 0, result.err
    last = json.loads(result.out.splitlines()[-1])
    finding = expected(certificate)
    assert (last["n"], last["predicted"], last["e_adverse"]) == (5, 4, finding.e_adverse)


def test_a_state_goes_on_with_the_same_fields_only(run, tmp_path, certificate):
    log = tmp_path / "log"
    log.write_text(as_json(ROUNDS[:2]))
    assert run("watch", "c.json", "log", "--state", "s.json", *OPTIONS).code == 0
    log.write_text(as_json(ROUNDS))
    other = run("watch", "c.json", "log", "--state", "s.json", "--predicted", "rest", "--unlabeled", "critic")
    assert other.code == 1
    assert "begun with" in other.err
    result = run("watch", "c.json", "log", "--state", "s.json", *OPTIONS)
    assert json.loads(result.out.splitlines()[-1])["e_adverse"] == expected(certificate).e_adverse


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"cost": 1, "critic": 0.2}', "'rest'"),
        ('{"cost": 1, "critic": 0.2, "rest": []}', "predicted and unlabeled go together"),
        ('{"cost": 1, "critic": 1.2, "rest": [0.1]}', "'critic' = 1.2 is outside [0, 1]"),
        ('{"cost": 1, "critic": 0.2, "rest": [0.1, 7]}', "'rest' = 7 is outside [0, 1]"),
        ('{"cost": 1, "critic": "x", "rest": [0.1]}', "'critic' = 'x' is not a number"),
        ('{"cost": 1, "critic": [0.1, 0.2], "rest": [0.1]}', "'critic' has 2 numbers"),
        ("1", "columns: 1"),
    ],
)
@pytest.mark.usefixtures("certificate")
def test_mistakes_are_one_line(run, tmp_path, line, message):
    (tmp_path / "log").write_text(line + "\n")
    result = run("watch", "c.json", "log", *OPTIONS)
    assert result.code == 1
    assert message in result.err.splitlines()[-1]
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("certificate")
def test_options_that_do_not_go_together_are_refused(run):
    assert "must be given together" in run("watch", "c.json", "-", "--predicted", "critic").err
    assert "cannot be used with" in run("watch", "c.json", "-", *OPTIONS, "--margin", "0.1").err
