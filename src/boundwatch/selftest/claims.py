"""What is promised while limits hold, and over the draw of a certificate's trials, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.selftest import tallies
from boundwatch.selftest.tallies import EPISODES, MARGIN, RATE, STREAMS, Datasets, Streams, Watched, claim
from boundwatch.selftest.worlds import Claim, Lab, Levels, World, two_costs

SIZES = (5, 10, 25, 50, 100)
_Looks = dict[str, Callable[[Certificate], FixedSampleDetector]]


def claims_given_limits(limits: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised where the mean is the certified limit, the worst that is no shift."""
    tails = [tail for tail in TAILS if tail != "exact" or limits.binary]
    looks: _Looks = {
        f"hypothesis-test, {tail}": partial(_hypothesis_test, levels, tail=tail) for tail in tails
    }
    tail = "exact" if limits.binary else "betting"
    looks[f"confidence-interval, {tail}"] = partial(_interval_test, levels)
    for verdict, mean in ((Verdict.ADVERSE, limits.upper), (Verdict.BENIGN, limits.lower)):
        for low, high in two_costs(verdict, mean, binary=limits.binary):
            yield from _claims_in(World(limits, verdict, low, high, mean), levels, looks, SIZES)
    world = World(limits, Verdict.ADVERSE, 0.0, 1.0, limits.upper)
    restarted = Streams(world, levels, Watched.listed_after_restarts, per_run=STREAMS)
    yield claim(f"discoveries, restarted, in {STREAMS} streams", RATE, restarted)


def claims_over_labs(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised over the draw of lab and new trials: at the lab's mean and at its limits."""
    mean_cost = certificate.mean_cost or 0.0
    means = {mean for mean in (certificate.lower, mean_cost, certificate.upper) if 0 < mean < 1} or {0.5}
    central = min(means, key=lambda mean: abs(mean - mean_cost))  # two costs have no mean of 0 or 1
    for mean in sorted(means):
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            pairs = two_costs(verdict, mean, binary=certificate.binary)
            for low, high in pairs if mean == central else pairs[:1]:
                lab = Lab(certificate, verdict, low, high, mean)
                if certificate.method in ("anytime", "predicted-anytime"):
                    yield _limit_claim(lab, f"campaign, looked at {tallies.LOOKS} times", _count_campaigns)
                else:
                    yield from _claims_of_lab(lab, levels, is_central=mean == central)


def _claims_of_lab(lab: Lab, levels: Levels, *, is_central: bool) -> Iterator[Claim]:
    """Return what is promised of one lab; at the central mean, everything is tried."""
    binary, looks = lab.certificate.binary, dict[str, Callable[[Certificate], FixedSampleDetector]]()
    looks["hypothesis-test"] = partial(_hypothesis_test, levels)
    sizes = (10, 50) if binary else (10,)
    if is_central:
        looks["confidence-interval"] = partial(_interval_test, levels)
        limit = _limit_claim(lab, f"certificate, {'upper' if lab.is_adverse else 'lower'} limit", _count_labs)
        yield replace(limit, world="0 or 1, just beyond a limit, lab drawn, too") if binary else limit
    yield from _claims_in(lab, levels, looks, sizes, is_central=is_central)


def _claims_in(
    world: World, levels: Levels, looks: _Looks, sizes: tuple[int, ...], *, is_central: bool = True
) -> Iterator[Claim]:
    """Return what is promised in one world; of streams, not everywhere, as they take long."""
    total, level = "total, " if isinstance(world, Lab) else "", levels[world.verdict] + world.delta
    for name, look in looks.items():
        for n in sizes:
            yield claim(f"{name}, {total}n = {n}", level, Datasets(world, look, n, tallies.is_declared))
        if is_central:
            excluded = Datasets(world, look, sizes[-1], tallies.is_excluded)
            yield claim(f"{name}, {total}{world.shift_limit}", level, excluded)
    if not is_central and not world.certificate.binary:
        return
    watched, read = partial(Streams, world, levels), f"{total}read {EPISODES} times"
    yield claim(f"fleet, {read}", level, watched(Watched.declared_by_fleet))
    if world.is_of_extremes or not total:
        declared = watched(Watched.declared_by_test, in_rows=not total)
        yield claim(f"sequential-test, {read}", level, declared)
    if is_central:
        missed = watched(Watched.missed_by_limits)
        yield claim(f"sequential-test, {total}{world.shift_limit}", level, missed)
        yield from _claims_of_many(world, levels, level, total)
    if world.verdict is Verdict.BENIGN and world.mean + MARGIN < world.high:
        shown = partial(_hypothesis_test, levels, margin=MARGIN)
        test = Datasets(world, shown, sizes[-1], tallies.is_shown, MARGIN)
        yield claim(f"hypothesis-test, {total}margin {MARGIN:g}, n = {sizes[-1]}", level, test)
        watched, read = partial(watched, more=MARGIN), f"{total}margin {MARGIN:g}, read {EPISODES} times"
        yield claim(f"fleet, {read}", level, watched(Watched.shown_by_fleet))
        if world.is_of_extremes:
            yield claim(f"sequential-test, {read}", level, watched(Watched.shown_by_test))


def _claims_of_many(world: World, levels: Levels, level: float, total: str) -> Iterator[Claim]:
    """Return what is promised of many streams, and of one that goes on for long."""
    watched = partial(Streams, world, levels)
    if total and world.is_of_extremes:
        families = watched(Watched.declared_in_families, per_run=tallies.ROBOTS)
        yield claim(f"sequential-test, total, any of {tallies.ROBOTS} streams", level, families)
    if world.is_adverse:
        listed = watched(Watched.listed, per_run=STREAMS)
        yield claim(f"discoveries, {total}in {STREAMS} streams", RATE, listed)
    if not total:
        change = ChangeDetector(world.certificate)
        alpha = change.alpha_adverse if world.is_adverse else change.alpha_benign
        changed = watched(Watched.declared_by_change_detector, in_rows=True)
        name = f"change-detector, run length <= {EPISODES}"
        yield claim(name, min(1.0, EPISODES * alpha), changed, scale=1 / 6)


def _limit_claim(lab: Lab, name: str, count: Callable[[Lab, np.random.Generator, int], int]) -> Claim:
    """Promise that a certified limit fails with probability delta; so rarely that it takes more runs."""
    scale = max(1.0, 0.05 / lab.delta)
    return Claim(name, lab.verdict, lab.describe(), lab.delta, partial(count, lab), scale)


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
    ends = np.unique(np.linspace(0, like.n or 1, tallies.LOOKS + 1).round().astype(np.int64))
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


def _hypothesis_test(levels: Levels, certificate: Certificate, **settings: Any) -> FixedSampleDetector:
    return HypothesisTest(certificate, **settings, **tallies.alphas(levels))


def _interval_test(levels: Levels, certificate: Certificate) -> FixedSampleDetector:
    return ConfidenceInterval(
        certificate,
        false_positive_rate=levels[Verdict.ADVERSE] + certificate.delta_upper,
        false_negative_rate=levels[Verdict.BENIGN] + certificate.delta_lower,
    )
