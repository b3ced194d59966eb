"""Trials are handed out as the schedule says, and each outcome counts once, whatever dies."""

import sqlite3
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import boundwatch as bw
from boundwatch import Evaluation, Protocol
from boundwatch.errors import Refusal

PAIR = Protocol(question="compare", policies=["act", "dp"], tasks=["mug", "bowl"], most_rounds=30, seed=7)


def play(evaluation, success, most=10**6):
    """Run trials until the end, or so many."""
    for _ in range(most):
        if (trial := evaluation.next()) is None:
            break
        evaluation.record(trial, success=bool(success(evaluation.policy_of(trial), trial)))
    return evaluation


def protocol(**settings):
    return Protocol(
        **{"question": "compare", "policies": ["act", "dp"], "most_rounds": 20, "seed": 1} | settings
    )


def test_a_round_is_each_task_once_with_each_policy_in_random_order():
    ev, trials = Evaluation.start(None, protocol(tasks=["mug", "bowl"], scenes=4)), []
    while (trial := ev.next()) is not None:
        trials.append((trial.round, trial.task, trial.scene, ev.policy_of(trial)))
        ev.record(trial, success=True)
    assert len(trials) == 80 == ev.protocol.most_trials
    assert len(set(trials)) == 80
    assert [each[0] for each in trials] == sorted(each[0] for each in trials)
    for first, second in zip(trials[::2], trials[1::2], strict=True):
        assert first[:3] == second[:3]  # a pair shares its round, task and scene
    first_tasks = Counter(trials[i][1] for i in range(0, 80, 4))
    first_policies = Counter(trials[i][3] for i in range(0, 80, 2))
    assert min(first_tasks.values()) > 3
    assert min(first_policies.values()) > 9
    for start in range(1, 20, 4):  # all scenes of a task before one comes again
        assert {s for r, t, s, _ in trials if t == "mug" and start <= r < start + 4} == set("1234")


def test_orders_are_uniform():
    names, orders = ["a", "b", "c"], Counter()
    for seed in range(600):
        ev = Evaluation.start(None, protocol(question="rank", policies=names, seed=seed, blind=False))
        order = []
        for _ in names:
            order.append((trial := ev.next()).policy)
            ev.record(trial, success=True)
        orders[tuple(order)] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 65  # 100 expected, standard deviation 9


def test_blocks_keep_a_task_for_some_rounds_and_weights_repeat_it():
    ev = Evaluation.start(None, protocol(tasks={"mug": 2, "bowl": 1}, block=3, most_rounds=7))
    places = []
    while (trial := ev.next()) is not None:
        places.append((trial.round, trial.task))
        ev.record(trial, success=True)
    assert Counter(task for _, task in places) == {"mug": 28, "bowl": 14}
    changes = sum(a[1] != b[1] for a, b in pairwise(places))
    assert changes <= 5  # three groups of rounds
    assert ev.status["rounds"] == 7


def test_letters_hide_the_names_and_follow_from_the_commitment():
    ev, again = (Evaluation.start(None, protocol()) for _ in range(2))
    trial = ev.next()
    assert trial == again.next()
    assert trial.policy in "AB"
    assert Evaluation.start(None, protocol(blind=False)).next().policy in ("act", "dp")
    redrawn = play(Evaluation.start(None, protocol(blind="round")), lambda *_: True)
    letters = {(trial.policy, name) for trial, name, _ in redrawn.replay().recorded}
    assert len(letters) == 4
    fixed = {(trial.policy, name) for trial, name, _ in play(ev, lambda *_: True).replay().recorded}
    assert len(fixed) == 2


def test_the_next_trial_is_the_same_after_a_restart(tmp_path):
    with Evaluation.start(tmp_path / "e.db", PAIR) as ev:
        play(ev, lambda *_: True, 7)
        trial, status = ev.next(), ev.status
    with Evaluation.open(tmp_path / "e.db") as ev:
        assert ev.next() == trial
        assert ev.status == status
        ev.record(trial, success=False)
        ev.record(trial.number, success=False)  # the same again counts once
        with pytest.raises(Refusal, match=f"trial = {trial.number} has another outcome"):
            ev.record(trial, success=True)
        assert ev.status["trials"] == 8


def test_undo_abort_discard_and_note_are_rows(tmp_path):
    ev = Evaluation.start(tmp_path / "e.db", protocol(discarded="repeat"))
    first = ev.next()
    ev.record(first, success=True, note="the gripper squeaks")
    ev.next()
    assert ev.undo("pressed the wrong key") == first.number
    with pytest.raises(Refusal, match="no outcome can be taken back"):
        ev.undo("again")
    assert ev.next() == first
    ev.record(first, success=False)
    ev.record(second := ev.next(), aborted="the camera froze")
    third = ev.next()
    ev.record(third, discarded="a person walked in")
    assert ev.next() == third
    ev.note("lunch")
    costs = [outcome.cost for *_, outcome in ev.replay().recorded]
    assert costs == [1, 1]
    said = "\n".join(ev.verify())
    for part in (
        f"the outcome of trial {first.number} was taken back: pressed the wrong key",
        f"trial {second.number} was aborted and counts as a failure: the camera froze",
        f"trial {third.number} was discarded and was repeated: a person walked in",
        "note: lunch",
        "the gripper squeaks",
    ):
        assert part in said
    for empty in ({"aborted": " "}, {}, {"success": True, "aborted": "why"}, {"score": 3}, {"success": 1}):
        with pytest.raises(Refusal):
            ev.record(third, **empty)


