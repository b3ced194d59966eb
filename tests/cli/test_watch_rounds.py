"""`watch` with the certificate of a mean over tasks: rounds, blocks, waiting tasks, states and refusals."""

import json

import pytest

TASKS = ("mug", "bowl", "lid")


def rows(rounds, failing):
    """Return trials in rounds: every task in turn, those that fail by their round."""
    return [(task, "no" if failing(number) else "yes") for number in range(rounds) for task in TASKS]


def write(path, trials):
    path.write_text("\n".join(["task,ok", *(f"{task},{ok}" for task, ok in trials), ""]))
    return str(path)


@pytest.fixture
def certificate(tmp_path, run):
    lab = write(tmp_path / "lab.csv", rows(20, lambda number: number % 10 == 0))
    path = str(tmp_path / "mean.json")
    run("certify", lab, "--success", "ok", "--strata", "task", "-o", path)
    return path


def test_all_tasks_are_judged_at_looks_in_turn_or_in_blocks(tmp_path, run, certificate):
    trials = rows(10, lambda number: number % 4 != 0)
    turns = run("watch", certificate, write(tmp_path / "turns.csv", trials), "--exit-code")
    assert turns.code == 3
    assert "ADVERSE: " in turns.out
    assert "10 complete, looked after 8; the next look comes after 16" in turns.out
    assert "by itself     ADVERSE: mug, bowl, lid" in turns.out
    blocks = run(
        "watch", certificate, write(tmp_path / "blocks.csv", sorted(trials)), "--exit-code", "--json"
    )
    assert blocks.code == 3
    last = json.loads(blocks.out.splitlines()[-1])
    assert (last["stratum"], last["n"], last["tasks_adverse"]) == ("mug", 30, [*TASKS])
    assert (last["verdict"], last["e_adverse"]) == ("adverse", None)
    assert last["first_alarm"] > 20  # the last block completes rounds


def test_a_task_that_does_not_come_is_waited_for(tmp_path, run, certificate):
    trials = [each for each in rows(6, lambda _: True) if each[0] != "lid"]
    found = run("watch", certificate, write(tmp_path / "new.csv", trials), "--exit-code")
    assert found.code == 0
    assert "waiting       for a trial of every other task: mug 6, bowl 6" in found.out
    assert "0 complete, no look yet" in found.out


def test_a_state_goes_on_as_if_nothing_had_happened(tmp_path, run, certificate):
    trials, path = rows(10, lambda number: number % 2 == 0), tmp_path / "new.csv"
    whole = run("watch", certificate, write(path, trials), "--json").out.splitlines()
    state, parts = str(tmp_path / "watch.state"), []
    for end in (4, 11, 30):
        found = run("watch", certificate, write(path, trials[:end]), "--json", "--state", state)
        parts += found.out.splitlines()
    assert parts == whole


@pytest.mark.usefixtures("certificate")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["mean.json", "other.csv"],
            "other.csv: line 2: stratum = 'cup' is not a task whose mean is meant; give one of",
        ),
        (["mean.json", "new.csv", "--detector", "change-detector"], "do not go with the mean over tasks"),
        (
            ["plain.json", "new.csv", "--strata", "task"],
            "plain.json: is not of the mean over tasks; certify it with",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, run, arguments, said):
    write(tmp_path / "other.csv", [("cup", "yes")])
    write(tmp_path / "new.csv", rows(2, lambda _: True))
    run("certify", "lab.csv", "--success", "ok", "--as-is", "-o", "plain.json")
    found = run("watch", *arguments)
    assert found.code in (1, 2)
    assert said in found.err
