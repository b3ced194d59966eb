"""What is promised of several tasks and policies, and with predicted costs; no certificate is needed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.comparison import ComparisonVerdict, rank
from boundwatch.detectors import FamilyTest, PredictedTest, Verdict
from boundwatch.selftest.counting import alphas
from boundwatch.selftest.worlds import Claim, Levels

_DELTA, _RATE, _LAB, _NEW = 0.01, 0.3, 12, 10
_HIGH, _FEW = 0.5, 1 / 24  # what takes long has this level, at which few runs show much
_POLICIES, _TRIALS = "abc", 20


def claims_of_several(levels: Levels) -> Iterator[Claim]:
    """Return what is promised where nothing is worse, nobody is better, or predictions mean nothing."""
    for verdict, level in levels.items():
        name, world = "family-test, total, any of 2 tasks", f"0 or 1, mean {_RATE:g}, labs drawn, too"
        yield Claim(name, verdict, world, level + _DELTA / 2, partial(_count_families, levels, verdict))
    world = f"{len(_POLICIES)} equally good policies, {_TRIALS} trials each"
    yield Claim("rank, any pair", ComparisonVerdict.A_BETTER, world, _HIGH, _count_ranked, scale=_FEW)
    name, world = f"predicted-test, {_TRIALS} trials", f"0 or 1, mean {_RATE:g}, useless predictions"
    yield Claim(name, Verdict.ADVERSE, world, _HIGH, _count_predicted, scale=_FEW)


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


def _count_ranked(rng: np.random.Generator, runs: int) -> int:
    """Count rankings of equally good policies in which any pair is decided."""
    hits = 0
    for costs in (rng.random((runs, len(_POLICIES), _TRIALS)) < 0.5) * 1.0:
        ranking = rank(dict(zip(_POLICIES, costs, strict=True)), _HIGH, binary=True)
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
