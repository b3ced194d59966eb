"""Audits of a judge: coverage by enumeration over all splits, draws and numbers of failures; broken twins."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from boundwatch import bounds
from boundwatch.bounds.audit import (
    Audited,
    Judged,
    audit_lower,
    audit_upper,
    bounded_upper,
    judge_errors,
    units_of,
)
from boundwatch.evaluation.audit import allocation
from rates import assert_rate_at_most, min_trials

DELTA = 0.1
SHAPES = [((12, 8), (5, 4)), ((18, 4), (7, 2)), ((6, 14), (3, 6)), ((20, 0), (8, 0)), ((10, 10), (10, 1))]


@cache
def limits(judged, drawn, delta, policy=False, units=None):
    """Lower and upper limits for every outcome, in the places of their failures."""
    found = np.empty((2, drawn[0] + 1, drawn[1] + 1))
    for x in product(*(range(n + 1) for n in drawn)):
        audited = Audited(Judged(*judged), Judged(*drawn), Judged(*x))
        found[(slice(None), *x)] = [
            limit(audited, delta, policy=policy, units=units) for limit in (audit_lower, audit_upper)
        ]
    return found


@cache
def chances(judged, drawn, failures):
    """The probability of every outcome of a draw."""
    each = [
        hypergeom.pmf(np.arange(n + 1), size, k, n) if size else np.ones(1)
        for size, n, k in zip(judged, drawn, failures, strict=True)
    ]
    return np.multiply.outer(*each)


def misses(judged, drawn, found):
    """The largest probability, over all numbers of failures, with which each limit is on the wrong side."""
    most = np.zeros(2)
    for failures in product(*(range(size + 1) for size in judged)):
        share, weights = sum(failures) / sum(judged), chances(judged, drawn, failures)
        wrong = [(weights * (found[0] > share)).sum(), (weights * (found[1] < share)).sum()]
        most = np.maximum(most, wrong)
    return most


@pytest.mark.parametrize(("judged", "drawn"), SHAPES)
@pytest.mark.parametrize("delta", [0.025, DELTA, 0.4])
def test_limits_on_all_judged_episodes_miss_at_most_delta(judged, drawn, delta):
    """Whatever the judge is: every split into its hits and errors is among those enumerated."""
    assert misses(judged, drawn, limits(judged, drawn, delta)).max() <= delta


def test_limits_spend_most_of_their_delta():
    assert misses(*SHAPES[0], limits(*SHAPES[0], DELTA)).min() > 0.6 * DELTA


def test_a_draw_with_replacement_that_is_corrected_as_without_fails_this_test():
    judged, drawn = (12, 8), (9, 6)
    found, worst = limits(judged, drawn, DELTA), 0.0
    for failures in product(range(13), range(9)):
        shares = [k / size for k, size in zip(failures, judged, strict=True)]
        weights = np.multiply.outer(
            *(binom.pmf(np.arange(n + 1), n, p) for n, p in zip(drawn, shares, strict=True))
        )
        worst = max(worst, (weights * (found[1] < sum(failures) / 20)).sum())
    assert worst > 1.3 * DELTA


def test_labels_that_people_choose_fail_this_test():
    """Who labels the episodes that look bad, one in two failures and one in four successes, sees too many."""
    judged, drawn, failures = (20, 10), (8, 4), (6, 6)
    found, wrong = limits(judged, drawn, DELTA), 0.0
    each = []
    for size, n, k in zip(judged, drawn, failures, strict=True):
        odds = np.array([hypergeom.pmf(x, size, k, n) * 2.0**x for x in range(n + 1)])
        each.append(odds / odds.sum())
    wrong = (np.multiply.outer(*each) * (found[0] > 12 / 30)).sum()
    assert wrong > 1.2 * DELTA


def test_the_judges_mean_taken_as_the_truth_fails_this_test():
    """An interval around what a judge says that misses one failure in five is wrong almost always."""
    rng = np.random.default_rng(5)
    calls = rng.binomial(rng.binomial(1000, 0.3, 300), 0.8)  # it never calls a success a failure
    upper = bounds.clopper_pearson_upper(calls, 1000, DELTA)
    assert (upper < 0.3).mean() > 0.9


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_limits_on_the_policy_miss_at_most_delta(share, delta):
    """Good, useless, inverted and biased judges: 12 episodes, their calls, failures and draws, enumerated.

    The judge calls `share` of episodes failures; `failed` of those and `passed` of the others did fail.
    """
    n, labels = 12, 5
    for failed, passed in product(np.linspace(0, 1, 7), repeat=2):
        truth, wrong = share * failed + (1 - share) * passed, np.zeros(2)
        for calls in range(n + 1):
            judged = Judged(n - calls, calls)
            drawn = allocation(judged, labels)
            weights = binom.pmf(calls, n, share) * np.multiply.outer(
                binom.pmf(np.arange(drawn[0] + 1), drawn[0], passed),
                binom.pmf(np.arange(drawn[1] + 1), drawn[1], failed),
            )
            found = limits(tuple(judged), tuple(drawn), delta, True)
            wrong += [(weights * (found[0] > truth)).sum(), (weights * (found[1] < truth)).sum()]
        assert wrong.max() <= delta


def units_misses(units, worth, labels, delta=0.2):
    """How often each limit on the policy is wrong, enumerated over independent units, calls and draws.

    A unit is what may happen to its episodes: probabilities of (calls, failures among them, other failures).
    """
    known = {(0, 0, 0): 1.0}
    for unit in units:
        grown = Counter()
        for (had, chance), (more, p) in product(known.items(), unit.items()):
            grown[tuple(a + b for a, b in zip(had, more, strict=True))] += chance * p
        known = grown
    n = len(units) * max(calls + others for unit in units for calls, _, others in unit)
    truth = sum(chance * (k1 + k0) for (_, k1, k0), chance in known.items()) / n
    wrong, exact = np.zeros(2), {}
    for (calls, k1, k0), chance in known.items():
        judged = (n - calls, calls)
        drawn = tuple(allocation(Judged(*judged), labels))
        weights = exact.setdefault((judged, drawn), np.zeros([k + 1 for k in drawn]))
        weights += chance * chances(judged, drawn, (k0, k1))
    for (judged, drawn), weights in exact.items():
        found = limits(judged, drawn, delta, True, worth)
        wrong += [(weights * (found[0] > truth)).sum(), (weights * (found[1] < truth)).sum()]
    return wrong


def single(rate, hit, alarm):
    """One episode that fails at a rate, and how often a failure and a success are called failures."""
    return {
        (1, 1, 0): rate * hit,
        (0, 0, 1): rate * (1 - hit),
        (1, 0, 0): (1 - rate) * alarm,
        (0, 0, 0): (1 - rate) * (1 - alarm),
    }


JUDGES = {"good": (0.9, 0.1), "useless": (0.5, 0.5), "inverted": (0.1, 0.9), "biased": (1.0, 0.6)}


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
@pytest.mark.parametrize("rates", [(0, 0, 1), (0.1, 0.5, 0.9), (0, 0.2, 0.2), (0.9, 1, 1), (0.3, 0.3, 0.3)])
def test_limits_on_the_mean_over_tasks_miss_at_most_delta(judge, rates):
    """Three tasks of four episodes, each with a rate of its own; the judge may be better on one task."""
    tasks = [single(rate, *judge) for rate in rates for _ in range(4)]
    assert max(units_misses(tasks, 12, labels).max() for labels in (5, 9, 12)) <= 0.2


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.8])
def test_limits_hold_where_all_repeats_of_a_scene_fail_together(judge, rate):
    """Four scenes of three episodes; the judge errs alike on all of a scene."""
    scene = {(3 * a, 3 * b, 3 * c): p for (a, b, c), p in single(rate, *judge).items()}
    assert max(units_misses([scene] * 4, 4, labels).max() for labels in (5, 12)) <= 0.2


def test_repeats_that_are_taken_for_independent_fail_this_test():
    scene = {(0, 0, 3): 0.2, (0, 0, 0): 0.8}
    assert units_misses([scene] * 4, None, 12).max() > 0.4
    assert units_misses([scene] * 4, 4, 12).max() <= 0.2


def test_episodes_that_are_pooled_where_the_mean_over_unequal_tasks_is_meant_fail_this_test():
    """Ten episodes fail in 10 %, two in 90 %: the mean over the two tasks is one half."""
    pooled = np.convolve(binom.pmf(range(11), 10, 0.1), binom.pmf(range(3), 2, 0.9))
    upper = limits((12, 0), (12, 0), 0.2, True, 12)[1, :, 0]
    assert (pooled * (upper < 0.5)).sum() > 0.6


def test_limits_over_tasks_spend_much_of_their_delta():
    tasks = [single(rate, 0.9, 0.1) for rate in (0.3, 0.4, 0.5) for _ in range(4)]
    assert units_misses(tasks, 12, 12).max() > 0.05


def test_tasks_and_repeats_together_are_worth_the_scenes_of_the_task_with_fewest():
    assert units_of(["mug"] * 6 + ["bowl"] * 6, [1, 1, 2, 2, 3, 3, 1, 1, 1, 2, 2, 2]) == 4
    assert units_of([""] * 4, [1, 2, 3, 3]) is None


def test_the_policys_limits_are_wider_and_those_of_the_episodes_alone_fail_as_theirs():
    """Twin: who forgets the step to the policy is wrong too often; here all episodes are labeled."""
    truth, n = 0.3, 10
    found = limits((n, 0), (n, 0), DELTA)[:, :, 0]
    weights = binom.pmf(np.arange(n + 1), n, truth)
    assert (weights * (found[1] < truth)).sum() > DELTA
    right = limits((n, 0), (n, 0), DELTA, True)[:, :, 0]
    assert (weights * (right[1] < truth)).sum() <= DELTA
    assert np.all(right[0] <= found[0])
    assert np.all(right[1] >= found[1])


def test_the_judges_own_errors_are_within_their_limits():
    judged, drawn = (10, 6), (5, 3)
    outcomes = list(product(range(6), range(4)))
    found = {x: judge_errors(Audited(Judged(*judged), Judged(*drawn), Judged(*x)), DELTA) for x in outcomes}
    for k0, k1 in product(range(11), range(7)):
        weights = chances(judged, drawn, (k0, k1))
        miss, alarm = k0 / max(k0 + k1, 1), (6 - k1) / max(16 - k0 - k1, 1)
        wrong = sum(
            weights[x]
            for x in outcomes
            if not (found[x][0][0] <= miss <= found[x][0][1] and found[x][1][0] <= alarm <= found[x][1][1])
        )
        assert wrong <= DELTA


def test_the_judges_errors_are_known_well_from_many_labels():
    judged, drawn = Judged(700, 300), Judged(350, 150)
    audited = Audited(judged, drawn, failures=Judged(35, 120))  # 10 % of successes, 80 % of failures
    misses, alarms = judge_errors(audited, 0.05)
    truth = 70 / (70 + 240), 60 / (60 + 630)  # of the failures; of the successes
    for (low, high), share in zip((misses, alarms), truth, strict=True):
        assert max(share - 0.08, 0.03) < low < share < high < share + 0.08


def in_rows(*each):
    """Values, and that there is one of each, for datasets one above the other."""
    return [np.stack([values, np.ones_like(values)]) for values in each]


def bounded_misses(judge, truth, n, trials, delta):
    """How often the upper limit is below the mean, with labels drawn without replacement."""
    rows = np.random.default_rng(11).permuted(np.tile(np.arange(judge.size), (trials, 1)), axis=1)[:, :n]
    judged = np.tile(judge, (trials, 1))
    upper = bounded_upper(in_rows(judged, truth[rows], (truth[rows] - judge[rows] + 1) / 2), delta)
    return int((upper < truth.mean()).sum())


@pytest.mark.parametrize("kind", ["good", "useless", "inverted"])
def test_limits_for_bounded_costs_hold(kind):
    delta, trials = 0.2, 500
    assert trials >= min_trials(limit=delta, broken=0.4)
    rng = np.random.default_rng(3)
    truth = rng.beta(0.4, 1.2, 40)
    judge = {"good": np.clip(truth + rng.normal(0, 0.05, 40), 0, 1), "useless": rng.random(40)}
    assert_rate_at_most(bounded_misses(judge.get(kind, 1 - truth), truth, 15, trials, delta), trials, delta)


def bounded_policy_misses(repeats, units, trials=200, delta=0.2):
    """How often the policy's limit is below the expected cost, 1/4: 60 episodes, repeats alike, 30 labels."""
    rng = np.random.default_rng(17)
    truth = np.repeat(rng.beta(0.2, 0.6, (trials, 60 // repeats)), repeats, axis=1)
    judge = np.clip(truth + rng.normal(0, 0.05, truth.shape), 0, 1)
    rows = rng.permuted(np.tile(np.arange(60), (trials, 1)), axis=1)[:, :30]
    label, guess = (np.take_along_axis(each, rows, axis=1) for each in (truth, judge))
    given = in_rows(judge, label, (label - guess + 1) / 2)
    return int((bounded_upper(given, delta, policy=True, units=units) < 0.25).sum())


@pytest.mark.parametrize(("repeats", "units"), [(1, None), (1, 60), (10, 6)])
def test_limits_on_the_policy_hold_for_bounded_costs(repeats, units):
    assert_rate_at_most(bounded_policy_misses(repeats, units), 200, 0.2)


def test_bounded_costs_of_repeats_that_are_taken_for_independent_fail_this_test():
    with pytest.raises(AssertionError):
        assert_rate_at_most(bounded_policy_misses(60, None), 200, 0.2)


def test_a_good_judge_saves_labels_and_a_useless_one_costs_few():
    """With 1,000 judged at 20 % failures: 55 labels and a 90/95 % judge do what 100 do alone."""
    alone = Audited(Judged(1000, 0), Judged(100, 0), Judged(20, 0))
    good = Audited(Judged(780, 220), Judged(40, 15), Judged(1, 12))
    useless = Audited(Judged(800, 200), Judged(78, 27), Judged(16, 5))
    width = [audit_upper(each, 0.025) - audit_lower(each, 0.025) for each in (alone, good, useless)]
    assert width[1] < width[0]
    assert width[2] < 1.01 * width[0]


def test_many_judged_episodes_only_widen_limits_by_cells():
    few = Audited(Judged(800, 200), Judged(30, 12), Judged(1, 10))
    many = Audited(Judged(800_000, 200_000), Judged(30, 12), Judged(1, 10))
    assert audit_upper(few, 0.025) < audit_upper(many, 0.025) < audit_upper(few, 0.025) + 0.02
