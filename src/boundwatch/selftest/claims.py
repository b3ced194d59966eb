"""What is promised while limits hold, over the draw of a certificate's trials, too, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonVerdict, PolicyComparison
from boundwatch.detectors import ChangeDetector, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.errors import InvalidSetting
from boundwatch.selftest import counting
from boundwatch.selftest.counting import EPISODES, MARGIN, RATE, STREAMS, Datasets, Streams, Watched, claim
from boundwatch.selftest.worlds import Array, Claim, Lab, Levels, OwnCosts, World, two_costs

SIZES = (5, 10, 25, 50, 100)
TASKS, TURNS, HORIZON = 20, 3, 40
# Each policy is good at half of the tasks; who looks within a turn is taken in by the first half.
_GOOD, _BAD = 0.1, 0.6
_ALIKE = 24  # pairs, before all differ
_Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]


def claims_given_limits(
    certificate: Certificate,
    places: Sequence[World],
    detectors: Sequence[FixedSampleDetector],
    levels: Levels,
) -> Iterator[Claim]:
    """Return what is promised in some worlds, and where streams restart or the mean is off by a margin."""
    for world in places:
        yield from _fixed_claims(world, detectors)
        yield from _watch_claims(world, levels)
    world = World(certificate, Verdict.ADVERSE, 0.0, 1.0, certificate.upper)
    restarted = Streams(world, levels, Watched.listed_after_restarts, per_run=STREAMS)
    yield claim(f"discoveries, {STREAMS} streams, restarted", RATE, restarted)
    yield from _watch_margin_claims(certificate, levels)


def worlds(limits: Certificate, certificate: Certificate, costs: ArrayLike | None) -> list[World]:
    """Return the worlds in which the promises of a certificate's detectors are hardest to keep."""
    found = [
        World(limits, verdict, low, high, mean)
        for verdict, mean in ((Verdict.ADVERSE, limits.upper), (Verdict.BENIGN, limits.lower))
        for low, high in two_costs(verdict, mean, binary=limits.binary)
    ]
    if costs is not None:
        own = certificate.check_costs(costs)
        failed = [check.detail for check in certificate.verify(own) if not check.ok]
        if failed:
            raise InvalidSetting(f"costs are not the certificate's own ({failed[0]}); pass those, or none")
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            found.append(OwnCosts(limits, verdict, 0.0, 1.0, float(own.mean()), own))
    return found


def _fixed_claims(world: World, detectors: Sequence[FixedSampleDetector]) -> Iterator[Claim]:
    side = 0 if world.is_adverse else 1
    for detector in detectors:
        name, level = f"{detector.name}, {detector.tail_name}", detector.levels[side]
        look = partial(Datasets, world, partial(_always, detector))
        for n in SIZES:
            yield claim(f"{name}, n = {n}", level, look(n, counting.is_declared))
        yield claim(f"{name}, {world.shift_limit}", level, look(SIZES[1], counting.is_excluded))


def _always(detector: FixedSampleDetector, certificate: Certificate) -> FixedSampleDetector:  # noqa: ARG001
    return detector


def _watch_claims(world: World, levels: Levels) -> Iterator[Claim]:
    level, watched = levels[world.verdict], partial(Streams, world, levels)
    yield claim(f"fleet, read {EPISODES} times", level, watched(Watched.declared_by_fleet))
    declared = watched(Watched.declared_by_test, in_rows=True)
    yield claim(f"sequential-test, read {EPISODES} times", level, declared)
    yield claim(f"sequential-test, {world.shift_limit}", level, watched(Watched.missed_by_limits))
    if world.is_adverse:
        listed = watched(Watched.listed, per_run=STREAMS)
        yield claim(f"discoveries in {STREAMS} streams", RATE, listed)
    change = ChangeDetector(world.certificate)
    alpha = change.alpha_adverse if world.is_adverse else change.alpha_benign
    changed = watched(Watched.declared_by_change_detector, in_rows=True)
    name = f"change-detector, run length <= {EPISODES}"
    yield claim(name, min(1.0, EPISODES * alpha), changed, scale=1 / 6)


