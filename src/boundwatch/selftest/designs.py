"""What is promised of rounds of tasks, repeated scenes, several tasks and policies, and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from boundwatch import bounds
from boundwatch.bounds.rounds import equal_weights, refuted_by_rounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.comparison import ComparisonVerdict, PolicyComparison, rank
from boundwatch.detectors import FamilyTest, HypothesisTest, PredictedTest, Verdict
from boundwatch.episodes.episodes import Episodes
from boundwatch.prediction.likeness import SceneWatch
from boundwatch.selftest.tallies import alphas
from boundwatch.selftest.worlds import Array, Claim, Count, Levels

# Failure rates of tasks that differ: pooled trials vary twice as much as those within a task.
TABLE = np.array([0.02, 0.05, 0.3, 0.9])
CORRELATION = 0.3
TASKS, TURNS, HORIZON = 20, 3, 40
# Each policy is good at half of the tasks; who looks within a turn is taken in by the first half.
_GOOD, _BAD = 0.1, 0.6
_ALIKE = 14  # pairs, before all differ; of 26 that do, the sign test spends nearly all of its level
_ROUNDS, _SCENES, _REPEATS, _MEAN = 40, 10, 10, 0.2
_DELTA, _RATE, _LAB, _NEW, _TRIALS = 0.01, 0.3, 12, 10, 20
_HIGH, _FEW = 0.5, 1 / 24  # what takes long has this level, at which few runs show much
_RANKED, _RANKED_ROUNDS = 0.25, 80  # of two, hundreds of runs show twice that level
# Ties cost power, so that only without them are rates near the level; at a high one, after few scenes.
_SCENES_WATCHED = (
    ("scenes as certified, many predicted alike", (_LAB, 60), 1, 0.05),
    ("scenes as certified, none predicted alike", (3, 40), 15, 0.4),
)
_AT_ONCE = 500  # streams; more would fill the memory
_Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]


def claims_of_designs(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised; in rounds and from repeats, of as many as the certificate is of."""
    yield from _limits(certificate, levels)
    for verdict, level in levels.items():
        name, world = "family-test, total, any of 2 tasks", f"0 or 1, mean {_RATE:g}, labs drawn, too"
        yield Claim(name, verdict, world, level + _DELTA / 2, partial(_count_families, levels, verdict))
    name, world = f"hypothesis-test, total, mean over {TABLE.size} tasks and each", "0 or 1, labs drawn, too"
    yield _slow(name, world, _count_strata, _HIGH + _DELTA / 2)
    yield _slow(f"predicted-test, {_TRIALS} trials", f"mean {_RATE:g}, useless predictions", _count_predicted)
    for world, shape, digits, level in _SCENES_WATCHED:
        count: Count = partial(_count_scenes, shape, digits, level)
        yield Claim("scene-watch", Verdict.ADVERSE, world, level, count)
    better, alpha = ComparisonVerdict.A_BETTER, levels[Verdict.ADVERSE]
    for policies in ("ab", "abc"):
        name, world = f"rank, any pair of {len(policies)}", "one fails in each round, any of them"
        yield Claim(name, better, world, _RANKED, partial(_count_ranked, policies), scale=0.12)
    taken_in, same = f"fails {_GOOD:g} or {_BAD:g}, exchanged halfway", f"both fail in {_GOOD + _BAD:.0%}"
    for name, world, settings, draw in (
        (f"{TASKS} tasks in turn, independent", taken_in, {"paired": False, "tasks": TASKS}, _exchanged),
        (f"{TASKS} tasks in turn, matched", taken_in, {"paired": True, "tasks": TASKS}, _exchanged),
        (f"matched, horizon {HORIZON}", "alike, then not", {"paired": True, "horizon": HORIZON}, _drifting),
        ("independent", same, {"paired": False}, partial(_alike, (30, 30))),
        ("one finished", same, {"paired": False, "finished": True}, partial(_alike, (30, 60))),
    ):
        count = partial(_count_comparisons, alpha, settings, draw)
        yield Claim(f"compare, {name}", better, world, alpha, count)


