"""boundwatch compare, as people and scripts use it."""

import json
import re
import time

import numpy as np
import pytest

import boundwatch as bw
from program import PROGRAM, started


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    for name, rate, n in (("old", 0.6, 60), ("new", 0.1, 60), ("third", 0.12, 40)):
        rows = "\n".join(str(int(x)) for x in rng.random(n) >= rate)
        (tmp_path / f"{name}.csv").write_text(f"success\n{rows}\n")
    (tmp_path / "both.csv").write_text("policy,cost\n" + "x,0.9\ny,0.1\nx,0.6\ny,0.2\n" * 20)
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
    page = (files / "c.html").read_text()
    assert ((files / "c.png").read_bytes()[1:4], "B_BETTER" in page, page.count("<svg")) == (b"PNG", True, 2)
    assert "success rate in %: old" in page
    assert "success rate, in points: new minus old: overall" in page
    answer = json.loads(compare("old.csv", "new.csv", "--json"))
    found = (answer["verdict"], answer["a"]["name"], answer["difference_upper"] < 0)
    assert found == ("b-better", "old", True)


def test_exit_codes_gate_a_pipeline(compare):
    for options in (["--exit-code"], ["--margin", "0.05", "--exit-code"]):
        compare("old.csv", "new.csv", *options)
        compare("new.csv", "old.csv", *options, code=3)


def test_one_file_with_a_column_of_policies(compare):
    answer = json.loads(compare("both.csv", "--policy", "policy", "--paired", "--json"))
    assert (answer["verdict"], answer["paired"], answer["pairs"]) == ("b-better", True, 40)


def test_three_policies_are_ranked(compare, files):
    text = compare("old.csv", "new.csv", "third.csv", "--plot", "r.svg")
    assert ("cannot be told apart" in text, "is better than old" in text) == (True, True)
    assert (files / "r.svg").exists()
    answer = json.loads(compare("new.csv", "third.csv", "old.csv", "--json", "--exit-code", code=3))
    assert set(answer["best"]) == {"new", "third"}


def test_costs_are_binary_by_promise_or_measure_and_not_by_what_came_so_far(run, files):
    for name, costs in (
        ("a", [0.0] * 48 + [1.0] * 2),
        ("b", [0.0] * 49 + [1.0]),
        ("c", [1.0] * 6 + [0.0]),
    ):
        (files / f"{name}.csv").write_text("cost,success\n" + "".join(f"{x:g},{1 - x:g}\n" for x in costs))

    def found(*arguments):
        done = run("compare", *arguments, "--json")
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
        return json.loads(done.out), done.err

    by_cost, once = ("--cost", "cost"), ("a.csv", "b.csv", "--margin", "0.1", "--once")
    for arguments, no_worse in ((("a.csv", "b.csv"), False), (once, True)):
        so_far, note = found(*arguments, *by_cost)
        assert (so_far["binary"], so_far["no_worse"]) == (False, False)
        assert "a.csv: all costs are 0 or 1; if they always are, say that they are binary" in note
        for said in ((*by_cost, "--binary"), ("--success", "success")):  # the twin: nothing is lost
            promised, note = found(*arguments, *said)
            found_so = promised["binary"], promised["no_worse"], "0 or 1" in note
            assert found_so == (True, no_worse, False)
    for more, decided in (((), [False] * 3), (("--binary",), [False, True, True])):
        ranked, _ = found("b.csv", "a.csv", "c.csv", *by_cost, *more)
        assert [each["decided"] for each in ranked["pairs"]] == decided
    refused = run("compare", "c.csv", *by_cost, "--against", "47/50")
    assert (refused.code, "need not be 0 or 1; say so, if they are, with --binary" in refused.err) == (
        1,
        True,
    )


def test_mistakes_are_one_line_with_a_remedy(compare, files):
    assert "match them by seed" in compare("old.csv", "third.csv", "--paired", code=1)
    assert "would be replaced" in compare("old.csv", "new.csv", "--report", "new.csv", code=1)
    assert "given twice" in compare("old.csv", "old.csv", code=1)
    assert "at least two" in compare("old.csv", code=2)
    assert "leave it out" in compare("old.csv", "new.csv", "third.csv", "--margin", ".1", code=2)
    both = ("old.csv", "both.csv")
    assert "--where policy=x (only this one is meant)" in compare(*both, code=1)
    assert "--success COL, --cost COL or --reward COL" in compare(*both, "--as-is", code=1)
    (files / "lists.csv").write_text("success,p,unrun\n" + "yes,0.5,0.1;0.2;0.3;0.4\n" * 9)
    critic = ("lists.csv", "old.csv", "--predicted", "nope", "--unlabeled", "unrun")
    assert "no column 'nope'; name another with --predicted; columns: success, p" in compare(*critic, code=1)
    assert "--horizon does not go with --predicted" in compare(*critic, "--horizon", "90", code=2)


