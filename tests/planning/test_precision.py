"""How many trials until a rate is known: against scipy, and what certificates and campaigns then say."""

import numpy as np
import pytest
from scipy import stats

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from boundwatch.planning.precision import likeness


def half_width(k, n, delta=0.01):
    lower = np.where(k == 0, 0.0, stats.beta.ppf(delta / 2, k, n - k + 1))
    return (np.where(k == n, 1.0, stats.beta.ppf(1 - delta / 2, k + 1, n - k)) - lower) / 2


@pytest.mark.parametrize(("within", "cost"), [(0.1, 0.2), (0.05, 0.02), (0.2, 0.5)])
def test_the_number_suffices_with_the_promised_probability_and_one_less_does_not(within, cost):
    def chance(n):
        k = np.arange(n + 1)
        return stats.binom.pmf(k, n, cost)[half_width(k, n) <= within].sum()

    n = bw.plan_width(within, cost=cost).trials
    assert chance(n) >= 0.9 > chance(n - 1)


def test_without_a_rate_it_suffices_for_every_outcome():
    n = bw.plan_width(0.1).trials
    assert half_width(np.arange(n + 1), n).max() <= 0.1 < half_width(np.arange(n), n - 1).max()


def test_trials_are_shared_by_tasks_and_each_task_alone_needs_more():
    plan = bw.plan_width(0.1, cost=0.2, tasks=10, delta=0.05)
    assert plan.trials % 10 == 0
    assert 0 <= plan.trials - bw.plan_width(0.1, cost=0.2, delta=0.05).trials < 20
    assert plan.each_task == bw.plan_width(0.1, cost=0.2, delta=0.005).trials


def test_more_scenes_help_and_more_repeats_hardly_do():
    plan = bw.plan_width(0.15, cost=0.3, repeats=5, correlation=0.4)
    assert plan.scenes[1] < 2 * plan.scenes[2] < 5 * plan.scenes[5] < 10 * plan.scenes[10]  # trials
    assert plan.scenes[5] > plan.scenes[10] > 0.7 * plan.scenes[5]
    assert "More scenes, not more repeats" in str(plan)
    rng, narrow, scenes = np.random.default_rng(4), [], plan.scenes[5]
    for _ in range(60):
        rates = rng.beta(0.3 * 1.5, 0.7 * 1.5, scenes)
        costs = (rng.random((scenes, 5)) < rates[:, None]).astype(float).ravel()
        names = np.repeat(np.arange(scenes), 5).astype(str).tolist()
        made = bw.Certificate.from_held_out(bw.Episodes(costs, clusters=names), delta=0.01)
        narrow.append(made.upper - made.lower <= 0.3)
    assert 0.75 <= np.mean(narrow) < 1  # 0.9, of 60
    assert bw.plan_width(0.15, cost=0.3, repeats=5).scenes[5] < 0.6 * scenes  # unlike repeats are worth more


@pytest.mark.parametrize("tasks", [1, 4])
def test_given_what_there_is_a_campaign_is_narrow_after_so_many_more(tasks):
    rng, rates = np.random.default_rng(2), np.array([0.3]) if tasks == 1 else np.array([0.05, 0.1, 0.4, 0.7])
    names = [f"task {number}" for number in range(tasks)]
    had = (rng.random((40 // tasks, tasks)) < rates).astype(float).ravel()
    strata = None if tasks == 1 else names * (40 // tasks)
    plan = bw.plan_width(0.12, after=bw.Episodes(had, strata=strata, binary=True))
    assert plan.had == 40
    assert (plan.trials % tasks, plan.tasks) == (0, tasks)
    seen = (had.reshape(-1, tasks).sum(axis=0) + 0.5) / (40 / tasks + 1)
    for more, least, most in ((0, 0.8, 1.0), (-plan.trials // 4, 0.0, 0.5)):
        narrow = []
        for _ in range(30):
            rounds = (plan.trials + more - 40) // tasks
            new = (rng.random((rounds, tasks)) < seen).astype(float).ravel()
            campaign = bw.Campaign(delta=0.01, binary=True, strata=strata and names)
            campaign.update_many(np.concatenate([had, new]), strata and names * (40 // tasks + rounds))
            narrow.append(campaign.width <= 0.24)
        assert least <= np.mean(narrow) <= most


def test_what_there_is_says_how_alike_repeats_are():
    rng = np.random.default_rng(3)
    rates = rng.beta(0.3 * 4, 0.7 * 4, 400)  # a correlation of 0.2
    costs = (rng.random((400, 6)) < rates[:, None]).astype(float).ravel()
    episodes = bw.Episodes(costs, clusters=np.repeat(np.arange(400), 6).astype(str).tolist())
    assert likeness(episodes) == (6, pytest.approx(0.2, abs=0.05))
    plan = bw.plan_width(0.2, after=episodes)
    assert (plan.repeats, plan.scenes[6] > 0) == (6, True)


def test_costs_between_0_and_1_are_refused():
    with pytest.raises(InvalidSetting, match="after has costs that are not 0 or 1"):
        bw.plan_width(0.1, after=bw.Episodes([0.3, 0.5]))
