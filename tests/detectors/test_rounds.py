"""A stream of several tasks: rounds in any order, refusals, and states."""

import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, SchemaMismatch

TASKS = ["mug", "bowl", "lid"]


def certificate(*, binary: bool = True) -> bw.Certificate:
    rng = np.random.default_rng(1)
    costs = (rng.random(60) < 0.2).astype(float) if binary else rng.beta(2, 6, 60)
    lab = bw.Episodes(costs, strata=np.repeat(TASKS, 20).tolist())
    return bw.Certificate.from_held_out(lab, delta=0.01, binary=binary)


def new_trials(rounds: int, *, binary: bool = True) -> np.ndarray:
    rng = np.random.default_rng(2)
    return (rng.random((rounds, 3)) < 0.7).astype(float) if binary else rng.beta(6, 3, (rounds, 3))


@pytest.mark.parametrize("binary", [True, False])
def test_blocks_give_the_evidence_of_turns_and_a_state_goes_on(binary):
    costs = new_trials(9, binary=binary)
    turns, blocks, resumed = (bw.SequentialTest(certificate(binary=binary), margin=0.1) for _ in range(3))
    turns.update_many(costs.ravel(), TASKS * 9)
    for place, task in enumerate(TASKS):
        for cost in costs[:, place].tolist():
            before = blocks.update(cost, task)
    resumed.update_many(costs[:2].ravel(), TASKS * 2)
    for row in costs[2:]:
        for task, cost in zip(TASKS, row.tolist(), strict=True):
            resumed.update(cost, task)
            resumed = bw.SequentialTest.from_state_dict(json.loads(json.dumps(resumed.state_dict())))
    assert resumed.finding() == turns.finding()
    assert turns.finding().verdict is bw.Verdict.ADVERSE
    assert before.p_adverse == turns.finding().p_adverse
    assert before.tasks["lid"].p_adverse == turns.finding().tasks["lid"].p_adverse
    assert (turns.rounds, turns.looked, turns.next_look, turns.waiting) == (9, 8, 16, {})
    assert turns.first_alarm < before.first_alarm  # those who wait are judged later
    assert turns.finding().shift_lower > 0
    turns.reset()
    assert turns.update(1, "mug").p_adverse == 1


def test_trials_wait_and_are_counted():
    test = bw.SequentialTest(certificate())
    finding = test.update_many([1, 1, 0], ["mug", "mug", "bowl"])
    assert (finding.n, finding.mean_cost, finding.tasks["lid"].n) == (3, 0.5, 0)  # over tasks
    assert (test.rounds, test.looked, test.waiting) == (0, 0, {"mug": 2, "bowl": 1})
    assert finding.verdict is bw.Verdict.WITHIN


def test_streams_that_share_a_certificate_divide_its_delta():
    alone, shared = (bw.SequentialTest(certificate(), sharing=number) for number in (1, 5))
    totals = [test.update(1, "mug").false_positive_rate for test in (alone, shared)]
    assert totals == pytest.approx([0.045, 0.041])
    for test in (alone, shared):
        test.update_many([1, 1], ["bowl", "lid"])
    assert shared.finding().shift_lower <= alone.finding().shift_lower


def test_what_is_no_trial_of_a_certified_task_is_refused_and_not_counted():
    test = bw.SequentialTest(certificate())
    with pytest.raises(InvalidSetting, match="stratum is missing"):
        test.update(1)
    with pytest.raises(InvalidSetting, match="'cup' is not a task whose mean is meant; give one of 'mug'"):
        test.update(1, "cup")
    with pytest.raises(InvalidSetting, match="'cup' is not a task"):
        test.update_many([1, 0], ["mug", "cup"])
    with pytest.raises(InvalidCost):
        test.update(0.5, "mug")
    with pytest.raises(InvalidSetting, match="completes no round"):
        test.peek(0.5)
    assert test.n == 0
    with pytest.raises(InvalidSetting, match="stratum = 'mug' goes with a certificate of the mean"):
        bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)).update(1, "mug")
    state = test.state_dict()
    state["evidence"]["costs"]["mug"] = "1"
    with pytest.raises(SchemaMismatch, match="damaged"):
        bw.SequentialTest.from_state_dict(state)