def solved(path, solves, order="turns", tasks=10, episodes=5):
    """Write the log of a policy that succeeds at some tasks, in blocks or in turns."""
    rows = [(task, turn) for task in range(tasks) for turn in range(episodes)]
    rows.sort(key=lambda row: row if order == "blocks" else row[::-1])
    path.write_text("Task,success\n" + "".join(f"{task},{int(task in solves)}\n" for task, _ in rows))


@pytest.mark.parametrize("order", ["blocks", "turns"])
@pytest.mark.parametrize("paired", [(), ("--paired",)])
def test_each_policy_solving_half_of_the_tasks_is_no_verdict(compare, files, order, paired):
    declared = ("a.csv", "b.csv", "--strata", "task", *paired)
    solved(files / "a.csv", range(5), order)
    solved(files / "b.csv", range(5, 10), order)
    found = json.loads(compare(*declared, "--json"))
    assert (found["verdict"], found["pairs"], found["tasks"]) == ("undecided", 50, 10)
    text = compare(*declared, "--report", "turns.html", "--plot", "turns.png")
    assert ("5 complete turns of 10 tasks" in text, "mean over the 10 tasks" in text) == (True, True)
    assert "Of each task, the " in (files / "turns.html").read_text()
    solved(files / "b.csv", (), order)  # power: where both differ, the better one is found
    found = json.loads(compare(*declared, "--json"))
    assert (found["verdict"], found["first_alarm"]) == ("a-better", 20)


def test_tasks_that_nobody_declared_are_asked_about(compare, files):
    solved(files / "a.csv", range(5))
    solved(files / "b.csv", range(5, 10))
    refused = compare("a.csv", "b.csv", code=1)
    assert "a.csv: column 'Task' has several values (0, 1, 2, 3, 4, ...)" in refused
    assert "--strata Task (the mean over them is meant), or --where Task=0" in refused
    assert json.loads(compare("a.csv", "b.csv", "--where", "task=0", "--json"))["first_alarm"] == 4
    solved(files / "a.csv", [0], tasks=1)  # one task is no question
    solved(files / "b.csv", (), tasks=1)
    assert json.loads(compare("a.csv", "b.csv", "--json"))["first_alarm"] == 4


def test_policies_of_one_file_take_turns_too(compare, files):
    """Mugs are easy and bowls are hard, for both policies; as they come, A's mugs would meet B's bowls."""
    mugs, bowls = "{0},mug,1\n" * 10, "{0},bowl,0\n" * 10
    log = (mugs + bowls).format("A") + (bowls + mugs).format("B")
    (files / "trials.csv").write_text("policy,task,success\n" + log)
    declared = ("trials.csv", "--policy", "policy", "--strata", "task")
    answer = json.loads(compare(*declared, "--json"))
    assert (answer["verdict"], answer["pairs"], answer["a"]["source"]) == ("undecided", 20, "trials.csv")
    refused = compare(*declared, "--paired", code=1)
    assert (
        "policy B: line 22 is of task bowl, but its partner by row, line 2 of trials.csv, policy A, is of mug"
        in refused
    )
    (files / "trials.csv").write_text("policy,task,success\n" + 4 * "A,mug,1\n" + "B,bowl,0\nB,mug,1\n")
    assert "policy A: has no trials of bowl, which another policy" in compare(*declared, code=1)


def test_a_log_that_names_its_tasks_says_its_strata(compare, files):
    def log(name, solves):
        tasks = [
            {"task_group": "libero", "task_id": task, "metrics": {"successes": [task in solves] * 5}}
            for task in range(10)
        ]
        (files / name).write_text(json.dumps({"per_task": tasks, "overall": {}}))

    log("a.json", range(5))
    log("b.json", range(5, 10))
    answer = json.loads(compare("a.json", "b.json", "--json"))
    assert (answer["verdict"], answer["tasks"], answer["pairs"]) == ("undecided", 10, 50)


