"""Several tasks: the level of Holm and of e-BH with delta included, their power, and negative controls."""

import functools
import itertools
import math
from bisect import bisect_left

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.multiple import e_bh, holm
from rates import FALSE_FAIL, assert_rate_at_most, min_trials

ALPHA, ADVERSE = 0.05, bw.Verdict.ADVERSE


def p_value_draws(rng, trials, shifted, *, tasks=10, n=40, bound=0.3, copula=False):
    """Exact binomial p-values against `bound`; the first `shifted` tasks cost 0.6, the others just the bound.

    With `copula`, the unshifted tasks all see the same episodes: full dependence.
    """
    means = np.where(np.arange(tasks) < shifted, 0.6, bound)
    failures = rng.binomial(n, means, (trials, tasks))
    if copula:
        failures[:, shifted:] = failures[:, shifted : shifted + 1]
    return binom.sf(failures - 1, n, bound)


@pytest.mark.parametrize("copula", [False, True], ids=["independent", "dependent"])
@pytest.mark.parametrize("shifted", [0, 5])
def test_holm_keeps_the_family_wise_error_rate(shifted, copula):
    trials = 20_000
    assert trials >= min_trials(limit=ALPHA, broken=0.07)
    p_values = p_value_draws(np.random.default_rng(11), trials, shifted, copula=copula)
    declared = np.apply_along_axis(holm, 1, p_values) <= ALPHA
    assert_rate_at_most(int(declared[:, shifted:].any(axis=1).sum()), trials, ALPHA)
    assert shifted == 0 or declared[:, :shifted].mean() > 0.8
    # No correction is the negative control; under full dependence there is only one test to correct.
    if not copula:
        with pytest.raises(AssertionError, match="against a promise"):
            assert_rate_at_most(int((p_values[:, shifted:] <= ALPHA).any(axis=1).sum()), trials, ALPHA)


def test_family_test_is_holm_over_the_tasks():
    """The detector itself, with known bounds: exact p-values, corrected, compared with the level."""
    trials, tasks, n = 2_500, 6, 30
    assert trials >= min_trials(limit=ALPHA, broken=0.10)
    rng = np.random.default_rng(5)
    certificate = bw.Certificate.from_bounds(lower=0.3, upper=0.3, delta=1e-9, binary=True)
    family = bw.CertificateFamily.shared(certificate, map(str, range(tasks)))
    test = bw.FamilyTest(family, alpha_adverse=ALPHA, alpha_benign=ALPHA)
    wrong = {bw.Verdict.ADVERSE: 0, bw.Verdict.BENIGN: 0}
    alone, found = 0, 0
    single = bw.HypothesisTest(certificate, alpha_adverse=ALPHA)
    for costs in (rng.random((trials, tasks, n)) < 0.3).astype(float):
        costs[0] = rng.random(n) < 0.75
        finding = test.decide(dict(zip(family, costs, strict=True)))
        for verdict in wrong:
            wrong[verdict] += any(task != "0" for task in finding.called(verdict))
        found += "0" in finding.called(bw.Verdict.ADVERSE)
        alone += bool((single.decide_many(costs[1:]).verdict == bw.Verdict.ADVERSE).any())
    for count in wrong.values():
        assert_rate_at_most(count, trials, ALPHA)
    assert found > 0.95 * trials
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(alone, trials, ALPHA)


def test_no_task_is_wrongly_shown_to_be_no_worse_more_often_than_promised():
    """Two independent tasks, by enumeration: one is worse by the margin and more, then both are."""
    n, margin, alpha = 40, 0.3, 0.1
    promise = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    family = bw.CertificateFamily.shared(promise, ["a", "b"])
    test = bw.FamilyTest(family, margin=margin, alpha_benign=alpha)
    shown = np.zeros((n + 1, n + 1, 2), dtype=bool)
    for ka in range(n + 1):
        for kb in range(ka, n + 1):
            rows = {task: 1.0 * (np.arange(n) < k) for task, k in (("a", ka), ("b", kb))}
            if ka > 16:  # more than 16 of 40 are never shown to be at most 40 %
                continue
            found = list(test.decide(rows).tasks.values())
            shown[ka, kb] = [one.no_worse for one in found]
            shown[kb, ka] = shown[ka, kb][::-1]
    chances = {rate: binom.pmf(np.arange(n + 1), n, rate) for rate in (0.1, 0.4, 0.5)}
    for other in (0.1, 0.4, 0.5):  # task b is as good as certified, or worse by the margin or more
        wrong = shown[..., 0] | (shown[..., 1] if other > 0.1 else False)
        assert chances[0.4] @ wrong @ chances[other] <= alpha
    assert chances[0.1] @ shown[..., 0] @ chances[0.1] > 0.9
    alone = bw.HypothesisTest(promise, tail="exact", margin=margin, alpha_benign=alpha)
    each = alone.decide_many((np.arange(n) < np.arange(n + 1)[:, None]).astype(float)).no_worse
    broken = each[:, None] | each[None, :]  # every task at the whole level
    assert chances[0.4] @ broken @ chances[0.4] > 1.15 * alpha


