"""Two policies: error rates, mean pairs to the verdict beside STEP and others, what pairing saves, speed.

Costs of 0 and 1 are enumerated exactly; STEP's decisions come from its published tables (bench group,
CC BY-NC, used as installed). Everything else is simulated; runs and seed are in the results.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import beta, betabinom, binom, boschloo_exact, hypergeom, norm

import boundwatch as bw
from boundwatch.bounds import rate_difference
from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.bounds.two_sample import bernstein_upper, bernstein_values
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.late import late_line
from boundwatch.comparison.region import LAST_PAIR, Region, alarm_coefficients, design_region, find_region
from boundwatch.comparison.walks import back, binomial, forward, order_shares, outcomes

Array = NDArray[np.float64]
Rule = Callable[[int, NDArray[np.int64], NDArray[np.int64]], Array]
ALPHA = 0.05
HORIZON = 200
# Success rates; the other cases in the table are there so that nothing is tuned to four cells.
CELLS = [
    (0.56, 0.92),
    (0.28, 0.80),
    (0.10, 0.40),
    (0.70, 0.90),
    (0.80, 0.90),
    (0.50, 0.60),
    (0.85, 0.99),
    (0.40, 0.65),
    (0.05, 0.20),
    (0.30, 0.55),
]
CORRELATIONS = (-0.3, -0.1, 0.0, 0.2, 0.4, 0.6, 0.8)
RUNS, SEED = 4000, 15


def chances(rule: Rule, outcomes: dict[tuple[int, int], float], pairs: int) -> Array:
    """Return P[first alarm at pair n]; `rule` gives the chance to alarm at every (a, b).

    It shares nothing with the recursions of the package, which the tests hold against it.
    """
    alive, alarms = np.ones((1, 1)), np.zeros(pairs + 1)
    for n in range(1, pairs + 1):
        moved = np.zeros((n + 1, n + 1))
        for (a, b), chance in outcomes.items():
            moved[a : a + n, b : b + n] += chance * alive
        stop = rule(n, *np.indices(moved.shape))
        alarms[n] = (moved * stop).sum()
        alive = moved * (1 - stop)
    return alarms


def independent(low: float, high: float) -> dict[tuple[int, int], float]:
    """Return the chances of what a pair of independent trials adds to the two counts."""
    return correlated(low, high, 0.0)


def correlated(low: float, high: float, correlation: float) -> dict[tuple[int, int], float]:
    """Return the same for two outcomes with a correlation."""
    both = low * high + correlation * math.sqrt(low * (1 - low) * high * (1 - high))
    return {(0, 0): 1 - low - high + both, (1, 0): low - both, (0, 1): high - both, (1, 1): both}


def only_differing(outcomes: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Return the chances of a pair in which only A, or only B, failed."""
    return {(0, 0): outcomes[0, 0] + outcomes[1, 1], (1, 0): outcomes[1, 0], (0, 1): outcomes[0, 1]}


def table(region: Region) -> Rule:
    """Return a region of counts as a rule."""
    return lambda n, a, b: (b >= np.array(region.needed[n])[a]).astype(float)


def signs(region: Any) -> Rule:
    """Return a region of differing pairs as a rule."""
    return lambda n, a, b: (b >= np.array(region.needed)[np.minimum(a + b, n)]).astype(float)


