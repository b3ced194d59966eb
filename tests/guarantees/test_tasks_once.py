"""The mean over a fixed set of tasks in one look: overall and each task under one error rate, enumerated."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.detectors.strata import by_task

LAB, NEW, ALPHA, DELTA = 3, 3, 0.3, 0.1
TOTAL = ALPHA + DELTA / 2
TASKS = "mug", "bowl"
RATES = 0.0, 0.1, 0.3, 0.5, 0.7, 1.0


def decide(lab, new, **options):
    costs = [1.0] * lab[0] + [0.0] * (LAB - lab[0]) + [1.0] * lab[1] + [0.0] * (LAB - lab[1])
    known = bw.Episodes(costs, strata=np.repeat(TASKS, LAB), binary=True)
    test = bw.HypothesisTest(bw.Certificate.from_held_out(known, delta=DELTA), alpha_adverse=ALPHA, **options)
    return test.decide({task: [1.0] * k + [0.0] * (NEW - k) for task, k in zip(TASKS, new, strict=True)})


@pytest.fixture(scope="module")
def table():
    """Return what is found for every outcome of two tasks."""
    outcomes = product(range(LAB + 1), range(LAB + 1), range(NEW + 1), range(NEW + 1))
    return {each: decide(each[:2], each[2:], alpha_benign=ALPHA, margin=0.4) for each in outcomes}


def worlds():
    return product(product(RATES, RATES), product(RATES, RATES))


def rate(table, p, q, is_wrong):
    """The chance of what is wrong, in the order of the table's outcomes."""
    weights = [binom.pmf(np.arange(LAB + 1), LAB, rate) for rate in p]
    weights += [binom.pmf(np.arange(NEW + 1), NEW, rate) for rate in q]
    return math.prod(np.ix_(*weights)).ravel()[[is_wrong(found) for found in table.values()]].sum()


def test_no_false_alarm_about_anything_that_did_not_get_worse(table):
    largest = 0.0
    for p, q in worlds():
        same = [task for task, old, new in zip(TASKS, p, q, strict=True) if new <= old]
        if not same:
            continue
        wrong = rate(
            table,
            p,
            q,
            lambda found, same=same: (
                (len(same) == len(TASKS) and found.verdict is bw.Verdict.ADVERSE)
                or any(found.tasks[task].verdict is bw.Verdict.ADVERSE for task in same)
            ),
        )
        largest = max(largest, wrong)
    assert 0.1 < largest <= TOTAL


def test_without_the_correction_there_are_more(table):
    """The broken twin: all tasks at the whole level, and each at the whole level, too."""

    def called(found):
        own = [each.p_adverse for each in found.tasks.values()]
        return min(found.p_adverse, *own) <= TOTAL

    assert max(rate(table, p, p, called) for p in product(RATES, RATES)) > TOTAL


def test_comfort_is_false_at_most_as_often_as_stated(table):
    for p, q in worlds():
        risen = [task for task, old, new in zip(TASKS, p, q, strict=True) if new > old]
        mean = sum(q) > sum(p)
        wrong = rate(
            table,
            p,
            q,
            lambda found, mean=mean, risen=risen: (
                (mean and found.verdict is bw.Verdict.BENIGN)
                or any(found.tasks[task].verdict is bw.Verdict.BENIGN for task in risen)
            ),
        )
        assert wrong <= TOTAL
        beyond = sum(q) / 2 - sum(p) / 2 > 0.4 + 1e-12
        assert not beyond or rate(table, p, q, lambda found: found.no_worse) <= TOTAL


def test_limits_on_the_mean_hold(table):
    for p, q in worlds():
        shift = sum(q) / 2 - sum(p) / 2
        for side in (
            lambda found, shift=shift: found.shift_lower > shift + 1e-12,
            lambda found, shift=shift: found.shift_upper < shift - 1e-12,
        ):
            assert rate(table, p, q, side) <= TOTAL


def certified(k, n, delta, **design):
    costs = np.concatenate([np.arange(n) < each for each in k]).astype(float)
    return bw.Certificate.from_held_out(bw.Episodes(costs, binary=True, **design), delta=delta)


@pytest.mark.parametrize(("n", "delta"), [(4, 0.1), (6, 0.3)])
def test_certified_limits_hold_for_tasks_that_differ_in_any_way(n, delta):
    tasks = np.repeat(["a", "b", "c"], n)
    limits = {k: certified(k, n, delta, strata=tasks) for k in product(range(n + 1), repeat=3)}
    plain = certified((1, 0, 0), n, delta)
    # Just below what Clopper-Pearson excludes after one failure, all of it in one task: where it is wrong.
    worst = (3 * plain.lower * (1 - 1e-9), 0.0, 0.0)
    for p in (worst, *product((0.0, 0.02, 0.1, 0.5, 0.95, 1.0), repeat=3)):
        weights = [binom.pmf(np.arange(n + 1), n, each) for each in p]
        chance = {k: np.prod([w[i] for w, i in zip(weights, k, strict=True)]) for k in limits}
        mean = np.mean(p)
        assert sum(chance[k] for k, each in limits.items() if each.lower > mean) <= delta / 2
        assert sum(chance[k] for k, each in limits.items() if each.upper < mean) <= delta / 2
    assert 1 - binom.pmf(0, n, worst[0]) > delta / 2  # the broken twin: one sample, whatever the tasks