def missed(rng, trials, *, tasks, delta, split):
    """In how many of the trials any upper limit of a family is below the true cost."""
    n, mean = 30, 0.3
    share = delta / tasks if split else delta
    limits = bw.bounds.clopper_pearson_upper(np.arange(n + 1), n, share)
    return int((limits[rng.binomial(n, mean, (trials, tasks))] < mean).any(axis=1).sum())


def test_all_limits_of_a_family_hold_together():
    trials, tasks, delta = 20_000, 8, 0.2
    costs = {f"task {number}": [0, 1, 0, 0] * 5 for number in range(tasks)}
    family = bw.CertificateFamily.from_held_out(costs, delta_upper=delta, delta_lower=0.01, binary=True)
    assert family.delta_upper == pytest.approx(delta)
    for certificate in family.values():  # the split that the simulation below relies on
        assert certificate.upper == bw.bounds.clopper_pearson_upper(5, 20, delta / tasks)
    rng = np.random.default_rng(3)
    assert_rate_at_most(missed(rng, trials, tasks=tasks, delta=delta, split=True), trials, delta)
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(missed(rng, trials, tasks=tasks, delta=delta, split=False), trials, delta)


def verdicts_by_count(family, n, alpha):
    """Is any task ADVERSE, is any BENIGN, for each number of failures in n new scenes that all tasks meet?"""
    test = bw.FamilyTest(family, alpha_adverse=alpha, alpha_benign=alpha, tail="exact")
    findings = [test.decide(dict.fromkeys(family, 1.0 * (np.arange(n) < k))) for k in range(n + 1)]
    sides = (bw.Verdict.ADVERSE, bw.Verdict.BENIGN)
    return np.array([[bool(each.called(side)) for each in findings] for side in sides]), findings[0]


@pytest.mark.parametrize("split", [True, False], ids=["shared delta", "every task its own delta"])
def test_the_total_holds_over_the_draw_of_certificates_and_new_costs(split):
    """Two tasks, by exact enumeration of the two scenes behind each certificate and of 400 new ones.

    With so few behind the certificates and so many new ones, most wrong verdicts come from limits that fail.
    """
    m, n, delta, alpha = 2, 400, 0.8, 0.01
    means = np.linspace(0.01, 0.99, 99)
    new = binom.pmf(np.arange(n + 1)[:, None], n, means)
    unchanged, risen = np.zeros((2, means.size)), 0.0
    for counts in itertools.product(range(m + 1), repeat=2):
        costs = {f"task {place}": 1.0 * (np.arange(m) < count) for place, count in enumerate(counts)}
        if split:
            family = bw.CertificateFamily.from_held_out(costs, delta, binary=True)
        else:
            certify = functools.partial(bw.Certificate.from_held_out, delta=delta, binary=True)
            family = bw.CertificateFamily({task: certify(row) for task, row in costs.items()})
        called, finding = verdicts_by_count(family, n, alpha)
        chance = np.prod([binom.pmf(count, m, means) for count in counts], axis=0)
        unchanged += chance * (called @ new)
        risen += chance[4] * (called[0] @ new[:, 89])  # from 0.05 to 0.9
    if split:
        # ADVERSE is wrong for every task, and in the limit of a small rise so is BENIGN.
        assert unchanged[0].max() <= finding.false_positive_rate == pytest.approx(alpha + delta / 2)
        assert unchanged[1].max() <= finding.false_negative_rate == pytest.approx(alpha + delta / 2)
        assert risen > 0.9
    else:
        assert unchanged.max(axis=1).min() > alpha + delta / 2 + 0.02


