"""An evaluation from the command line: a protocol, sealed, its trials one by one."""

import html
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch import Evaluation, Protocol
from boundwatch.errors import Refusal
from invoking import invoke


def evaluate(*arguments, keys=None):
    done = invoke(["evaluate", *arguments], stdin=keys or "")
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments):
    done = invoke(["evaluate", *arguments])
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    return done.output


def run(*arguments, keys):
    """Run trials with keys from a pipe, which must be a file."""
    command = [sys.executable, "-m", "boundwatch", "evaluate", "run", *map(str, arguments)]
    return subprocess.run(command, input=keys, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture
def begun(tmp_path):
    """Return an evaluation that has begun."""
    path = tmp_path / "eval.db"
    settings = {"question": "compare", "policies": ["act", "dp"], "tasks": ["mug", "bowl"], "seed": 7}
    Evaluation.start(path, Protocol(most_rounds=20, **settings)).close()
    return path


INIT = {
    "compare": ["--policies", "act,dp", "--tasks", "mug=2,bowl", "--scenes", "3", "--most-rounds", "20"],
    "margin": ["--policies", "act,dp", "--margin", "0.1", "--most-rounds", "20"],
    "score": ["--policies", "act,dp", "--measure", "score", "--score-range", "0,5", "--most-rounds", "9"],
    "rubric": ["--policies", "a,b", "--measure", "rubric", "--milestones", "r=1,g=2.5", "--most-rounds", "9"],
    "rank": ["--question", "rank", "--policies", "a,b,c", "--rates", "0.2,0.5,0.9"],
    "certify": ["--question", "certify", "--policies", "a", "--until-width", "0.2", "--most-rounds", "90"],
}


@pytest.mark.parametrize("kind", INIT)
def test_init_writes_a_protocol_that_can_be_sealed(kind, tmp_path):
    said = evaluate("init", "-o", tmp_path / "p.toml", *INIT[kind])
    protocol = Protocol.load(tmp_path / "p.toml")
    assert str(protocol.most_trials) in said
    text = (tmp_path / "p.toml").read_text()
    assert text.count("\n# ") >= 18  # a comment on every setting
    said = evaluate("start", tmp_path / "p.toml", "-o", tmp_path / "e.db")
    assert protocol.fingerprint in said
    with Evaluation.open(tmp_path / "e.db") as opened:
        assert opened.protocol == protocol
        assert opened.seal["commitment"] in said


def test_init_plans_the_rounds(tmp_path):
    said = evaluate("init", "-o", tmp_path / "p.toml", "--policies", "a,b", "--rates", "0.2,0.9")
    protocol = Protocol.load(tmp_path / "p.toml")
    plan = json.loads(evaluate("plan", tmp_path / "p.toml", "--rates", "0.2,0.9", "--json"))
    assert f"about {plan['rounds']} rounds" in said
    assert f"at most {protocol.most_rounds} will be run" in said
    assert plan["median"] <= plan["rounds"] < protocol.most_rounds < 2 * plan["rounds"] + 5
    assert plan["answered"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--policies is missing"),
        (["--policies", "a,b"], "--most-rounds is missing"),
        (
            ["--policies", "a,b", "--tasks", "mug=x", "--most-rounds", "9"],
            "--tasks: 'mug=x' is not a list of numbers",
        ),
        *(
            (
                ["--policies", "a,b", "--scenes", scenes, "--most-rounds", "9"],
                f"--scenes: '{scenes}' is no count",
            )
            for scenes in ("-3", "2.5")
        ),
        (["--policies", "a", "--most-rounds", "9"], "policies = ('a',) is not what compare takes"),
        (["--policies", "a,b", "--rates", "0.5"], "rates = (0.5,) are 1; give one for each of a, b"),
        (["--policies", "a,b", "--rates", "0.5,0.5"], "cannot be told apart in 2000 rounds"),
    ],
)
def test_init_refuses(arguments, said, tmp_path):
    done = invoke(["evaluate", "init", "-o", str(tmp_path / "p.toml"), *arguments])
    assert done.exit_code
    assert said in done.output
    assert not (tmp_path / "p.toml").exists()