def lerobot_logs(files):
    """Two evaluations of six tasks: the first of them got much worse, the last is too short to tell."""
    for name, failed in {"old": [5, 6, 5, 2, 8, 1], "new": [25, 6, 5, 1, 8, 0]}.items():
        tasks = []
        for task, count in enumerate(failed):
            n = 200 if task == 3 else 5 if task == 5 else 40
            metrics = {"successes": [place >= count for place in range(n)]}
            tasks.append({"task_group": "libero", "task_id": task, "metrics": metrics})
        (files / f"{name}.json").write_text(json.dumps({"per_task": tasks, "overall": {}}))


def test_tasks_are_called_as_in_lerobots_table_overall_first(compare, files):
    lerobot_logs(files)
    text = compare("old.json", "new.json", "--once")
    rows = [line.split() for line in text.split("call", 1)[1].split("\n\n")[0].split("\n")[1:]]
    assert [row[-1] for row in rows] == ["overall", *(f"libero/{task}" for task in range(6))]
    assert [row[0] for row in rows[:3]] == ["REGRESSED", "REGRESSED", "UNDERPOWERED"]
    assert (rows[4][0], rows[6][0]) == ("HELD", "UNDERPOWERED")
    assert "mixture" not in text
    answer = json.loads(compare("old.json", "new.json", "--once", "--json"))
    assert answer["by_task"][0]["call"] == "regressed"
    assert answer["by_task"][0]["episodes_needed"] is None
    assert answer["by_task"][5]["episodes_needed"] > 30


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("markdown", "| libero/0 | REGRESSED | 5/40 | 25/40 | "),
        ("latex", r"libero/0 & REGRESSED & 5/40 & 25/40 & "),
        ("csv", "libero/0,REGRESSED,5/40,25/40,"),
    ],
)
def test_the_table_alone_for_a_paper_or_a_sheet(compare, files, kind, line):
    lerobot_logs(files)
    lines = compare("old.json", "new.json", "--once", "--table", kind).splitlines()
    assert len([each for each in lines if each.startswith(line)]) == 1
    assert lines[{"markdown": 2, "latex": 2, "csv": 1}[kind]].lstrip("| ").startswith("overall")
    # Without tasks, and with another margin.
    assert "overall" in compare("old.csv", "new.csv", "--once", "--table", kind, "--margin", "0.2")
    assert "add --once" in compare("old.csv", "new.csv", "--table", kind, code=2)  # one look is declared


def test_the_table_as_json_and_who_asks_for_a_format(compare, files):
    lerobot_logs(files)
    overall, worse, *_ = json.loads(compare("old.json", "new.json", "--once", "--table", "json"))
    assert (overall["task"], worse["task"], worse["call"]) == ("overall", "libero/0", "REGRESSED")
    assert "--table takes it" in compare("old.json", "new.json", "--once", "--format", "latex", code=2)


def test_a_finished_policy_is_declared(compare):
    text = compare("old.csv", "third.csv", "--finished")
    assert "all trials of both; old was finished, in a planned number, before third began" in text
    assert "reached at new trial" in text
    # The first one, also where the other has more trials.
    assert "; third was finished" in compare("third.csv", "old.csv", "--finished")
    assert "wait (--finished:" in compare("old.csv", "third.csv")
    assert "wait (--finished, with old given first:" in compare("third.csv", "old.csv")


def rows(files, name, header, lines):
    (files / name).write_text("\n".join([header, *(",".join(map(str, line)) for line in lines)]) + "\n")


def counted(files, **policies):
    """Write a log for each policy: so many successes in so many trials of each task."""
    for name, tasks in policies.items():
        log = [(task, int(i < k)) for task, (k, n) in enumerate(tasks) for i in range(n)]
        rows(files, f"{name}.csv", "task,success", log)


ONCE = ("act.csv", "dp.csv", "--strata", "task", "--once")


def test_better_on_some_task_is_not_no_worse_in_the_mean(compare, files):
    counted(files, act=[(50, 100), (5, 5), (5, 5)], dp=[(90, 100), (2, 5), (2, 5)])
    found = json.loads(compare(*ONCE, "--json"))
    assert (found["verdict"], found["no_worse"], found["difference_upper"] > 0) == ("b-better", False, True)
    counted(files, dp=[(99, 100), (90, 100)], act=[(50, 100), (60, 100)])
    found = json.loads(compare(*ONCE, "--json"))
    assert (found["no_worse"], found["difference_upper"] < 0) == (True, True)
    assert re.search(r"no worse +shown: .* in the mean over tasks", compare(*ONCE, "--margin", "0.1"))