@pytest.mark.parametrize("kind", ["apart", "shared", "mixed"])
def test_judged_jointly_the_total_holds_over_the_draw_of_everything(kind):
    """Two tasks, all outcomes of lab and new trials: each with a lab, with one lab, one with bounds only."""
    m, n = (7, 6) if kind == "mixed" else (5, 5)
    alpha, delta, bound = 0.15, 0.06, 0.3
    totals = alpha + delta / 2
    binary = functools.partial(bw.Certificate.from_held_out, binary=True)
    called = np.zeros((2, m + 1, n + 1, m + 1, n + 1, 2), dtype=bool)  # without and with Holm
    for labs in itertools.product(range(m + 1), repeat=2):
        each = delta if kind == "shared" else delta / 2
        own = [binary(1.0 * (np.arange(m) < k), each) for k in labs]
        promised = bw.Certificate.from_bounds(lower=bound, upper=bound, delta=delta / 4, binary=True)
        second = {"apart": own[1], "shared": own[0], "mixed": promised}[kind]
        test = bw.FamilyTest(bw.CertificateFamily({"a": own[0], "b": second}), alpha_adverse=alpha)
        for news in itertools.product(range(n + 1), repeat=2):
            rows = {task: 1.0 * (np.arange(n) < k) for task, k in zip("ab", news, strict=True)}
            found = test.decide(rows)
            assert found.false_positive_rate == pytest.approx(totals)
            place = labs[0], news[0], labs[1], news[1]
            called[1][place] = [one.verdict == "adverse" for one in found.tasks.values()]
            level = totals - (delta / 4 if kind == "mixed" else 0)
            called[0][place] = [one.p_adverse <= level for one in found.tasks.values()]

    def rate(wrong, first, lab, new):
        """Return P[wrong] if the first task's rate is `first` in both worlds, and the second's is given."""
        of_lab = [binom.pmf(np.arange(m + 1), m, mean) for mean in (first, lab)]
        of_new = [binom.pmf(np.arange(n + 1), n, mean) for mean in (first, new)]
        if kind == "shared":
            return of_lab[0] @ np.einsum("aiaj,i,j->a", wrong, *of_new)
        return np.einsum("aibj,a,i,b,j->", wrong, of_lab[0], of_new[0], of_lab[1], of_new[1])

    grid = np.linspace(0, 1, 21)
    if kind == "mixed":
        same = [(first, 0.5, bound) for first in grid]
    elif kind == "shared":
        same = [(first, first, first) for first in grid]
    else:
        same = [(first, second, second) for first in grid for second in grid]
    either = [called[i].any(axis=-1) for i in (0, 1)]
    worst = max(rate(either[1], *rates) for rates in same)
    assert 0.5 * totals < worst <= totals
    assert max(rate(called[1][..., 0], first, 0.2, 0.95) for first in grid) <= totals  # Holm's second step
    assert rate(called[1][..., 1], 0.05, 0.05, 0.9) > 0.9
    # The negative control: every task at the whole level.
    assert max(rate(either[0], *rates) for rates in same) > totals + 0.02


@pytest.mark.parametrize(
    ("tasks", "lab", "new", "rates", "by_limits", "at_least"),
    [(4, 20, 20, (0.2, 0.6), 0.065, 0.62), (10, 50, 40, (0.1, 0.4), 0.147, 0.75)],
)
def test_a_task_that_got_worse_is_found(tasks, lab, new, rates, by_limits, at_least):
    """Exact; the other tasks take nothing but the level from it, so Holm's first step is a lower bound."""
    chance = binom.pmf(np.arange(lab + 1), lab, rates[0])
    found = {None: 0.0, "exact": 0.0}
    for failures in np.flatnonzero(chance > 1e-6).tolist():
        costs = dict.fromkeys(map(str, range(tasks)), 1.0 * (np.arange(lab) < failures))
        family = bw.CertificateFamily.from_held_out(costs, binary=True)
        for tail in found:
            test = bw.FamilyTest(family, tail=tail)
            # All other tasks do as well as they can, and so have the largest p-values.
            rest = dict.fromkeys(list(family)[1:], np.zeros(new))
            fewest = bisect_left(
                range(new + 1),
                True,
                key=lambda k: bool(test.decide({"0": 1.0 * (np.arange(new) < k), **rest}).called(ADVERSE)),
            )
            found[tail] += chance[failures] * binom.sf(fewest - 1, new, rates[1])
    assert found["exact"] == pytest.approx(by_limits, abs=0.001)
    assert found[None] >= at_least


