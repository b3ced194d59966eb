"""Rounds until a rise of all tasks is noticed: against the tests themselves."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from boundwatch.planning import plan_tasks

RATES = np.array([0.05, 0.1, 0.3, 0.6])
TASKS = ["mug", "bowl", "lid", "cup"]


@pytest.fixture(scope="module")
def certificate():
    costs = (np.random.default_rng(1).random((20, 4)) < RATES).astype(float).ravel()
    return bw.Certificate.from_held_out(bw.Episodes(costs, strata=TASKS * 20), delta=0.01, binary=True)


def test_so_many_rounds_are_enough_for_check_and_watch(certificate):
    cost = certificate.mean_cost + 0.25
    plan = plan_tasks(certificate, cost)
    assert plan.check[0.5] <= plan.check[0.9] < plan.watch[0.9] <= 64
    lab = np.array([(each.failures + 0.5) / (each.n + 1) for each in certificate.strata])
    rng, called = np.random.default_rng(9), {"check": [], "watch": []}
    for _ in range(40):
        new = (rng.random((plan.watch[0.9], 4)) < lab + cost - lab.mean()).astype(float)
        once = {task: new[: plan.check[0.9], place] for place, task in enumerate(TASKS)}
        called["check"].append(bw.HypothesisTest(certificate).decide(once).verdict is bw.Verdict.ADVERSE)
        watched = bw.SequentialTest(certificate).update_many(new.ravel(), TASKS * len(new))
        called["watch"].append(watched.verdict is bw.Verdict.ADVERSE)
    for name, found in called.items():
        assert np.mean(found) >= 0.75, name  # 0.9, within 0.1, of 40


def test_what_is_not_planned_is_refused(certificate):
    with pytest.raises(InvalidSetting, match=r"cost = 0\.01 is not above the certified mean"):
        plan_tasks(certificate, 0.01)
    with pytest.raises(InvalidSetting, match="plan_tasks"):
        bw.plan(certificate, cost=0.9)
    with pytest.raises(InvalidSetting, match="goes with several repeats of a scene, and not with tasks"):
        bw.plan_width(0.1, tasks=3, repeats=3)
