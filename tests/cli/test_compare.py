"""boundwatch compare, as people and scripts use it."""

import itertools
import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from boundwatch.episodes.alignment import of_one_measure, take_in_turn
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost
from boundwatch.readers import read_costs


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    for name, rate, n in (("old", 0.6, 60), ("new", 0.1, 60), ("third", 0.12, 40)):
        rows = "\n".join(str(int(x)) for x in rng.random(n) >= rate)
        (tmp_path / f"{name}.csv").write_text(f"success\n{rows}\n")
    lines = [
        f"{name},{rng.random() * scale:.3f}" for _ in range(40) for name, scale in (("x", 1), ("y", 0.3))
    ]
    (tmp_path / "both.csv").write_text("policy,cost\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def compare(run, files):  # noqa: ARG001  (they have to be there)
    """Run the command in the folder of the files; return what it printed where people look."""

    def run_command(*arguments, code=0):
        result = run("compare", *arguments)
        assert result.code == code, result.err
        assert "Traceback" not in result.err
        return result.out if code in (0, 3) else result.err

    return run_command


def test_two_files_give_a_verdict_and_its_evidence(compare, files):
    text = compare("old.csv", "new.csv", "--plot", "c.png", "--report", "c.html")
    assert text.startswith("B_BETTER: evidence that new fails less often than old")
    assert re.search(r"\d+ failures in 60 trials \([\d.]+ %\)", text)
    assert (files / "c.png").read_bytes()[1:4] == b"PNG"
    assert "B_BETTER" in (files / "c.html").read_text()
    answer = json.loads(compare("old.csv", "new.csv", "--json"))
    assert (answer["verdict"], answer["binary"], answer["a"]["name"]) == ("b-better", True, "old")
    assert answer["difference_upper"] < 0


def test_exit_codes_gate_a_pipeline(compare):
    compare("old.csv", "new.csv", "--exit-code")
    compare("new.csv", "old.csv", "--exit-code", code=3)
    compare("old.csv", "new.csv", "--margin", "0.05", "--exit-code")
    compare("new.csv", "old.csv", "--margin", "0.05", "--exit-code", code=3)


def test_one_file_with_a_column_of_policies(compare):
    answer = json.loads(compare("both.csv", "--policy", "policy", "--paired", "--json"))
    assert (answer["verdict"], answer["paired"], answer["pairs"]) == ("b-better", True, 40)


def test_three_policies_are_ranked(compare, files):
    text = compare("old.csv", "new.csv", "third.csv", "--plot", "r.svg")
    assert "cannot be told apart" in text
    assert "is better than old" in text
    assert (files / "r.svg").exists()
    answer = json.loads(compare("new.csv", "third.csv", "old.csv", "--json", "--exit-code", code=3))
    assert set(answer["best"]) == {"new", "third"}


def test_following_two_files_ends_at_the_verdict(files):
    for name in ("a", "b"):
        (files / f"{name}.csv").write_text("success\n" + ("1\n" if name == "a" else "0\n"))
    command = [sys.executable, "-c", "from boundwatch.cli import main; main()", "compare", "a.csv", "b.csv"]
    with subprocess.Popen(
        [*command, "--follow"], cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "UNDECIDED" in process.stdout.readline()
        for _ in range(6):
            with (files / "a.csv").open("a") as one, (files / "b.csv").open("a") as other:
                one.write("1\n")
                other.write("0\n")
            time.sleep(0.01)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert "A_BETTER: evidence that a fails less often than b" in rest


@pytest.fixture
def follow(compare, files, monkeypatch):
    """Follow a.csv and b.csv, which hold the next texts after each pause of the command; then stop it."""

    def run_command(*texts, options=("--json",), code=0):
        states = iter([("", ""), *texts])

        sleeps = itertools.count()

        def pause(_seconds=0.0):
            if next(sleeps) % 2 == 0 and started:  # both files are looked at in turn, and each look sleeps
                return
            if (state := next(states, None)) is None:
                raise KeyboardInterrupt
            for name, text in zip(("a.csv", "b.csv"), state, strict=True):
                (files / name).write_text(text)

        started = False
        pause()
        started = True
        monkeypatch.setattr(time, "sleep", pause)
        return compare("a.csv", "b.csv", "--follow", *options, code=code)

    return run_command


def test_a_line_counts_once_it_is_finished(follow):
    counted = follow(
        ("trial,co", "cost\n"),
        ("trial,cost\n1,0.5\n12", "cost\n0.25\n0."),
        ("trial,cost\n1,0.5\n12,0.1", "cost\n0.25\n0.7"),
        ("trial,cost\n1,0.5\n12,0.15\n", "cost\n0.25\n0.75\n"),
        ("trial,cost\n1,0.5\n12,0.15\n13,0.", "cost\n0.25\n0.75\n"),
    )
    lines = [json.loads(line) for line in counted.splitlines()]
    assert [(line["n_a"], line["n_b"]) for line in lines] == [(1, 1), (2, 2)]
    assert (lines[-1]["mean_cost_a"], lines[-1]["mean_cost_b"]) == (pytest.approx(0.325), 0.5)
    assert "b.csv: no trial was counted" in follow(*[("cost\n1\n", "cost\n1")] * 4, code=1)


def test_trials_that_were_counted_keep_their_places(follow):
    changed = follow(("cost\n0.1\n", "cost\n0.2\n"), ("cost\n0.3\n0.1\n", "cost\n0.2\n"), code=1)
    assert "a.csv: " in changed


MUG, BOWL = ["mug"], ["bowl"]
TASKS = ("--strata", "task")
TWO = ("--tasks", "2", *TASKS)


def grown(*files):
    """Return what files hold after each of their rows."""
    ends = range(1, len(files[0]) + 1)
    return [tuple("task,success\n" + "".join(rows[:end]) for rows in files) for end in ends]


def easy_mugs(tasks):
    """Return the trials of a policy that always succeeds at mugs and never at bowls."""
    return [f"{task},{int(task == 'mug')}\n" for task in tasks]


@pytest.mark.parametrize("options", [(), ("--margin", "0.1")])
@pytest.mark.parametrize(
    "orders",
    [
        (10 * MUG, 10 * BOWL),
        (10 * MUG + 10 * BOWL, 10 * BOWL + 10 * MUG),
        (10 * MUG + 10 * BOWL, 10 * (BOWL + MUG)),
        (3 * (5 * MUG + 5 * BOWL), 3 * (5 * BOWL + 5 * MUG)),
    ],
)
def test_equal_policies_on_tasks_in_any_order_have_no_verdict(follow, orders, options):
    answered = set(orders[0]) == set(orders[1])
    counted = follow(
        *grown(*map(easy_mugs, orders)), options=("--json", *TWO, *options), code=int(not answered)
    )
    if not answered:
        assert "b.csv: 2 tasks were stated, and not all were run by both policies" in counted
        return
    findings = [json.loads(line) for line in counted.splitlines()]
    assert {each["verdict"] for each in findings} == {"undecided"}
    assert {(each["pairs"] % 2, each["tasks"]) for each in findings} == {(0, 2)}
    assert (findings[-1]["e_a_better"], findings[-1]["pairs"]) == (1, len(orders[0]))


def test_a_followed_verdict_comes_after_complete_turns(follow):
    def verdict(one, other):
        files = grown([f"{task},1\n" for task in one], [f"{task},0\n" for task in other])
        found = json.loads(follow(*files, options=("--json", *TWO)).splitlines()[-1])
        assert (found["verdict"], found["first_alarm"]) == ("a-better", 6)
        return found["n_a"]

    assert verdict(10 * (MUG + BOWL), 10 * (MUG + BOWL)) == 6
    assert verdict(10 * (MUG + BOWL), 10 * (BOWL + MUG)) == 6
    assert verdict(*np.random.default_rng(3).choice(["mug", "bowl"], (2, 30))) == 6


def test_tasks_of_followed_files_are_stated(follow):
    files = grown(easy_mugs(6 * MUG), easy_mugs(6 * MUG))
    assert "--tasks N and --strata COL go together" in follow(*files, options=TASKS, code=2)
    counted = follow(*files, options=("--json", "--tasks", "1", *TASKS))
    assert [json.loads(line)["pairs"] for line in counted.splitlines()] == [1, 2, 3, 4, 5, 6]
    files = grown(easy_mugs(MUG + BOWL), easy_mugs(BOWL + MUG))
    assert "there are more than 1 tasks: mug, bowl" in follow(
        *files, options=("--tasks", "1", *TASKS), code=1
    )
    refused = follow(*files, options=(*TWO, "--paired"), code=1)
    assert "b.csv: line 2 is of bowl, but its partner, line 2 of a.csv, of mug" in refused
    assert "goes with one task, but 2 take turns" in follow(*files, options=(*TWO, "--horizon", "9"), code=1)


def solved(path, tasks, episodes, solves, order):
    """Write the log of a policy that succeeds at some tasks, in blocks or in turns."""
    pairs = itertools.product(range(tasks), range(episodes))
    rows = [(task, turn) for task, turn in pairs]
    rows.sort(key=lambda row: row if order == "blocks" else row[::-1])
    text = "".join(f"task {task},{int(task in solves)}\n" for task, _ in rows)
    path.write_text("task,success\n" + text)


@pytest.mark.parametrize("order", ["blocks", "turns"])
@pytest.mark.parametrize("paired", [(), ("--paired",)])
def test_each_policy_solving_half_of_the_tasks_is_no_verdict(compare, files, order, paired):
    solved(files / "a.csv", 10, 5, range(5), order)
    solved(files / "b.csv", 10, 5, range(5, 10), order)
    found = json.loads(compare("a.csv", "b.csv", *TASKS, *paired, "--json"))
    assert (found["verdict"], found["pairs"], found["tasks"]) == ("undecided", 50, 10)
    text = compare("a.csv", "b.csv", *TASKS, *paired)
    assert "50 pairs of" in text
    assert "5 complete turns of 10 tasks" in text
    assert "mean over the 10 tasks" in text
    compare("a.csv", "b.csv", *TASKS, *paired, "--report", "turns.html", "--plot", "turns.png")
    assert "Of each task, the " in (files / "turns.html").read_text()
    solved(files / "b.csv", 10, 5, range(3), order)  # power: where both differ, the better one is found
    assert json.loads(compare("a.csv", "b.csv", *TASKS, *paired, "--json"))["mean_cost_b"] == 0.7
    solved(files / "b.csv", 10, 5, (), order)
    found = json.loads(compare("a.csv", "b.csv", *TASKS, *paired, "--json"))
    assert (found["verdict"], found["first_alarm"]) == ("a-better", 20)


def test_tasks_in_unequal_numbers_are_warned_about(run, files):
    for name, tasks in {"a": 3 * MUG, "b": 2 * MUG + BOWL, "c": 3 * BOWL}.items():
        (files / f"{name}.csv").write_text("task,success\n" + "".join(f"{task},1\n" for task in tasks * 5))
    ranked = run("compare", "a.csv", "b.csv", "c.csv", *TASKS).err
    assert re.findall(r"(\w+) has (\d+) of mug, (\w+) has (\d+),", ranked) == [
        ("a", "15", "b", "10"),
        ("a", "15", "c", "0"),
    ]


def test_scenes_that_occur_once_are_a_mixture_unless_all_policies_have_them(compare, files):
    def found(numbers):
        for name, scenes in zip(("a", "b"), numbers, strict=True):
            rows = "".join(f"scene {number},{int(name == 'a')}\n" for number in scenes)
            (files / f"{name}.csv").write_text("task,success\n" + rows)
        answer = json.loads(compare("a.csv", "b.csv", *TASKS, "--json"))
        return answer["tasks"], answer["first_alarm"]

    assert found((range(12), range(12, 24))) == (1, 4)
    assert found((range(12), range(12))) == (12, 12)


def test_only_lines_are_followed(follow, compare, files):
    np.save(files / "a.npy", [0.5])
    assert "one number, JSON object or CSV row per line" in compare("a.npy", "old.csv", "--follow", code=2)
    steps = ("episode,success\n1,0\n", "episode,success\n1,0\n")
    assert "--episode does not go" in follow(steps, options=("--episode", "episode"), code=2)
    assert "--format does not go" in follow(steps, options=("--format", "xlsx"), code=2)
    for named in ("csv", "jsonl"):
        assert '"pairs": 1' in follow(steps, options=("--format", named, "--json"))
    mixed = '{"cost": 0.2}\n{"success": true}\n'
    assert "a.csv: line 2" in follow((mixed, "cost\n1\n"), code=1)


def test_two_measures_are_not_compared(run, compare, follow, files):
    refused = compare("old.csv", "both.csv", code=1)
    assert "both.csv: cost as given, column cost, is not measured the way old.csv is" in refused
    assert "--success COL, --cost COL or --reward COL" in refused
    assert "is not measured the way" in follow(("success\n1\n", "cost\n1\n"), code=1)
    # Logs call the same thing by several names.
    (files / "log.csv").write_text((files / "new.csv").read_text().replace("success", "is_success"))
    assert "measure" not in run("compare", "old.csv", "log.csv").err
    one, other = (
        Episodes([0, 1], source=f"{name}.csv", measure=Measure("success", column))
        for name, column in (("a", "placed"), ("b", "grasped"))
    )
    (_, other) = of_one_measure([one, other])
    (warning,) = other.warnings
    assert warning.startswith("b.csv: these costs are from column 'grasped', those of a.csv from 'placed'")


def test_mistakes_are_one_line_with_a_remedy(compare):
    assert "match them by seed" in compare("old.csv", "third.csv", "--paired", code=1)
    assert "would be replaced" in compare("old.csv", "new.csv", "--report", "new.csv", code=1)
    assert "given twice" in compare("old.csv", "old.csv", code=1)
    assert "at least two" in compare("old.csv", code=2)
    assert "leave them out" in compare("old.csv", "new.csv", "third.csv", "--margin", ".1", code=2)
    assert "two files" in compare("old.csv", "-", "--follow", code=2)


def evaluation(path, tasks: dict[str, list[int]]):
    rows = [f"{task},{value}" for task, values in tasks.items() for value in values]
    path.write_text("task,success\n" + "\n".join(rows) + "\n")
    return read_costs(path, strata="task")


def test_tasks_take_turns_so_that_a_pair_is_of_one_task(compare, tmp_path):
    one = evaluation(tmp_path / "1.csv", {"mug": [1, 1, 1], "bowl": [0, 0, 0]})
    other = evaluation(tmp_path / "2.csv", {"bowl": [0, 0], "mug": [1, 1]})
    a, b = take_in_turn([one, other])
    assert a.keys["strata"] == b.keys["strata"] == ("mug", "bowl", "mug", "bowl")
    assert a.costs.tolist() == b.costs.tolist() == [0, 1, 0, 1]
    assert any("2 episodes are left out" in warning for warning in a.warnings)
    third = evaluation(tmp_path / "3.csv", {"mug": [1], "plate": [1]})
    with pytest.raises(InvalidCost, match=r"no episodes of (bowl|plate)"):
        take_in_turn([one, third])
    # Compared as the files list them, the two would seem to differ; in turn they do not.
    assert "UNDECIDED" in compare("1.csv", "2.csv", *TASKS)


def test_policies_of_one_file_take_turns_too(run, compare, files):
    """Mugs are easy and bowls are hard, for both policies; as they come, A's mugs would meet B's bowls."""
    mugs, bowls = "{0},mug,1\n" * 10, "{0},bowl,0\n" * 10
    log = (mugs + bowls).format("A") + (bowls + mugs).format("B")
    (files / "trials.csv").write_text("policy,task,success\n" + log)
    answer = json.loads(compare("trials.csv", "--policy", "policy", *TASKS, "--json"))
    assert (answer["verdict"], answer["pairs"], answer["a"]["source"]) == ("undecided", 20, "trials.csv")
    (files / "a.csv").write_text("task,success\n" + "mug,1\n" * 10 + "bowl,0\n" * 10)
    piped = run("compare", "a.csv", "-", *TASKS, stdin=b"task,success\n" + b"bowl,0\n" * 10 + b"mug,1\n" * 10)
    assert piped.out.startswith("UNDECIDED")
    (files / "b.csv").write_text("success\n1\n0\n")
    assert "b.csv: there is no column 'task'" in compare("a.csv", "b.csv", *TASKS, code=1)


def test_pairs_that_somebody_made_stay_together(compare, tmp_path):
    def log(change):
        rows = [
            f"{p},{'r1' if seed < n else 'r2'},{seed},{seed % 2}"
            for p, n in change.items()
            for seed in range(40)
        ]
        (tmp_path / "log.csv").write_text("policy,robot,seed,success\n" + "\n".join(rows) + "\n")
        return [str(tmp_path / "log.csv"), "--policy", "policy", "--paired", "--strata", "robot"]

    assert json.loads(compare(*log({"A": 20, "B": 20}), "--json"))["pairs"] == 40
    refused = compare(*log({"A": 20, "B": 26}), code=1)
    assert "trial 21 is of r1, but its partner in" in refused