def _watch_margin_claims(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Try "no worse by more than a margin" where the cost is worse by just that."""
    level, mean = levels[Verdict.BENIGN], certificate.lower + MARGIN
    if mean >= 1:
        return
    for low, high in two_costs(Verdict.BENIGN, mean, binary=certificate.binary):
        world = World(certificate, Verdict.BENIGN, low, high, mean)
        words = f"margin {MARGIN:g}, read {EPISODES} times"
        yield claim(f"fleet, {words}", level, Streams(world, levels, Watched.shown_by_fleet))
        if world.is_of_extremes:
            yield claim(f"sequential-test, {words}", level, Streams(world, levels, Watched.shown_by_test))


def claims_over_labs(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised over the draw of the lab's trials and the new ones."""
    means = _means(certificate)
    for lab in _labs(certificate, means):
        if certificate.method == "anytime":
            yield _limit_claim(lab, f"campaign, looked at {counting.LOOKS} times", _count_campaigns)
        else:
            yield from _total_claims(lab, levels, lab.mean == means[0])


def _means(certificate: Certificate) -> list[float]:
    """Return means to try, the central one first; a lab without failures is tried at its upper limit."""
    mean_cost = certificate.mean_cost or 0.0
    means = {certificate.lower, mean_cost, certificate.upper}
    usable = [mean for mean in means if 0 < mean < 1] or [0.5]  # two costs have no other mean
    return sorted(usable, key=lambda mean: abs(mean - mean_cost))


def _labs(certificate: Certificate, means: list[float]) -> Iterator[Lab]:
    """Yield worlds with these means; those that are hardest for other costs, at the central one."""
    for mean in sorted(means):
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            pairs = two_costs(verdict, mean, binary=certificate.binary)
            for low, high in pairs if mean == means[0] else pairs[:1]:
                yield Lab(certificate, verdict, low, high, mean)


def _delta(lab: Lab) -> float:
    like = lab.certificate
    return like.delta_upper if lab.is_adverse else like.delta_lower


def _limit_claim(lab: Lab, name: str, count: Callable[[Lab, np.random.Generator, int], int]) -> Claim:
    """Promise that a certified limit fails with probability delta; so rarely that it takes more runs."""
    delta = _delta(lab)
    return Claim(name, lab.verdict, lab.describe(), delta, partial(count, lab), scale=max(1.0, 0.05 / delta))


def _count_labs(lab: Lab, rng: np.random.Generator, runs: int) -> int:
    """Count labs whose limit fails; binary ones where that is likeliest, just beyond a limit of theirs."""
    like = lab.certificate
    if like.binary:
        again = lab.redrawn(like.failures or 0)
        mean = again.upper + 1e-9 if lab.is_adverse else again.lower - 1e-9
        lab = replace(lab, mean=mean) if 0 < mean < 1 else lab
    return sum(count for redrawn, count in lab.certify(rng, runs) if _fails(lab, redrawn))


def _fails(lab: Lab, limits: Certificate | Campaign) -> bool:
    """Return whether the limit behind a verdict is beyond the true mean."""
    if lab.is_adverse:
        return limits.upper < lab.mean - 1e-12
    return limits.lower > lab.mean + 1e-12


def _count_campaigns(lab: Lab, rng: np.random.Generator, runs: int) -> int:
    """Count campaigns whose limit fails at any look."""
    like = lab.certificate
    ends = np.unique(np.linspace(0, like.n or 1, counting.LOOKS + 1).round().astype(np.int64))
    held, failed = np.array([runs]), 0  # campaigns that did not fail yet, by their number of high costs
    for n, more in zip(ends[1:].tolist(), np.diff(ends).tolist(), strict=True):
        before, held = held, np.zeros(n + 1, dtype=np.int64)
        for number in np.flatnonzero(before).tolist():
            held[number : number + more + 1] += rng.multinomial(before[number], lab.chances(more))
        for number in np.flatnonzero(held).tolist():
            campaign = Campaign(
                delta_upper=like.delta_upper, delta_lower=like.delta_lower, binary=like.binary
            )
            if _fails(lab, campaign.update_many(lab.costs(np.array([number]), n)[0])):
                failed += int(held[number])
                held[number] = 0
    return failed


def _total_claims(lab: Lab, levels: Levels, is_central: bool) -> Iterator[Claim]:
    """Return what is promised of one lab; at the central mean, everything is tried."""
    total, binary = levels[lab.verdict] + _delta(lab), lab.certificate.binary
    sizes = (10, 50) if binary else (10,)
    test = partial(_hypothesis_test, levels)
    for n in sizes:
        declared = Datasets(lab, test, n, counting.is_declared)
        yield claim(f"hypothesis-test, total, n = {n}", total, declared)
    if is_central or binary:
        yield from _stream_claims(lab, levels, total, is_central)
    if is_central:
        side = "upper" if lab.is_adverse else "lower"
        limit = _limit_claim(lab, f"certificate, {side} limit", _count_labs)
        yield replace(limit, world="0 or 1, just beyond a limit, lab drawn, too") if binary else limit
        declared = Datasets(lab, partial(interval_test, levels), sizes[-1], counting.is_declared)
        yield claim(f"confidence-interval, total, n = {sizes[-1]}", total, declared)
        excluded = Datasets(lab, test, sizes[-1], counting.is_excluded)
        yield claim(f"hypothesis-test, total, {lab.shift_limit}", total, excluded)
        missed = Streams(lab, levels, Watched.missed_by_limits)
        yield claim(f"sequential-test, total, {lab.shift_limit}", total, missed)
        if lab.is_adverse:
            listed = Streams(lab, levels, Watched.listed, per_run=STREAMS)
            yield claim(f"discoveries, total, {STREAMS} streams", RATE, listed)


def _stream_claims(lab: Lab, levels: Levels, total: float, is_central: bool) -> Iterator[Claim]:
    watched, words = partial(Streams, lab, levels), f"total, {EPISODES} times"
    yield claim(f"fleet, {words}", total, watched(Watched.declared_by_fleet))
    if lab.is_of_extremes:
        yield claim(f"sequential-test, {words}", total, watched(Watched.declared_by_test))
        if is_central:
            families = watched(Watched.declared_in_families, per_run=counting.ROBOTS)
            yield claim(f"sequential-test, total, any of {counting.ROBOTS} streams", total, families)
    if lab.verdict is Verdict.BENIGN and lab.mean + MARGIN < lab.high:
        yield from _margin_claims(lab, levels, total)


def _margin_claims(lab: Lab, levels: Levels, total: float) -> Iterator[Claim]:
    """Try "no worse by more than a margin" at sites that are worse by just that."""
    n, words = 50 if lab.certificate.binary else 10, f"total, margin {MARGIN:g}"
    shown = Datasets(lab, partial(_hypothesis_test, levels, margin=MARGIN), n, counting.is_shown, MARGIN)
    yield claim(f"hypothesis-test, {words}, n = {n}", total, shown)
    watched, words = partial(Streams, lab, levels, more=MARGIN), f"{words}, {EPISODES} times"
    yield claim(f"fleet, {words}", total, watched(Watched.shown_by_fleet))
    if lab.is_of_extremes:
        yield claim(f"sequential-test, {words}", total, watched(Watched.shown_by_test))


def _hypothesis_test(
    levels: Levels, certificate: Certificate, margin: float | None = None
) -> FixedSampleDetector:
    return HypothesisTest(certificate, margin=margin, **counting.alphas(levels))


def interval_test(levels: Levels, certificate: Certificate) -> FixedSampleDetector:
    """Return a confidence interval whose totals are these levels and the deltas."""
    return ConfidenceInterval(
        certificate,
        false_positive_rate=levels[Verdict.ADVERSE] + certificate.delta_upper,
        false_negative_rate=levels[Verdict.BENIGN] + certificate.delta_lower,
    )


def claims_of_comparisons(alpha: float) -> Iterator[Claim]:
    """Return what is promised, per side, of two policies of which neither is better."""
    world = f"fails {_GOOD:g} or {_BAD:g}, exchanged halfway"
    for paired in (False, True):
        name = f"compare, {TASKS} tasks in turn, {'matched' if paired else 'independent'}"
        count = partial(_count_comparisons, alpha, {"paired": paired, "tasks": TASKS}, _exchanged)
        yield Claim(name, ComparisonVerdict.A_BETTER, world, alpha, count)
    count = partial(_count_comparisons, alpha, {"paired": True, "horizon": HORIZON}, _drifting)
    world = f"{_ALIKE} pairs alike, {HORIZON - _ALIKE} that differ"
    yield Claim(f"compare, matched, horizon {HORIZON}", ComparisonVerdict.A_BETTER, world, alpha, count)
    world = f"both fail in {100 * (_GOOD + _BAD):.0f} % of trials"
    for name, settings, sizes in (
        ("independent", {}, (30, 30)),
        ("one finished", {"finished": True}, (60, 30)),
    ):
        count = partial(_count_comparisons, alpha, {"paired": False, **settings}, partial(_alike, sizes))
        yield Claim(f"compare, {name}", ComparisonVerdict.A_BETTER, world, alpha, count)
    yield Claim(
        "compare, once", ComparisonVerdict.A_BETTER, world, alpha, partial(_count_once, alpha, (40, 25))
    )


def _alike(sizes: tuple[int, int], rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    costs_a, costs_b = ((rng.random((runs, n)) < _GOOD + _BAD).astype(np.float64) for n in sizes)
    return costs_a, costs_b


def _count_once(alpha: float, sizes: tuple[int, int], rng: np.random.Generator, runs: int) -> int:
    (n_a, n_b), failed = sizes, rng.binomial(sizes, _GOOD + _BAD, (runs, 2)).tolist()
    return sum(rate_difference_p_value(n_a, a, n_b, b) <= alpha for a, b in failed)


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