def test_given_certificates_that_hold_the_level_is_alpha():
    """Two tasks with new episodes apart, by exact enumeration; without the correction the level breaks."""
    m, n = 40, 12
    costs = {"first": 1.0 * (np.arange(m) < 4), "second": 1.0 * (np.arange(m) < 12)}
    family = bw.CertificateFamily.from_held_out(costs, 0.1, binary=True)
    test = bw.FamilyTest(family, alpha_adverse=ALPHA, tail="exact")
    rows = (np.arange(n) < np.arange(n + 1)[:, None]).astype(float)
    called = np.array(
        [[test.decide({"first": a, "second": b}).verdict == "adverse" for b in rows] for a in rows]
    )
    alone = [
        bw.HypothesisTest(each, alpha_adverse=ALPHA, tail="exact").decide_many(rows).verdict == "adverse"
        for each in family.values()
    ]

    def rate(wrong, *means):
        first, second = (binom.pmf(np.arange(n + 1), n, mean) for mean in means)
        return first @ wrong @ second

    limits = [certificate.upper for certificate in family.values()]
    for shares in itertools.product(np.linspace(0, 1, 21), repeat=2):
        assert rate(called, *np.multiply(limits, shares)) <= ALPHA
    assert rate(called, 0.7, limits[1]) > 0.8
    assert rate(np.logical_or.outer(*alone), *limits) > ALPHA


def e_values_by_count(n=60, bound=0.3):
    """The e-value of the sequential test after n episodes, for every number of failures."""
    certificate = bw.Certificate.from_bounds(lower=0.1, upper=bound, delta=1e-9, binary=True)
    return np.array(
        [bw.SequentialTest(certificate).update_many(1.0 * (np.arange(n) < k)).e_adverse for k in range(n + 1)]
    )


def test_what_e_bh_is_given_are_e_values():
    """Expected value at most 1 under the hypothesis, by exact enumeration; a bound that is off breaks it."""
    e_values, n = e_values_by_count(), 60
    means = [binom.pmf(np.arange(n + 1), n, mean) @ e_values for mean in np.linspace(0, 0.3, 31)]
    assert max(means) <= 1 + 1e-12
    assert binom.pmf(np.arange(n + 1), n, 0.32) @ e_values > 1


@pytest.mark.parametrize("shifted", [0, 50])
def test_e_bh_keeps_the_false_discovery_rate(shifted):
    trials, rate = 20_000, 0.1
    means = np.where(np.arange(100) < shifted, 0.65, 0.3)
    e_values = e_values_by_count()[np.random.default_rng(2).binomial(60, means, (trials, 100))]
    slack = math.sqrt(-math.log(FALSE_FAIL) / (2 * trials))  # Hoeffding: shares lie in [0, 1]

    def false_share(listed):
        return (listed[:, shifted:].sum(axis=1) / np.maximum(listed.sum(axis=1), 1)).mean()

    listed = np.apply_along_axis(e_bh, 1, np.log(e_values)) <= rate
    assert false_share(listed) <= rate + slack
    assert shifted == 0 or listed[:, :shifted].mean() > 0.8
    if shifted == 0:  # the negative control: every task by itself at the same level
        assert false_share(e_values >= 1 / rate) > rate + slack


def two_tasks(n, first, second):
    """Probabilities of every number of failures in n episodes of one task and n of another."""
    counts = np.arange(n + 1)
    return np.convolve(binom.pmf(counts, n, first), binom.pmf(counts, n, second))


@pytest.mark.parametrize("method", ["exact", "kl", "hoeffding"])
def test_a_fixed_number_of_episodes_of_each_task_may_be_certified_as_one_mixture(method):
    """Hoeffding (1956): the tails of such a sum are no heavier than the binomial's. By exact enumeration."""
    n, delta = 20, 0.1
    rows = (np.arange(2 * n)[None] < np.arange(2 * n + 1)[:, None]).astype(float)
    certificates = [bw.Certificate.from_held_out(row, delta, method=method, binary=True) for row in rows]
    upper = np.array([certificate.upper for certificate in certificates])
    for first in np.linspace(0, 1, 21):
        for second in np.linspace(first, 1, 11):
            mean = (first + second) / 2
            assert two_tasks(n, first, second) @ (upper < mean) <= delta / 2
    # One task in place of the mixture is the negative control.
    assert two_tasks(n, 0.4, 0.8) @ (upper < 0.8) > delta / 2


def test_tasks_in_a_row_may_not_be_watched_as_one_mixture():
    """Half of the episodes cost 0.7, then half 0.3: the mixture is as certified, and yet the watch alarms."""
    rng, trials = np.random.default_rng(4), 200
    certificate = bw.Certificate.from_bounds(lower=0.5, upper=0.5, delta=1e-9)
    costs = (rng.random((trials, 100)) < np.repeat([0.7, 0.3], 50)).astype(float)
    alarms = {
        name: sum(bw.SequentialTest(certificate).update_many(row).verdict == "adverse" for row in rows)
        for name, rows in {"in a row": costs, "at random": rng.permuted(costs, axis=1)}.items()
    }
    assert_rate_at_most(alarms["at random"], trials, 0.04)
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(alarms["in a row"], trials, 0.04)