def test_an_undone_round_is_counted_as_it_ends_up():
    ev = play(Evaluation.start(None, protocol()), lambda name, _: name == "dp", 6)
    assert ev.finding().mean_cost_a == 1
    ev.undo("mistyped")
    ev.record(ev.next(), success=True)
    finding = ev.finding()
    assert finding.pairs == 3
    assert (finding.n_a, finding.n_b) == (3, 3)


def test_it_stops_when_answered_and_opens_the_key():
    ev = play(Evaluation.start(None, PAIR), lambda name, _: name == "dp")
    assert ev.finished
    assert ev.status["state"] == "answered"
    assert ev.finding().verdict is bw.ComparisonVerdict.B_BETTER
    test = bw.PolicyComparison(PAIR.alpha, binary=True, paired=True, tasks=2)
    rounds = ev.status["rounds"]
    test.update_many([1] * 2 * rounds, [0] * 2 * rounds)
    assert test.first_alarm == 2 * rounds
    with pytest.raises(Refusal, match="has ended"):
        ev.undo("no")
    assert not ev.verify()


def test_it_stops_at_most_rounds_and_when_told():
    ev = play(Evaluation.start(None, protocol(most_rounds=5)), lambda *_: True)
    assert ev.status["state"] == "most rounds"
    assert ev.finding().verdict is bw.ComparisonVerdict.UNDECIDED
    ev = play(Evaluation.start(None, protocol()), lambda *_: True, 3)
    ev.stop("the arm broke")
    assert ev.next() is None
    assert ev.finding().pairs == 1
    assert "stopped before the rule did: the arm broke" in ev.verify()[0]


def test_looks_at_results_are_logged_while_it_is_blind():
    ev = play(Evaluation.start(None, protocol()), lambda *_: True, 4)
    ev.finding()
    assert "results by policy were looked at (finding)" in ev.verify()[0]
    seen = play(Evaluation.start(None, protocol(blind=False)), lambda *_: True, 4)
    seen.finding()
    assert not seen.verify()


def test_beaten_policies_drop_out_and_the_best_is_named():
    rates = {"a": 0.1, "b": 0.2, "c": 0.9}
    rng = np.random.default_rng(3)
    settings = {"question": "rank", "policies": list(rates), "most_rounds": 400, "tasks": ["x", "y"]}
    ev = play(Evaluation.start(None, protocol(**settings)), lambda name, _: rng.random() < rates[name])
    ranking = ev.finding()
    assert ranking.best == ("c",)
    assert ranking.policies[0].letters == "a"
    sizes = {policy.name: policy.n for policy in ranking.policies}
    assert sizes["c"] >= max(sizes["a"], sizes["b"])
    assert ev.status["policies_in"] == 1


def test_certify_and_check(tmp_path):
    ev = Evaluation.start(
        None, protocol(question="certify", policies=["a"], until_width=0.3, most_rounds=500)
    )
    play(ev, lambda *_: True)
    certificate = ev.finding()
    assert certificate.upper - certificate.lower <= 0.3
    assert certificate.method == "anytime"
    bw.Certificate.from_held_out([0, 0, 0, 1] * 10, binary=True, delta=0.01).save(tmp_path / "c.json")
    settings = {"question": "check", "policies": ["a"], "certificate": str(tmp_path / "c.json")}
    ev = play(Evaluation.start(tmp_path / "e.db", protocol(**settings)), lambda *_: False)
    (tmp_path / "c.json").unlink()  # it is in the log
    assert Evaluation.open(tmp_path / "e.db").finding().verdict is bw.Verdict.ADVERSE


def test_stations_have_their_own_pairs_and_a_lost_one_is_released():
    ev = Evaluation.start(None, protocol(most_rounds=4))
    one, two = ev.next("left"), ev.next("right")
    assert (one.round, two.round) == (1, 2)
    assert ev.next("left") == one
    ev.record(two, success=True)
    ev.record(ev.next("right"), success=True)
    assert ev.status["rounds"] == 0  # the second round waits for the first
    ev.record(one, success=True)
    ev.release("left", "its robot broke")
    with pytest.raises(Refusal, match="was released"):
        ev.record(one.number + 1, success=True)
    taken = ev.next("right")
    assert (taken.round, taken.number) == (1, one.number + 1)
    ev.record(taken, success=True)
    assert ev.status["rounds"] == 2
    assert "station left was released: its robot broke" in ev.verify()[0]


def test_a_late_station_is_named_and_not_counted():
    ev = Evaluation.start(None, protocol())
    late = ev.next("late")
    ev.release("late", "moved")
    early = ev.next()
    assert early.number == late.number
    held = ev.next("late")
    play(ev, lambda name, _: name == "dp")
    assert not ev.finished  # the pair at the other station is missing
    ev.record(held, success=True)
    ev.record(ev.next("late"), success=True)
    assert ev.finished


def test_two_connections_see_each_other(tmp_path):
    one = Evaluation.start(tmp_path / "e.db", protocol())
    two = Evaluation.open(tmp_path / "e.db")
    trial = one.next()
    assert two.next() == trial
    two.record(trial, success=True)
    assert one.next().number == 2
    assert one.status == two.status


def test_a_disk_that_refuses_is_said_and_nothing_is_half_kept(tmp_path, monkeypatch):
    ev = Evaluation.start(tmp_path / "e.db", protocol())
    trial = ev.next()
    blocker = sqlite3.connect(tmp_path / "e.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("boundwatch.evaluation.log._PATIENCE", 0.0)
    with pytest.raises(Refusal, match="is locked"):
        ev.record(trial, success=True)
    blocker.execute("ROLLBACK")
    assert ev.next() == trial
    ev.record(trial, success=True)
    assert ev.status["trials"] == 1
    assert (tmp_path / "e.db").stat().st_mode & 0o777 == 0o600