def simulate(p, q, runs, seed, n=20, m=10):
    rng, found = np.random.default_rng(seed), []
    names = [f"t{i}" for i in range(len(p))]
    for _ in range(runs):
        lab = (rng.random((len(p), n)) < np.array(p)[:, None]).astype(float)
        known = bw.Episodes(lab.ravel(), strata=np.repeat(names, n), binary=True)
        new = dict(zip(names, (rng.random((len(q), m)) < np.array(q)[:, None]).astype(float), strict=True))
        found.append(bw.HypothesisTest(bw.Certificate.from_held_out(known, delta=1e-6)).decide(new))
    return found


DREAM = 1 - np.array([1, 1, 0.95, 1, 0.95, 0.2, 1, 0.85, 1, 0.9])  # rates that somebody posted


def test_tasks_that_all_got_a_little_worse_are_noticed_together():
    found = simulate(DREAM, np.minimum(DREAM + 0.1, 1), 80, seed=11)
    assert np.mean([each.verdict is bw.Verdict.ADVERSE for each in found]) > 0.8
    by_themselves = [
        min(10 * each.p_adverse for each in one.tasks.values()) <= 0.05 for one in found
    ]  # Holm finds one of ten
    assert np.mean(by_themselves) < 0.3


def test_a_single_task_that_got_much_worse_is_named():
    worse = DREAM.copy()
    worse[0] += 0.6
    found = simulate(DREAM, worse, 80, seed=12)
    assert np.mean(["t0" in each.called(bw.Verdict.ADVERSE) for each in found]) > 0.75
    assert all(each.verdict is bw.Verdict.ADVERSE for each in found if each.called(bw.Verdict.ADVERSE))


def test_costs_between_0_and_1_and_unequal_numbers():
    rng = np.random.default_rng(5)
    names = ["a"] * 30 + ["b"] * 50
    lab = bw.Episodes(rng.beta(2, 8, 80), strata=names)
    certificate = bw.Certificate.from_held_out(lab)
    assert certificate.method == "weighted"
    finding = bw.HypothesisTest(certificate).decide({"a": rng.beta(6, 4, 40), "b": rng.beta(6, 4, 25)})
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.shift_lower > 0
    same = bw.HypothesisTest(certificate).decide({"a": rng.beta(2, 8, 40), "b": rng.beta(2, 8, 25)})
    assert same.verdict is bw.Verdict.WITHIN


def test_a_campaign_in_rounds_is_judged_by_its_limits():
    campaign = bw.Campaign(delta=0.05, binary=True, strata=["mug", "bowl"])
    for i in range(60):
        campaign.update_many([0.0, float(i % 5 == 0)], ["mug", "bowl"])
    certificate = campaign.certificate()
    finding = bw.HypothesisTest(certificate).decide({"mug": [1.0] * 15, "bowl": [1.0] * 15})
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.tail == "betting"
    assert finding.false_positive_rate == pytest.approx(0.05 + 1.2 * 0.025)


def test_the_order_and_the_form_of_costs_do_not_matter():
    lab = bw.Episodes([0.0, 1.0] * 20, strata=["a"] * 20 + ["b"] * 20, binary=True)
    test = bw.HypothesisTest(bw.Certificate.from_held_out(lab))
    costs, tasks = np.array([1.0] * 9 + [0.0] * 3), np.array(["a"] * 6 + ["b"] * 6)
    order = np.random.default_rng(0).permutation(12)
    mapped = test.decide({"b": costs[6:], "a": costs[:6]})
    assert test.decide(bw.Episodes(costs[order], strata=tasks[order], binary=True)) == mapped
    with pytest.raises(bw.errors.InvalidSetting, match="which task"):
        test.decide(costs)
    with pytest.raises(bw.errors.InvalidSetting, match="no trials of b"):
        test.decide({"a": costs})
    with pytest.raises(bw.errors.InvalidSetting, match="stratum = 'c' is not a task"):
        test.decide({"a": costs, "b": costs, "c": costs})


def test_the_tasks_of_a_certificate_share_its_delta():
    lab = bw.Episodes([0.0, 1.0] * 20, strata=["a"] * 20 + ["b"] * 20, binary=True)
    certificate = bw.Certificate.from_held_out(lab, delta=0.1)
    assert sum(each.delta for each in by_task(certificate).values()) == pytest.approx(0.2 * 0.1)