def test_a_contradiction_in_the_file_is_refused_with_its_line(tmp_path):
    evaluate("init", "-o", tmp_path / "p.toml", *INIT["compare"])
    text = (tmp_path / "p.toml").read_text().replace("alpha = 0.05", "alpha = 1.5")
    (tmp_path / "p.toml").write_text(text)
    line = text[: text.index("alpha = ")].count("\n") + 1
    said = refused("start", tmp_path / "p.toml", "-o", tmp_path / "e.db")
    assert f"line {line}: alpha = 1.5 does not fit" in said
    assert not (tmp_path / "e.db").exists()
    command = [sys.executable, "-m", "boundwatch", "evaluate", "start", tmp_path / "p.toml", "-o", "e.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert f"line {line}: alpha = 1.5 does not fit" in done.stderr  # not --alpha, which start does not have


def test_programs_ask_for_trials_and_record_them(begun):
    trial = json.loads(evaluate("next", begun, "--json"))
    assert trial["policy"] in "AB"
    assert json.loads(evaluate("next", begun, "--json")) == trial
    named = json.loads(evaluate("next", begun, "--json", "--name"))
    assert named.pop("name") in ("act", "dp")
    assert named == trial
    assert evaluate("next", begun, "--name").endswith((" (act)\n", " (dp)\n"))  # said once in the report
    evaluate("record", begun, 1, "--success", "--note", "easy")
    evaluate("record", begun, 1, "--success", "--note", "easy")
    evaluate("record", begun, 2, "--aborted", "the camera froze")
    assert "took back trial 2" in evaluate("record", begun, "--undo", "it did not")
    evaluate("record", begun, 2, "--no-success")
    evaluate("record", begun, "--note", "lunch")
    evaluate("next", begun, "--station", "2")
    evaluate("record", begun, "--release", "its robot broke", "--station", "2")
    evaluate("record", begun, "--stop", "enough")
    assert evaluate("next", begun, "--json") == "null\n"
    with Evaluation.open(begun) as opened:
        said = "\n".join(opened.verify())
    assert said.count("names of policies, by a program") == 1
    for each in ("easy", "froze", "taken back: it did not", "lunch", "station 2 was released", "enough"):
        assert each in said


@pytest.mark.parametrize("arguments", [[], [3, "--undo", "x"], ["--undo", "x", "--stop", "y"], ["--success"]])
def test_record_wants_one_thing(arguments, begun):
    done = invoke(["evaluate", "record", str(begun), *map(str, arguments)])
    assert done.exit_code == 2


def test_keys_from_a_pipe_and_going_on_at_the_same_trial(begun):
    said = run(begun, keys="y\nnaarm stuck\nyuwrong key\nnoall well\nq")
    assert "Trial 1 of at most 80: policy" in said
    assert "Kept: trial 3, aborted (arm stuck)" in said
    assert "Took back trial 4" in said
    left = said.strip().splitlines()[-4]
    assert left.startswith("Trial 5 of at most 80")
    assert run(begun, keys="").splitlines()[0] == left
    with Evaluation.open(begun) as opened:
        costs = [outcome.cost for *_, outcome in opened.replay().recorded]
        assert costs == [0, 1, 1, 1]
        assert any("at trial 5: all well" in each for each in opened.verify())


def test_a_stray_letter_does_not_stop_and_an_empty_reason_is_asked_for_again(begun):
    said = run(begun, keys="yu\nmistyped\ny\nu\n\nmistyped\nssure\nn")
    assert "why undo; Enter again leaves it" in said
    assert "Took back trial 1" in said
    assert "Nothing done: undo needs a text." in said
    assert said.count("Nothing done: the evaluation goes on.") == 2
    assert "Left after 2 trials" in said
    with Evaluation.open(begun) as opened:
        head = opened.status["head"]
        assert said.splitlines()[-1].endswith(f"the last hash is {head}")
    said = run(begun, keys="sstop\n\nthe arm broke\n")
    assert "Done (stopped) after 0 rounds, 2 trials." in said


def test_the_outcome_that_ends_it_is_not_promised_to_be_taken_back(tmp_path):
    pair = Protocol(question="compare", policies=["a", "b"], most_rounds=1)
    assert str(pair).endswith("in at most 1 round")
    Evaluation.start(tmp_path / "e.db", pair).close()
    said = run(tmp_path / "e.db", keys="yn")
    assert said.count("u takes it back") == 1
    assert "after 1 round, 2 trials." in said


def test_a_protocol_is_not_run_before_it_is_sealed(tmp_path):
    evaluate("init", "-o", tmp_path / "p.toml", *INIT["compare"])
    with pytest.raises(Refusal, match=r"is a protocol, not an evaluation.*evaluate start .*p\.toml -o"):
        Evaluation.open(tmp_path / "p.toml")


def read_until(file, wanted):
    text = ""
    while wanted not in text:
        assert select.select([file], [], [], 30)[0], text
        text += os.read(file, 1 << 16).decode()
    return text


def test_a_page_fits_a_small_terminal_has_no_color_and_leaves_it_as_it_was(begun):
    page, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    command = [sys.executable, "-m", "boundwatch", "evaluate", "run", begun]
    known = os.environ | {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    program = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=known)
    try:
        text = read_until(page, "quit")
        assert set(re.findall(r"\x1b\[(\d*)m", text)) <= {"0", "1"}
        lines = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", text).splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        for keys in (b"\x1b[A", b"yyy"):  # an arrow is no key, and a key that is held down is one outcome
            time.sleep(0.5)
            os.write(page, keys)
        assert "policy" in read_until(page, "Kept: trial 1, success")
        time.sleep(0.5)
        os.write(page, b"q")
        read_until(page, "Left after 1 trial;")
        assert program.wait(60) == 0
    finally:
        program.kill()
    assert termios.tcgetattr(terminal) == before
    os.close(page), os.close(terminal)


def test_keys_of_scores_and_milestones(tmp_path):
    pair = {"question": "compare", "policies": ["a", "b"], "most_rounds": 3}
    Evaluation.start(tmp_path / "s.db", Protocol(**pair, measure="score", score_range=(0, 5))).close()
    said = run(tmp_path / "s.db", keys="59e2.5\nex\ne7\n")
    assert next(line for line in said.splitlines() if "Not kept" in line).endswith("'x' is not a number.")
    marks = {"reach": 1, "grasp": 3}
    Evaluation.start(tmp_path / "r.db", Protocol(**pair, measure="rubric", milestones=marks)).close()
    run(tmp_path / "r.db", keys="1\n12\n\n121\n")
    costs = []
    for name in "sr":
        with Evaluation.open(tmp_path / f"{name}.db") as opened:
            costs.append([outcome.cost for *_, outcome in opened.replay().recorded])
    assert costs == [[0, 0.5], [0.75, 0, 1, 0.25]]


def test_a_command_loads_the_policy_unseen(begun, tmp_path):
    script = tmp_path / "load.py"
    script.write_text(
        "import os\n"
        f"open({str(tmp_path / 'loaded')!r}, 'a').write(os.environ['BOUNDWATCH_POLICY'] + ' ')\n"
        "print(os.environ['BOUNDWATCH_POLICY'])\n"
    )
    said = run(begun, "--load", f"{sys.executable} {script}", keys="yy")
    names = (tmp_path / "loaded").read_text().split()
    assert sorted(names[:2]) == ["act", "dp"]
    assert len(names) == 3
    assert "act" not in said
    assert "failed (exit 127)" in run(begun, "--load", "/does/not/exist", keys="")


def play(path, better="dp"):
    """Run an evaluation to its end; the better policy fails every fifth trial, the others two of three."""
    with Evaluation.open(path) as ev:
        while (trial := ev.next()) is not None:
            ok = bool(trial.number % 5) if ev.policy_of(trial) == better else trial.number % 3 == 0
            kinds = {
                "success": ok,
                "score": 5 * ok,
                "milestones": list(ev.protocol.milestones or ())[: 2 * ok],
            }
            kind = {"rubric": "milestones"}.get(ev.protocol.measure, ev.protocol.measure)
            ev.record(trial, **{kind: kinds[kind]})


def test_show_names_no_side_unless_asked(begun):
    run(begun, keys="ynnynyynny")
    said = evaluate("show", begun)
    assert "go on after 2 rounds, 10 trials" in said
    told = json.loads(evaluate("show", begun, "--json"))
    assert told["state"] == "go on"
    assert not set(told) & {"answer", "policies", "finding"}
    said = evaluate("show", begun, "--unblind")
    assert "No difference is shown between act and dp (2 rounds:" in said
    told = json.loads(evaluate("show", begun, "--unblind", "--json"))
    assert {each["policy"] for each in told["policies"]} == {"act", "dp"}
    assert told["finding"]["pairs"] == 4
    with Evaluation.open(begun) as ev:
        assert sum("looked at (show)" in each for each in ev.verify()) == 2


def test_report_export_and_verify(begun, tmp_path):
    play(begun)
    said = evaluate("report", begun, "-o", tmp_path / "r.html")
    assert "dp is better than act in the mean over 2 tasks" in said
    page = (tmp_path / "r.html").read_text()
    with Evaluation.open(begun) as ev:
        known, seal = ev.results(), ev.seal
    secret = known.known.end["secret"]
    for part in (
        *seal.values(),
        secret,
        "Departures from the plan: none",
        "knows the seed",
        "act &amp; ",
        "| dp |",
        known.answer,
    ):
        assert part in page
    evaluate("export", begun, "-o", tmp_path / "t.csv")
    said = evaluate("verify", begun, tmp_path / "r.html", tmp_path / "t.csv")
    assert "Departures from the plan\n  none" in said
    assert said.count("follows from the log") == 2
    told = json.loads(evaluate("verify", begun, "--json"))
    assert told["named"] == []
    assert told["checks"]["answer"] == known.answer


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"tasks": ["mug", "bowl"]}, ["--success", "success", "--strata", "task"]),
        ({"measure": "score", "score_range": (0, 5)}, ["--reward", "score", "--cost-range", "0", "5"]),
        (
            {"measure": "rubric", "milestones": {"r": 1, "g": 2, "l": 1}},
            ["--reward", "points", "--cost-range", "0", "4"],
        ),
    ],
)
def test_compare_reads_the_export_to_the_same_counts(settings, flags, tmp_path):
    pair = {"question": "compare", "policies": ["act", "dp"], "most_rounds": 40}
    Evaluation.start(tmp_path / "e.db", Protocol(**pair, **settings)).close()
    play(tmp_path / "e.db")
    said = evaluate("export", tmp_path / "e.db", "-o", tmp_path / "t.csv")
    for each in zip(flags[::2], flags[1::2], strict=False):
        assert "strata" in each[0] or " ".join(each) in said
    more = ["--policy", "policy", "--where", "counted=yes", "--once", "--json"]
    done = invoke(["compare", str(tmp_path / "t.csv"), *flags, *more])
    found = json.loads(done.out)
    with Evaluation.open(tmp_path / "e.db") as ev:
        ours = ev.finding()
    sides = ("a", "b") if found["names"] == ["act", "dp"] else ("b", "a")
    for side, same in zip(("a", "b"), sides, strict=True):
        assert found[f"n_{same}"] == getattr(ours, f"n_{side}")
        assert found[f"mean_cost_{same}"] == pytest.approx(getattr(ours, f"mean_cost_{side}"), abs=1e-9)