def test_a_task_that_regressed_fails_the_gate_whatever_another_gained(compare, files):
    counted(files, act=[(2, 20), (19, 20)], dp=[(20, 20), (1, 20)])
    text = compare(*ONCE, "--exit-code", code=3)
    lines = text.split("call", 1)[1].split("\n\n")[0].split("\n")[1:]
    assert [line.split()[0] for line in lines] == ["REGRESSED", "IMPROVED", "REGRESSED"]
    assert "more trials may" not in text
    answer = json.loads(compare(*ONCE, "--json", "--exit-code", code=3))
    assert answer["p_b_better"] < answer["p_a_better"]
    # The overall row shows the p-value of what it says.
    assert f"{answer['p_a_better']:.2e}"[:3] in lines[0]
    compare(*ONCE, "--margin", "0.9", "--exit-code", code=3)  # the task lost 90 %, not shown to be less
    counted(files, act=[(10, 20), (19, 20)], dp=[(12, 20), (18, 20)])
    compare(*ONCE, "--exit-code")


@pytest.fixture
def keyed(files):
    """Two tasks, 20 seeds each; the other policy ran five later ones, in another order."""
    rng = np.random.default_rng(3)
    trials = [(task, seed) for task in ("mug", "bowl") for seed in range(20)]
    rows(files, "mine.csv", "task,seed,ok", [(*key, int(rng.random() < 0.5)) for key in trials])
    late = [(task, seed + 5, int(rng.random() < 0.9)) for task, seed in trials]
    rows(files, "theirs.csv", "task,seed,ok", late[::-1])
    both = [("x", *key, int(rng.random() < 0.5)) for key in trials] + [("y", *each) for each in late]
    rows(files, "one.csv", "policy,task,seed,ok", both)
    return files


TASKS = ("--success", "ok", "--strata", "task")


def test_finished_trials_are_compared_once_in_any_order_and_number(compare, files):
    rng = np.random.default_rng(2)
    for name, failed, n in (("a", 3, 30), ("b", 10, 30)):
        rows(files, f"{name}.csv", "success", [(int(x),) for x in rng.permutation(np.arange(n) >= failed)])
    text = compare("a.csv", "b.csv", "--once", "--plot", "c.png", "--report", "c.html")
    assert text.startswith("A_BETTER: evidence that a fails less often than b")
    assert "p-value 0.0162" in text
    assert "b fails 5.5 to 41.4 points more often than a" in text
    answer = json.loads(compare("a.csv", "b.csv", "--once", "--json"))
    assert (answer["verdict"], answer["method"], answer["pairs"]) == ("a-better", "exact", None)
    # Any order: sorted files are the same; read as time they are refused.
    for name, failed in (("a", 3), ("b", 10)):
        rows(files, f"{name}.csv", "success", [(int(place >= failed),) for place in range(30)])
    assert json.loads(compare("a.csv", "b.csv", "--once", "--json"))["p_a_better"] == answer["p_a_better"]
    refused = compare("a.csv", "b.csv", code=1)
    assert "sorted by their outcome" in refused
    assert "--once" in refused
    # A horizon is for looks; --once has one.
    assert "--horizon does not go with --once" in compare(
        "a.csv", "b.csv", "--once", "--horizon", "30", code=2
    )


def test_a_file_that_is_nearly_sorted_is_refused_where_order_counts(compare, files):
    rng = np.random.default_rng(1)
    rows(files, "near.csv", "success", [(x,) for x in [1] * 19 + [0, 1] + [0] * 19])
    rows(files, "far.csv", "success", [(int(x),) for x in rng.random(40) < 0.5])
    assert "sorted by their outcome, or nearly so" in compare("near.csv", "far.csv", code=1)
    assert compare("near.csv", "far.csv", "--once").startswith("UNDECIDED")


def test_undecided_says_when_one_look_is_allowed_without_its_answer(compare, files):
    rng = np.random.default_rng(12)
    for name, failed in (("a", 3), ("b", 10)):
        rows(files, f"{name}.csv", "success", [(int(x),) for x in rng.permutation(np.arange(30) >= failed)])
    text = compare("a.csv", "b.csv")
    assert text.startswith("UNDECIDED")
    (line,) = [each for each in text.splitlines() if "--once" in each]
    assert "planned beforehand" in line
    assert "0.0162" not in text


