"""What one look at finished trials promises: enumerated over small worlds, with twins that break it."""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, boschloo_exact

import boundwatch as bw
from boundwatch.bounds.rate_difference import rate_difference_p_value

ALPHA = 0.1
RATES = np.linspace(0, 1, 41)
A, B = bw.ComparisonVerdict.A_BETTER, bw.ComparisonVerdict.B_BETTER


def trials(failures: int, n: int) -> np.ndarray:
    return np.repeat([1.0, 0.0], [failures, n - failures])


@cache
def table(n_a: int, n_b: int, what: str = "verdict", margin: float = 0.0) -> np.ndarray:
    """What compare_once says of every pair of counts."""
    found = np.empty((n_a + 1, n_b + 1), dtype=object)
    for a, b in itertools.product(range(n_a + 1), range(n_b + 1)):
        both = {"a": trials(a, n_a), "b": trials(b, n_b)}
        found[a, b] = getattr(bw.compare_once(both, alpha=ALPHA, margin=margin, binary=True), what)
    return found


def chance(event: np.ndarray, p_a: float, p_b: float) -> float:
    n_a, n_b = (size - 1 for size in event.shape)
    of_a, of_b = binom.pmf(np.arange(n_a + 1), n_a, p_a), binom.pmf(np.arange(n_b + 1), n_b, p_b)
    return float(of_a @ event.astype(float) @ of_b)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 14), (20, 4)])
def test_two_rates_keep_the_level_at_every_pair_of_rates(sizes):
    verdicts = table(*sizes)
    for p_a, p_b in itertools.product(RATES, RATES):
        if p_a >= p_b:
            assert chance(verdicts == A, p_a, p_b) <= ALPHA
        if p_a <= p_b:
            assert chance(verdicts == B, p_a, p_b) <= ALPHA
    assert max(chance(verdicts == A, p, p) for p in RATES) > 0.4 * ALPHA
    assert chance(verdicts == A, 0.05, 0.95) > 0.9


def test_one_value_of_the_common_rate_breaks_the_level():
    """The broken twin: the chance, at a common rate of 0.1 only, of what ranks as at least as extreme."""
    n = 8
    counts = list(itertools.product(range(n + 1), repeat=2))
    p_values = np.array([rate_difference_p_value(n, a, n, b) for a, b in counts]).reshape(n + 1, n + 1)
    at_one = np.array([chance(p_values <= p_values[a, b] * (1 + 1e-9), 0.1, 0.1) for a, b in counts]).reshape(
        n + 1, n + 1
    )
    assert max(chance(at_one <= ALPHA, p, p) for p in RATES) > 1.1 * ALPHA


def test_looking_twice_breaks_the_level():
    """The broken twin: peeking. Once after 8 trials of each, and again after 16."""
    first, both = table(8, 8) == A, (table(16, 16) == A).astype(float)
    k = np.arange(9)

    def ever(p: float) -> float:
        weights = binom.pmf(k, 8, p)
        early = np.outer(weights, weights)
        total = float(early[first].sum())
        for a, b in np.argwhere(~first):
            total += float(early[a, b] * (weights @ both[a : a + 9, b : b + 9] @ weights))
        return total

    assert max(map(ever, RATES)) > 1.2 * ALPHA


@pytest.mark.parametrize("sizes", [(8, 8), (5, 12)])
def test_limits_and_margin_keep_their_level(sizes):
    lower, upper = table(*sizes, "difference_lower"), table(*sizes, "difference_upper")
    shown = table(*sizes, "no_worse", 0.2)
    worst = 0.0
    for p_a, p_b in itertools.product(RATES, RATES):
        assert chance(lower > p_b - p_a, p_a, p_b) <= ALPHA
        assert chance(upper < p_b - p_a, p_a, p_b) <= ALPHA
        if p_b - p_a >= 0.2 - 1e-12:
            worst = max(worst, chance(shown, p_a, p_b))
    assert 0.3 * ALPHA < worst <= ALPHA
    assert chance(shown, 0.5, 0.05) > 0.8