def fisher(n: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> Array:
    """Alarm when Fisher's one-sided p-value is at most alpha: a fixed-sample test, read after every pair."""
    return (hypergeom.sf(b - 1, 2 * n, np.minimum(a + b, 2 * n), n) <= ALPHA).astype(float)


def step_rule() -> Rule | None:
    """Return STEP's decisions for at most 200 pairs, None if it is not installed."""
    try:
        from sequentialized_barnard_tests import Hypothesis, StepTest
    except ImportError:
        return None
    test = StepTest(Hypothesis.P0LessThanP1, n_max=HORIZON, alpha=ALPHA)
    test.load_existing_policy()  # from the files of the package
    policy = test.policy

    def rule(n: int, a: NDArray[np.int64], _: NDArray[np.int64]) -> Array:
        chance = np.zeros(a.shape)
        for x in range(n + 1):
            bins = np.asarray(policy[n][x], dtype=float)
            first = int(bins[0])
            row = np.zeros(n + 1)
            inner = bins[1 : 1 + max(0, n - first)]
            row[first + 1 : first + 1 + inner.size] = inner
            row[first + 1 + inner.size :] = 1.0
            row[: x + 1] = 0.0
            chance[x] = row
        return chance

    return rule


def summary(alarms: Array) -> dict[str, float]:
    """Return the mean number of pairs, counted to the end, and the power."""
    return {"mean": float((1 - np.cumsum(alarms)[:-1]).sum()), "power": float(alarms.sum())}


def e_value_2x2(low: float, high: float, rng: np.random.Generator) -> dict[str, float]:
    """Simulate the e-value for 2x2 tables of Turner, Ly and Grünwald: plug-in estimates, Beta(0.18, 0.18)."""
    a = np.zeros(RUNS)
    b = np.zeros(RUNS)
    logs, alarm = np.zeros(RUNS), np.full(RUNS, HORIZON + 1)
    for n in range(HORIZON):
        rate_a, rate_b = (a + 0.18) / (n + 0.36), (b + 0.18) / (n + 0.36)
        rate_a, rate_b = np.minimum(rate_a, rate_b), rate_b  # one-sided: bet on B failing more
        null = (rate_a + rate_b) / 2
        fails_a, fails_b = rng.random(RUNS) < low, rng.random(RUNS) < high
        logs += np.log(np.where(fails_a, rate_a / null, (1 - rate_a) / (1 - null)))
        logs += np.log(np.where(fails_b, rate_b / null, (1 - rate_b) / (1 - null)))
        a, b = a + fails_a, b + fails_b
        alarm[(logs >= math.log(1 / ALPHA)) & (alarm > HORIZON)] = n + 1
    return {"mean": float(np.minimum(alarm, HORIZON).mean()), "power": float((alarm <= HORIZON).mean())}


def fixed_sample_size(low: float, high: float) -> int | None:
    """Return the trials of each policy after which one look at Fisher's test has 90 % power."""
    for n in range(5, 1001):
        k = np.arange(n + 1)
        first = [int(np.argmax(row)) if row.any() else n + 1 for row in fisher(n, k[:, None], k[None]) > 0]
        tails = np.append(np.cumsum(_binomial(n, high)[::-1])[::-1], 0.0)
        if float(_binomial(n, low) @ tails[first]) >= 0.9:
            return n
    return None


def _binomial(n: int, rate: float) -> Array:
    value: Array = binom.pmf(np.arange(n + 1), n, rate)
    return value


def lower_bound(cells: list[tuple[float, float]], weights: list[float], pairs: int = HORIZON) -> float:
    """Return a bound on a weighted sum of E min(tau, pairs) over cells that no test of level alpha beats.

    For any prices on common rates, mean pairs plus priced false alarms are at least what the best rule for
    them has, and a test of level alpha pays at most alpha times the prices. The largest such bound is sought.
    """
    low, high = 1 - np.array(cells)[:, 1], 1 - np.array(cells)[:, 0]
    worlds = outcomes(pairs, low, high, np.array(weights))
    ends = np.arcsin(np.sqrt([low.min(), high.max()]))
    rates = np.sin(np.clip(np.linspace(*ends, 9), 0.02, 1.55)) ** 2
    by_pooled, shares = binomial(2 * pairs, rates), order_shares(pairs)
    pooled = np.add.outer(np.arange(pairs + 1), np.arange(pairs + 1))
    best = 0.0

    def negative(logs: Array) -> tuple[float, Array]:
        nonlocal best
        prices = np.exp(np.clip(logs, -30, 30))
        gain, later, needed = -shares * (by_pooled @ prices)[pooled], worlds, [np.array([1])] * (pairs + 1)
        for n in range(pairs, -1, -1):
            if n < pairs:
                later = back(later, n)
                gain = back(gain, n) + later
            if n:
                stops = np.logical_and.accumulate(gain[:, ::-1] >= 0, axis=1).sum(axis=1)
                needed[n] = np.maximum.accumulate(n + 1 - stops)
                gain = np.minimum(gain, 0.0)
        value = float(gain[0, 0] + prices.sum() - ALPHA * prices.sum())
        best = max(best, value)
        levels = alarm_coefficients(forward(needed)) @ by_pooled
        return -value, -(levels - ALPHA) * prices

    overlap = -2 * np.log(np.sqrt(low * high) + np.sqrt((1 - low) * (1 - high)))
    start = np.full(9, math.log(float((np.array(weights) / overlap).sum()) * 1.8 * 20 / 9))
    minimize(negative, start, jac=True, method="L-BFGS-B", options={"maxfun": 60, "maxiter": 60})
    return best


def _together(bounds: dict[tuple[float, float], float]) -> dict[str, Any]:
    """Return how far above their bounds every test is in some of three cells that share a pooled rate.

    A test that is early for a large difference spends error that a small one needs. If a test were within a
    factor r of the bound in each cell, the weighted sum over the bounds would be at most r.
    """
    cells = [(0.28, 0.80), (0.40, 0.65), (0.50, 0.60)]
    ratios = [
        lower_bound(cells, [share / bounds[cell] for share, cell in zip(shares, cells, strict=True)])
        / sum(shares)
        for shares in ((1, 1, 1), (2, 2, 1), (2, 1, 1), (3, 2, 1), (3, 2, 2))
    ]
    return {"cells": cells, "no test is within": max(ratios)}


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    return {
        "alpha": ALPHA,
        "runs": RUNS,
        "seed": SEED,
        "level": _levels(),
        **_all_cells(),
        "matched": list(_matched()),
        "bounded": _bounded(),
        "partial_credit": partial_credit(),
        "peeking": {
            "fisher, read after every pair to 200": float(
                chances(fisher, independent(0.5, 0.5), HORIZON).sum()
            )
        },
        "trials_saved": _saved(),
        "calls": calls(),
        "once": once(),
        "speed": _speed(),
    }


BEFORE = {"0.1, 0.15": 2025, "1,000 old trials": 49.2, "margin 0.1, fixed bets and aimed": (293, 230)}
"""What earlier rules took: bets after the table, pairs only, bets alone."""


def _saved() -> dict[str, Any]:
    """Return what was saved beyond the table, with uneven numbers, by a margin, and with several policies."""
    rng = np.random.default_rng(SEED)
    cells = ((0.1, 0.15), (0.04, 0.08), (0.15, 0.21), (0.3, 0.37), (0.3, 0.36))
    plans = {cell: bw.plan_comparison(cost_a=cell[0], cost_b=cell[1]) for cell in cells}
    uneven, margin = [], []
    for _ in range(400):
        test = bw.PolicyComparison(ALPHA, binary=True, paired=False, finished=True)
        test.update_many((rng.random(1000) < 0.1).astype(float), (rng.random(200) < 0.3).astype(float))
        uneven.append(test.first_alarm or 200)
        test = bw.PolicyComparison(ALPHA, binary=True, paired=True, margin=0.1)
        pairs = (rng.random((600, 2)) < 0.1).astype(float).tolist()
        margin.append(next((n for n, pair in enumerate(pairs, 1) if test.update(*pair).no_worse), 601))
    return {
        "90 % power, pairs": {f"{a}, {b}": plan.trials[0.9] for (a, b), plan in plans.items()},
        "90 % power, matched at correlation 0": {
            f"{a}, {b}": bw.plan_comparison(cost_a=a, cost_b=b, paired=True).trials[0.9] for a, b in plans
        },
        "0.1 and 0.3, 1,000 old trials: mean new trials": float(np.mean(uneven)),
        "0.1 and 0.1, margin 0.1: pairs for 90 %": int(np.sort(margin)[int(0.9 * len(margin))]),
        "mean rounds until the best is known: e-values, tables": {
            " ".join(map(str, rates)): _rounds(rates)
            for rates in ((0.3, 0.7, 0.7), (0.3, 0.7, 0.7, 0.7), (0.1, 0.5, 0.5, 0.5))
        },
        "before": BEFORE,
    }


def newcombe(n: int, a: int, b: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Newcombe's interval on the failure rate of B minus that of A, n trials each, at 95 %."""
    ends = []
    for k in (a, b):
        middle, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
        ends.append((k / n, middle - half, middle + half))
    (p_a, low_a, high_a), (p_b, low_b, high_b) = ends
    change = p_b - p_a
    return change - math.hypot(p_b - low_b, high_a - p_a), change + math.hypot(high_b - p_b, p_a - low_a)


def calls(
    runs: int = 1000, n: int = 50, worlds: Sequence[tuple[int, int]] = ((10, 0), (40, 0), (10, 1))
) -> dict[str, Any]:
    """Return how often tables of tasks are wrong, and find a task that regressed, beside LeRobot's draft."""
    rng, answer = np.random.default_rng(SEED), {}
    for tasks, fallen in worlds:
        rates = np.full((2, tasks), 0.2)
        rates[1, :fallen] = 0.5
        found = dict.fromkeys(
            ("improved", "regressed", "regressed or suspect", "draft improved", "draft regressed"), 0
        )
        names = [str(task) for task in range(tasks) for _ in range(n)]
        for _ in range(runs):
            failed = rng.binomial(n, rates)
            costs = [(np.arange(n) < each[:, None]).astype(float).ravel() for each in failed]
            both = {
                name: bw.Episodes(each, binary=True, strata=names)
                for name, each in zip("ab", costs, strict=True)
            }
            table = bw.compare_once(both, alpha=ALPHA)
            verdicts = [each.verdict.value for each in table.tasks.values()]
            found["improved"] += "b-better" in verdicts
            found["regressed"] += verdicts[0] == "a-better"
            found["regressed or suspect"] += table.tasks["0"].p_alone[0] <= ALPHA or verdicts[0] == "a-better"
            limits = [newcombe(n, int(a), int(b)) for a, b in failed.T]
            found["draft improved"] += any(high < 0 for _, high in limits)
            found["draft regressed"] += limits[0][0] > 0
        answer[f"{tasks} tasks, {fallen} fallen"] = {name: hits / runs for name, hits in found.items()}
    return answer | {"runs": runs}


def once(n: int = 200) -> dict[str, Any]:
    """Return how p-values of one look compare with scipy's Boschloo test, and in how much less time."""
    tables = [(20, 35), (20, 40), (60, 80), (60, 75), (90, 115), (100, 120), (2, 9), (150, 170)]
    ratios, times = [], []
    for a, b in tables:
        for cached in (rate_difference_p_value, rate_difference._ranks, rate_difference._orders):
            cached.cache_clear()  # nothing is kept from the table before
        start = time.process_time()
        ours = rate_difference_p_value(n, a, n, b)
        middle = time.process_time()
        theirs = boschloo_exact([[b, a], [n - b, n - a]], alternative="greater").pvalue
        ratios.append(ours / theirs)
        times.append((middle - start, time.process_time() - middle))
    own, other = np.sum(times, axis=0)
    small = [
        rate_difference_p_value(30, a, 30, b)
        / boschloo_exact([[b, a], [30 - b, 30 - a]], alternative="greater").pvalue
        for a, b in ((3, 10), (1, 6), (8, 15), (0, 4), (12, 20))
    ]
    return {
        f"p-value over Boschloo's at {n} + {n}": (min(ratios), max(ratios)),
        "the same at 30 + 30": (min(small), max(small)),
        "times as fast": float(other / own),
    }


def _rounds(rates: tuple[float, ...], runs: int = 200, most: int = 250) -> list[float]:
    """Return the mean number of rounds that `rank` needs to show that the first policy is the best."""
    rng, names, found = np.random.default_rng(SEED), "abcdef"[: len(rates)], []
    for _ in range(runs):
        costs = (rng.random((most, len(rates))) < rates).astype(float).T
        found.append(
            [bisect_left(range(most), True, key=partial(_is_best, names, costs, exact)) for exact in (0, 1)]
        )
    return np.mean(found, axis=0).tolist()


def _is_best(names: str, costs: Array, exact: int, n: int) -> bool:
    if n < 4:
        return False
    return bw.rank(dict(zip(names, costs[:, :n], strict=True)), binary=bool(exact)).best == ("a",)


def _levels() -> dict[str, Any]:
    rates = np.linspace(0.001, 0.999, 999)
    answer = {}
    for name, horizon in (("open-ended", None), ("horizon 200", HORIZON)):
        region = find_region(ALPHA, paired=False, horizon=horizon)
        assert isinstance(region, Region)
        alive = forward([np.array(row) for row in region.needed])
        within = total = alarm_coefficients(alive)
        if horizon is None:
            total = within + [late_line(ALPHA, pooled).spent for pooled in range(within.size)]
        answer[name] = {
            "bernstein_bound": bernstein_upper(total),
            "largest_of_999_rates": float(bernstein_values(total, rates).max()),
            "within_the_table": float(bernstein_values(within, rates).max()),
            "after_the_table_at_one_half": float(bernstein_values(total - within, [0.5])[0]),
        }
    return answer


def _all_cells() -> dict[str, Any]:
    cells = list(_cells())
    return {
        "cells": cells,
        "together": _together({row["success rates"]: row["lower_bound"] for row in cells}),
    }


def _cells() -> Iterator[dict[str, Any]]:
    opened, ended = (find_region(ALPHA, paired=False, horizon=horizon) for horizon in (None, HORIZON))
    assert isinstance(opened, Region)
    assert isinstance(ended, Region)
    step, rng = step_rule(), np.random.default_rng(SEED)
    for worse, better in CELLS:
        low, high = 1 - better, 1 - worse
        world = independent(low, high)
        yield {
            "success rates": (worse, better),
            "open": summary(chances(table(opened), world, HORIZON)),
            "horizon_200": summary(chances(table(ended), world, HORIZON)),
            "step_200": None if step is None else summary(chances(step, world, HORIZON)),
            "e_value_2x2": e_value_2x2(low, high, rng),
            "fisher_90": fixed_sample_size(low, high),
            "lower_bound": lower_bound([(worse, better)], [1.0]),
        }


def _matched() -> Iterator[dict[str, Any]]:
    unpaired, paired = (find_region(ALPHA, paired=matched) for matched in (False, True))
    assert isinstance(unpaired, Region)
    for correlation in CORRELATIONS:
        null = correlated(0.5, 0.5, correlation)
        row: dict[str, Any] = {
            "correlation": correlation,
            "level_unpaired_region": float(chances(table(unpaired), null, HORIZON).sum()),
            "level_sign_test": float(chances(signs(paired), only_differing(null), HORIZON).sum()),
        }
        world = correlated(0.1, 0.3, correlation)
        if min(world.values()) >= 0:
            row["sign_test .7 .9"] = summary(chances(signs(paired), only_differing(world), HORIZON))
        yield row


def stopped(costs_a: Array, costs_b: Array) -> Array:
    """Return the pair at which each run says that A is better; one more than there are if it never does."""
    bets = DifferenceBets()
    logs = np.tile(bets.log_shares, (costs_a.shape[0], 1))
    alarm = np.full(costs_a.shape[0], costs_a.shape[1] + 1)
    for n, (a, b) in enumerate(zip(costs_a.T, costs_b.T, strict=True), start=1):
        logs += bets.log_factors(a[:, None], b[:, None])
        alarm[(np.exp(logs).sum(axis=1) >= 1 / ALPHA) & (alarm > n)] = n
    return np.minimum(alarm, costs_a.shape[1] + 1).astype(float)


SCORES = np.linspace(0, 1, 5)
"""The scores of a rubric with four milestones."""


def n_score(scores_a: NDArray[np.int64], scores_b: NDArray[np.int64]) -> Array:
    """Return the same for N-SCORE's test of partial credit (A scores less), of many runs at once.

    It bets the size that would grow the capital most if the frequencies so far, with a prior weight of 2
    over all scores, were the truth. The numbers are those of `nscore` 0.1.2, which takes 20 ms per pair.
    """
    k, sizes = SCORES.size, (np.arange(500) + 0.5) / 500
    growth = np.log1p(sizes * (SCORES[None, :, None] - SCORES[:, None, None])).reshape(k * k, -1)
    runs, pairs = scores_a.shape
    counts_a, counts_b = np.full((2, runs, k), 2 / k)
    log, alarm, rows = np.zeros(runs), np.full(runs, pairs + 1.0), np.arange(runs)
    for n in range(pairs):
        a, b = scores_a[:, n], scores_b[:, n]
        live = np.flatnonzero(alarm > pairs)
        of_a, of_b = (each[live] / each[live].sum(axis=1, keepdims=True) for each in (counts_a, counts_b))
        best = sizes[((of_a[:, :, None] * of_b[:, None, :]).reshape(-1, k * k) @ growth).argmax(axis=1)]
        bet = np.where(of_b @ SCORES > of_a @ SCORES, best, 0.0)
        log[live] += np.log1p(bet * (SCORES[b] - SCORES[a])[live])
        counts_a[rows, a] += 1
        counts_b[rows, b] += 1
        alarm[live[log[live] >= math.log(1 / ALPHA)]] = n + 1
    return alarm


def partial_credit(runs: int = 1000, pairs: int = 600) -> dict[str, Any]:
    """Return mean pairs to the verdict on scores of 0, 1/4, ..., 1, beside N-SCORE."""
    rng = np.random.default_rng(SEED)
    cells = ((0.4, 0.6, 1.0), (0.5, 0.6, 2.0), (0.7, 0.9, 2.0), (0.2, 0.8, 2.0), (0.5, 0.5, 1.0))
    drawn = {
        f"means {low:g}, {high:g}, a + b = {spread:g}": [
            betabinom.rvs(4, mean * spread, (1 - mean) * spread, size=(runs, pairs), random_state=rng)
            for mean in (low, high)
        ]
        for low, high, spread in cells
    }
    still = np.full((runs, pairs), 2)
    drawn["always 0.5; 0.75 in 30 %"] = [still, still + (rng.random(still.shape) < 0.3)]
    found = {}
    for name, (a, b) in drawn.items():
        times = stopped(SCORES[a], SCORES[b]), n_score(a, b)
        found[name] = [(float(np.minimum(t, pairs).mean()), float((t <= pairs).mean())) for t in times]
    return found


def _bounded() -> dict[str, Any]:
    rng = np.random.default_rng(SEED)

    def draw(mean: float, spread: float, z: Array) -> Array:
        value: Array = beta.ppf(norm.cdf(z), mean * spread, (1 - mean) * spread)
        return value

    shape = RUNS, 300
    nulls = {
        "two-point: 0 or 1 against 0.05": ((rng.random(shape) < 0.05).astype(float), np.full(shape, 0.05)),
        "beta(0.5, 1) against beta(2, 4)": (rng.beta(0.5, 1, shape), rng.beta(2, 4, shape)),
    }
    level = {}
    for name, (one, other) in nulls.items():
        level[name] = [float((stopped(x, y) <= shape[1]).mean()) for x, y in ((one, other), (other, one))]
    saved = []
    for spread in (1.0, 2.0, 5.0):
        means, rates = [], []
        for correlation in (0.0, 0.8):
            z = rng.standard_normal((RUNS // 4, 300))
            w = correlation * z + math.sqrt(1 - correlation**2) * rng.standard_normal(z.shape)
            costs = draw(0.3, spread, z), draw(0.4, spread, w)
            means.append(float(stopped(*costs).mean()))
            rates.append(_best_growth(costs[1] - costs[0]))
        saved.append(
            {
                "beta a + b": spread,
                "pairs": means,
                "saved": 1 - means[1] / means[0],
                "the best bet would save": 1 - rates[0] / rates[1],
            }
        )
    return {"level": level, "means .3 and .4, correlation 0 and .8": saved}


def _best_growth(differences: Array) -> float:
    """Return the evidence per pair of the best size of bet, known in advance.

    Against every distribution of differences in [-1, 1] with a mean of at most 0 there is no other bet than
    1 + s times the difference with s up to 1. So where costs hardly vary, pairing cannot save much more.
    """
    sizes = np.linspace(0.02, 0.995, 60)
    return max(float(np.log1p(size * differences).mean()) for size in sizes)


def _speed() -> dict[str, float]:
    rng = np.random.default_rng(SEED)
    answer = {}
    for binary in (True, False):
        test = bw.PolicyComparison(binary=binary, paired=False)
        costs = rng.random((3000, 2))
        pairs = ((costs < 0.3).astype(float) if binary else costs).tolist()
        for pair in pairs[: LAST_PAIR + 1]:  # tables are loaded by then
            test.update(*pair)
        start = time.process_time()
        for pair in pairs:
            test.update(*pair)
        kind = "binary" if binary else "bounded"
        answer[f"update, {kind}, microseconds of processor time"] = (
            (time.process_time() - start) / len(pairs) * 1e6
        )
    start = time.process_time()
    design_region(0.03, LAST_PAIR, open_ended=True)
    answer["region for a level that is not shipped, seconds of processor time"] = time.process_time() - start
    return answer


def show(results: dict[str, Any]) -> None:
    """Print the table."""
    for name, row in results["level"].items():
        print(f"level, {name}: " + ", ".join(f"{key} {value:.5f}" for key, value in row.items()))
    heads = ("open", "horizon_200", "step_200", "e_value_2x2")
    print(
        f"\n{'success rates':>14}" + "".join(f"{head:>18}" for head in heads) + "   fisher 90 %   lower bound"
    )
    for row in results["cells"]:
        cells = [
            "-" if row[head] is None else f"{row[head]['mean']:.1f} ({row[head]['power']:.3f})"
            for head in heads
        ]
        worse, better = row["success rates"]
        limit = row["lower_bound"]
        ratio = row["open"]["mean"] / limit
        print(
            f"{worse:>8.2f}, {better:.2f}"
            + "".join(f"{cell:>18}" for cell in cells)
            + f"{row['fisher_90'] or '> 1000':>14}{limit:>9.1f} (x {ratio:.2f})"
        )
    together = results["together"]
    cells = ", ".join(f"({worse:.2f}, {better:.2f})" for worse, better in together["cells"])
    print(f"no test is within {together['no test is within']:.3f} times the bound at all of {cells}\n")
    for row in results["matched"]:
        case = row.get("sign_test .7 .9")
        pairs = (
            "" if case is None else f", sign test at (.7, .9): {case['mean']:.1f} pairs ({case['power']:.3f})"
        )
        print(
            f"correlation {row['correlation']:+.1f}: level of the unpaired region "
            f"{row['level_unpaired_region']:.4f}, of the sign test {row['level_sign_test']:.4f}{pairs}"
        )
    print()
    for name, rates in results["bounded"]["level"].items():
        print(f"bounded costs, {name}: false verdicts {rates[0]:.4f} and {rates[1]:.4f}")
    for row in results["bounded"]["means .3 and .4, correlation 0 and .8"]:
        one, other = row["pairs"]
        print(
            f"beta costs with a + b = {row['beta a + b']:g}: {one:.1f} -> {other:.1f} pairs, "
            f"{row['saved']:.0%} fewer (the best bet, known in advance: {row['the best bet would save']:.0%})"
        )
    for name, (ours, theirs) in results["partial_credit"].items():
        print(f"partial credit, {name}: pairs (power) {ours[0]:.1f} ({ours[1]:.3f}), N-SCORE {theirs[0]:.1f}")
    for name, value in results["peeking"].items():
        print(f"{name}: level {value:.3f}")
    for name, value in (
        *results["trials_saved"].items(),
        *results["calls"].items(),
        *results["once"].items(),
    ):
        print(f"{name}: {value}")
    for name, value in results["speed"].items():
        print(f"{name}: {value:.2f}")