def test_partners_by_key_whatever_the_order(compare, keyed):
    text = compare("mine.csv", "theirs.csv", *TASKS, "--pair-by", "task,seed", "--once")
    assert "30 matched pairs" in text
    assert "10 trials of mine left out: mug" in text.replace("mug, 0", "mug")
    assert "no partner" in text
    repeated = compare("mine.csv", "theirs.csv", *TASKS, "--pair-by", "seed", "--once", code=1)
    assert "occur more than once" in repeated
    rows(keyed, "late.csv", "task,seed,ok", [("mug", seed, 1) for seed in range(50, 60)])
    alone = compare(
        "mine.csv", "late.csv", "--success", "ok", "--pair-by", "seed,task", "--where", "task=mug", code=1
    )
    assert "they share no key" in alone


@pytest.mark.parametrize("arguments", [("mine.csv", "theirs.csv"), ("one.csv", "--policy", "policy")])
def test_tasks_in_blocks_are_asked_about_though_partners_share_them(compare, keyed, arguments):  # noqa: ARG001
    declared = (*arguments, "--success", "ok", "--pair-by", "task,seed")
    refused = compare(*declared, code=1)
    assert "'task' has several values (mug, bowl), and the order of trials matters here" in refused.replace(
        "bowl, mug", "mug, bowl"
    )
    assert "--strata task" in refused
    for answer in (("--strata", "task"), ("--once",), ("--where", "task=mug")):
        assert "matched" in compare(*declared, *answer)


@pytest.mark.parametrize("arguments", [("mine.csv", "theirs.csv"), ("one.csv", "--policy", "policy")])
@pytest.mark.parametrize("once", [(), ("--once",)])
def test_rows_that_a_seed_contradicts_are_not_paired(compare, keyed, arguments, once):  # noqa: ARG001
    refused = compare(*arguments, *TASKS, "--paired", *once, code=1)
    assert "its partner by row" in refused
    assert "--pair-by" in refused


def test_lerobot_files_with_other_seeds_are_not_paired(compare, files):
    for name, first in (("e1", 1000), ("e2", 1100)):
        episodes = [{"episode_ix": i, "success": i % 3 > 0, "seed": first + i} for i in range(30)]
        (files / f"{name}.json").write_text(json.dumps({"per_episode": episodes, "aggregated": {}}))
    assert "is of seed 1100" in compare("e1.json", "e2.json", "--paired", code=1)
    assert "they share no key" in compare("e1.json", "e2.json", "--pair-by", "seed", "--once", code=1)


def test_mine_against_a_published_result_overall_and_per_task(compare, keyed):
    alone = compare("mine.csv", "--success", "ok", "--where", "task=mug", "--against", "50/50")
    assert alone.startswith("A_BETTER: evidence that 50/50 fails less often than mine")
    tables = {
        "paper.csv": ("task,result", [("mug", "50/50"), ("bowl", "25/50")]),
        "counts.csv": ("task,successes,trials", [("mug", 50, 50), ("bowl", 25, 50)]),
    }
    found = []
    for name, (header, lines) in tables.items():
        rows(keyed, name, header, lines)
        text = compare("mine.csv", *TASKS, "--against", name)
        found.append(text.split("overall")[1].split("\n\n")[0].split())
        assert found[-1][0] == "REGRESSED"
    assert found[0] == found[1]
    rows(keyed, "half.csv", "task,result", [("mug", "50/50")])
    assert "bowl" in compare("mine.csv", *TASKS, "--against", "half.csv", code=1)
    assert "does not say how many of the trials succeeded" in compare(
        "mine.csv", "--success", "ok", "--where", "task=mug", "--against", "60/50", code=1
    )
    assert "write a count such as 47/50" in compare("mine.csv", *TASKS, "--against", "-3/50", code=1)


def test_following_two_files_ends_at_the_verdict(files):
    for name, success in (("a", 1), ("b", 0)):
        (files / f"{name}.csv").write_text(f"success\n{success}\n")
    with started([*PROGRAM, "compare", "a.csv", "b.csv", "--follow"], cwd=files) as process:
        assert "UNDECIDED" in process.stdout.readline()
        for _ in range(6):
            with (files / "a.csv").open("a") as one, (files / "b.csv").open("a") as other:
                one.write("1\n")
                other.write("0\n")
        assert "A_BETTER: evidence that a fails less often than b" in process.stdout.read()
    assert process.returncode == 0