@cache
def pair_table(n: int) -> dict[tuple[int, int], bw.ComparisonFinding]:
    """What is said of n matched pairs of which only A failed in some, and only B in others."""
    found = {}
    for a, b in itertools.product(range(n + 1), repeat=2):
        if a + b <= n:
            costs = np.repeat([[1, 0], [0, 1], [0, 0]], [a, b, n - a - b], axis=0).T.astype(float)
            both, keys = {"a": costs[0], "b": costs[1]}, {"a": range(n), "b": range(n)}
            found[a, b] = bw.compare_once(both, alpha=ALPHA, pair_by=keys, margin=0.3, binary=True)
    return found


def of_pairs(event, n: int, only_a: float, only_b: float) -> float:
    """P[event] if so large shares of the pairs differ."""
    given = only_b / (1 - only_a) if only_a < 1 else 0.0
    return sum(
        float(binom.pmf(a, n, only_a) * binom.pmf(b, n - a, min(given, 1.0)))
        for (a, b), finding in pair_table(n).items()
        if event(finding)
    )


def test_matched_pairs_keep_the_level_whatever_ties_partners_together():
    n, shares = 14, np.linspace(0, 1, 11)
    for only_a, only_b in itertools.product(shares, shares):
        if only_a + only_b > 1 + 1e-12:
            continue
        difference = only_b - only_a
        if difference <= 0:
            assert of_pairs(lambda f: f.verdict is A, n, only_a, only_b) <= ALPHA
        if difference >= 0.3 - 1e-12:
            assert of_pairs(lambda f: f.no_worse, n, only_a, only_b) <= ALPHA
        assert of_pairs(lambda f, d=difference: f.difference_lower > d, n, only_a, only_b) <= ALPHA
    assert of_pairs(lambda f: f.verdict is A, n, 0.5, 0.5) > 0.4 * ALPHA
    assert of_pairs(lambda f: f.verdict is A, n, 0.0, 0.5) > 0.95


def test_keys_that_are_ignored_break_the_level():
    """The broken twin: matched trials that move against each other, read as independent ones."""
    n, verdicts = 14, table(14, 14)
    against_each_other = [(a, n - a) for a in range(n + 1)]  # exactly one of each pair fails
    level = sum(binom.pmf(b, n, 0.5) for a, b in against_each_other if verdicts[a, b] is A)
    assert level > 1.5 * ALPHA


def test_order_does_not_matter_and_keys_do():
    rng = np.random.default_rng(5)
    hard = rng.random(60)
    a, b = (hard < 0.4).astype(float), (hard < 0.55).astype(float)
    keys, order = np.arange(60), rng.permutation(60)
    matched = bw.compare_once({"a": a, "b": b[order]}, pair_by={"a": keys, "b": keys[order]})
    by_row = bw.compare_once({"a": a, "b": b[order]}, pair_by={"a": keys, "b": keys})
    assert matched.verdict is A
    assert matched.p_a_better < 0.1 * by_row.p_a_better
    unpaired = bw.compare_once({"a": a, "b": b})
    assert unpaired.p_a_better == bw.compare_once({"a": a[order], "b": np.sort(b)}).p_a_better


SIZES = ((4, 3), (3, 4))  # trials of A and of B on two tasks