def test_what_was_sealed_and_the_report_are_signed(tmp_path):
    from boundwatch.certificates import signing

    private, public = signing.generate_keys(tmp_path / "lab")
    _, other = signing.generate_keys(tmp_path / "other")
    evaluate("init", "-o", tmp_path / "p.toml", *INIT["compare"])
    evaluate("start", tmp_path / "p.toml", "-o", tmp_path / "e.db", "--sign", private)
    play(tmp_path / "e.db")
    evaluate("report", tmp_path / "e.db", "-o", tmp_path / "r.html", "--sign", private)
    said = evaluate("verify", tmp_path / "e.db", tmp_path / "r.html", tmp_path / "p.toml", "--key", public)
    assert said.count("by the holder of") == 2
    assert "is signed with another key" in refused("verify", tmp_path / "e.db", "--key", other)
    (tmp_path / "e.db.sig").write_text((tmp_path / "r.html.sig").read_text())  # of another thing
    assert "its signature does not fit" in refused("verify", tmp_path / "e.db", "--key", public)


RUBRIC = {"measure": "rubric", "milestones": {"reached": 1, "grasped": 2, "lifted": 2}}
WHOLE = {
    "compare": (
        {"tasks": {"mug": 2, "bowl": 1}, "block": 3, "scenes": 2},
        "dp is better than act in the mean",
    ),
    "compare, a score": ({"measure": "score", "score_range": (0, 5)}, "dp is better than act ("),
    "compare, a rubric": (RUBRIC | {"tasks": ["mug", "bowl"]}, "dp is better than act in the mean over 2"),
    "compare, a margin": ({"margin": 0.3}, "dp is at most 30 points worse than act"),
    "compare, letters anew": ({"blind": "round"}, "dp is better than act ("),
    "rank": (
        {"question": "rank", "policies": ["act", "dp", "pi"], "tasks": ["mug", "bowl"]},
        "dp is better than all other policies (",
    ),
    "certify": ({"question": "certify", "policies": ["dp"], "until_width": 0.4}, "dp fails in 0 to 3"),
    "certify, two tasks": (
        {"question": "certify", "policies": ["dp"], "until_width": 0.4, "tasks": ["mug", "bowl"]},
        "dp fails in ",
    ),
    "certify, a rubric": (
        RUBRIC | {"question": "certify", "policies": ["dp"], "until_width": 0.8, "aborted": "repeat"},
        "dp has an expected cost of 0.",
    ),
    "check": (
        {"question": "check", "policies": ["act"]},
        "act: ADVERSE: evidence of more failures than in the lab",
    ),
    "check, two tasks": (
        {"question": "check", "policies": ["act"], "tasks": ["mug", "bowl"]},
        "act: ADVERSE: ",
    ),
    "check, a score": (
        {"question": "check", "policies": ["act"], "measure": "score", "score_range": (0, 5)},
        "act: ADVERSE: evidence that the expected cost is higher than in the lab",
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_every_question_from_the_protocol_to_the_report(kind, tmp_path):
    settings, said = WHOLE[kind]
    settings = {"question": "compare", "policies": ["act", "dp"], "most_rounds": 300} | settings
    if settings["question"] == "check":
        costs = [0, 0, 0, 0.2, 0, 0.2] * 10 if "measure" in settings else [0, 0, 0, 1] * 20
        tasks = settings.get("tasks")
        lab = bw.Episodes(costs, strata=None if tasks is None else tasks * (len(costs) // 2))
        lab = bw.Certificate.from_held_out(lab, binary="measure" not in settings)
        lab.save(tmp_path / "lab.json")
        settings["certificate"] = str(tmp_path / "lab.json")
    Protocol(**settings).save(tmp_path / "p.toml")
    evaluate("start", tmp_path / "p.toml", "-o", tmp_path / "e.db")
    rng = np.random.default_rng(8)
    rates = {"act": 0.2, "dp": 0.9, "pi": 0.4}
    with Evaluation.open(tmp_path / "e.db") as ev:
        while not ev.finished:
            trial = ev.next("left" if rng.random() < 0.6 else "right") or ev.next("left") or ev.next("right")
            ok = int(rng.binomial(5, rates[ev.policy_of(trial)]))
            if rng.random() < 0.02:
                ev.record(trial, aborted="stuck")
            elif ev.protocol.measure == "rubric":
                ev.record(trial, milestones=list(RUBRIC["milestones"])[: ok - 2 if ok > 2 else 0])
            elif ev.protocol.measure == "score":
                ev.record(trial, score=ok)
            else:
                ev.record(trial, success=ok > 2)
        assert ev.status["state"] == "answered"
    assert said in evaluate("report", tmp_path / "e.db", "-o", tmp_path / "r.html")
    assert html.escape(said) in (tmp_path / "r.html").read_text()
    evaluate("export", tmp_path / "e.db", "-o", tmp_path / "t.csv")
    files = [tmp_path / name for name in ("p.toml", "r.html", "t.csv")]
    assert evaluate("verify", tmp_path / "e.db", *files).count("follows from the log") == 3
    assert said in evaluate("show", tmp_path / "e.db", "--unblind")
    if settings["question"] == "certify":
        evaluate("export", tmp_path / "e.db", "-o", tmp_path / "dp.json")
        made = bw.Certificate.load(tmp_path / "dp.json")
        where = {"counted": "yes"}
        read = bw.read_costs(tmp_path / "t.csv", certificate=made, where=where, allow_own=True)
        assert len(read.costs) == made.n
        assert float(np.mean(read.costs)) == pytest.approx(made.mean_cost)


def test_a_certificate_of_something_else_is_refused(tmp_path):
    bw.Certificate.from_held_out([0, 0, 0, 1] * 20, binary=True).save(tmp_path / "lab.json")
    pair = {
        "question": "check",
        "policies": ["a"],
        "most_rounds": 9,
        "certificate": str(tmp_path / "lab.json"),
    }
    with pytest.raises(Refusal, match=r"lab.json: is of successes, and the protocol measures a score"):
        Evaluation.start(None, Protocol(**pair, measure="score", score_range=(0, 5)))
    reward = bw.Measure("reward", "score", (0, 10))
    costs = bw.Episodes([0.1, 0.5, 0.2] * 20, measure=reward)
    bw.Certificate.from_held_out(costs).save(tmp_path / "lab.json")
    with pytest.raises(Refusal, match=r"reward\)/10.* and the protocol measures a score"):
        Evaluation.start(None, Protocol(**pair, measure="score", score_range=(0, 5)))
    tasks = bw.Episodes([0, 1] * 20, strata=["mug", "bowl"] * 20)
    bw.Certificate.from_held_out(tasks, binary=True).save(tmp_path / "lab.json")
    for named in ([], ["mug", "cup"]):
        with pytest.raises(Refusal, match=r"lab.json: is of the mean over"):
            Evaluation.start(None, Protocol(**pair, tasks=named))


def test_the_example_is_the_one_in_the_tutorial():
    root = Path(__file__).parents[2]
    example = (root / "examples" / "two_policies.py").read_text()
    assert example in (root / "docs" / "tutorials" / "evaluate.md").read_text()