@pytest.mark.parametrize("command", ["certify", "watch", "compare"])
def test_a_log_that_is_rotated_has_its_header_again(tmp_path, command):
    """Also one whose only column is named like a success: nothing else says that this is no trial."""
    log, failed = tmp_path / "log.csv", "success\n" + "0\n" * 3
    log.write_text(failed)
    (tmp_path / "old.csv").write_text("success\n" + "1\n" * 20)
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, binary=True, delta=0.01).save(tmp_path / "c.json")
    words = {
        "certify": [log, "--success", "success", "--at-most", 6, "-o", "d.json"],
        "watch": ["c.json", log, "--success", "success", "--until-alarm"],
        "compare": ["old.csv", log, "--success", "success"],
    }[command]
    with started([*PROGRAM, command, *map(str, words), "--follow"], cwd=tmp_path) as process:
        for _ in range(3):
            assert process.stdout.readline()
        log.rename(tmp_path / "log-20261115.csv")
        log.write_text(failed + "0\n" * 20)
        rest = process.stdout.read()
    assert process.returncode == 0, rest
    assert {"certify": "6 of 6 failed", "watch": "ADVERSE", "compare": "A_BETTER"}[command] in rest


@pytest.fixture
def follow(compare, files, monkeypatch):
    """Follow a.csv and b.csv, which hold the next texts after each pause of the command; then stop it."""

    def run_command(*texts, options=("--json",), code=0):
        states = iter([("", ""), *(text for text in texts for _ in range(2))])  # each file has its pauses

        def pause(_seconds=0.0):
            if (state := next(states, None)) is None:
                raise KeyboardInterrupt
            for name, text in zip(("a.csv", "b.csv"), state, strict=True):
                with (files / name).open("r+" if (files / name).exists() else "w") as file:
                    file.truncate(file.write(text))

        pause()
        monkeypatch.setattr(time, "sleep", pause)
        return compare("a.csv", "b.csv", "--follow", *options, code=code)

    return run_command


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("a,b\n4,5\n", "has neither a column 'result', such as 47/50, nor 'successes' and 'trials'"),
        ("result\nmaybe\n", "column 'result' = 'maybe'"),
        ("successes,b\n4,5\n", "trials"),
    ],
)
def test_a_table_of_published_counts_that_is_none(compare, keyed, table, said):
    (keyed / "bad.csv").write_text(table)
    done = compare("mine.csv", "--success", "ok", "--where", "task=mug", "--against", "bad.csv", code=1)
    assert said in done


def test_a_new_policy_is_followed_against_one_that_was_finished(follow):
    old = "success\n" + "1\n1\n1\n1\n0\n" * 12
    counted = follow(
        (old, "success\n0\n"),
        (old, "success\n0\n1\n"),
        (old, "success\n0\n1\n" + "0\n" * 12),
        options=("--json", "--finished"),
    )
    lines = [json.loads(line) for line in counted.splitlines()]
    assert [(line["n_a"], line["n_b"]) for line in lines[:2]] == [(60, 1), (60, 2)]
    assert lines[-1]["verdict"] == "a-better"
    assert lines[-1]["first_alarm"] <= 14


def test_a_line_counts_once_it_is_finished(follow):
    counted = follow(
        ("trial,co", "cost\n"),
        ("trial,cost\n1,0.5\n12", "cost\n0.25\n0."),
        ("trial,cost\n1,0.5\n12,0.15\n", "cost\n0.25\n0.75\n"),
        ("trial,cost\n1,0.5\n12,0.15\n13,0.", "cost\n0.25\n0.75\n"),
    )
    lines = [json.loads(line) for line in counted.splitlines()]
    assert [(line["n_a"], line["n_b"]) for line in lines] == [(1, 1), (2, 2)]
    assert (lines[-1]["mean_cost_a"], lines[-1]["mean_cost_b"]) == (pytest.approx(0.325), 0.5)
    said = follow(*[("cost\n1\n", "cost\n1")] * 4, code=1)
    assert said.count("b.csv: line 2 has no newline yet; it is counted once it has one") == 1
    assert "b.csv: no trial was counted" in said
    assert "measured the way" in follow(("success\n1\n", "cost\n1\n"), code=1)
    changed = follow(("cost\n0.1\n", "cost\n0.2\n"), ("cost\n0.3\n0.1\n", "cost\n0.2\n"), code=1)
    assert "a.csv: became shorter or was overwritten after line 2 was counted" in changed


def test_followed_files_are_of_one_task(follow):
    both = [("task,success\nmug,1\nbowl,0\n", "task,success\nmug,1\nbowl,1\n")]
    assert "--strata does not go with --follow" in follow(*both, options=("--strata", "task"), code=2)
    assert "a.csv: line 3, column 'task' has several values (mug, bowl)" in follow(*both, code=1)