@cache
def task_table() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Where A is called better: on each of two tasks, overall, and on some by tests without Holm."""
    shape = [n + 1 for sizes in SIZES for n in sizes]
    each = [np.zeros(shape, bool) for _ in SIZES]
    overall, alone, crossed = (np.zeros(shape, bool) for _ in range(3))
    for counts in itertools.product(*map(range, shape)):
        both = {}
        for side, name in enumerate("ab"):
            costs = [trials(counts[2 * task + side], SIZES[task][side]) for task in (0, 1)]
            tasks = np.repeat(["mug", "can"], [len(part) for part in costs])
            both[name] = bw.Episodes(np.concatenate(costs), strata=tasks, binary=True)
        found = bw.compare_once(both, alpha=0.3)
        overall[counts] = found.verdict is A
        crossed[counts] = any(finding.verdict is B for finding in found.tasks.values())
        for task, name in enumerate(("mug", "can")):
            each[task][counts] = found.tasks[name].verdict is A
        alone[counts] = min(finding.p_alone[0] for finding in found.tasks.values()) <= 0.3
    assert ((each[0] | each[1]) <= (overall | crossed)).all()  # a task that is told apart decides all
    return each, overall, alone


def of_tasks(event: np.ndarray, rates: tuple[float, ...]) -> float:
    value = event.astype(float)
    for n, rate in zip([n for sizes in SIZES for n in sizes], rates, strict=True):
        value = np.tensordot(binom.pmf(np.arange(n + 1), n, rate), value, axes=(0, 0))
    return float(value)


def test_overall_and_each_task_err_together_at_most_at_alpha():
    each, overall, _ = task_table()
    grid = (0.0, 0.15, 0.4, 0.7, 1.0)
    worst = 0.0
    for p1, q1, p2, q2 in itertools.product(grid, repeat=4):
        wrong = np.zeros_like(overall)
        if q1 <= p1:
            wrong |= each[0]
        if q2 <= p2:
            wrong |= each[1]
        if q1 <= p1 and q2 <= p2:
            wrong |= overall
        worst = max(worst, of_tasks(wrong, (p1, q1, p2, q2)))
    assert 0.1 < worst <= 0.3
    assert of_tasks(overall, (0.0, 0.9, 0.1, 0.9)) > 0.9
    assert of_tasks(each[0], (0.0, 1.0, 0.5, 0.5)) > 0.6  # one task only, and it is named


def test_tasks_without_holm_break_the_level():
    """The broken twin: a task is called better at its own level."""
    _, _, alone = task_table()
    levels = [of_tasks(alone, (p, p, q, q)) for p, q in itertools.product(RATES[::4], repeat=2)]
    assert max(levels) > 1.1 * 0.3


def test_it_is_boschloos_test_and_27_of_30_against_20_of_30_is_a_verdict():
    finding = bw.compare_once({"act": trials(3, 30), "dp": trials(10, 30)}, binary=True)
    exact = boschloo_exact([[10, 3], [20, 27]], alternative="greater").pvalue
    assert finding.verdict is A
    assert exact <= finding.p_a_better <= 1.05 * exact
    assert 0.05 < finding.difference_lower < 0.06 < 0.41 < finding.difference_upper < 0.42


@pytest.mark.parametrize("shapes", [((2, 8), (1, 4)), ((0.5, 2), (2, 8))])
def test_bounded_costs_keep_their_level(shapes):
    """By simulation: the same mean from different distributions, unequal numbers."""
    rng, runs, wrong, missed = np.random.default_rng(8), 150, 0, 0
    for _ in range(runs):
        a, b = rng.beta(*shapes[0], 30), rng.beta(*shapes[1], 50)
        finding = bw.compare_once({"a": a, "b": b}, alpha=0.2)
        wrong += finding.verdict is not bw.ComparisonVerdict.UNDECIDED
        missed += not finding.difference_lower <= 0 <= finding.difference_upper
    # At 0.2 per side, 0.4 of the runs may be wrong; 150 runs would show 0.62 with an error of 1e-6.
    assert binom.sf(wrong - 1, runs, 0.4) > 1e-6
    assert binom.sf(missed - 1, runs, 0.4) > 1e-6
    far = bw.compare_once({"a": rng.beta(2, 8, 30), "b": rng.beta(6, 6, 50)})
    assert far.verdict is A
    assert 0 < far.difference_lower < 0.3 < far.difference_upper