def _slow(name: str, world: str, count: Count, level: float = _HIGH) -> Claim:
    return Claim(name, Verdict.ADVERSE, world, level, count, scale=_FEW)


def _limits(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    rates, weights, rounds = TABLE, equal_weights(TABLE.size), _ROUNDS
    shape, mean, own = (_SCENES, _REPEATS), _MEAN, set[str]()
    if certificate.method == "rounds":
        rates = np.array([each.mean_cost for each in certificate.strata])
        weights = np.array([each.weight for each in certificate.strata])
        rounds, own = certificate.strata[0].n, {"rounds"}
    elif certificate.method == "tuned" and certificate.trials is not None and certificate.n is not None:
        shape = certificate.n, max(1, round(certificate.trials.n / certificate.n))
        mean, own = min(max(certificate.mean_cost or 0.0, 0.01), 0.99), {"scenes"}
    deltas = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
    for verdict in levels:
        side = "upper" if verdict is Verdict.ADVERSE else "lower"
        delta = (deltas if "rounds" in own else levels)[verdict]
        world = f"{rates.size} tasks that fail in {rates.min():.2g} to {rates.max():.2g} of trials"
        count: Count = partial(_count_rounds, rates, weights, rounds, verdict, delta)
        name = f"campaign in rounds, {side} limit after each of {rounds}"
        yield Claim(name, verdict, world, delta, count, scale=max(1.0, 0.05 / delta))
        delta = (deltas if "scenes" in own else levels)[verdict]
        world = f"mean {mean:.3g}, trials of a scene correlated by {CORRELATION:g}"
        count = partial(_count_scenes_failed, shape, mean, verdict, delta)
        name = f"repeated scenes, {side} limit from {shape[0]} x {shape[1]}"
        yield Claim(name, verdict, world, delta, count, scale=max(1.0, 0.05 / delta))


def _count_rounds(
    rates: Array,
    weights: Array,
    rounds: int,
    verdict: Verdict,
    delta: float,
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Count streams whose limit excludes the mean over tasks after any round."""
    mean, failed = float(rates @ weights), 0
    for start in range(0, runs, _AT_ONCE):
        costs = (rng.random((min(_AT_ONCE, runs - start), rounds, rates.size)) < rates).astype(np.float64)
        turned = (costs, mean) if verdict is Verdict.ADVERSE else (1 - costs, 1 - mean)
        failed += int(refuted_by_rounds(*turned, delta, weights).sum())
    return failed


def _count_scenes_failed(
    shape: tuple[int, int], mean: float, verdict: Verdict, delta: float, rng: np.random.Generator, runs: int
) -> int:
    """Count labs whose limit excludes the mean over scenes."""
    (scenes, repeats), precision, failed = shape, (1 - CORRELATION) / CORRELATION, 0
    for start in range(0, runs, _AT_ONCE):
        rates = rng.beta(mean * precision, (1 - mean) * precision, (min(_AT_ONCE, runs - start), scenes))
        shares = rng.binomial(repeats, rates) / repeats
        if verdict is Verdict.ADVERSE:
            failed += int(np.sum(bounds.tuned_upper(shares, delta) < mean))
        else:
            failed += int(np.sum(bounds.tuned_lower(shares, delta) > mean))
    return failed


def _count_families(levels: Levels, verdict: Verdict, rng: np.random.Generator, runs: int) -> int:
    """Count pairs of tasks, nothing of which changed, of which any gets the verdict."""
    labs, news = (rng.binomial(n, _RATE, (runs, 2)) for n in (_LAB, _NEW))
    labs.sort(axis=1)  # tasks are alike: it does not matter which is called a
    outcomes, times = np.unique(np.hstack([labs, news]), axis=0, return_counts=True)
    hits = 0
    for (*failed, one, other), count in zip(outcomes.tolist(), times.tolist(), strict=True):
        lab = {task: (np.arange(_LAB) < k) * 1.0 for task, k in zip("ab", failed, strict=True)}
        test = FamilyTest(CertificateFamily.from_held_out(lab, _DELTA, binary=True), **alphas(levels))
        new = {task: (np.arange(_NEW) < k) * 1.0 for task, k in (("a", one), ("b", other))}
        hits += count * bool(test.decide(new).called(verdict))
    return hits


def _count_strata(rng: np.random.Generator, runs: int) -> int:
    """Count looks at tasks, nothing of which changed, of which the mean or any is called worse."""
    names, hits = "abcd", 0
    for costs in (rng.random((runs, _LAB + _NEW, TABLE.size)) < TABLE) * 1.0:
        lab = Episodes(costs[:_LAB].ravel(), strata=[*names] * _LAB, binary=True)
        test = HypothesisTest(Certificate.from_held_out(lab, delta=_DELTA), alpha_adverse=_HIGH)
        found = test.decide(dict(zip(names, costs[_LAB:].T, strict=True)))
        hits += found.verdict is Verdict.ADVERSE or bool(found.called(Verdict.ADVERSE))
    return hits


def _count_ranked(policies: str, rng: np.random.Generator, runs: int) -> int:
    """Count rankings of equally good policies in which any pair is decided."""
    hits = 0
    for failing in rng.integers(len(policies), size=(runs, _RANKED_ROUNDS)):
        costs = {name: (failing == place) * 1.0 for place, name in enumerate(policies)}
        ranking = rank(costs, _RANKED, paired=True, binary=True)
        hits += any(pair.decided for pair in ranking.pairs)
    return hits


def _count_predicted(rng: np.random.Generator, runs: int) -> int:
    """Count streams that alarm though their rate is the bound."""
    bound = Certificate.from_bounds(lower=_RATE, upper=_RATE, delta=_DELTA, binary=True)
    test, hits = PredictedTest(bound, alpha_adverse=_HIGH, alpha_benign=_HIGH / 2), 0
    for costs in (rng.random((runs, _TRIALS)) < _RATE) * 1.0:
        test.reset()
        for cost in costs.tolist():
            predicted, *others = rng.random(4).tolist()
            found = test.update(cost, predicted=predicted, unlabeled=others)
        hits += found.verdict is Verdict.ADVERSE
    return hits


def _count_scenes(
    shape: tuple[int, int], digits: int, level: float, rng: np.random.Generator, runs: int
) -> int:
    """Count notices about new scenes that are like the certified ones."""
    old, new = shape
    drawn = rng.random((runs, old + new)).round(digits)
    return sum(SceneWatch(each[:old], alpha=level).update(each[old:]).look is not None for each in drawn)


def _alike(sizes: tuple[int, int], rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    costs_a, costs_b = ((rng.random((runs, n)) < _GOOD + _BAD).astype(np.float64) for n in sizes)
    return costs_a, costs_b


def _exchanged(rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    rates = np.tile(np.repeat([_GOOD, _BAD], TASKS // 2), TURNS)
    costs_a, costs_b = (rng.random((runs, rates.size)) < each for each in (rates, _GOOD + _BAD - rates))
    return costs_a.astype(np.float64), costs_b.astype(np.float64)


def _drifting(rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    costs_a = (rng.random((runs, HORIZON)) < 0.5).astype(np.float64)
    return costs_a, np.where(np.arange(HORIZON) < _ALIKE, costs_a, 1 - costs_a)


def _count_comparisons(
    alpha: float, settings: dict[str, Any], draw: _Draw, rng: np.random.Generator, runs: int
) -> int:
    test, hits = PolicyComparison(alpha, binary=True, **settings), 0
    for costs_a, costs_b in zip(*draw(rng, runs), strict=True):
        test.reset()
        hits += test.update_many(costs_a, costs_b).verdict is ComparisonVerdict.A_BETTER
    return hits
